/* Several managers that take turns, with leases in a store that they share (docs/etcd.md).
 *
 * A manager whose leadership ends is started again at once, as `pawl manager` does. The campaign observes every
 * record that is put into the store, and builds its own ledger from them, as the keeper does with a journal. No
 * record of the log may be put twice. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "manager/leader/journal_meta.h"
#include "sim/campaign/inside.h"

#define PREFIX "pawl/sim"
#define LOG PREFIX "/log/"
#define RECORD_KIND 4 /* place of a record's kind in its head */

static struct pwi_standby_state state_of(const struct campaign_leader *leader) {
  struct pwi_standby_state state = {0};
  if (leader->standby) pwi_standby_state(leader->standby, &state);
  return state;
}

/* Of all managers that believe to lead, the one with the highest term does. */
static void find_manager(struct campaign *campaign) {
  struct campaign_leaders *leaders = &campaign->leaders;
  uint64_t term = 0;
  campaign->cluster.manager = NULL;
  for (size_t i = 0; i < leaders->count; i++) {
    struct pwi_standby_state state = state_of(&leaders->all[i]);
    if (state.phase != PWI_STANDBY_LEADING || state.term <= term) continue;
    term = state.term;
    campaign->cluster.manager = state.manager;
    campaign->cluster.manager_node = leaders->all[i].node;
  }
}

static void changed(void *context) {
  struct campaign_leader *leader = context;
  struct campaign *campaign = leader->campaign;
  if (!leader->standby) return; /* it is being created */
  struct pwi_standby_state state = state_of(leader);
  if (state.phase == PWI_STANDBY_LEADING && state.term != leader->term) {
    campaign->figures.takeovers += state.term > 1;
    leader->term = state.term;
  }
  if (state.phase == PWI_STANDBY_FAILED)
    CAMPAIGN_FAIL(campaign, "%s cannot lead: %s", leader->name, pawl_status_name(state.why));
  if (state.phase == PWI_STANDBY_OVER) {
    pawl_status status = pwi_sim_restart(campaign->cluster.sim, leader->node);
    (void)status; /* inside a callback it is PAWL_OK */
  }
  find_manager(campaign);
}

static pawl_status boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                        void **self_out) {
  struct campaign_leader *leader = context;
  struct campaign *campaign = leader->campaign;
  const struct pwi_cluster_config *cluster = &campaign->cluster.config;
  struct pwi_standby_config config = {.manager = {.net = boot->net,
                                                  .random = boot->random,
                                                  .log = boot->log,
                                                  .host = boot->name,
                                                  .disk_queue = cluster->disk_queue,
                                                  .functions = cluster->functions,
                                                  .first_processes = cluster->processes,
                                                  .client_grace_ns = cluster->client_grace_ns,
                                                  .points = cluster->points,
                                                  .replicas = cluster->replicas,
                                                  .journal_bytes = cluster->journal_bytes},
                                      .prefix = PREFIX,
                                      .changed = changed,
                                      .context = leader};
  pawl_status status = pwi_net_listen(boot->net, leader->address);
  if (!status) status = pwi_sim_meta_open(campaign->leaders.store, leader->node, boot->net, &leader->meta);
  if (status) return status;
  config.meta = leader->meta;
  status = pwi_standby_create(&config, &leader->standby);
  if (status) {
    leader->meta->ops->destroy(leader->meta);
    leader->meta = NULL;
  }
  *actor_out = &pwi_standby_actor;
  *self_out = leader->standby;
  return status;
}

static void halt(void *context, void *self) {
  struct campaign_leader *leader = context;
  pwi_standby_destroy(self);
  leader->meta->ops->destroy(leader->meta);
  leader->standby = NULL;
  leader->meta = NULL;
  find_manager(leader->campaign);
}

/* The first record of a compacted log repeats all earlier ones. */
static void record_put(void *context, const char *key, const void *value, size_t size,
                       const struct pwi_meta_pair *before) {
  struct campaign *campaign = context;
  const unsigned char *bytes = value;
  if (strncmp(key, LOG, strlen(LOG)) != 0) return;
  if (before) CAMPAIGN_FAIL(campaign, "the log of the managers forks at %s", key);
  if (size < PWI_META_RECORD_HEAD) return;
  bool is_first = pwi_get_u16(bytes + RECORD_KIND) == 1;
  if (is_first && pwi_campaign_ledger(campaign)->view) return;
  pwi_keeper_note(campaign, bytes + PWI_META_RECORD_HEAD, size - PWI_META_RECORD_HEAD);
}

const char *pwi_leaders_addresses(uint32_t count) {
  static const char *const all[MANAGERS_MAX] = {"m0:7000", "m0:7000,m1:7000", "m0:7000,m1:7000,m2:7000"};
  return count ? all[count - 1] : NULL;
}

pawl_status pwi_leaders_open(struct campaign *campaign) {
  struct campaign_leaders *leaders = &campaign->leaders;
  if (campaign->config.managers == 0) return PAWL_OK;
  pawl_status status = pwi_sim_meta_create(campaign->cluster.sim, &leaders->store);
  if (status) return status;
  pwi_sim_meta_watch(leaders->store, &(struct pwi_sim_meta_watch){record_put, campaign});
  for (uint32_t i = 0; i < campaign->config.managers && !status; i++) {
    struct campaign_leader *leader = &leaders->all[leaders->count++];
    leader->campaign = campaign;
    snprintf(leader->name, sizeof leader->name, "m%u", i % MANAGERS_MAX);
    snprintf(leader->address, sizeof leader->address, "m%u:7000", i % MANAGERS_MAX);
    struct pwi_sim_program program = {.name = leader->name, .boot = boot, .halt = halt, .context = leader};
    status = pwi_sim_node_add(campaign->cluster.sim, &program, &leader->node);
    if (!status) status = pwi_sim_start(campaign->cluster.sim, leader->node);
  }
  campaign->cluster.manager_node = leaders->all[0].node;
  return status;
}

void pwi_leaders_close(struct campaign *campaign) { pwi_sim_meta_destroy(campaign->leaders.store); }

static void mend_store(void *context) {
  struct campaign *campaign = context;
  for (size_t i = 0; i < campaign->leaders.count; i++)
    pwi_sim_meta_cut(campaign->leaders.store, campaign->leaders.all[i].node, false);
  pwi_sim_meta_cut(campaign->leaders.store, PWI_SIM_ALL, false);
}

void pwi_leaders_cut_store(struct campaign *campaign, bool is_from_all, int64_t duration) {
  pwi_sim_meta_cut(campaign->leaders.store, is_from_all ? PWI_SIM_ALL : campaign->cluster.manager_node, true);
  pwi_campaign_later(campaign, duration, mend_store);
}
