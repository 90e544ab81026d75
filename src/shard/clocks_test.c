/* Clocks in answers, as a shard writes them and a client reads them. */
#include "shard/testing.h"

#include "base/bytes.h"
#include "client/inside.h"

#define SIZE 100

static void push_range(struct pwi_shard *shard, uint64_t sender, uint64_t prior, uint64_t task,
                       struct pawl_range claim) {
  int64_t ones[SIZE] = {0};
  struct iovec values = {ones, pawl_range_size(claim) * sizeof *ones};
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  request.sender.id = sender;
  request.terms.prior = prior;
  request.terms.claim = request.terms.range = claim;
  request.terms.rows = pawl_range_size(claim);
  request.task = task;
  request.values = &values;
  request.value_parts = 1;
  request.value_type = PAWL_I64;
  assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
}

static uint64_t word(const struct pwi_served *served, size_t index) {
  return pwi_get_u64((const unsigned char *)served->payload + 8 * index);
}

static void test_a_pull_brings_the_times_of_every_live_sender_piece_by_piece(void **state) {
  (void)state;
  struct pwi_membership membership = membership_of(4);
  struct pwi_shard *shard = shard_of_all(&membership);
  int64_t values[SIZE];
  open_vector(shard, entry_of(1, PAWL_I64, 1, SIZE, false));
  push_range(shard, 1, 0, 5, pawl_range_of(0, SIZE));
  push_range(shard, 1, 5, 9, pawl_range_of(0, 50));
  push_range(shard, 2, 0, 3, pawl_range_of(0, 50)); /* nothing behind it */
  push_range(shard, 4, 0, 7, pawl_range_of(0, SIZE));
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  assert_int_equal(pwi_shard_clock_bytes(shard, &pull), 0);
  assert_int_equal(serve(shard, &pull, values).payload_size, 0);
  pull.terms.clocks = true;
  struct pwi_served served = serve(shard, &pull, values);
  static const uint64_t wanted[][4] = {{0, 50, 1, 9}, {50, SIZE, 1, 5}, {0, 50, 2, 3}, {0, SIZE, 4, 7}};
  assert_int_equal(served.payload_size, sizeof wanted);
  assert_int_equal(served.payload_size, pwi_shard_clock_bytes(shard, &pull));
  for (size_t i = 0; i < sizeof wanted / sizeof(uint64_t); i++)
    assert_int_equal(word(&served, i), wanted[i / 4][i % 4]);
  assert_int_equal(served.value_bytes, sizeof values);
  assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){4}), PAWL_OK);
  pwi_shard_set_membership(shard, &membership);
  assert_int_equal(serve(shard, &pull, values).payload_size, 3 * PWI_CLOCK_RECORD);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_without_memory_for_clocks_a_pull_fails_and_brings_nothing(void **state) {
  (void)state;
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  int64_t values[SIZE];
  open_vector(shard, entry_of(1, PAWL_I64, 1, SIZE, false));
  push_range(shard, 1, 0, 5, pawl_range_of(0, SIZE));
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  pull.terms.clocks = true;
  pwi_memory_fail_after(0);
  struct pwi_served served = serve(shard, &pull, values);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(served.outcome.code, PWI_CODE_FAILED);
  assert_int_equal(served.value_bytes, 0);
  assert_int_equal(served.payload_size, 0);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_a_group_tells_the_ticks_of_its_members(void **state) {
  (void)state;
  struct pwi_membership membership = membership_of(3);
  struct pwi_entry group = group_of(1);
  uint64_t key = pwi_group_key(group.name);
  for (uint64_t id = 1; id <= 2; id++)
    assert_int_equal(pwi_membership_join(&membership, group.id, 2, (struct pwi_sender){id}), PAWL_OK);
  struct pwi_shard *shard = shard_of_all(&membership);
  open_vector(shard, group);
  struct pwi_request tick = request_of(PWI_REQUEST_TICK, 1, PAWL_KEY_END), look = tick;
  tick.terms.claim = tick.terms.range = pawl_range_of(key, key + 1);
  tick.sender.id = 2;
  tick.task = 1;
  tick.tick = 4;
  assert_served(shard, &tick, NULL, PWI_CODE_OK, PAWL_OK);
  look.terms.kind = PWI_REQUEST_AWAIT;
  look.terms.clocks = true;
  struct pwi_served served = serve(shard, &look, NULL);
  assert_int_equal(served.payload_size, 2 * PWI_CLOCK_RECORD);
  assert_int_equal(word(&served, 2), 1);
  assert_int_equal(word(&served, 3), 0);
  assert_int_equal(word(&served, 6), 2);
  assert_int_equal(word(&served, 7), 4);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_a_client_takes_whole_records_only_and_bears_a_lack_of_memory(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  unsigned char bytes[3 * PWI_CLOCK_RECORD];
  struct pwi_clock_list list = {0};
  struct pwi_task task = {.clocks = &list};
  struct client_part part = {.task = &task, .claim = {10, 20}};
  for (size_t i = 0; i < 12; i++) pwi_put_u64(bytes + 8 * i, 100 + i);
  for (size_t size = 1; size < sizeof bytes; size++)
    if (size % PWI_CLOCK_RECORD != 0) assert_int_equal(pwi_part_take_clocks(&part, bytes, size), PAWL_CORRUPT);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_part_take_clocks(&part, bytes, sizeof bytes), PAWL_NO_MEMORY);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(list.count, 0);
  assert_int_equal(pwi_part_take_clocks(&part, bytes, sizeof bytes), PAWL_OK);
  assert_int_equal(pwi_part_take_clocks(&part, bytes, PWI_CLOCK_RECORD), PAWL_OK);
  assert_int_equal(list.count, 4);
  assert_int_equal(list.items[2].range.begin, 108);
  assert_int_equal(list.items[2].range.end, 109);
  assert_int_equal(list.items[2].sender.id, 110);
  assert_int_equal(list.items[2].time, 111);
  task.clocks = NULL;
  assert_int_equal(pwi_part_take_clocks(&part, bytes, sizeof bytes), PAWL_OK);
  pwi_clock_list_fini(&list);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_pull_brings_the_times_of_every_live_sender_piece_by_piece),
      cmocka_unit_test(test_without_memory_for_clocks_a_pull_fails_and_brings_nothing),
      cmocka_unit_test(test_a_group_tells_the_ticks_of_its_members),
      cmocka_unit_test(test_a_client_takes_whole_records_only_and_bears_a_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
