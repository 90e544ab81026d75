/* Positions that come and go: holding, freezing, copying out and taking in, dropping; and the load by
 * position. */
#include "shard/testing.h"

#define SIZE 1000
#define HALF (PWI_RING_END / 2 + 1)

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *from, *to;
};

static void open_all(struct pwi_shard *shard) {
  open_vector(shard, entry_of(1, PAWL_I64, 1, SIZE, false));
  open_vector(shard, entry_of(2, PAWL_I64, 1, SIZE, true));
  open_vector(shard, group_of(3));
}

/* `from` holds everything, `to` nothing; sender 1 has pushed 5 to every key of both vectors as task 1. */
static void start(struct fixture *fixture) {
  static int64_t fives[SIZE];
  for (size_t i = 0; i < SIZE; i++) fives[i] = 5;
  struct iovec values = {fives, sizeof fives};
  fixture->membership = membership_of(2);
  fixture->from = shard_of_all(&fixture->membership);
  fixture->to = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX});
  pwi_shard_set_membership(fixture->to, &fixture->membership);
  open_all(fixture->from);
  open_all(fixture->to);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    struct pwi_request push = request_of(PWI_REQUEST_PUSH, vector, SIZE);
    push.task = 1;
    push.values = &values;
    push.value_parts = 1;
    push.value_type = PAWL_I64;
    assert_served(fixture->from, &push, NULL, PWI_CODE_OK, PAWL_OK);
  }
}

static void stop(struct fixture *fixture) {
  pwi_shard_destroy(fixture->from);
  pwi_shard_destroy(fixture->to);
  pwi_membership_fini(&fixture->membership);
}

/* Pulls the keys [begin, end), with exactly this claim. */
static enum pwi_code pull(struct pwi_shard *shard, uint64_t vector, uint64_t begin, uint64_t end, int64_t *out) {
  struct pwi_request request = request_of(PWI_REQUEST_PULL, vector, SIZE);
  request.terms.claim = request.terms.range = pawl_range_of(begin, end);
  request.terms.rows = end - begin;
  return serve(shard, &request, out).outcome.code;
}

/* Copies everything, and stops at the first failure of `take`. */
static pawl_status fill(struct fixture *fixture, struct pawl_range positions, size_t size) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  pawl_status status = PAWL_OK;
  pwi_copying_init(&copying, positions);
  while (more && status == PAWL_OK) {
    pwi_writer_reset(&writer);
    status = pwi_shard_copy(fixture->from, &copying, size, &writer, &more);
    if (more && status == PAWL_OK) status = pwi_shard_take(fixture->to, writer.data, writer.size);
  }
  pwi_writer_fini(&writer);
  return status;
}

static void test_frozen_positions_are_not_here_until_they_thaw(void **state) {
  (void)state;
  struct fixture f;
  int64_t out[SIZE];
  start(&f);
  assert_int_equal(pwi_shard_freeze(f.from, pawl_range_of(0, HALF)), PAWL_OK);
  assert_int_equal(pull(f.from, 1, 0, SIZE, out), PWI_CODE_NOT_HERE);
  assert_int_equal(pull(f.from, 1, 499, 501, out), PWI_CODE_NOT_HERE);
  assert_int_equal(pull(f.from, 1, 500, SIZE, out), PWI_CODE_OK);
  pwi_shard_thaw(f.from, pawl_range_of(HALF / 4, HALF / 2)); /* a hole in the middle */
  assert_int_equal(pull(f.from, 1, 125, 250, out), PWI_CODE_OK);
  assert_int_equal(pull(f.from, 1, 124, 250, out), PWI_CODE_NOT_HERE);
  assert_int_equal(pull(f.from, 1, 250, 251, out), PWI_CODE_NOT_HERE);
  pwi_shard_thaw(f.from, WHOLE_RING);
  assert_int_equal(pull(f.from, 1, 0, SIZE, out), PWI_CODE_OK);
  assert_int_equal(out[0], 5);
  stop(&f);
}

static void test_copied_positions_are_adopted_with_their_history(void **state) {
  (void)state;
  struct fixture f;
  int64_t out[SIZE];
  struct pawl_range positions = {HALF / 2, HALF};
  for (size_t size = 1; size < 100000; size *= 7) {
    start(&f);
    assert_int_equal(pwi_shard_freeze(f.from, positions), PAWL_OK);
    assert_int_equal(fill(&f, positions, size), PAWL_OK);
    assert_int_equal(pull(f.to, 1, 250, 500, out), PWI_CODE_NOT_HERE); /* staged */
    assert_int_equal(pwi_shard_adopt(f.to, positions), PAWL_OK);
    assert_int_equal(pwi_shard_drop(f.from, positions), PAWL_OK);
    for (uint64_t vector = 1; vector <= 2; vector++) {
      assert_int_equal(pull(f.from, vector, 0, 251, out), PWI_CODE_NOT_HERE);
      assert_int_equal(pull(f.from, vector, 0, 250, out), PWI_CODE_OK);
      assert_int_equal(pull(f.to, vector, 250, 500, out), PWI_CODE_OK);
      for (size_t i = 0; i < 250; i++) assert_int_equal(out[i], 5);
      struct pwi_request again = request_of(PWI_REQUEST_PUSH, vector, SIZE);
      again.terms.claim = again.terms.range = pawl_range_of(250, 500);
      again.terms.rows = 250;
      again.task = 1; /* has been applied where it was */
      assert_served(f.to, &again, NULL, PWI_CODE_OK, PAWL_OK);
    }
    assert_false(pwi_shard_holds(f.from, positions));
    assert_true(pwi_shard_holds(f.to, positions));
    stop(&f);
  }
}

static void test_positions_are_held_by_one_at_most_and_start_empty(void **state) {
  (void)state;
  struct fixture f;
  int64_t out[SIZE];
  start(&f);
  assert_int_equal(pwi_shard_hold(f.from, pawl_range_of(5, 6)), PAWL_INVALID);
  assert_int_equal(pwi_shard_adopt(f.from, pawl_range_of(5, 6)), PAWL_INVALID);
  assert_int_equal(fill(&f, pawl_range_of(0, HALF), 4000), PAWL_OK);
  assert_int_equal(pwi_shard_hold(f.to, pawl_range_of(0, HALF)), PAWL_OK); /* not adopted */
  assert_int_equal(pull(f.to, 2, 0, 500, out), PWI_CODE_OK);
  assert_int_equal(out[7], 0);
  assert_int_equal(fill(&f, pawl_range_of(0, HALF), 4000), PAWL_INVALID);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    assert_int_equal(pull(f.to, vector, 0, 500, out), PWI_CODE_OK);
    for (size_t i = 0; i < 500; i++) assert_int_equal(out[i], 0);
  }
  assert_int_equal(pwi_shard_adopt(f.to, pawl_range_of(HALF, PWI_RING_END)), PAWL_OK); /* nothing came */
  assert_int_equal(pull(f.to, 1, 0, SIZE, out), PWI_CODE_OK);
  stop(&f);
}

static void test_a_move_that_was_broken_off_leaves_nothing(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_report before, after;
  int64_t out[SIZE];
  start(&f);
  pwi_shard_report(f.to, &before);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_OK);
  assert_int_equal(pwi_shard_drop(f.to, WHOLE_RING), PAWL_OK);
  pwi_shard_report(f.to, &after);
  assert_int_equal(after.rows, before.rows);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_OK); /* once more, from the beginning */
  assert_int_equal(pwi_shard_adopt(f.to, WHOLE_RING), PAWL_OK);
  assert_int_equal(pull(f.to, 2, 0, SIZE, out), PWI_CODE_OK);
  assert_int_equal(out[SIZE - 1], 5);
  stop(&f);
}

static void test_a_refusal_moves_with_its_keys(void **state) {
  (void)state;
  struct fixture f;
  struct pawl_range positions = {HALF / 2, HALF};
  start(&f);
  int64_t seven = 7;
  struct iovec values = {&seven, sizeof seven};
  struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  push.terms.claim = push.terms.range = pawl_range_of(250, 500);
  push.terms.rows = 250;
  push.terms.prior = 1;
  push.task = 2;
  push.values = &values;
  push.value_parts = 1;
  push.value_type = PAWL_I64;
  assert_served(f.from, &push, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH); /* one value for 250 keys */
  assert_int_equal(fill(&f, positions, 1000), PAWL_OK);
  assert_int_equal(pwi_shard_adopt(f.to, positions), PAWL_OK);
  assert_served(f.to, &push, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH); /* not a duplicate of an applied push */
  stop(&f);
}

static void test_refusals_are_forgotten_where_keys_start_anew(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  int64_t seven = 7;
  struct iovec values = {&seven, sizeof seven};
  struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  push.terms.claim = push.terms.range = pawl_range_of(0, 500);
  push.terms.rows = 500;
  push.terms.prior = 1;
  push.task = 2;
  push.values = &values;
  push.value_parts = 1;
  push.value_type = PAWL_I64;
  assert_served(f.from, &push, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH); /* one value for 500 keys */
  assert_int_equal(pwi_shard_drop(f.from, pawl_range_of(0, HALF / 2)), PAWL_OK);
  assert_int_equal(pwi_shard_drop(f.from, pawl_range_of(HALF / 2, HALF)), PAWL_OK);
  assert_int_equal(pwi_shard_hold(f.from, pawl_range_of(0, HALF)), PAWL_OK);
  push.terms.prior = 0;
  push.terms.range = pawl_range_of(3, 4);
  push.terms.rows = 1;
  assert_served(f.from, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(f.from, &push, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

static void test_vectors_closed_meanwhile_are_left_out(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more;
  int64_t out[SIZE];
  start(&f);
  pwi_copying_init(&copying, WHOLE_RING);
  assert_int_equal(pwi_shard_copy(f.from, &copying, 100, &writer, &more), PAWL_OK);
  assert_true(more);
  pwi_shard_close(f.from, (struct pwi_vector_id){1}); /* in the middle of its rows */
  pwi_shard_close(f.to, (struct pwi_vector_id){1});
  while (more) {
    assert_int_equal(pwi_shard_take(f.to, writer.data, writer.size), PAWL_OK);
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f.from, &copying, 100, &writer, &more), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  assert_int_equal(pwi_shard_adopt(f.to, WHOLE_RING), PAWL_OK);
  assert_int_equal(pull(f.to, 2, 0, SIZE, out), PWI_CODE_OK);
  assert_int_equal(out[SIZE - 1], 5);
  stop(&f);
}

/* Otherwise its rows would be dropped when the target learns of the load. */
static void test_a_chunk_of_a_later_incarnation_is_not_taken(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_entry loaded = entry_of(1, PAWL_I64, 1, SIZE, false);
  start(&f);
  loaded.incarnation = 1;
  assert_int_equal(pwi_shard_renew(f.from, &loaded), PAWL_OK);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_CANCELLED);
  assert_int_equal(pwi_shard_renew(f.to, &loaded), PAWL_OK);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_OK);
  stop(&f);
}

static void test_a_target_without_room_says_so(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  pwi_shard_destroy(f.to);
  f.to = shard_of(&(struct pwi_shard_config){.memory_max = 6000});
  open_all(f.to);
  pwi_shard_set_membership(f.to, &f.membership);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_NODE_FULL);
  assert_int_equal(pwi_shard_drop(f.to, WHOLE_RING), PAWL_OK);
  stop(&f);
}

/* The head has accepted these rows within the quota of the whole cluster. */
static void test_a_quota_that_is_used_up_does_not_stop_a_fill(void **state) {
  (void)state;
  struct fixture f;
  int64_t out[SIZE];
  start(&f);
  assert_int_equal(pwi_shard_set_quota(f.to, "test", 1), PAWL_OK);
  assert_int_equal(fill(&f, WHOLE_RING, 4000), PAWL_OK);
  assert_int_equal(pwi_shard_adopt(f.to, WHOLE_RING), PAWL_OK);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    assert_int_equal(pull(f.to, vector, 0, SIZE, out), PWI_CODE_OK);
    assert_int_equal(out[SIZE - 1], 5);
  }
  stop(&f);
}

/* Every byte of every chunk is changed in turn, and every chunk is truncated. */
static void test_damaged_chunks_are_refused_or_harmless(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  int64_t out[SIZE];
  start(&f);
  assert_int_equal(pwi_shard_hold(f.to, pawl_range_of(HALF, PWI_RING_END)), PAWL_OK);
  pwi_copying_init(&copying, pawl_range_of(0, HALF));
  for (size_t chunk = 0; more; chunk++) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f.from, &copying, 300, &writer, &more), PAWL_OK);
    for (size_t i = 0; i < writer.size && chunk % 5 == 0; i++) {
      assert_true(pwi_shard_take(f.to, writer.data, i) != PAWL_OK);
      writer.data[i] ^= 0x81;
      pawl_status status = pwi_shard_take(f.to, writer.data, writer.size);
      assert_true(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_INVALID || status == PAWL_CANCELLED);
      writer.data[i] ^= 0x81;
      assert_int_equal(pwi_shard_drop(f.to, pawl_range_of(0, HALF)), PAWL_OK);
    }
  }
  pwi_writer_fini(&writer);
  assert_int_equal(pull(f.to, 2, 500, SIZE, out), PWI_CODE_OK);
  for (size_t i = 0; i < 500; i++) assert_int_equal(out[i], 0);
  stop(&f);
}

static void test_out_of_memory_while_moving_can_be_tried_again(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  struct pawl_range positions = {HALF / 2, HALF};
  int failed = 1;
  int64_t out[SIZE];
  for (uint64_t n = 0; failed; n++) {
    struct fixture f;
    start(&f);
    pwi_memory_fail_after(n);
    pawl_status filled = fill(&f, positions, 2000);
    pawl_status adopted = filled ? filled : pwi_shard_adopt(f.to, positions);
    pawl_status dropped = adopted ? adopted : pwi_shard_drop(f.from, positions);
    failed = pwi_memory_fail_cancel();
    if (filled) {
      assert_int_equal(pwi_shard_drop(f.to, positions), PAWL_OK);
      assert_int_equal(fill(&f, positions, 2000), PAWL_OK);
    }
    if (adopted) assert_int_equal(pwi_shard_adopt(f.to, positions), PAWL_OK);
    if (!adopted && dropped) assert_int_equal(pull(f.from, 1, 250, 500, out), PWI_CODE_NOT_HERE);
    if (dropped) assert_int_equal(pwi_shard_drop(f.from, positions), PAWL_OK);
    assert_int_equal(pull(f.to, 2, 250, 500, out), PWI_CODE_OK);
    assert_int_equal(out[100], 5);
    stop(&f);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

/* --- load ----------------------------------------------------------------------------------------------- */

static void assert_in_order(const struct pwi_load *loads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    assert_false(pawl_range_is_empty(loads[i].positions));
    if (i > 0) assert_true(loads[i - 1].positions.end <= loads[i].positions.begin);
  }
}

static void test_loads_show_bytes_and_hot_keys(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_load loads[100];
  struct pwi_report report;
  int64_t out[SIZE];
  start(&f);
  for (int i = 0; i < 300; i++) {
    assert_int_equal(pull(f.from, 1, 700, 701, out), PWI_CODE_OK);
    assert_int_equal(pull(f.from, 2, (uint64_t)i * 3, (uint64_t)i * 3 + 1, out), PWI_CODE_OK);
  }
  size_t count = pwi_shard_loads(f.from, loads, 100);
  uint64_t bytes = 0, requests = 0, hot = 0;
  assert_true(count > 50 && count <= 100);
  assert_in_order(loads, count);
  for (size_t i = 0; i < count; i++) {
    bytes += loads[i].bytes;
    requests += loads[i].requests;
    if (!loads[i].whole) continue;
    hot++;
    struct pwi_place place = {.size = SIZE};
    assert_int_equal(loads[i].positions.begin, pwi_place_position(&place, 700));
    assert_true(loads[i].requests >= 300);
  }
  assert_int_equal(hot, 1);
  pwi_shard_report(f.from, &report);
  assert_true(bytes > report.bytes - 1000 && bytes <= report.bytes);
  assert_true(requests >= 2000 && requests <= 3200); /* two pushes of SIZE keys, 600 pulls of one */
  count = pwi_shard_loads(f.from, loads, 100);
  for (size_t i = 0; i < count; i++) assert_int_equal(loads[i].requests, 0);
  stop(&f);
}

/* Half of all rows lie in the last tenth of the ring, too many to be counted one by one. */
static void test_loads_of_a_large_table_are_estimated(void **state) {
  (void)state;
  enum { COUNT = 200000 };
  uint64_t *keys = test_malloc(COUNT * sizeof *keys), high = UINT64_C(1) << 40;
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  open_vector(shard, entry_of(1, PAWL_F32, 1, high, true));
  for (uint64_t i = 0; i < COUNT / 2; i++) {
    keys[i] = i * (high / 10 * 9 / (COUNT / 2));
    keys[COUNT / 2 + i] = high / 10 * 9 + i * (high / 10 / (COUNT / 2));
  }
  float *zeros = test_calloc(COUNT, sizeof *zeros);
  struct iovec values = {zeros, COUNT * sizeof *zeros};
  struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, high);
  push.terms.keys = PWI_KEYS_LIST;
  push.terms.rows = COUNT;
  push.keys = keys;
  push.task = 1;
  push.values = &values;
  push.value_parts = 1;
  push.value_type = PAWL_F32;
  assert_served(shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_load loads[400];
  size_t count = pwi_shard_loads(shard, loads, 400);
  double all = 0, last = 0, requests = 0;
  assert_in_order(loads, count);
  for (size_t i = 0; i < count; i++) {
    all += (double)loads[i].bytes;
    requests += (double)loads[i].requests;
    if (loads[i].positions.begin >= PWI_RING_END / 10 * 9) last += (double)loads[i].bytes;
  }
  assert_true(last / all > 0.45 && last / all < 0.55);
  assert_true(requests > 0.9 * COUNT && requests < 1.1 * COUNT);
  test_free(keys);
  test_free(zeros);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_frozen_positions_are_not_here_until_they_thaw),
      cmocka_unit_test(test_copied_positions_are_adopted_with_their_history),
      cmocka_unit_test(test_positions_are_held_by_one_at_most_and_start_empty),
      cmocka_unit_test(test_a_move_that_was_broken_off_leaves_nothing),
      cmocka_unit_test(test_a_refusal_moves_with_its_keys),
      cmocka_unit_test(test_refusals_are_forgotten_where_keys_start_anew),
      cmocka_unit_test(test_vectors_closed_meanwhile_are_left_out),
      cmocka_unit_test(test_a_chunk_of_a_later_incarnation_is_not_taken),
      cmocka_unit_test(test_a_target_without_room_says_so),
      cmocka_unit_test(test_a_quota_that_is_used_up_does_not_stop_a_fill),
      cmocka_unit_test(test_damaged_chunks_are_refused_or_harmless),
      cmocka_unit_test(test_out_of_memory_while_moving_can_be_tried_again),
      cmocka_unit_test(test_loads_show_bytes_and_hot_keys),
      cmocka_unit_test(test_loads_of_a_large_table_are_estimated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
