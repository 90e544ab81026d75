/* Answers of a shard to requests, one promise at a time. shard/model_test.c compares whole histories with a
 * model, shard/groups_test.c tests ticks, shard/move_test.c positions that come and go. */
#include "shard/inside.h"
#include "shard/shard_testing.h"

/* --- results -------------------------------------------------------------------------------------------- */

#define MANY 5000 /* rows: a result is made in several steps */

/* Every third key, or all of them by range; the parts of the values end within rows. */
static void check_result(uint64_t vector, bool is_sparse, bool by_keys) {
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  static uint64_t keys[MANY];
  static int32_t in[3 * MANY], early[3 * MANY], late[3 * MANY];
  struct iovec parts[] = {{in, 4099}, {(char *)in + 4099, sizeof in - 4099}};
  open_vector(shard, entry_of(vector, PAWL_I32, 3, 3 * MANY, is_sparse));
  for (uint64_t task = 1; task <= 2; task++) {
    struct pwi_request request = request_of(PWI_REQUEST_PUSH, vector, 3 * MANY);
    for (int i = 0; i < MANY; i++) keys[i] = 3 * (uint64_t)i;
    for (int i = 0; i < 3 * MANY; i++) in[i] = i + 1;
    memset(early, 0, sizeof early);
    request.terms.range = pawl_range_of(0, by_keys ? 3 * MANY : MANY);
    request.terms.rows = MANY;
    if (by_keys) by_list(&request, keys, MANY);
    request.terms.prior = task - 1;
    request.task = task;
    request.values = parts;
    request.value_parts = 2;
    request.value_type = PAWL_I32;
    request.result = early;
    assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
    pwi_shard_result(shard, &request, late, NULL); /* somewhere else: it is read once more */
    assert_memory_equal(early, late, sizeof early);
    assert_int_equal(early[3 * MANY - 1], (int)task * 3 * MANY);
  }
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_a_result_is_written_while_rows_are_applied(void **state) {
  (void)state;
  check_result(1, false, false);
  check_result(1, false, true);
  check_result(1, true, false);
  check_result(1, true, true);
}

/* A part of the push was applied before: the result has all its rows. */
static void test_a_result_has_rows_that_were_not_due(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    struct pwi_request half = push_of(vector, 0, 5, &(struct iovec){f.ones, sizeof f.ones / 2});
    struct pwi_request all = push_of(vector, 0, 5, &f.values);
    int64_t result[SIZE] = {0};
    half.terms.claim = half.terms.range = pawl_range_of(0, SIZE / 2);
    half.terms.rows = SIZE / 2;
    assert_served(f.shard, &half, NULL, PWI_CODE_OK, PAWL_OK);
    all.result = result;
    assert_served(f.shard, &all, NULL, PWI_CODE_OK, PAWL_OK);
    pwi_shard_result(f.shard, &all, result, NULL);
    for (size_t i = 0; i < SIZE; i++) assert_int_equal(result[i], 1);
  }
  stop(&f);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void test_a_push_is_applied_once(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    struct pwi_request first = push_of(vector, 0, 5, &f.values), second = push_of(vector, 5, 8, &f.values);
    assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
    assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
    assert_int_equal(pull_one(f.shard, vector, 42), 1);
    assert_served(f.shard, &second, NULL, PWI_CODE_OK, PAWL_OK);
    assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
    assert_int_equal(pull_one(f.shard, vector, 42), 2);
  }
  stop(&f);
}

static void test_a_push_that_overtakes_another_finds_a_gap(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request first = push_of(1, 0, 5, &f.values), third = push_of(1, 7, 8, &f.values);
  assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_served served = serve(f.shard, &third, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_GAP);
  assert_int_equal(served.outcome.found, 5);
  assert_int_equal(pull_one(f.shard, 1, 42), 1);
  stop(&f);
}

static void test_a_history_that_cannot_be_is_broken(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request first = push_of(1, 0, 5, &f.values), other = push_of(1, 2, 8, &f.values);
  assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_served served = serve(f.shard, &other, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_BROKEN);
  assert_int_equal(served.outcome.found, 5);
  stop(&f);
}

static void test_a_pull_waits_for_the_push_it_names(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request first = push_of(1, 0, 5, &f.values), pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  int64_t out[SIZE];
  pull.terms.prior = 5;
  assert_served(f.shard, &pull, out, PWI_CODE_GAP, PAWL_OK);
  assert_served(f.shard, &first, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(out[SIZE - 1], 1);
  stop(&f);
}

/* Serves a pull that may view the table. The values are in one place or the other. */
static const int64_t *view_or_copy(struct pwi_shard *shard, struct pwi_request *pull, int64_t *copy, bool *viewed) {
  pull->may_view = true;
  struct pwi_served served = serve(shard, pull, copy);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_int_equal(served.value_bytes, pull->terms.rows * sizeof *copy);
  *viewed = served.view != NULL;
  return served.view ? served.view : copy;
}

static void test_a_pull_views_rows_that_lie_together_in_the_table(void **state) {
  struct fixture fixture;
  (void)state;
  start(&fixture, UINT64_MAX, 0);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    struct pwi_request push = push_of(vector, 0, 1, &fixture.values), pull = request_of(PWI_REQUEST_PULL, vector, SIZE);
    int64_t copy[SIZE] = {0};
    const uint64_t keys[] = {10, 11, 12};
    bool viewed;
    assert_int_equal(view_or_copy(fixture.shard, &pull, copy, &viewed)[SIZE - 1], 0);
    assert_false(viewed); /* zeros that are nowhere */
    assert_served(fixture.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
    pull.terms.range = pawl_range_of(10, 20);
    pull.terms.rows = 10;
    const int64_t *values = view_or_copy(fixture.shard, &pull, copy, &viewed);
    for (size_t i = 0; i < 10; i++) assert_int_equal(values[i], 1);
    if (vector == 1) assert_true(viewed); /* the dense one */
    by_list(&pull, keys, 3);
    assert_int_equal(view_or_copy(fixture.shard, &pull, copy, &viewed)[2], 1);
    assert_false(viewed);
  }
  stop(&fixture);
}

static void test_only_live_senders_may_push_and_every_client_may_pull(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values), pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  int64_t out[SIZE];
  push.sender.id = pull.sender.id = 9;
  assert_served(f.shard, &push, NULL, PWI_CODE_RETIRED, PAWL_OK);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  push.sender.id = 2;
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pwi_membership_retire(&f.membership, push.sender), PAWL_OK);
  assert_served(f.shard, &push, NULL, PWI_CODE_RETIRED, PAWL_OK);
  stop(&f);
}

/* Regression: the shard answered GAP twice, and the client took pushes that were applied for lost. */
static void test_a_read_of_a_forgotten_sender_meets_no_gap(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values), pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  struct pwi_request scan = request_of(PWI_REQUEST_SCAN, 1, SIZE);
  int64_t out[SIZE];
  pull.terms.prior = scan.terms.prior = 5;
  pull.sender = scan.sender = push.sender;
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pwi_membership_retire(&f.membership, push.sender), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK); /* the clocks are still there */
  assert_int_equal(pwi_membership_forget(&f.membership, &push.sender, 1), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  assert_served(f.shard, &pull, out, PWI_CODE_RETIRED, PAWL_OK);
  assert_served(f.shard, &scan, out, PWI_CODE_RETIRED, PAWL_OK);
  pull.terms.prior = 0;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* --- terms ---------------------------------------------------------------------------------------------- */

static void test_terms_that_make_no_sense_fail_and_use_up_no_number(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  open_vector(f.shard, group_of(3));
  struct pwi_request good = push_of(1, 0, 5, &f.values), bad;

  bad = good;
  bad.terms.vector.id = 17;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  bad = good;
  bad.terms.claim.end = SIZE + 1;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_OUT_OF_SPAN);
  bad = good;
  bad.terms.claim.end = SIZE / 2;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_OUT_OF_SPAN);
  bad = good;
  bad.terms.prior = 5;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_INVALID);
  bad = good;
  bad.terms.kind = PWI_REQUEST_TICK;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_INVALID);
  bad = good;
  bad.terms.vector.id = 3;
  assert_served(f.shard, &bad, NULL, PWI_CODE_FAILED, PAWL_INVALID);

  assert_served(f.shard, &good, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* Later pushes name the number as their predecessor: if it were never used up, they would wait for ever. */
static void test_rows_that_make_no_sense_are_refused_and_the_next_push_follows(void **state) {
  (void)state;
  static const uint64_t outside[] = {10, 60}, inside[] = {10, 20};
  for (int fault = 0; fault < 6; fault++) {
    struct fixture f;
    start(&f, UINT64_MAX, 0);
    struct pwi_request bad = push_of(1, 0, 5, &f.values), good = push_of(1, 5, 6, &f.values);
    pawl_status status = PAWL_INVALID;
    if (fault == 0) bad.terms.rows--;
    if (fault == 1) bad.terms.rows = UINT64_C(1) << 38;
    if (fault == 2) {
      by_list(&bad, outside, 2);
      bad.terms.range.end = 60;
      status = PAWL_OUT_OF_SPAN;
    } else if (fault > 2) {
      by_list(&bad, inside, 2);
    }
    if (fault == 3) bad.terms.rows = SIZE + 1;
    if (fault == 4) {
      bad.terms.keep = true;
      bad.signature = 1; /* is not theirs */
    }
    if (fault == 5) bad.value_parts = 0, status = PAWL_MISMATCH;
    assert_served(f.shard, &bad, NULL, PWI_CODE_REFUSED, status);
    assert_served(f.shard, &bad, NULL, PWI_CODE_REFUSED, status); /* and again, if it comes again */
    assert_served(f.shard, &good, NULL, PWI_CODE_OK, PAWL_OK);
    stop(&f);
  }
}

/* A client that is told that a push has failed counts on it. */
static void test_a_push_that_was_applied_has_not_failed_if_it_comes_again_beyond_the_rate(void **state) {
  (void)state;
  struct fixture f;
  int64_t rows[SIZE];
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values);
  push.terms.kind = PWI_REQUEST_PUSHPULL;
  assert_served(f.shard, &push, rows, PWI_CODE_OK, PAWL_OK);
  push.refusal = PAWL_QUOTA_RATE;
  assert_served(f.shard, &push, rows, PWI_CODE_NOT_HERE, PAWL_OK);
  push.refusal = PAWL_OK;
  assert_served(f.shard, &push, rows, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* The check needs no memory for the rows. */
static void test_rows_without_their_values_are_seen_before_memory_is_taken(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values);
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_OK);
  push.value_parts = 0;
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_MISMATCH);
  push.terms.kind = PWI_REQUEST_PUSHPULL;
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_MISMATCH);
  push.terms.kind = PWI_REQUEST_RESTORE;
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_MISMATCH);
  push.terms.keys = PWI_KEYS_SIGNED;
  push.terms.rows = SIZE;
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_MISMATCH);
  push.terms.rows = UINT64_C(1) << 61; /* times the size of a row that is 0 */
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_INVALID);
  push.terms.keys = PWI_KEYS_RANGE;
  push.terms.kind = PWI_REQUEST_PULL;
  assert_int_equal(pwi_shard_inspect(f.shard, &push), PAWL_INVALID);
  stop(&f);
}

static void test_answer_bytes_are_bounded(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(2, 0, 5, &f.values), pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  size_t bytes = 77;
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &push, 0, &bytes), PAWL_OK);
  assert_int_equal(bytes, 0);
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &pull, 8 * SIZE, &bytes), PAWL_OK);
  assert_int_equal(bytes, 8 * SIZE);
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &pull, 8 * SIZE - 1, &bytes), PAWL_TOO_LARGE);
  pull.terms.rows = UINT64_MAX / 4;
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &pull, SIZE_MAX, &bytes), PAWL_TOO_LARGE);
  pull.terms.vector.id = 17;
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &pull, SIZE_MAX, &bytes), PAWL_OK);
  assert_int_equal(bytes, 0);
  struct pwi_request scan = request_of(PWI_REQUEST_SCAN, 2, SIZE);
  scan.terms.rows = UINT64_MAX;
  assert_int_equal(pwi_shard_answer_bytes(f.shard, &scan, SIZE_MAX, &bytes), PAWL_OK);
  assert_int_equal(bytes, 0);
  stop(&f);
}

/* --- refusals ------------------------------------------------------------------------------------------- */

static void test_a_refused_push_is_refused_again_until_it_is_settled(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request bad = push_of(1, 0, 5, &f.values), next = push_of(1, 5, 6, &f.values);
  bad.value_type = PAWL_F64;
  assert_served(f.shard, &bad, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  assert_served(f.shard, &bad, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  assert_served(f.shard, &next, NULL, PWI_CODE_OK, PAWL_OK);
  bad.terms.claim.begin = bad.terms.range.begin = 30; /* a piece of it is no better */
  bad.terms.rows = SIZE - 30;
  assert_served(f.shard, &bad, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  next.terms.settled = 5;
  assert_served(f.shard, &next, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &bad, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 1, 42), 1);
  stop(&f);
}

static void test_too_few_values_are_refused(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(2, 0, 5, &f.values);
  f.values.iov_len -= 1;
  assert_served(f.shard, &push, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  stop(&f);
}

static void test_under_its_cap_a_shard_refuses_to_grow_and_goes_on(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_report report;
  start(&f, UINT64_MAX, 0);
  pwi_shard_report(f.shard, &report);
  uint64_t empty = report.bytes;
  stop(&f);
  start(&f, empty + 1000, 0); /* room for the dense rows or a second sparse leaf, not for both */
  struct pwi_request dense = push_of(1, 0, 5, &f.values), sparse = push_of(2, 0, 6, &f.values);
  assert_served(f.shard, &dense, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &sparse, NULL, PWI_CODE_REFUSED, PAWL_NODE_FULL);
  assert_int_equal(pull_one(f.shard, 2, 42), 0);
  dense = push_of(1, 5, 7, &f.values);
  assert_served(f.shard, &dense, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 1, 42), 2);
  pwi_shard_report(f.shard, &report);
  assert_true(report.bytes >= empty + 8 * SIZE && report.bytes <= empty + 1000);
  assert_int_equal(report.refused, 1);
  stop(&f);
}

/* Bytes of the tables of the fixture's space. */
static uint64_t bytes_held(const struct fixture *f) {
  struct pwi_report report;
  pwi_shard_report(f->shard, &report);
  return report.bytes;
}

static void test_a_space_past_its_quota_is_refused_and_others_go_on(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_entry other = entry_of(77, PAWL_I64, 1, SIZE, false), late = entry_of(78, PAWL_I64, 1, SIZE, false);
  snprintf(other.name, sizeof other.name, "elsewhere/v");
  assert_int_equal(pwi_shard_open(f.shard, &other), PAWL_OK);
  assert_int_equal(pwi_shard_set_quota(f.shard, "test", bytes_held(&f) + 1000), PAWL_OK); /* as under a cap */
  assert_int_equal(pwi_shard_set_quota(f.shard, "tes", 1), PAWL_OK);
  struct pwi_request dense = push_of(1, 0, 5, &f.values), sparse = push_of(2, 0, 6, &f.values);
  assert_served(f.shard, &dense, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &sparse, NULL, PWI_CODE_REFUSED, PAWL_QUOTA_MEMORY);
  assert_int_equal(pull_one(f.shard, 2, 42), 0);
  struct pwi_request elsewhere = push_of(77, 0, 7, &f.values);
  assert_served(f.shard, &elsewhere, NULL, PWI_CODE_OK, PAWL_OK);

  /* A vector created later belongs to the space too. A deleted vector frees its bytes. */
  assert_int_equal(pwi_shard_open(f.shard, &late), PAWL_OK);
  assert_int_equal(pwi_shard_set_quota(f.shard, "test", 1), PAWL_OK);
  assert_int_equal(pwi_shard_set_quota(f.shard, "test", UINT64_MAX), PAWL_OK); /* the lower one counts */
  struct pwi_request latest = push_of(78, 0, 8, &f.values);
  assert_served(f.shard, &latest, NULL, PWI_CODE_REFUSED, PAWL_QUOTA_MEMORY);
  dense = push_of(1, 5, 9, &f.values); /* its rows are there */
  assert_served(f.shard, &dense, NULL, PWI_CODE_OK, PAWL_OK);
  pwi_shard_lift_quotas(f.shard);
  latest = push_of(78, 8, 10, &f.values);
  assert_served(f.shard, &latest, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

static void test_kept_lists_make_way_for_rows(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_report report;
  start(&f, UINT64_MAX, 0);
  pwi_shard_report(f.shard, &report);
  uint64_t empty = report.bytes;
  stop(&f);
  start(&f, empty + 1000, 0);
  uint64_t keys[] = {1, 2, 3};
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  int64_t out[SIZE];
  by_list(&pull, keys, 3);
  pull.terms.keep = true;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  pwi_shard_report(f.shard, &report);
  assert_int_equal(report.cached_lists, 1);
  struct pwi_request dense = push_of(1, 0, 5, &f.values);
  assert_served(f.shard, &dense, NULL, PWI_CODE_OK, PAWL_OK);
  pwi_shard_report(f.shard, &report);
  assert_int_equal(report.cached_lists, 0);
  stop(&f);
}

/* --- scan and collect ----------------------------------------------------------------------------------- */

static void test_a_scan_brings_the_keys_that_are_there_and_says_where_to_go_on(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7, 42}, found[3];
  int64_t out[3];
  f.values.iov_len = sizeof out;
  struct pwi_request push = push_of(2, 0, 5, &f.values), scan = request_of(PWI_REQUEST_SCAN, 2, SIZE);
  by_list(&push, keys, 3);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  scan.terms.rows = 2;
  struct pwi_served served = serve(f.shard, &scan, out);
  assert_int_equal(served.rows, 2);
  assert_int_equal(served.payload_size, 2 * sizeof *keys);
  memcpy(found, served.payload, served.payload_size);
  assert_memory_equal(found, keys, served.payload_size);
  assert_int_equal(served.value_bytes, 2 * sizeof *out);
  assert_int_equal(served.outcome.next, 8);
  scan.terms.range.begin = 8;
  served = serve(f.shard, &scan, out);
  assert_int_equal(served.rows, 1);
  assert_int_equal(served.outcome.next, SIZE);
  scan.terms.rows = 0;
  assert_served(f.shard, &scan, out, PWI_CODE_FAILED, PAWL_INVALID);
  stop(&f);
}

static void test_the_clock_of_a_retired_sender_is_kept_until_it_is_forgotten(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values), collect = request_of(PWI_REQUEST_COLLECT, 1, SIZE);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  push.terms.prior = 5;
  push.task = 6;
  push.terms.claim.end = push.terms.range.end = 40;
  push.terms.rows = 40; /* but more values than that */
  assert_served(f.shard, &push, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  collect.sender.id = 2;
  collect.terms.other = 1;
  assert_served(f.shard, &collect, NULL, PWI_CODE_FAILED, PAWL_INVALID);
  assert_int_equal(pwi_membership_retire(&f.membership, push.sender), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  struct pwi_served served = serve(f.shard, &collect, NULL);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  struct pwi_reader reader;
  pwi_reader_init(&reader, served.payload, served.payload_size);
  static const uint64_t pieces[] = {0, 40, 6, 40, SIZE, 5};
  assert_int_equal(pwi_read_u32(&reader), 2);
  for (size_t i = 0; i < 6; i++) assert_int_equal(pwi_read_u64(&reader), pieces[i]);
  assert_int_equal(pwi_read_u32(&reader), 1);
  for (size_t i = 0; i < 3; i++) assert_int_equal(pwi_read_u64(&reader), pieces[i]);
  assert_int_equal((int32_t)pwi_read_u32(&reader), PAWL_MISMATCH);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  assert_int_equal(pwi_membership_forget(&f.membership, &push.sender, 1), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  assert_served(f.shard, &collect, NULL, PWI_CODE_GONE, PAWL_OK);
  stop(&f);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void push_and_pull(struct pwi_shard *shard, struct pwi_request *push, uint64_t *task, int64_t *out) {
  struct pwi_request pull = *push;
  push->terms.prior = *task;
  push->task = ++*task;
  assert_served(shard, push, NULL, PWI_CODE_OK, PAWL_OK);
  pull.terms.kind = PWI_REQUEST_PULL;
  pull.terms.prior = *task;
  assert_served(shard, &pull, out, PWI_CODE_OK, PAWL_OK);
}

static void test_in_the_steady_state_nothing_is_allocated(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[SIZE / 2], tasks[2] = {0, 0};
  int64_t out[SIZE];
  for (size_t i = 0; i < SIZE / 2; i++) keys[i] = 2 * i;
  struct iovec half[3] = {{f.ones, 20}, {(char *)f.ones + 20, 333}, {(char *)f.ones + 353, SIZE / 2 * 8 - 353}};
  uint64_t before = 0;
  for (int round = 0; round < 4; round++) {
    if (round == 2) before = pwi_memory_counts().allocations;
    for (uint64_t vector = 1; vector <= 2; vector++) {
      uint64_t *task = &tasks[vector - 1];
      struct pwi_request range = push_of(vector, 0, 0, &f.values), list = push_of(vector, 0, 0, half);
      list.value_parts = 3;
      by_list(&list, keys, SIZE / 2);
      push_and_pull(f.shard, &range, task, out);
      push_and_pull(f.shard, &list, task, out); /* fresh */
      list.terms.keep = true;
      push_and_pull(f.shard, &list, task, out);
      list.terms.keys = PWI_KEYS_SIGNED;
      push_and_pull(f.shard, &list, task, out);
      assert_int_equal(out[7], 4 * (round + 1));
    }
  }
  assert_int_equal(pwi_memory_counts().allocations, before);
  stop(&f);
}

/* If an allocation fails, values and clock change both or not at all: at the end each push is applied once or
 * refused. */
static void test_out_of_memory_leaves_a_push_whole_or_undone(void **state) {
  (void)state;
  uint64_t keys[] = {1, 5, 99};
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct fixture f;
    start(&f, UINT64_MAX, 0);
    f.values.iov_len = 3 * sizeof(int64_t);
    struct pwi_request push = push_of(2, 0, 5, &f.values);
    by_list(&push, keys, 3);
    push.terms.keep = true;
    push.terms.claim.end = 99 + 1;
    pwi_memory_fail_after(n);
    struct pwi_served served = serve(f.shard, &push, NULL);
    failed = pwi_memory_fail_cancel();
    enum pwi_code code = served.outcome.code;
    assert_true(code == PWI_CODE_OK || code == PWI_CODE_REFUSED || code == PWI_CODE_FAILED);
    if (code != PWI_CODE_OK) assert_int_equal(served.outcome.status, PAWL_NO_MEMORY);
    assert_int_equal(pull_one(f.shard, 2, 5), code == PWI_CODE_OK);
    served = serve(f.shard, &push, NULL);
    assert_int_equal(served.outcome.code, code == PWI_CODE_FAILED ? PWI_CODE_OK : code);
    assert_int_equal(pull_one(f.shard, 2, 5), code != PWI_CODE_REFUSED);
    stop(&f);
  }
}

/* A vector without its table exists, and serves nothing until there is memory. */
static void check_hollow(struct pwi_shard *shard) {
  struct pwi_report report;
  pwi_shard_report(shard, &report);
  assert_int_equal(report.hollow_count, 1);
  assert_int_equal(report.hollow[0], 1);
  pwi_shard_retry(shard);
  pwi_shard_report(shard, &report);
  assert_int_equal(report.hollow_count, 0);
}

static void test_out_of_memory_leaves_a_shard_as_it_was(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  int failed = 1, hollow = 0;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_shard_config config = {.memory_max = UINT64_MAX};
    struct pwi_entry entry = entry_of(1, PAWL_F32, 1, SIZE, true), group = group_of(2);
    struct pwi_shard *shard = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_shard_create(&config, &shard);
    if (!status) status = pwi_shard_hold(shard, pawl_range_of(0, 1000));
    if (!status) status = pwi_shard_open(shard, &entry);
    if (!status) status = pwi_shard_open(shard, &group);
    if (!status) {
      status = pwi_shard_hold(shard, pawl_range_of(2000, 3000));
      assert_int_equal(pwi_shard_holds(shard, pawl_range_of(2000, 3000)), status == PAWL_OK);
    }
    failed = pwi_memory_fail_cancel();
    bool is_hollow = !status && failed;
    if (is_hollow) check_hollow(shard);
    hollow += is_hollow;
    assert_int_equal(status, failed && !is_hollow ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_shard_destroy(shard);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(hollow > 0);
}

/* The head has the row. The follower lacks it until there is memory, and complains to the manager meanwhile. */
static void test_a_follower_without_memory_for_a_vector_asks_for_its_changes_again(void **state) {
  (void)state;
  struct pwi_shard_config config = {.memory_max = UINT64_MAX};
  struct pwi_entry entry = entry_of(1, PAWL_I64, 1, SIZE, true);
  struct pwi_membership membership = membership_of(1);
  int64_t ones[SIZE];
  struct iovec values = {ones, sizeof ones};
  struct pwi_report report = {0};
  for (size_t i = 0; i < SIZE; i++) ones[i] = 1;
  for (uint64_t n = 0; report.hollow_count == 0; n++) {
    struct pwi_shard *shard = shard_of(&config);
    struct pwi_outcome outcome;
    assert_int_equal(pwi_shard_hold(shard, WHOLE_RING), PAWL_OK);
    pwi_shard_set_membership(shard, &membership);
    pwi_memory_fail_after(n);
    pawl_status status = pwi_shard_open(shard, &entry);
    assert_true(pwi_memory_fail_cancel());
    pwi_shard_report(shard, &report);
    if (report.hollow_count > 0) {
      struct pwi_change change = {.effect = PWI_EFFECT_ROWS, .request = push_of(1, 0, 1, &values)};
      assert_int_equal(status, PAWL_OK);
      pwi_shard_follow(shard, &change, WHOLE_RING, &outcome);
      assert_int_equal(outcome.code, PWI_CODE_FAILED);
      assert_int_equal(outcome.status, PAWL_NO_MEMORY);
      pwi_shard_retry(shard);
      pwi_shard_follow(shard, &change, WHOLE_RING, &outcome);
      assert_int_equal(outcome.code, PWI_CODE_OK);
      assert_int_equal(pull_one(shard, 1, 7), 1);
    }
    pwi_shard_destroy(shard);
  }
  pwi_membership_fini(&membership);
}

static void test_vectors_are_found_by_rising_id(void **state) {
  (void)state;
  struct pwi_shard *shard = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX});
  static const uint64_t ids[] = {7, 3, UINT64_MAX, 5};
  for (size_t i = 0; i < 4; i++) open_vector(shard, entry_of(ids[i], PAWL_F32, 1, SIZE, true));
  struct pwi_entry again = entry_of(5, PAWL_F32, 1, SIZE, true);
  assert_int_equal(pwi_shard_open(shard, &again), PAWL_EXISTS);
  pwi_shard_close(shard, (struct pwi_vector_id){7});
  pwi_shard_close(shard, (struct pwi_vector_id){8});
  struct pwi_vector_id id = {0};
  static const uint64_t left[] = {3, 5, UINT64_MAX};
  for (size_t i = 0; i < 3; i++) {
    assert_true(pwi_shard_next(shard, &id));
    assert_int_equal(id.id, left[i]);
  }
  assert_false(pwi_shard_next(shard, &id));
  assert_false(pwi_shard_has(shard, (struct pwi_vector_id){7}));
  pwi_shard_destroy(shard);
  pwi_shard_destroy(NULL);
}

static void test_the_vector_of_the_last_request_may_be_deleted(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(1, 0, 5, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_non_null(f.shard->recent);
  pwi_shard_close(f.shard, push.terms.vector);
  assert_null(f.shard->recent);
  assert_served(f.shard, &push, NULL, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_result_is_written_while_rows_are_applied),
      cmocka_unit_test(test_a_result_has_rows_that_were_not_due),
      cmocka_unit_test(test_a_push_is_applied_once),
      cmocka_unit_test(test_a_push_that_overtakes_another_finds_a_gap),
      cmocka_unit_test(test_a_history_that_cannot_be_is_broken),
      cmocka_unit_test(test_a_pull_waits_for_the_push_it_names),
      cmocka_unit_test(test_a_pull_views_rows_that_lie_together_in_the_table),
      cmocka_unit_test(test_only_live_senders_may_push_and_every_client_may_pull),
      cmocka_unit_test(test_a_read_of_a_forgotten_sender_meets_no_gap),
      cmocka_unit_test(test_terms_that_make_no_sense_fail_and_use_up_no_number),
      cmocka_unit_test(test_rows_that_make_no_sense_are_refused_and_the_next_push_follows),
      cmocka_unit_test(test_a_push_that_was_applied_has_not_failed_if_it_comes_again_beyond_the_rate),
      cmocka_unit_test(test_rows_without_their_values_are_seen_before_memory_is_taken),
      cmocka_unit_test(test_answer_bytes_are_bounded),
      cmocka_unit_test(test_a_refused_push_is_refused_again_until_it_is_settled),
      cmocka_unit_test(test_too_few_values_are_refused),
      cmocka_unit_test(test_under_its_cap_a_shard_refuses_to_grow_and_goes_on),
      cmocka_unit_test(test_a_space_past_its_quota_is_refused_and_others_go_on),
      cmocka_unit_test(test_kept_lists_make_way_for_rows),
      cmocka_unit_test(test_a_scan_brings_the_keys_that_are_there_and_says_where_to_go_on),
      cmocka_unit_test(test_the_clock_of_a_retired_sender_is_kept_until_it_is_forgotten),
      cmocka_unit_test(test_in_the_steady_state_nothing_is_allocated),
      cmocka_unit_test(test_out_of_memory_leaves_a_push_whole_or_undone),
      cmocka_unit_test(test_out_of_memory_leaves_a_shard_as_it_was),
      cmocka_unit_test(test_a_follower_without_memory_for_a_vector_asks_for_its_changes_again),
      cmocka_unit_test(test_vectors_are_found_by_rising_id),
      cmocka_unit_test(test_the_vector_of_the_last_request_may_be_deleted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
