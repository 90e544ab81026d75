/* Collectives in the simulator: a manager, members, and no servers. Each test is a scene that the applications of
 * collectors.h check from the inside. */
#include "base/testing.h"
#include "collectors.h"

static struct collectors all;

static void begin(void) { memset(&all, 0, sizeof all); }

static void open_scene(uint64_t seed, uint32_t count) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 300 * MS};
  all.count = count;
  if (all.pause_max == 0) all.pause_max = 2 * MS;
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  collectors_open(&all, &config);
}

static void end(void) { collectors_close(&all); }

static bool is_before(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < all.count; i++)
    if (all.members[i].client.client && !all.members[i].must_not_open && all.members[i].completed < until) return true;
  return false;
}

static void run_until(uint64_t operations) {
  pawl_status status = pwi_cluster_run_while(&all.cluster, is_before, &operations, 60 * PWI_SIM_SECOND);
  if (status) collectors_print(&all);
  cluster_check(&all.cluster, status, "running");
}

static uint64_t most(void) {
  uint64_t found = 0;
  for (uint32_t i = 0; i < all.count; i++)
    if (all.members[i].completed > found) found = all.members[i].completed;
  return found;
}

static uint64_t id_of(uint32_t index) { return collector_id(&all.members[index]).id; }

/* --- results -------------------------------------------------------------------------------------------- */

static void test_every_operation_returns_the_bits_of_the_reference(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 18; seed++) {
    begin();
    all.operations = 60;
    all.largest = seed % 6 == 0 ? 100000 : 9000;
    open_scene(seed, 1 + (uint32_t)(seed % 9));
    collectors_run(&all, 600 * PWI_SIM_SECOND);
    assert_int_equal(all.checked, 60 * all.count);
    for (uint32_t i = 0; i < all.count; i++) assert_int_equal(all.members[i].gone, 0);
    end();
  }
}

/* Counts around the number of members and the limits of the algorithms, for every kind, type and operator. */
static struct collective_call calls[256];
static size_t call_count;

static void choose_listed(const struct collector *member, struct collective_call *call) {
  *call = calls[member->engine->sequence];
  call->root %= member->engine->size;
}

static void list_count(enum collective_kind kind, uint32_t root, uint64_t count) {
  for (unsigned operator_ = 0; operator_ < (kind >= COLLECTIVE_ALL_REDUCE ? 3 : 1); operator_++)
    for (unsigned type = 0; type < 2; type++) {
      assert_true(call_count < sizeof calls / sizeof *calls);
      calls[call_count++] = (struct collective_call){kind, type ? PAWL_F64 : PAWL_F32,
                                                     (enum pawl_collective_operator)operator_, root, count};
    }
}

static void list_calls(uint32_t members) {
  size_t small = COLLECTIVE_SMALL / members / 8;
  size_t counts[] = {0, 1, members - 1, members, members + 1, 2 * members + 1, 1000, small, small + 1, 20011};
  call_count = 0;
  list_count(COLLECTIVE_BARRIER, 0, 0);
  for (unsigned kind = COLLECTIVE_BROADCAST; kind <= COLLECTIVE_REDUCE_SCATTER; kind++)
    for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++)
      list_count((enum collective_kind)kind, kind == COLLECTIVE_BROADCAST ? i : 0, counts[i]);
}

static void test_every_count_for_1_to_9_members(void **state) {
  (void)state;
  for (uint32_t members = 1; members <= 9; members++) {
    begin();
    list_calls(members);
    all.largest = members * 20011;
    all.choose = choose_listed;
    all.operations = call_count;
    all.pause_max = 1;
    open_scene(members, members);
    collectors_run(&all, 600 * PWI_SIM_SECOND);
    assert_int_equal(all.checked, call_count * members);
    end();
  }
}

/* Blocks of several segments: more than the streams hold. */
static void test_blocks_larger_than_the_streams(void **state) {
  (void)state;
  for (uint32_t members = 2; members <= 4; members++) {
    begin();
    call_count = 0;
    list_count(COLLECTIVE_ALL_REDUCE, 0, 1000003);
    list_count(COLLECTIVE_ALL_GATHER, 0, 300001);
    list_count(COLLECTIVE_BROADCAST, 1, 500001);
    list_count(COLLECTIVE_REDUCE_SCATTER, 0, 1000003);
    all.largest = 1300000;
    all.choose = choose_listed;
    all.operations = call_count;
    open_scene(members, members);
    collectors_run(&all, 600 * PWI_SIM_SECOND);
    assert_int_equal(all.checked, call_count * members);
    end();
  }
}

/* --- loss and change ------------------------------------------------------------------------------------ */

static void test_survivors_get_gone_and_go_on_after_renew(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    open_scene(seed, 2 + (uint32_t)(seed % 6));
    run_until(5 + seed % 7);
    uint32_t victim = (uint32_t)(seed / 3 % all.count);
    pwi_sim_kill(all.cluster.sim, all.members[victim].client.node);
    run_until(most() + 10);
    for (uint32_t i = 0; i < all.count; i++) {
      const struct collector *member = &all.members[i];
      if (i == victim) continue;
      assert_int_equal(member->engine->size, all.count - 1);
      assert_true(member->gone + member->cancelled >= 1);
    }
    end();
  }
}

static void test_a_broken_link_loses_nothing(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    all.largest = seed % 2 ? 100000 : 3000;
    open_scene(seed, 2 + (uint32_t)(seed % 5));
    for (unsigned i = 0; i < 10; i++) {
      run_until(most() + 1);
      cluster_run_for(&all.cluster, (int64_t)(seed * 31 + i * 77) % 300 * MS / 100);
      uint32_t a = (uint32_t)((seed + i) % all.count), b = (uint32_t)((seed + 2 * i + 1) % all.count);
      if (a != b) pwi_sim_break(all.cluster.sim, all.members[a].client.node, all.members[b].client.node);
    }
    run_until(most() + 5);
    for (uint32_t i = 0; i < all.count; i++) {
      assert_int_equal(all.members[i].gone + all.members[i].cancelled, 0);
      assert_int_equal(all.members[i].engine->renewals, 1);
    }
    end();
  }
}

static void test_calls_that_time_out_go_on_when_they_are_repeated(void **state) {
  (void)state;
  uint64_t timed_out = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    all.operations = 30;
    all.largest = 20000;
    all.patience_max = 300000;
    open_scene(seed, 2 + (uint32_t)(seed % 5));
    collectors_run(&all, 600 * PWI_SIM_SECOND);
    assert_int_equal(all.checked, 30 * all.count);
    for (uint32_t i = 0; i < all.count; i++) timed_out += all.members[i].timed_out;
    end();
  }
  assert_true(timed_out > 500);
}

/* The members that are there go on without the late one until they renew. */
static void test_a_late_member_joins_with_the_next_renew(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    all.founders = 3;
    all.members[3].must_not_open = true;
    open_scene(seed, 4);
    run_until(5);
    assert_int_equal(all.members[0].engine->size, 3);
    all.members[3].must_not_open = false;
    cluster_run_for(&all.cluster, 500 * MS);
    uint64_t before = all.members[0].completed;
    assert_int_equal(all.members[3].completed, 0);
    assert_int_equal(all.members[0].engine->size, 3);
    struct pawl_collective_state shown;
    pwi_collective_state(all.members[1].engine, &shown);
    assert_int_equal(shown.size, 3);
    assert_int_equal(shown.members, 4);
    all.members[1].is_calling = all.members[1].is_waiting = false;
    all.members[1].work.call.kind = 0;
    all.members[1].is_renewing = true;
    pwi_collective_renew(all.members[1].engine);
    run_until(5);
    run_until(all.members[3].completed + 5);
    assert_int_equal(all.members[0].engine->size, 4);
    assert_true(all.members[0].completed > before && all.members[0].cancelled == 1);
    end();
  }
}

/* A member that has completed everything closes and leaves at once; the others complete the same operations. */
static void test_the_last_operation_completes_although_members_close(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin();
    all.operations = 1 + seed % 5;
    all.pause_max = seed % 3 ? 1 : 30 * MS;
    open_scene(seed, 2 + (uint32_t)(seed % 8));
    collectors_run(&all, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < all.count; i++) assert_int_equal(all.members[i].gone, 0);
    assert_int_equal(all.checked, all.operations * all.count);
    end();
  }
}

/* Members close and open the collective again as soon as they have made their operations, while others still close the
 * former one. No member takes the former engine of another one for the present one. */
static void test_a_collective_can_be_opened_again_while_others_still_close_it(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    all.operations = 1 + seed % 4;
    all.openings = 5;
    all.pause_max = seed % 3 ? 1 : 30 * MS;
    open_scene(seed, 2 + (uint32_t)(seed % 8));
    collectors_run(&all, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < all.count; i++)
      if (all.members[i].gone > 0)
        fail_msg("seed %llu: member %u: %s", (unsigned long long)seed, i, all.members[i].problem);
    assert_int_equal(all.checked, all.operations * all.openings * all.count);
    end();
  }
}

/* --- members that differ -------------------------------------------------------------------------------- */

static struct collective_call odd_call, even_call;
static uint32_t odd_member;

static void choose_differently(const struct collector *member, struct collective_call *call) {
  if (member->engine->sequence < 3) return;
  *call = member->index == odd_member ? odd_call : even_call;
}

/* Every member fails, and every text names the odd one. */
static void play_mismatch(uint64_t seed, uint32_t count, struct collective_call one, struct collective_call other) {
  char text[32];
  begin();
  all.is_mixed_up = true;
  all.largest = 20000;
  all.choose = choose_differently;
  odd_call = one;
  even_call = other;
  odd_member = (uint32_t)(seed % count);
  open_scene(seed, count);
  run_until(3);
  cluster_run_for(&all.cluster, 300 * MS);
  snprintf(text, sizeof text, "%llu", (unsigned long long)id_of(odd_member));
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(all.members[i].status, PAWL_MISMATCH);
    assert_non_null(strstr(all.members[i].problem, text));
  }
  end();
}

static void test_members_that_call_different_operations_fail_with_names(void **state) {
  const struct collective_call list[] = {{COLLECTIVE_BARRIER, PAWL_F32, 0, 0, 0},
                                         {COLLECTIVE_BROADCAST, PAWL_F32, 0, 0, 10},
                                         {COLLECTIVE_BROADCAST, PAWL_F32, 0, 1, 10},
                                         {COLLECTIVE_BROADCAST, PAWL_F32, 0, 1, 20000},
                                         {COLLECTIVE_ALL_GATHER, PAWL_F32, 0, 0, 10},
                                         {COLLECTIVE_ALL_REDUCE, PAWL_F32, PAWL_COLLECTIVE_SUM, 0, 10},
                                         {COLLECTIVE_ALL_REDUCE, PAWL_F32, PAWL_COLLECTIVE_MAX, 0, 10},
                                         {COLLECTIVE_ALL_REDUCE, PAWL_F64, PAWL_COLLECTIVE_SUM, 0, 10},
                                         {COLLECTIVE_ALL_REDUCE, PAWL_F32, PAWL_COLLECTIVE_SUM, 0, 11},
                                         {COLLECTIVE_ALL_REDUCE, PAWL_F32, PAWL_COLLECTIVE_SUM, 0, 20000},
                                         {COLLECTIVE_REDUCE_SCATTER, PAWL_F32, PAWL_COLLECTIVE_SUM, 0, 10}};
  size_t count = sizeof list / sizeof *list;
  (void)state;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < count; k++)
      if (i != k) play_mismatch(1 + i * count + k, 2 + (uint32_t)((i + k) % 4), list[i], list[k]);
}

static void choose_by_member(const struct collector *member, struct collective_call *call) {
  *call = (struct collective_call){COLLECTIVE_ALL_REDUCE, PAWL_F32, PAWL_COLLECTIVE_SUM, 0,
                                   member->index == odd_member ? 7 : 8};
}

/* A member whose GO was lost waits for members of the group, and not for those of that epoch. */
static bool have_begun(void) {
  for (uint32_t i = 0; i < all.count; i++)
    if (!all.members[i].engine || all.members[i].engine->epoch.number == 0) return false;
  return true;
}

/* Members close as soon as they fail, while links break. The others learn why, instead of taking them for lost. */
static void test_members_that_close_after_a_mismatch_have_told_the_reason(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    begin();
    all.is_mixed_up = all.must_end = true;
    all.choose = choose_by_member;
    all.pause_max = seed % 2 ? 1 : 5 * MS;
    odd_member = (uint32_t)(seed / 2 % 3);
    open_scene(seed, 3 + (uint32_t)(seed % 4));
    for (unsigned i = 0; collectors_are_running(&all) && i < 2000; i++) {
      uint32_t a = (uint32_t)((seed + i) % all.count), b = (uint32_t)((seed + i / 3 + 1) % all.count);
      cluster_run_for(&all.cluster, MS / 5);
      if (have_begun() && a != b)
        pwi_sim_break(all.cluster.sim, all.members[a].client.node, all.members[b].client.node);
    }
    collectors_run(&all, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < all.count; i++) {
      if (all.members[i].status) continue;
      print_error("seed %llu: member %u\n", (unsigned long long)seed, i);
    }
    for (uint32_t i = 0; i < all.count; i++) assert_int_equal(all.members[i].status, PAWL_MISMATCH);
    end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operation_returns_the_bits_of_the_reference),
      cmocka_unit_test(test_every_count_for_1_to_9_members),
      cmocka_unit_test(test_blocks_larger_than_the_streams),
      cmocka_unit_test(test_survivors_get_gone_and_go_on_after_renew),
      cmocka_unit_test(test_a_broken_link_loses_nothing),
      cmocka_unit_test(test_calls_that_time_out_go_on_when_they_are_repeated),
      cmocka_unit_test(test_a_late_member_joins_with_the_next_renew),
      cmocka_unit_test(test_the_last_operation_completes_although_members_close),
      cmocka_unit_test(test_a_collective_can_be_opened_again_while_others_still_close_it),
      cmocka_unit_test(test_members_that_call_different_operations_fail_with_names),
      cmocka_unit_test(test_members_that_close_after_a_mismatch_have_told_the_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
