/* The demonstration keeps what it promises: no acknowledged write is lost, the same seed gives the same run, and a
 * store that acknowledges too early is found out. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "cli/demo/sim.h"

#define SEEDS 20

static void test_no_seed_loses_an_acknowledged_write(void **state) {
  struct pwi_demo_run run;
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    assert_int_equal(pwi_demo_sim_run(seed, false, 80, &run), PAWL_OK);
    if (run.lost || *run.failure) print_message("seed %" PRIu64 ": %s\n", seed, run.failure);
    assert_int_equal(run.lost, 0);
    assert_string_equal(run.failure, "");
    assert_true(run.acknowledged > 1000); /* it did work meanwhile */
    assert_true(run.fault_count > 0);
  }
}

static void test_same_seed_same_run_other_seed_other_run(void **state) {
  struct pwi_demo_run run, again, other;
  (void)state;
  assert_int_equal(pwi_demo_sim_run(3, false, 80, &run), PAWL_OK);
  assert_int_equal(pwi_demo_sim_run(3, false, 40, &again), PAWL_OK); /* how finely one looks changes nothing */
  assert_int_equal(pwi_demo_sim_run(4, false, 80, &other), PAWL_OK);
  assert_int_equal(run.hash, again.hash);
  assert_int_equal(run.events, again.events);
  assert_int_equal(run.acknowledged, again.acknowledged);
  assert_int_not_equal(run.hash, other.hash);
}

static void test_the_picture_counts_messages_of_all_nodes(void **state) {
  struct pwi_demo_run run;
  uint64_t sums[PWI_DEMO_NODES] = {0};
  (void)state;
  assert_int_equal(pwi_demo_sim_run(5, false, PWI_DEMO_COLUMNS_MAX, &run), PAWL_OK);
  for (size_t node = 0; node < PWI_DEMO_NODES; node++)
    for (int i = 0; i < run.columns; i++) sums[node] += run.messages[node][i];
  for (size_t node = 1; node < PWI_DEMO_NODES; node++) assert_true(sums[node] > 0);
  assert_true(sums[0] >= run.acknowledged); /* each needed a message to the store */
}

static void test_a_careless_store_is_found_out(void **state) {
  struct pwi_demo_run run;
  unsigned found = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    assert_int_equal(pwi_demo_sim_run(seed, true, 80, &run), PAWL_OK);
    if (!run.lost) continue;
    assert_non_null(strstr(run.failure, "acknowledged write lost"));
    found++;
  }
  assert_true(found > 0);
}

static void test_lack_of_memory_loses_nothing_and_leaks_nothing(void **state) {
  struct pwi_demo_run run;
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n += 1 + n / 4) { /* every one at first, where nodes are made; later they repeat themselves */
    pwi_memory_fail_after(n);
    pawl_status status = pwi_demo_sim_run(6, false, 80, &run);
    int failed = pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
    assert_int_equal(run.lost, 0);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!failed) break;
  }
}

/* --- a store that is sent nonsense -------------------------------------------------------------------------------- */

static enum pwi_receive_how store_takes(uint8_t what, uint64_t client, uint64_t number) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {what};
  pwi_put_u64(head + 8, client);
  pwi_put_u64(head + 16, number);
  struct pwi_message message = {.head = head};
  return pwi_demo_store_actor.message(NULL, (struct pwi_link){1}, &message).how;
}

/* The store is NULL: what it refuses it must not even look up. */
static void test_store_refuses_strange_messages(void **state) {
  (void)state;
  assert_int_equal(store_takes(0, 0, 1), PWI_RECEIVE_REFUSE);
  assert_int_equal(store_takes(3, 0, 1), PWI_RECEIVE_REFUSE);
  assert_int_equal(store_takes(255, 0, 1), PWI_RECEIVE_REFUSE);
  assert_int_equal(store_takes(2, PWI_DEMO_CLIENTS, 1), PWI_RECEIVE_REFUSE);
  assert_int_equal(store_takes(2, UINT64_MAX, UINT64_MAX), PWI_RECEIVE_REFUSE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_seed_loses_an_acknowledged_write),
      cmocka_unit_test(test_same_seed_same_run_other_seed_other_run),
      cmocka_unit_test(test_the_picture_counts_messages_of_all_nodes),
      cmocka_unit_test(test_a_careless_store_is_found_out),
      cmocka_unit_test(test_lack_of_memory_loses_nothing_and_leaks_nothing),
      cmocka_unit_test(test_store_refuses_strange_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
