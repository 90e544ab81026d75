/* The end of a campaign: all servers have what the last view says. */
#include "sim/campaign/small.h"

/* --- one arc -------------------------------------------------------------------------------------------- */

/* Nodes 1 and 2 have an arc, and node 3 is being filled. */
static const struct pwi_arc arc = {.since = 7, .count = 3, .chain = {{{1}, false}, {{2}, false}, {{3}, true}}};
static struct rested good[] = {
    {.node = 1, .arc = {.since = 7, .version = 4}, .digest = 9},
    {.node = 2, .arc = {.since = 7, .version = 4}, .digest = 9},
    {.node = 3, .arc = {.since = 7, .filling = true}},
};

static void expect(const struct rested *rested, size_t count, bool may_fill, const char *why) {
  char text[160] = "";
  struct pwi_view view = {.epoch = 7, .arcs = &arc, .arc_count = 1};
  assert_int_equal(pwi_rest_is_whole(&view, rested, count, may_fill, text, sizeof text), why == NULL);
  if (why && !strstr(text, why)) fail_msg("%s", text);
}

static struct rested changed[3];

static struct rested *change(size_t member) {
  memcpy(changed, good, sizeof good);
  return &changed[member];
}

static void test_every_member_is_a_running_server_with_the_arc(void **state) {
  (void)state;
  expect(good, 3, true, NULL);
  change(1)->node = 4; /* the process is up again, as another server */
  expect(changed, 3, true, "node 2, member 1 of the arc at 0000000000000000, is not a server");
  change(1)->arc.positions.begin = 5;
  expect(changed, 3, true, "is not a server");
  change(0)->node = 4;
  expect(changed, 3, true, "node 1, member 0");
}

static void test_members_have_the_same_chain_version_and_rows(void **state) {
  (void)state;
  change(1)->arc.since = 6;
  expect(changed, 3, true, "has another chain");
  change(1)->arc.version = 5;
  expect(changed, 3, true, "has another version");
  change(1)->digest = 8;
  expect(changed, 3, true, "has other rows");
}

static void test_nobody_is_filled_unless_memory_is_short(void **state) {
  (void)state;
  expect(good, 3, false, "node 3, member 2 of the arc at 0000000000000000, is being filled");
  change(1)->arc.filling = true; /* the view takes it for full */
  expect(changed, 3, true, "node 2");
}

/* --- a cluster ------------------------------------------------------------------------------------------ */

static void test_a_server_that_dies_while_the_manager_is_away_is_missed(void **state) {
  (void)state;
  open_small(3);
  assert_true(pwi_rest_has_come(&campaign));
  pwi_sim_kill(campaign.cluster.sim, campaign.cluster.manager_node);
  pwi_budget_silence(&campaign, 1, INT64_MAX);
  pwi_cluster_kill(&campaign.cluster, 1);
  pwi_cluster_start(&campaign.cluster, 1);
  run_for(PWI_SIM_SECOND);
  assert_true(pwi_cluster_is_up(&campaign.cluster, 1));
  assert_int_equal(pwi_view_under_replicated(pwi_campaign_ledger(&campaign)->view, 1), 0);
  assert_false(pwi_rest_has_come(&campaign));
  assert_int_equal(pwi_sim_start(campaign.cluster.sim, campaign.cluster.manager_node), PAWL_OK);
  run_for(10 * PWI_SIM_SECOND);
  assert_true(pwi_rest_has_come(&campaign));
  close_small();
}

/* In these campaigns the last view is whole before the servers are. */
static void test_a_campaign_waits_for_the_servers(void **state) {
  (void)state;
  static const uint64_t seeds[] = {1058, 1516};
  for (size_t i = 0; i < 2; i++) {
    struct pwi_campaign_config config;
    struct pwi_campaign_result result;
    pwi_campaign_draw(seeds[i], -1, &config);
    pwi_campaign_run(&config, &result);
    if (result.has_failed) fail_msg("seed %llu: %s", (unsigned long long)seeds[i], result.failure);
    assert_int_equal(result.figures.late_rests, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_member_is_a_running_server_with_the_arc),
      cmocka_unit_test(test_members_have_the_same_chain_version_and_rows),
      cmocka_unit_test(test_nobody_is_filled_unless_memory_is_short),
      cmocka_unit_test(test_a_server_that_dies_while_the_manager_is_away_is_missed),
      cmocka_unit_test(test_a_campaign_waits_for_the_servers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
