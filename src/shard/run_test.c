/* Row functions in a shard: run once on each row, with results that are repeated, replicated and moved. */
#include "shard/testing.h"

#include "base/bytes.h"
#include "store/functions/rows.h"

#define SIZE 100
#define HALF (PWI_RING_END / 2)

/* y = 2 y + x + more; the results are the sum of y before and the largest key. Width 1. */
static void twice(const struct pawl_row_call *call) {
  int64_t *rows = call->rows;
  const int64_t *others = call->others;
  for (size_t i = 0; i < call->count; i++) {
    double key = (double)(call->keys ? call->keys[i] : call->first + i);
    call->results[0] += (double)rows[i];
    if (key > call->results[1]) call->results[1] = key;
    rows[i] = 2 * rows[i] + (others ? others[i] : 0) + (int64_t)call->parameters[0];
  }
}

static const struct pawl_function_parameter parameters[] = {{"more", "what is added", 1, -9, 9}};
static const struct pawl_row_result results[] = {{"before", "", PAWL_ROW_SUM}, {"key", "", PAWL_ROW_MOST}};
static const struct pawl_row_function doubling = {.size = sizeof doubling,
                                                  .flags = PAWL_ROW_TAKES_OTHER,
                                                  .name = "twice",
                                                  .types = PAWL_FUNCTION_TYPE(PAWL_I64),
                                                  .parameter_count = 1,
                                                  .parameters = parameters,
                                                  .result_count = 2,
                                                  .results = results,
                                                  .run = twice};

struct fixture {
  struct pwi_membership membership;
  struct pwi_function_set functions;
  struct pwi_shard *shard, *other;
};

static struct pwi_shard *make_shard(struct fixture *fixture) {
  struct pwi_shard_config config = {.memory_max = UINT64_MAX, .functions = &fixture->functions};
  struct pwi_shard *shard = shard_of(&config);
  for (uint64_t id = 1; id <= 4; id++) open_vector(shard, entry_of(id, PAWL_I64, 1, SIZE, id > 2));
  open_vector(shard, entry_of(5, PAWL_F64, 1, SIZE, false));
  pwi_shard_set_membership(shard, &fixture->membership);
  return shard;
}

/* Vectors 1 and 2 are dense, 3 and 4 sparse. `shard` has all positions, `other` none. */
static void start(struct fixture *fixture) {
  struct pwi_function_problem problem;
  *fixture = (struct fixture){.membership = membership_of(3)};
  assert_int_equal(pwi_row_function_add(&fixture->functions, &doubling, &problem), PAWL_OK);
  fixture->shard = make_shard(fixture);
  fixture->other = make_shard(fixture);
  assert_int_equal(pwi_shard_hold(fixture->shard, WHOLE_RING), PAWL_OK);
}

static void stop(struct fixture *fixture) {
  pwi_shard_destroy(fixture->shard);
  pwi_shard_destroy(fixture->other);
  pwi_function_set_fini(&fixture->functions);
  pwi_membership_fini(&fixture->membership);
}

static struct pwi_request run_of(uint64_t vector, const char *function, uint64_t other, uint64_t prior, uint64_t task) {
  struct pwi_request request = request_of(PWI_REQUEST_LINEAR, vector, SIZE);
  request.operation = (struct pwi_operation){.kind = other ? PWI_LINEAR_RUN_WITH : PWI_LINEAR_RUN, .other = {other}};
  request.function = function;
  request.terms.prior = prior;
  request.task = task;
  return request;
}

static struct pwi_request part_of(struct pwi_request request, uint64_t begin, uint64_t end) {
  request.terms.claim = request.terms.range = pawl_range_of(begin, end);
  request.terms.rows = end - begin;
  return request;
}

/* As the server does: cut first, then serve. */
static struct pwi_served run(struct pwi_shard *shard, struct pwi_request request) {
  if (!request.refusal) request.refusal = pwi_shard_cut_linear(shard, &request);
  return serve(shard, &request, NULL);
}

static void assert_run(struct pwi_shard *shard, struct pwi_request request, enum pwi_code code, pawl_status status) {
  struct pwi_served served = run(shard, request);
  assert_string_equal(pwi_code_text(served.outcome.code), pwi_code_text(code));
  assert_string_equal(pawl_status_name(served.outcome.status), pawl_status_name(status));
}

/* The only result in the answer. */
static struct pwi_run_result result_of(struct pwi_served served, uint64_t task) {
  struct pwi_reader reader;
  struct pwi_run_result result;
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  pwi_reader_init(&reader, served.payload, served.payload_size);
  assert_int_equal(pwi_read_u32(&reader), 1);
  assert_int_equal(pwi_read_u64(&reader), task);
  pwi_run_result_read(&reader, &result);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  assert_int_equal(result.count, 2);
  return result;
}

static void set_rows(struct pwi_shard *shard, uint64_t vector, const uint64_t *keys, size_t count, int64_t value) {
  int64_t values[SIZE];
  struct iovec part = {values, count * sizeof *values};
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, vector, SIZE);
  for (size_t i = 0; i < count; i++) values[i] = value;
  request.terms.keys = PWI_KEYS_LIST;
  request.terms.rows = count;
  request.keys = keys;
  request.task = 1;
  request.values = &part;
  request.value_parts = 1;
  request.value_type = PAWL_I64;
  assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
}

static int64_t pull_one(struct pwi_shard *shard, uint64_t vector, uint64_t key) {
  struct pwi_request request = request_of(PWI_REQUEST_PULL, vector, SIZE);
  int64_t value = -77;
  request.terms.keys = PWI_KEYS_LIST;
  request.terms.rows = 1;
  request.terms.claim = request.terms.range = pawl_range_of(key, key + 1);
  request.keys = &key;
  assert_served(shard, &request, &value, PWI_CODE_OK, PAWL_OK);
  return value;
}

static const uint64_t some[] = {3, 50, 99};

static void test_a_resend_brings_the_result_of_the_only_run(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  for (uint64_t y = 1; y <= 3; y += 2) {
    set_rows(f.shard, y, some, 3, 5);
    set_rows(f.shard, y + 1, some, 2, 100);
    for (int attempt = 0; attempt < 2; attempt++) {
      struct pwi_served served = run(f.shard, run_of(y, "twice more=2", y + 1, 1, 7));
      struct pwi_run_result result = result_of(served, 7);
      assert_int_equal(served.effect, attempt ? PWI_EFFECT_NONE : PWI_EFFECT_ROWS);
      assert_true(result.values[0] == 15 && result.values[1] == 99);
      assert_int_equal(served.outcome.next, SIZE);
    }
    assert_int_equal(pull_one(f.shard, y, 50), 112);
    assert_int_equal(pull_one(f.shard, y, 99), 12);
    assert_int_equal(pull_one(f.shard, y, 4), y == 1 ? 2 : 0); /* the sparse one has no such row */
    assert_int_equal(pull_one(f.shard, y + 1, 50), 100);
  }
  stop(&f);
}

/* Each request is either due on all of its claim or done, so it has one result. */
static void test_a_claim_that_was_partly_applied_is_cut(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  set_rows(f.shard, 1, some, 3, 1);
  struct pwi_request whole = run_of(1, "twice", 0, 1, 2);
  struct pwi_run_result result = result_of(run(f.shard, part_of(whole, 40, 60)), 2);
  assert_true(result.origin == 40 && result.values[0] == 1);
  struct pwi_served served = run(f.shard, whole);
  assert_int_equal(served.outcome.next, 40);
  assert_true(result_of(served, 2).values[1] == 39);
  served = run(f.shard, part_of(whole, 45, SIZE)); /* a view has cut the part that was applied */
  assert_int_equal(served.outcome.next, 60);
  result = result_of(served, 2);
  assert_true(result.origin == 40 && result.range.begin == 45 && result.range.end == 60 && result.values[0] == 1);
  assert_true(result_of(run(f.shard, part_of(whole, 60, SIZE)), 2).values[0] == 1);
  for (size_t i = 0; i < 3; i++) assert_int_equal(pull_one(f.shard, 1, some[i]), 3);
  stop(&f);
}

static void test_calls_that_make_no_sense_use_up_their_number(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  assert_run(f.shard, run_of(1, "thrice", 0, 0, 1), PWI_CODE_REFUSED, PAWL_NOT_FOUND);
  assert_run(f.shard, run_of(1, "thrice", 0, 0, 1), PWI_CODE_REFUSED, PAWL_NOT_FOUND);
  assert_run(f.shard, run_of(1, "twice more=10", 0, 1, 2), PWI_CODE_REFUSED, PAWL_INVALID);
  assert_run(f.shard, run_of(1, NULL, 0, 2, 3), PWI_CODE_REFUSED, PAWL_INVALID);
  assert_run(f.shard, run_of(5, "twice", 0, 0, 3), PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
  assert_run(f.shard, run_of(1, "clip", 0, 3, 4), PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
  assert_run(f.shard, run_of(5, "clip", 5, 3, 5), PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
  assert_run(f.shard, run_of(1, "twice", 77, 4, 5), PWI_CODE_REFUSED, PAWL_NOT_FOUND);
  assert_run(f.shard, run_of(1, "twice", 3, 5, 6), PWI_CODE_REFUSED, PAWL_MISMATCH);
  assert_run(f.shard, run_of(1, "twice more=4", 0, 6, 7), PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 1, 0), 4);
  stop(&f);
}

/* A member of the chain that becomes the head answers a resend with the head's result. */
static void test_a_follower_has_rows_and_result(void **state) {
  struct fixture f;
  int64_t rows[SIZE];
  struct iovec values = {rows, sizeof rows};
  struct pwi_outcome outcome;
  (void)state;
  start(&f);
  assert_int_equal(pwi_shard_hold(f.other, WHOLE_RING), PAWL_OK);
  struct pwi_request request = run_of(1, "twice more=3", 0, 0, 2);
  struct pwi_served served = run(f.shard, request);
  unsigned char bytes[PWI_RUN_RESULT_SIZE]; /* the follower gets it in a message */
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  struct pwi_reader reader;
  struct pwi_run_result sent;
  assert_non_null(served.result);
  pwi_run_result_write(&writer, served.result);
  pwi_reader_init(&reader, bytes, sizeof bytes);
  pwi_run_result_read(&reader, &sent);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  struct pwi_change change = {.effect = PWI_EFFECT_ROWS, .request = request, .result = &sent};
  pwi_shard_result(f.shard, &request, rows, NULL);
  change.request.values = &values;
  change.request.value_parts = 1;
  change.request.value_type = PAWL_I64;
  pwi_shard_follow(f.other, &change, pawl_range_of(0, HALF), &outcome);
  assert_int_equal(outcome.code, PWI_CODE_OK);
  pwi_shard_follow(f.other, &change, pawl_range_of(HALF, PWI_RING_END), &outcome);
  assert_int_equal(outcome.code, PWI_CODE_OK);
  struct pwi_sender sender = request.sender;
  uint64_t kept = pwi_shard_digest_kept(f.shard, WHOLE_RING, sender, 1);
  assert_true(kept != 0 && kept == pwi_shard_digest_kept(f.other, WHOLE_RING, sender, 1));
  assert_true(pwi_shard_digest_kept(f.shard, WHOLE_RING, sender, 2) == 0);
  served = run(f.other, part_of(request, 0, SIZE / 2));
  struct pwi_run_result result = result_of(served, 2);
  assert_true(result.origin == 0 && result.values[1] == 99 && served.effect == PWI_EFFECT_NONE);
  assert_int_equal(pull_one(f.other, 1, 70), 3);
  change.request.task = 3;
  change.request.terms.settled = 2; /* otherwise no change could be followed after many results */
  pwi_shard_follow(f.other, &change, WHOLE_RING, &outcome);
  assert_int_equal(outcome.code, PWI_CODE_OK);
  assert_int_equal(run(f.other, request).payload_size, 4);
  stop(&f);
}

/* The keys come back empty, and the function runs again. */
static void test_results_go_with_their_keys(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  set_rows(f.shard, 1, some, 3, 1);
  assert_true(result_of(run(f.shard, run_of(1, "twice", 0, 1, 2)), 2).values[0] == 3);
  assert_int_equal(pwi_shard_drop(f.shard, WHOLE_RING), PAWL_OK);
  assert_int_equal(pwi_shard_hold(f.shard, WHOLE_RING), PAWL_OK);
  assert_true(result_of(run(f.shard, run_of(1, "twice", 0, 0, 2)), 2).values[0] == 0);
  stop(&f);
}

static void move_all(struct fixture *f, struct pawl_range positions) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  pwi_copying_init(&copying, positions);
  for (;;) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f->shard, &copying, 4000, &writer, &more), PAWL_OK);
    if (!more) break;
    for (size_t size = 0; size < writer.size; size++) /* a damaged chunk never crashes */
      if (pwi_shard_take(f->other, writer.data, size) == PAWL_NO_MEMORY) fail();
    assert_int_equal(pwi_shard_take(f->other, writer.data, writer.size), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  assert_int_equal(pwi_shard_adopt(f->other, positions), PAWL_OK);
  assert_int_equal(pwi_shard_drop(f->shard, positions), PAWL_OK);
}

/* Both shards then have the whole result of one run, each for its keys. */
static void test_results_move_with_their_keys(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  set_rows(f.shard, 1, some, 3, 1);
  struct pwi_request request = run_of(1, "twice", 0, 1, 2);
  result_of(run(f.shard, request), 2);
  move_all(&f, pawl_range_of(HALF, PWI_RING_END));
  struct pwi_run_result low = result_of(run(f.shard, part_of(request, 0, SIZE / 2)), 2);
  struct pwi_run_result high = result_of(run(f.other, part_of(request, SIZE / 2, SIZE)), 2);
  assert_true(low.origin == 0 && high.origin == 0 && low.range.end == SIZE / 2 && high.range.begin == SIZE / 2);
  assert_true(low.values[0] == 3 && high.values[0] == 3);
  stop(&f);
}

/* Checkpoints have no results: readers of earlier versions would take them for damage. */
static void test_checkpoints_have_no_results(void **state) {
  struct fixture f;
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  (void)state;
  start(&f);
  result_of(run(f.shard, run_of(1, "twice", 0, 0, 2)), 2);
  pwi_copying_init(&copying, WHOLE_RING);
  copying.no_rows = true;
  while (more) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f.shard, &copying, 4000, &writer, &more), PAWL_OK);
    if (more) assert_true(writer.data[1] <= 4); /* rows, tasks, ticks, refusals */
  }
  pwi_writer_fini(&writer);
  stop(&f);
}

/* The results of a retired sender are told to the client that it has become. */
static void test_results_are_collected(void **state) {
  struct fixture f;
  struct pwi_reader reader;
  struct pwi_run_result result;
  (void)state;
  start(&f);
  result_of(run(f.shard, part_of(run_of(1, "twice", 0, 0, 2), 10, 20)), 2);
  f.membership.senders[0].retired = true;
  pwi_shard_membership_changed(f.shard);
  struct pwi_request collect = request_of(PWI_REQUEST_COLLECT, 1, SIZE);
  collect.sender.id = 2;
  collect.terms.other = 1;
  struct pwi_served served = serve(f.shard, &collect, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  pwi_reader_init(&reader, served.payload, served.payload_size);
  uint32_t pieces = pwi_read_u32(&reader);
  pwi_read_bytes(&reader, pieces * (size_t)24);
  assert_int_equal(pwi_read_u32(&reader), 0); /* refusals */
  assert_int_equal(pwi_read_u32(&reader), 1);
  assert_int_equal(pwi_read_u64(&reader), 2);
  pwi_run_result_read(&reader, &result);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  assert_true(result.origin == 10 && result.range.end == 20);
  stop(&f);
}

static void test_settled_results_are_forgotten(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  struct pwi_request request = run_of(1, "twice", 0, 0, 2);
  result_of(run(f.shard, request), 2);
  struct pwi_request next = run_of(1, "twice", 0, 2, 3);
  next.terms.settled = 2;
  result_of(run(f.shard, next), 3);
  struct pwi_served served = run(f.shard, request); /* no client asks for a settled task */
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_int_equal(served.payload_size, 4);
  stop(&f);
}

/* The client has not heard of the second one. */
static void test_a_result_after_the_settled_ones_is_kept(void **state) {
  struct fixture f;
  (void)state;
  start(&f);
  set_rows(f.shard, 1, some, 3, 5);
  result_of(run(f.shard, run_of(1, "twice", 0, 1, 2)), 2);
  struct pwi_request second = run_of(1, "twice", 0, 2, 3);
  double before = result_of(run(f.shard, second), 3).values[0];
  struct pwi_request third = run_of(1, "twice", 0, 3, 4);
  third.terms.settled = 2;
  result_of(run(f.shard, third), 4);
  assert_true(result_of(run(f.shard, second), 3).values[0] == before);
  stop(&f);
}

static void test_without_memory_nothing_has_changed(void **state) {
  uint64_t live = pwi_memory_counts().live;
  (void)state;
  for (uint64_t y = 1; y <= 3; y += 2) {
    int failed = 1;
    for (uint64_t n = 0; failed; n++) {
      struct fixture f;
      start(&f);
      set_rows(f.shard, y, some, 3, 5);
      struct pwi_request request = run_of(y, "twice", y + 1, 1, 2);
      pwi_memory_fail_after(n);
      struct pwi_served served = run(f.shard, request);
      failed = pwi_memory_fail_cancel();
      bool is_refused = served.outcome.code == PWI_CODE_REFUSED;
      bool has_run = served.effect == PWI_EFFECT_ROWS;
      if (served.outcome.code == PWI_CODE_FAILED || is_refused) assert_int_equal(served.outcome.status, PAWL_NO_MEMORY);
      assert_int_equal(pull_one(f.shard, y, 50), has_run ? 11 : 5);
      if (!is_refused) assert_true(result_of(run(f.shard, request), 2).values[0] == 15);
      assert_int_equal(pull_one(f.shard, y, 50), is_refused ? 5 : 11);
      stop(&f);
    }
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_resend_brings_the_result_of_the_only_run),
      cmocka_unit_test(test_a_claim_that_was_partly_applied_is_cut),
      cmocka_unit_test(test_calls_that_make_no_sense_use_up_their_number),
      cmocka_unit_test(test_a_follower_has_rows_and_result),
      cmocka_unit_test(test_results_go_with_their_keys),
      cmocka_unit_test(test_results_move_with_their_keys),
      cmocka_unit_test(test_checkpoints_have_no_results),
      cmocka_unit_test(test_results_are_collected),
      cmocka_unit_test(test_settled_results_are_forgotten),
      cmocka_unit_test(test_a_result_after_the_settled_ones_is_kept),
      cmocka_unit_test(test_without_memory_nothing_has_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
