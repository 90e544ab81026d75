/* Managers that take turns, in the simulator. */
#include "leaders.h"

#include "base/testing.h"

static struct pwi_standby_state state_of(const struct leader *leader) {
  struct pwi_standby_state state = {0};
  if (leader->standby) pwi_standby_state(leader->standby, &state);
  return state;
}

struct leader *leaders_first(struct leaders *leaders) {
  struct leader *first = NULL;
  uint64_t term = 0;
  for (size_t i = 0; i < leaders->count; i++) {
    struct pwi_standby_state state = state_of(&leaders->all[i]);
    if (state.phase != PWI_STANDBY_LEADING || state.term <= term) continue;
    first = &leaders->all[i];
    term = state.term;
  }
  return first;
}

static void find_manager(struct leaders *leaders) {
  const struct leader *first = leaders_first(leaders);
  leaders->cluster->manager = first ? state_of(first).manager : NULL;
}

static void changed(void *context) {
  struct leader *leader = context;
  struct leaders *leaders = leader->leaders;
  struct pwi_sim *sim = leaders->cluster->sim;
  if (!leader->standby) return; /* it is being created */
  struct pwi_standby_state state = state_of(leader);
  if (state.phase == PWI_STANDBY_LEADING && state.term != leader->term) {
    leader->term = state.term;
    leaders->terms++;
  }
  if (state.phase == PWI_STANDBY_FAILED)
    pwi_sim_fail(sim, PAWL_CORRUPT, "%s cannot lead: %s", leader->name, pawl_status_name(state.why));
  if (state.phase == PWI_STANDBY_OVER) {
    pawl_status status = pwi_sim_restart(sim, leader->node);
    (void)status; /* inside a callback it is PAWL_OK */
  }
  find_manager(leaders);
}

static pawl_status boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                        void **self_out) {
  struct leader *leader = context;
  const struct pwi_cluster *cluster = leader->leaders->cluster;
  struct pwi_standby_config config = {.manager = {.net = boot->net,
                                                  .random = boot->random,
                                                  .log = boot->log,
                                                  .host = boot->name,
                                                  .rights = cluster->config.rights,
                                                  .first_processes = cluster->config.processes,
                                                  .client_grace_ns = cluster->config.client_grace_ns},
                                      .prefix = LEADERS_PREFIX,
                                      .changed = changed,
                                      .context = leader};
  pawl_status status = pwi_net_listen(boot->net, leader->address);
  if (!status) status = pwi_sim_meta_open(leader->leaders->store, leader->node, boot->net, &leader->meta);
  config.meta = leader->meta;
  if (!status) status = pwi_standby_create(&config, &leader->standby);
  *actor_out = &pwi_standby_actor;
  *self_out = leader->standby;
  return status;
}

static void halt(void *context, void *self) {
  struct leader *leader = context;
  pwi_standby_destroy(self);
  leader->meta->ops->destroy(leader->meta);
  leader->standby = NULL;
  leader->meta = NULL;
  find_manager(leader->leaders);
}

static void watch(void *context, const char *key, const void *value, size_t size, const struct pwi_meta_pair *before) {
  struct leaders *leaders = context;
  (void)value, (void)size;
  if (strncmp(key, LEADERS_PREFIX "/log/", strlen(LEADERS_PREFIX "/log/")) != 0) return;
  leaders->records++;
  if (before) pwi_sim_fail(leaders->cluster->sim, PAWL_CORRUPT, "the log forks at %s", key);
}

const char *leaders_addresses(size_t count) {
  static const char *const all[LEADERS_MAX] = {"m0:7000", "m0:7000,m1:7000", "m0:7000,m1:7000,m2:7000"};
  assert_true(count > 0 && count <= LEADERS_MAX);
  return all[count - 1];
}

void leaders_open(struct leaders *leaders, struct pwi_cluster *cluster, size_t count) {
  *leaders = (struct leaders){.cluster = cluster, .count = count};
  assert_true(count <= LEADERS_MAX);
  assert_int_equal(pwi_sim_meta_create(cluster->sim, &leaders->store), PAWL_OK);
  pwi_sim_meta_watch(leaders->store, &(struct pwi_sim_meta_watch){watch, leaders});
  for (size_t i = 0; i < count; i++) {
    struct leader *leader = &leaders->all[i];
    leader->leaders = leaders;
    snprintf(leader->name, sizeof leader->name, "m%u", (unsigned)i % LEADERS_MAX);
    snprintf(leader->address, sizeof leader->address, "m%u:7000", (unsigned)i % LEADERS_MAX);
    struct pwi_sim_program program = {.name = leader->name, .boot = boot, .halt = halt, .context = leader};
    assert_int_equal(pwi_sim_node_add(cluster->sim, &program, &leader->node), PAWL_OK);
    assert_int_equal(pwi_sim_start(cluster->sim, leader->node), PAWL_OK);
  }
}

void leaders_close(struct leaders *leaders) { pwi_sim_meta_destroy(leaders->store); }
