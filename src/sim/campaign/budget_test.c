/* The account of injected faults: which of them explain that a chain loses a copy. */
#include "sim/campaign/small.h"

static uint64_t node_at(size_t server) {
  struct pwi_server_state state;
  pwi_server_state(campaign.cluster.servers[server].server, &state);
  return state.node;
}

/* A view of these arcs, with the nodes of the present view. */
static struct pwi_view *view_of(const struct pwi_arc *arcs, size_t count) {
  const struct pwi_view *now = pwi_campaign_ledger(&campaign)->view;
  struct pwi_view *view;
  assert_int_equal(pwi_view_create(now->epoch, now->nodes, now->node_count, arcs, count, NULL, &view), PAWL_OK);
  return view;
}

/* True if these faults explain that a chain loses the server. */
static bool may_lose(size_t server) {
  uint64_t other = node_at(server == 0 ? 1 : 0);
  struct pwi_arc arcs[] = {{.since = 1, .count = 2, .chain = {{{other}, false}, {{node_at(server)}, false}}},
                           {.since = 1, .count = 1, .chain = {{{other}, false}}}};
  struct pwi_view *before = view_of(&arcs[0], 1), *after = view_of(&arcs[1], 1);
  pwi_budget_check(&campaign, before, after);
  pwi_view_release(before);
  pwi_view_release(after);
  return pwi_sim_failure(campaign.cluster.sim) == NULL;
}

static int64_t in(int64_t duration) { return pwi_campaign_now(&campaign) + duration; }

static void test_silence_that_nobody_can_notice_explains_nothing(void **state) {
  (void)state;
  open_small(3);
  pwi_budget_silence(&campaign, 1, in(90 * MS));
  pwi_budget_part(&campaign, 1, in(90 * MS));
  assert_int_equal(campaign.budget.count, 0);
  pwi_budget_silence(&campaign, 1, in(300 * MS));
  assert_true(may_lose(1));
  pwi_budget_part(&campaign, 2, INT64_MAX);
  assert_true(may_lose(2));
  assert_false(may_lose(0));
  close_small();
}

static void test_only_a_cut_between_servers_may_cost_a_copy(void **state) {
  (void)state;
  open_small(3);
  pwi_budget_cut(&campaign, 1, PWI_CLUSTER_PROCESSES, in(PWI_SIM_SECOND)); /* from the manager, or a client */
  assert_int_equal(campaign.budget.count, 0);
  pwi_budget_cut(&campaign, 1, 2, in(PWI_SIM_SECOND));
  assert_true(may_lose(1));
  assert_true(may_lose(2));
  assert_false(may_lose(0));
  close_small();
}

static void test_a_manager_that_was_away_learns_of_silence_of_that_time(void **state) {
  (void)state;
  open_small(3);
  pwi_budget_silence(&campaign, 1, in(300 * MS));
  run_for(PWI_SIM_SECOND);
  pwi_havoc_manager_is_unwell(&campaign, 3 * PWI_SIM_SECOND);
  run_for(4 * PWI_SIM_SECOND);
  assert_true(may_lose(1));
  pwi_havoc_manager_is_unwell(&campaign, PWI_SIM_SECOND); /* and goes away again before it has decided */
  run_for(3 * PWI_SIM_SECOND);
  assert_true(may_lose(1));
  close_small();
}

static void test_silence_that_begins_while_the_manager_is_away_is_learned_later(void **state) {
  (void)state;
  open_small(3);
  pwi_havoc_manager_is_unwell(&campaign, 5 * PWI_SIM_SECOND);
  run_for(PWI_SIM_SECOND);
  pwi_budget_silence(&campaign, 1, in(300 * MS));
  run_for(5 * PWI_SIM_SECOND);
  assert_true(may_lose(1));
  close_small();
}

static void test_a_later_fault_of_the_manager_does_not_excuse_old_silence(void **state) {
  (void)state;
  open_small(3);
  pwi_budget_silence(&campaign, 1, in(300 * MS));
  run_for(5 * PWI_SIM_SECOND);
  pwi_havoc_manager_is_unwell(&campaign, PWI_SIM_SECOND);
  run_for(PWI_SIM_SECOND);
  assert_false(may_lose(1));
  close_small();
}

static void test_every_arc_that_is_merged_keeps_its_copies(void **state) {
  (void)state;
  open_small(3);
  uint64_t a = node_at(0), b = node_at(1);
  struct pwi_arc were[] = {{.since = 1, .count = 1, .chain = {{{a}, false}}},
                           {.begin = 9, .since = 1, .count = 2, .chain = {{{a}, false}, {{b}, false}}}};
  struct pwi_view *before = view_of(were, 2), *after = view_of(were, 1);
  pwi_budget_check(&campaign, before, after);
  assert_non_null(strstr(pwi_sim_failure(campaign.cluster.sim), "lost copies that no fault explains"));
  pwi_view_release(before);
  pwi_view_release(after);
  close_small();
}

static void test_a_memory_cap_costs_no_copy(void **state) {
  (void)state;
  open_small(3);
  campaign.config.memory_max = 1000;
  assert_false(may_lose(1));
  close_small();
}

/* --- seeds ---------------------------------------------------------------------------------------------- */

static const struct {
  uint64_t seed;
  int replicas;
} seeds[] = {
    {16, -1}, /* a client that spoke before its JOIN was answered lost its link, and was declared dead */
    {2677,
     -1},     /* a server made a new link before the manager noticed that the old one was silent, and was dropped from a
                   chain at once, as if it had not just come back */
    {500, 2}, /* the same after a restart of the manager */
    {3910, -1}, /* a link was reset, and one of its servers isolated for 166 ms before there was a new link */
};

static void test_seeds(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    struct pwi_campaign_config config;
    struct pwi_campaign_result result;
    pwi_campaign_draw(seeds[i].seed, seeds[i].replicas, &config);
    pwi_campaign_run(&config, &result);
    if (result.has_failed) fail_msg("seed %llu: %s", (unsigned long long)seeds[i].seed, result.failure);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_silence_that_nobody_can_notice_explains_nothing),
      cmocka_unit_test(test_only_a_cut_between_servers_may_cost_a_copy),
      cmocka_unit_test(test_a_manager_that_was_away_learns_of_silence_of_that_time),
      cmocka_unit_test(test_silence_that_begins_while_the_manager_is_away_is_learned_later),
      cmocka_unit_test(test_a_later_fault_of_the_manager_does_not_excuse_old_silence),
      cmocka_unit_test(test_every_arc_that_is_merged_keeps_its_copies),
      cmocka_unit_test(test_a_memory_cap_costs_no_copy),
      cmocka_unit_test(test_seeds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
