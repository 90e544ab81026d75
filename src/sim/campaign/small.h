/* For tests of a campaign's checks: a campaign with servers and its manager's journal, but without workers and faults. */
#ifndef PWI_SIM_CAMPAIGN_SMALL_H
#define PWI_SIM_CAMPAIGN_SMALL_H

#include <string.h>

#include "base/testing.h"
#include "sim/campaign/inside.h"

static struct campaign campaign;

static inline void expect_ok(pawl_status status) {
  const char *failure = pwi_sim_failure(campaign.cluster.sim);
  if (status || failure) fail_msg("%s: %s", pawl_status_name(status), failure ? failure : "");
}

static inline void run_for(int64_t duration) { expect_ok(pwi_cluster_run_for(&campaign.cluster, duration)); }

/* `processes` servers with one replica, whose chains are whole. */
static inline void open_small(uint32_t processes) {
  memset(&campaign, 0, sizeof campaign);
  campaign.config = (struct pwi_campaign_config){.seed = 1, .processes = processes, .shards = 1, .replicas = 1};
  pwi_keeper_init(&campaign);
  struct pwi_cluster_config cluster = {.seed = 1,
                                       .processes = processes,
                                       .shards = 1,
                                       .replicas = 1,
                                       .points = 1,
                                       .client_grace_ns = 60 * PWI_SIM_SECOND,
                                       .open_journal = pwi_keeper_open,
                                       .close_journal = pwi_keeper_close,
                                       .manager_timer = pwi_keeper_timer,
                                       .context = &campaign};
  campaign.history = pwi_history_create();
  assert_non_null(campaign.history);
  expect_ok(pwi_cluster_open(&campaign.cluster, &cluster));
  run_for(2 * PWI_SIM_SECOND);
  assert_int_equal(pwi_view_under_replicated(pwi_campaign_ledger(&campaign)->view, 1), 0);
}

static inline void close_small(void) {
  pwi_cluster_close(&campaign.cluster);
  pwi_watch_fini(&campaign);
  pwi_rest_fini(&campaign);
  pwi_keeper_fini(&campaign);
  pwi_history_destroy(campaign.history);
}

#endif
