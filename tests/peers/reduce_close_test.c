/* Members of a reduce that close it, in every order, and stay in the group. Those that are left go on: the last one
 * alone. Nobody may need the time-outs of the cluster for that, so the limit is short. */
#include "base/testing.h"
#include "reducers.h"

#define AFTER 12 /* iterations that the others make after a member has closed */

static struct team team;

static bool is_waiting(void *context) {
  (void)context;
  for (uint32_t i = 0; i < team.count; i++) {
    const struct reducer *reducer = &team.reducers[i];
    uint64_t target = team.close_at[i] ? team.close_at[i] : team.iterations;
    if (!reducer->client.client || reducer->status) continue;
    if (reducer->report.iteration < target) return true;
    if (team.close_at[i] ? !reducer->is_closed : reducer->report.size > 1) return true;
  }
  return false;
}

static const char *const graphs[] = {NULL, "complete", "ring", "star"};

/* The members close in this order, `gap` iterations apart, all but the last one. */
static void play(uint64_t seed, enum pawl_reduce_mode mode, const char *graph, uint32_t count, const uint32_t *order,
                 uint64_t gap) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 60 * PWI_SIM_SECOND};
  memset(&team, 0, sizeof team);
  team.count = count;
  team.mode = mode;
  team.graph = graph;
  team.values = 40;
  team.compute_max = 3 * MS;
  team.lingers = true;
  for (uint32_t i = 0; i + 1 < count; i++) team.close_at[order[i]] = 2 + seed % 3 + i * gap;
  team.iterations = 2 + seed % 3 + count * gap + AFTER;
  if (getenv("PAWL_SEED")) cluster_print_log();
  team_open(&team, &config);
  pawl_status status = pwi_cluster_run_while(&team.cluster, is_waiting, NULL, 8 * PWI_SIM_SECOND);
  if (status) {
    print_error("mode %d graph %s count %u order %u %u %u %u %u gap %llu seed %llu\n", (int)mode,
                graph ? graph : "default", count, order[0], order[1], order[2], order[3], order[4],
                (unsigned long long)gap, (unsigned long long)seed);
    team_print(&team);
  }
  cluster_check(&team.cluster, status, "closing");
  for (uint32_t i = 0; i < count; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
  assert_int_equal(team.reducers[order[count - 1]].report.size, 1);
  assert_int_equal(team.verified, team.checked);
  team_close(&team);
}

/* The next permutation in lexicographic order; false after the last one. */
static bool next_order(uint32_t *order, uint32_t count) {
  uint32_t i = count - 1, k = count - 1;
  while (i > 0 && order[i - 1] > order[i]) i--;
  if (i == 0) return false;
  while (order[k] < order[i - 1]) k--;
  uint32_t swap = order[i - 1];
  order[i - 1] = order[k];
  order[k] = swap;
  for (k = count - 1; i < k; i++, k--) {
    swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
  return true;
}

static void play_all(enum pawl_reduce_mode mode, uint32_t most) {
  uint64_t seed = 0;
  for (uint32_t count = 2; count <= most; count++)
    for (size_t graph = 0; graph < 4; graph++)
      for (uint64_t gap = 0; gap < 3; gap++) {
        uint32_t order[REDUCERS_MAX] = {0, 1, 2, 3, 4};
        do play(++seed, mode, graphs[graph], count, order, gap);
        while (next_order(order, count));
      }
}

static void test_notify_ack_in_every_order(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_NOTIFY_ACK, 4);
}

static void test_bsp_in_every_order(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_BSP, 4);
}

static void test_async_in_every_order(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_ASYNC, 4);
}

/* Of five members the orders are drawn, and of some the times, too. */
static void test_five_members(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 240; seed++) {
    uint32_t order[REDUCERS_MAX] = {0, 1, 2, 3, 4};
    for (uint64_t turns = seed * 7 % 120; turns > 0; turns--) (void)next_order(order, 5);
    play(seed, (enum pawl_reduce_mode)(seed % 3), graphs[seed / 3 % 4], 5, order, seed / 12 % 4);
  }
}

static bool is_one_left(void *context) {
  const struct reducer *late = context;
  for (uint32_t i = 0; i < team.count; i++)
    if (&team.reducers[i] != late && !team.reducers[i].is_closed) return true;
  return late->report.size != 1 || late->report.iteration < team.iterations;
}

/* Declared dead while it stands still, a member comes back when the others have closed. It could not hear that. */
static void test_a_member_that_comes_back_late_goes_on_alone(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 300 * MS};
    memset(&team, 0, sizeof team);
    team.count = 2 + (uint32_t)(seed % 4);
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.graph = graphs[seed % 4];
    team.values = 40;
    team.compute_max = 3 * MS;
    team.lingers = true;
    struct reducer *late = &team.reducers[seed / 4 % team.count];
    for (uint32_t i = 0; i < team.count; i++)
      if (&team.reducers[i] != late) team.close_at[i] = 40;
    team.iterations = 60;
    team_open(&team, &config);
    while (late->report.iteration < 5) cluster_run_for(&team.cluster, MS);
    pwi_sim_pause(team.cluster.sim, late->client.node, 4 * PWI_SIM_SECOND);
    pawl_status status = pwi_cluster_run_while(&team.cluster, is_one_left, late, 12 * PWI_SIM_SECOND);
    if (status) team_print(&team);
    cluster_check(&team.cluster, status, "closing");
    for (uint32_t i = 0; i < team.count; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
    team_close(&team);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notify_ack_in_every_order),
      cmocka_unit_test(test_bsp_in_every_order),
      cmocka_unit_test(test_async_in_every_order),
      cmocka_unit_test(test_five_members),
      cmocka_unit_test(test_a_member_that_comes_back_late_goes_on_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
