/* Scenes of factors in the simulator: modes, staleness, graphs, losses, members that join, parameters that differ. */
#include "base/testing.h"
#include "committers.h"

static struct guild guild;

static void begin(uint32_t count, enum pawl_factor_mode mode, uint64_t staleness) {
  memset(&guild, 0, sizeof guild);
  guild.count = count;
  guild.mode = mode;
  guild.staleness = staleness;
  guild.compute_max = 4 * MS;
  guild.work_max = 2 * MS;
}

static void start(uint64_t seed, bool shares_hosts) {
  const struct pwi_cluster_config config = {
      .seed = seed, .shared_hosts = shares_hosts, .client_grace_ns = 200 * MS, .durable = true};
  guild_open(&guild, &config);
  cluster_run_while(&guild.cluster, guild_is_opening, &guild, 10 * PWI_SIM_SECOND);
}

static void finish(uint64_t more) {
  pawl_status status = guild_settle(&guild, more, 60 * PWI_SIM_SECOND);
  if (status) guild_print(&guild);
  cluster_check(&guild.cluster, status, "the survivors differ, or do not end");
  guild_close(&guild);
}

static void test_all_members_have_every_commit_once_in_every_mode(void **state) {
  (void)state;
  for (int shares = 0; shares < 2; shares++)
    for (int mode = 0; mode < 3; mode++) {
      begin(4, (enum pawl_factor_mode)mode, mode == PAWL_FACTOR_SSP ? 3 : 0);
      start(1 + (uint64_t)mode, shares);
      cluster_run_for(&guild.cluster, 200 * MS);
      assert_true(guild.commits > 20);
      finish(3);
    }
}

/* --- staleness ------------------------------------------------------------------------------------------ */

/* A ring of five has the diameter 4. The slowest member holds up the one behind it, which holds up the next. */
static uint64_t worst_in_ring(uint64_t staleness, bool forwards) {
  uint64_t worst = 0;
  begin(5, staleness ? PAWL_FACTOR_SSP : PAWL_FACTOR_BSP, staleness);
  guild.has_graph = true;
  guild.forwards = forwards;
  guild.topology = PWI_TOPOLOGY_RING;
  guild.compute_max = 1 * MS;
  guild.work_max = 0;
  guild.slow[0] = 30 * MS;
  start(4, true);
  cluster_run_for(&guild.cluster, 1200 * MS);
  for (uint32_t i = 0; i < guild.count; i++)
    if (guild.committers[i].worst > worst) worst = guild.committers[i].worst;
  if (forwards)
    finish(3);
  else
    guild_close(&guild);
  return worst;
}

static void test_commits_that_are_passed_on_lack_no_more_than_the_path_allows(void **state) {
  (void)state;
  for (uint64_t staleness = 0; staleness <= 3; staleness++)
    assert_int_equal(worst_in_ring(staleness, true), 4 * staleness + 3);
}

static void test_without_forwarding_a_member_hears_its_neighbours_only(void **state) {
  (void)state;
  assert_int_equal(worst_in_ring(0, false), 0);
  assert_int_equal(worst_in_ring(2, false), 2);
}

static void test_a_member_that_stands_still_holds_up_the_others_by_the_staleness(void **state) {
  (void)state;
  begin(3, PAWL_FACTOR_SSP, 4);
  start(5, true);
  cluster_run_for(&guild.cluster, 50 * MS);
  pwi_sim_pause(guild.cluster.sim, guild.committers[2].client.node, 5 * PWI_SIM_SECOND);
  uint64_t clock = guild.committers[2].clock;
  cluster_run_for(&guild.cluster, 100 * MS);
  assert_true(guild.committers[0].clock <= clock + 1 + 4);
  assert_true(guild.committers[0].clock >= clock + 3);
  cluster_run_for(&guild.cluster, 5 * PWI_SIM_SECOND); /* it was declared dead, and joins again */
  finish(5);
}

/* The wait for a slow member ends with the work of applying its commit, which is no waiting itself. */
static void test_waiting_for_a_slow_member_is_counted(void **state) {
  (void)state;
  int64_t longest = 0;
  begin(3, PAWL_FACTOR_BSP, 0);
  guild.slow[2] = 50 * MS;
  start(7, true);
  for (int i = 0; i < 100; i++) {
    cluster_run_for(&guild.cluster, 5 * MS);
    if (guild.committers[0].report.waited_ns > longest) longest = guild.committers[0].report.waited_ns;
  }
  assert_in_range(longest, 10 * MS, 60 * MS);
  finish(7);
}

/* --- losses --------------------------------------------------------------------------------------------- */

static void kill_member(uint32_t index) {
  guild.is_late[index] = true; /* it does not come back */
  pwi_sim_kill(guild.cluster.sim, guild.committers[index].client.node);
}

static void test_two_that_are_lost_at_once_leave_equal_survivors(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin(5, seed % 2 ? PAWL_FACTOR_BSP : PAWL_FACTOR_SSP, seed % 2 ? 0 : 2);
    start(seed, seed % 3 == 0);
    cluster_run_for(&guild.cluster, (int64_t)(40 * MS + seed * 131072));
    kill_member((uint32_t)(seed % 5));
    kill_member((uint32_t)((seed + 1 + seed % 3) % 5));
    cluster_run_for(&guild.cluster, 30 * MS);
    finish(4);
  }
}

/* Halves of the rows, each at two members. One is lost, and one comes back with the rows of the other that has them. */
static void test_parts_of_the_rows_survive_while_one_member_has_them(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    uint32_t lost = (uint32_t)(seed % 4);
    begin(4, (enum pawl_factor_mode)(seed % 3), seed % 3 == PAWL_FACTOR_SSP ? 2 : 0);
    guild.parts = 2;
    start(seed, seed % 2);
    cluster_run_for(&guild.cluster, 40 * MS);
    kill_member(lost);
    cluster_run_for(&guild.cluster, 60 * MS);
    if (seed % 2) guild.is_late[lost] = false;
    if (seed % 2) pwi_sim_restart(guild.cluster.sim, guild.committers[lost].client.node);
    finish(4);
    assert_false(guild.has_lost_rows);
  }
}

static bool has_lost_rows(void *context) {
  (void)context;
  return !guild.has_lost_rows;
}

/* The others are told which rows are gone. */
static void test_rows_that_the_last_member_took_with_it_are_named(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    begin(3, (enum pawl_factor_mode)(seed % 3), seed % 3 == PAWL_FACTOR_SSP ? 2 : 0);
    guild.parts = 2;
    start(seed, seed % 2);
    cluster_run_for(&guild.cluster, 40 * MS);
    kill_member(1);
    cluster_run_while(&guild.cluster, has_lost_rows, NULL, 10 * PWI_SIM_SECOND);
    const char *problem = "";
    for (uint32_t i = 0; i < 3; i += 2)
      if (guild.committers[i].engine && guild.committers[i].engine->failed)
        problem = pwi_factor_problem(guild.committers[i].engine);
    if (!strstr(problem, "no member has rows [12, 24), part 1 of 2")) fail_msg("'%s'", problem);
    guild_close(&guild);
  }
}

static void test_a_member_joins_while_another_is_lost(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin(4, (enum pawl_factor_mode)(seed % 3), seed % 3 == PAWL_FACTOR_SSP ? 3 : 0);
    guild.is_late[3] = true;
    guild.is_dense = seed % 3 == PAWL_FACTOR_BSP;
    if (guild.is_dense)
      guild.prox = (struct factor_prox){.kind = PAWL_FACTOR_ELASTIC_NET, .weight = 0.01, .weight2 = 1};
    start(seed, seed % 2);
    cluster_run_for(&guild.cluster, 40 * MS);
    guild.is_late[3] = false;
    cluster_run_for(&guild.cluster, (int64_t)(2 * MS + seed % 10 * MS));
    kill_member((uint32_t)(seed % 3));
    finish(8);
  }
}

static bool is_late_one_opening(void *context) {
  (void)context;
  return !guild.committers[3].engine || !guild.committers[3].is_open;
}

/* Member 2 lacks commits of member 1. The one that joins takes them over within the matrix of the donor, and then nobody
 * but it has them. */
static void test_a_member_that_has_joined_passes_on_commits_of_the_lost(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    begin(4, PAWL_FACTOR_ASYNC, 0);
    guild.is_late[3] = true;
    start(seed, false);
    cluster_run_for(&guild.cluster, 40 * MS);
    pwi_sim_mute(guild.cluster.sim, guild.committers[1].client.node, guild.committers[2].client.node);
    cluster_run_for(&guild.cluster, 20 * MS);
    guild.is_late[3] = false;
    cluster_run_while(&guild.cluster, is_late_one_opening, NULL, 10 * PWI_SIM_SECOND);
    kill_member(0);
    kill_member(1);
    finish(4);
  }
}

static void test_members_that_begin_have_the_matrix_of_the_first(void **state) {
  uint64_t lowest = UINT64_MAX;
  float expected = 0;
  (void)state;
  begin(3, PAWL_FACTOR_BSP, 0);
  for (uint32_t i = 0; i < 3; i++) guild.initial[i] = i == 1 ? 1 : 0;
  start(3, true);
  for (uint32_t i = 0; i < 3; i++)
    if (committer_id(&guild.committers[i]).id < lowest) {
      lowest = committer_id(&guild.committers[i]).id;
      expected = guild.initial[i];
    }
  for (uint32_t i = 0; i < 3; i++) assert_true(guild.committers[i].matrix[MATRIX_SIZE - 1] == expected);
  finish(3);
}

static bool is_reopening(void *context) {
  const uint32_t *from = context;
  for (uint32_t i = 0; i < guild.count; i++)
    if (!guild.committers[i].engine || guild.committers[i].process < *from || !guild.committers[i].is_open) return true;
  return false;
}

static void test_factors_are_opened_again_while_others_still_close_the_former_ones(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin(3, (enum pawl_factor_mode)(seed % 3), seed % 3 == PAWL_FACTOR_SSP ? 2 : 0);
    start(seed, seed % 2);
    for (int again = 0; again < 3; again++) {
      uint32_t from = guild.last_process;
      cluster_run_for(&guild.cluster, 15 * MS);
      for (uint32_t i = 0; i < guild.count; i++) guild.committers[i].must_close = true;
      cluster_run_while(&guild.cluster, is_reopening, &from, 10 * PWI_SIM_SECOND);
    }
    finish(3);
  }
}

static void test_a_commit_larger_than_the_queue_is_cut(void **state) {
  (void)state;
  begin(2, PAWL_FACTOR_BSP, 0);
  guild.is_dense = true;
  guild.pairs = 12000; /* 9 MB */
  guild.compute_max = 1 * MS;
  start(8, false);
  cluster_run_while(&guild.cluster, guild_is_opening, &guild, PWI_SIM_SECOND);
  finish(2);
}

/* --- parameters ----------------------------------------------------------------------------------------- */

static bool has_not_failed(void *context) {
  (void)context;
  return !guild.committers[0].status || !guild.committers[1].status;
}

static void test_members_whose_sizes_differ_are_told_which_and_where(void **state) {
  const struct pwi_cluster_config config = {.seed = 1, .durable = true};
  (void)state;
  begin(2, PAWL_FACTOR_BSP, 0);
  guild.other_rows[1] = MATRIX_ROWS - 1;
  guild_open(&guild, &config);
  cluster_run_while(&guild.cluster, has_not_failed, NULL, 5 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(guild.committers[i].status, PAWL_MISMATCH);
    assert_non_null(strstr(pwi_factor_problem(guild.committers[i].engine), "rows is 2"));
  }
  guild_close(&guild);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_members_have_every_commit_once_in_every_mode),
      cmocka_unit_test(test_commits_that_are_passed_on_lack_no_more_than_the_path_allows),
      cmocka_unit_test(test_without_forwarding_a_member_hears_its_neighbours_only),
      cmocka_unit_test(test_a_member_that_stands_still_holds_up_the_others_by_the_staleness),
      cmocka_unit_test(test_waiting_for_a_slow_member_is_counted),
      cmocka_unit_test(test_two_that_are_lost_at_once_leave_equal_survivors),
      cmocka_unit_test(test_parts_of_the_rows_survive_while_one_member_has_them),
      cmocka_unit_test(test_rows_that_the_last_member_took_with_it_are_named),
      cmocka_unit_test(test_a_member_joins_while_another_is_lost),
      cmocka_unit_test(test_a_member_that_has_joined_passes_on_commits_of_the_lost),
      cmocka_unit_test(test_members_that_begin_have_the_matrix_of_the_first),
      cmocka_unit_test(test_factors_are_opened_again_while_others_still_close_the_former_ones),
      cmocka_unit_test(test_a_commit_larger_than_the_queue_is_cut),
      cmocka_unit_test(test_members_whose_sizes_differ_are_told_which_and_where),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
