/* Linear algebra in a shard: claims and clocks as with any push, slices, sums, and incompatible vectors. */
#include "shard/testing.h"

#include <math.h>

#include "base/bytes.h"

#define SIZE 100
#define WIDE 65536 /* values in a row: four rows make a slice */

struct fixture {
  struct pwi_membership membership;
  struct pwi_shard *shard;
};

/* Vectors 1 and 2 are dense, 3 and 4 sparse; all of i64, width 1, SIZE keys. 5 is of f64, 6 shorter. */
static void start(struct fixture *fixture, uint64_t memory_max) {
  struct pwi_shard_config config = {.memory_max = memory_max};
  fixture->membership = membership_of(3);
  fixture->shard = shard_of(&config);
  assert_int_equal(pwi_shard_hold(fixture->shard, WHOLE_RING), PAWL_OK);
  pwi_shard_set_membership(fixture->shard, &fixture->membership);
  for (uint64_t id = 1; id <= 4; id++) open_vector(fixture->shard, entry_of(id, PAWL_I64, 1, SIZE, id > 2));
  open_vector(fixture->shard, entry_of(5, PAWL_F64, 1, SIZE, false));
  open_vector(fixture->shard, entry_of(6, PAWL_I64, 1, SIZE - 1, false));
}

static void stop(struct fixture *fixture) {
  pwi_shard_destroy(fixture->shard);
  pwi_membership_fini(&fixture->membership);
}

static struct pwi_request linear_of(uint64_t vector, enum pwi_linear kind, double scalar, uint64_t other,
                                    uint64_t prior, uint64_t task) {
  bool folds = pwi_linear_folds(kind);
  struct pwi_request request = request_of(folds ? PWI_REQUEST_FOLD : PWI_REQUEST_LINEAR, vector, SIZE);
  request.operation = (struct pwi_operation){.kind = kind, .scalar = scalar, .other = {other}};
  request.terms.prior = prior;
  request.task = task;
  return request;
}

/* As the server does: cut first, then serve. */
static struct pwi_served run(struct pwi_shard *shard, struct pwi_request *request) {
  if (request->terms.kind == PWI_REQUEST_LINEAR && !request->refusal)
    request->refusal = pwi_shard_cut_linear(shard, request);
  return serve(shard, request, NULL);
}

static void assert_run(struct pwi_shard *shard, struct pwi_request request, enum pwi_code code, pawl_status status) {
  struct pwi_served served = run(shard, &request);
  assert_string_equal(pwi_code_text(served.outcome.code), pwi_code_text(code));
  assert_string_equal(pawl_status_name(served.outcome.status), pawl_status_name(status));
}

static void push_keys(struct pwi_shard *shard, uint64_t vector, const uint64_t *keys, size_t count, int64_t value,
                      uint64_t prior, uint64_t task) {
  int64_t values[SIZE];
  struct iovec part = {values, count * sizeof *values};
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, vector, SIZE);
  for (size_t i = 0; i < count; i++) values[i] = value;
  request.terms.keys = PWI_KEYS_LIST;
  request.terms.rows = count;
  request.keys = keys;
  request.terms.prior = prior;
  request.task = task;
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
  request.keys = &key;
  assert_served(shard, &request, &value, PWI_CODE_OK, PAWL_OK);
  return value;
}

static double fold(struct pwi_shard *shard, struct pwi_request request) {
  struct pwi_served served = serve(shard, &request, NULL);
  uint64_t words[2];
  double sum[2];
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_int_equal(served.payload_size, 16);
  for (size_t i = 0; i < 2; i++) words[i] = pwi_get_u64((const uint8_t *)served.payload + 8 * i);
  memcpy(sum, words, sizeof sum);
  return pwi_sum_value((struct pwi_sum){sum[0], sum[1]});
}

static uint64_t rows_of(struct pwi_shard *shard, uint64_t vector) {
  struct pwi_vector_figures figures;
  assert_int_equal(pwi_shard_figures(shard, (struct pwi_vector_id){vector}, &figures), PAWL_OK);
  return figures.rows;
}

static const uint64_t some[] = {3, 50, 99};

/* --- once, and in turn ---------------------------------------------------------------------------------- */

static void test_a_duplicate_is_answered_and_not_applied_again(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  for (uint64_t x = 1; x <= 3; x += 2) {
    push_keys(f.shard, x, some, 3, 5, 0, 1);
    struct pwi_request axpy = linear_of(x + 1, PWI_LINEAR_AXPY, 2, x, 0, 7);
    struct pwi_request first = axpy, second = axpy;
    struct pwi_served served = run(f.shard, &first);
    assert_int_equal(served.effect, PWI_EFFECT_ROWS);
    served = run(f.shard, &second);
    assert_int_equal(served.outcome.code, PWI_CODE_OK);
    assert_int_equal(served.effect, PWI_EFFECT_NONE);
    assert_int_equal(served.outcome.next, SIZE);
    assert_int_equal(pull_one(f.shard, x + 1, 50), 10);
    assert_int_equal(pull_one(f.shard, x + 1, 51), 0);
  }
  assert_int_equal(rows_of(f.shard, 4), 3);
  stop(&f);
}

/* Half of the claim was applied before: only the other half is due. */
static void test_ranges_that_are_applied_already_are_left_out(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  for (uint64_t vector = 1; vector <= 3; vector += 2) {
    push_keys(f.shard, vector, some, 3, 1, 0, 1);
    struct pwi_request half = linear_of(vector, PWI_LINEAR_SCALE, 3, 0, 1, 2);
    half.terms.claim = half.terms.range = pawl_range_of(0, 50);
    half.terms.rows = 50;
    assert_run(f.shard, half, PWI_CODE_OK, PAWL_OK);
    assert_run(f.shard, linear_of(vector, PWI_LINEAR_SCALE, 3, 0, 1, 2), PWI_CODE_OK, PAWL_OK);
    for (size_t i = 0; i < 3; i++) assert_int_equal(pull_one(f.shard, vector, some[i]), 3);
  }
  stop(&f);
}

static void test_an_operation_waits_for_missing_pushes_to_either_vector(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  assert_run(f.shard, linear_of(2, PWI_LINEAR_FILL, 4, 0, 1, 2), PWI_CODE_GAP, PAWL_OK);
  struct pwi_request axpy = linear_of(2, PWI_LINEAR_AXPY, 1, 1, 0, 9);
  axpy.operation.prior = 8;
  assert_run(f.shard, axpy, PWI_CODE_GAP, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 2, 3), 0);
  push_keys(f.shard, 1, some, 3, 5, 0, 8);
  assert_run(f.shard, axpy, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 2, 3), 5);
  axpy.operation.prior = 80; /* a duplicate need not wait */
  assert_run(f.shard, axpy, PWI_CODE_OK, PAWL_OK);
  struct pwi_request dot = linear_of(1, PWI_LINEAR_DOT, 0, 2, 9, 0);
  assert_run(f.shard, dot, PWI_CODE_GAP, PAWL_OK);
  dot.terms.prior = 8;
  dot.operation.prior = 10;
  assert_run(f.shard, dot, PWI_CODE_GAP, PAWL_OK);
  dot.operation.prior = 9;
  assert_true(fold(f.shard, dot) == 75);
  stop(&f);
}

/* The later change of x names the axpy that reads x, and is not applied before it, wherever both are about the same keys. */
static void test_a_change_waits_for_the_one_that_reads_its_rows(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  push_keys(f.shard, 1, some, 3, 5, 0, 1);
  struct pwi_request clear = linear_of(1, PWI_LINEAR_SCALE, 0, 0, 1, 9),
                     axpy = linear_of(2, PWI_LINEAR_AXPY, 1, 1, 0, 7);
  clear.first = (struct pwi_read_first){{2}, 7, {0, SIZE}};
  assert_run(f.shard, clear, PWI_CODE_GAP, PAWL_OK);
  axpy.terms.claim = axpy.terms.range = pawl_range_of(0, 50);
  axpy.terms.rows = 50;
  assert_run(f.shard, axpy, PWI_CODE_OK, PAWL_OK);
  assert_run(f.shard, clear, PWI_CODE_GAP, PAWL_OK); /* the other half is missing */
  axpy.terms.claim = axpy.terms.range = pawl_range_of(50, SIZE);
  assert_run(f.shard, axpy, PWI_CODE_OK, PAWL_OK);
  assert_run(f.shard, clear, PWI_CODE_OK, PAWL_OK);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(pull_one(f.shard, 1, some[i]), 0);
    assert_int_equal(pull_one(f.shard, 2, some[i]), 5);
  }
  clear.first.task = 80; /* a duplicate need not wait */
  assert_run(f.shard, clear, PWI_CODE_OK, PAWL_OK);
  struct pwi_request next = linear_of(1, PWI_LINEAR_FILL, 3, 0, 9, 10);
  next.first = (struct pwi_read_first){{77}, 7, {0, SIZE}}; /* no vector */
  assert_run(f.shard, next, PWI_CODE_GAP, PAWL_OK);
  next.terms.claim = next.terms.range = pawl_range_of(0, 50);
  next.terms.rows = 50;
  next.first.range = pawl_range_of(50, SIZE); /* other keys */
  assert_run(f.shard, next, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

static void test_unknown_vectors_and_senders_are_answered_so(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  struct pwi_request fill = linear_of(1, PWI_LINEAR_FILL, 4, 0, 0, 1);
  fill.sender.id = 9;
  assert_run(f.shard, fill, PWI_CODE_RETIRED, PAWL_OK);
  fill.sender.id = 1;
  assert_int_equal(pwi_shard_freeze(f.shard, pawl_range_of(0, UINT64_C(1) << 60)), PAWL_OK);
  assert_run(f.shard, fill, PWI_CODE_NOT_HERE, PAWL_OK);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_ABS, 0, 0, 0, 0), PWI_CODE_NOT_HERE, PAWL_OK);
  pwi_shard_thaw(f.shard, pawl_range_of(0, UINT64_C(1) << 60));
  assert_run(f.shard, fill, PWI_CODE_OK, PAWL_OK);
  assert_run(f.shard, linear_of(77, PWI_LINEAR_FILL, 4, 0, 0, 1), PWI_CODE_FAILED, PAWL_NOT_FOUND);
  stop(&f);
}

/* --- what does not go together -------------------------------------------------------------------------- */

static void test_a_refusal_uses_up_the_number_and_is_remembered(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_AXPY, 1, 77, 0, 1), PWI_CODE_REFUSED, PAWL_NOT_FOUND);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_AXPY, 1, 77, 0, 1), PWI_CODE_REFUSED, PAWL_NOT_FOUND);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_COPY, 0, 3, 1, 3), PWI_CODE_REFUSED, PAWL_MISMATCH);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_COPY, 0, 5, 3, 5), PWI_CODE_REFUSED, PAWL_MISMATCH);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_COPY, 0, 6, 5, 6), PWI_CODE_REFUSED, PAWL_MISMATCH);
  struct pwi_request restored = linear_of(1, PWI_LINEAR_AXPY, 1, 2, 6, 7);
  restored.operation.incarnation = 1;
  assert_run(f.shard, restored, PWI_CODE_REFUSED, PAWL_RESTORED);
  assert_run(f.shard, linear_of(3, PWI_LINEAR_FILL, 1, 0, 0, 7), PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
  struct pwi_request told = linear_of(1, PWI_LINEAR_FILL, 1, 0, 7, 8);
  told.refusal = PAWL_FORBIDDEN;
  assert_run(f.shard, told, PWI_CODE_REFUSED, PAWL_FORBIDDEN);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_FILL, 6, 0, 8, 9), PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 1, 0), 6);
  stop(&f);
}

static void test_operations_that_make_no_sense_fail(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_SCALE, 0.5, 0, 0, 1), PWI_CODE_REFUSED, PAWL_INVALID);
  struct pwi_request fold_as_change = linear_of(1, PWI_LINEAR_ABS, 0, 0, 1, 2);
  fold_as_change.terms.kind = PWI_REQUEST_LINEAR;
  assert_run(f.shard, fold_as_change, PWI_CODE_REFUSED, PAWL_INVALID);
  struct pwi_request column = linear_of(1, PWI_LINEAR_ABS, 0, 0, 0, 0);
  column.operation.column = 2; /* rows have one */
  assert_run(f.shard, column, PWI_CODE_FAILED, PAWL_INVALID);
  column = linear_of(1, PWI_LINEAR_DOT, 0, 2, 0, 0);
  column.operation.column = 1;
  assert_run(f.shard, column, PWI_CODE_FAILED, PAWL_INVALID);
  struct pwi_request change_as_fold = linear_of(1, PWI_LINEAR_FILL, 0, 0, 0, 1);
  change_as_fold.terms.kind = PWI_REQUEST_FOLD;
  assert_run(f.shard, change_as_fold, PWI_CODE_FAILED, PAWL_INVALID);
  struct pwi_request nothing = linear_of(1, PWI_LINEAR_FILL, 0, 0, 2, 3);
  nothing.operation = (struct pwi_operation){0};
  assert_run(f.shard, nothing, PWI_CODE_REFUSED, PAWL_INVALID);
  nothing.terms.kind = PWI_REQUEST_FOLD;
  assert_run(f.shard, nothing, PWI_CODE_FAILED, PAWL_INVALID);
  assert_run(f.shard, linear_of(1, PWI_LINEAR_DOT, 0, 5, 0, 0), PWI_CODE_FAILED, PAWL_MISMATCH);
  struct pwi_request outside = linear_of(3, PWI_LINEAR_SCALE, 2, 0, 0, 1);
  outside.terms.claim.end = outside.terms.range.end = outside.terms.rows = SIZE + 5;
  assert_run(f.shard, outside, PWI_CODE_FAILED, PAWL_OUT_OF_SPAN);
  for (uint64_t vector = 1; vector <= 3; vector += 2) {
    uint64_t prior = vector == 1 ? 3 : 0;
    struct pwi_request boast = linear_of(vector, PWI_LINEAR_SCALE, 2, 0, prior, 4);
    boast.terms.rows = UINT64_C(1) << 40;
    assert_run(f.shard, boast, PWI_CODE_REFUSED, PAWL_INVALID);
    assert_run(f.shard, linear_of(vector, PWI_LINEAR_SCALE, 2, 0, 4, 5), PWI_CODE_OK, PAWL_OK);
  }
  stop(&f);
}

static void test_a_shard_that_is_full_refuses_new_rows(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX);
  struct pwi_report report;
  pwi_shard_report(f.shard, &report);
  stop(&f);
  start(&f, report.bytes); /* what the tables take when they are empty */
  assert_run(f.shard, linear_of(1, PWI_LINEAR_FILL, 1, 0, 0, 1), PWI_CODE_REFUSED, PAWL_NODE_FULL);
  assert_true(fold(f.shard, linear_of(1, PWI_LINEAR_ABS, 0, 0, 0, 0)) == 0);
  stop(&f);
}

/* --- slices --------------------------------------------------------------------------------------------- */

/* One request after another, each from the end of the last one, as clients do. */
static size_t run_slices(struct pwi_shard *shard, struct pwi_request request) {
  uint64_t end = request.terms.claim.end;
  for (size_t slices = 1;; slices++) {
    struct pwi_request slice = request;
    struct pwi_served served = run(shard, &slice);
    assert_int_equal(served.outcome.code, PWI_CODE_OK);
    assert_true(served.outcome.next > request.terms.claim.begin && served.outcome.next <= end);
    if (served.outcome.next == end) return slices;
    request.terms.claim.begin = request.terms.range.begin = served.outcome.next;
    request.terms.rows = pawl_range_size(request.terms.range);
  }
}

static void check_slices(bool is_sparse) {
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  static double ones[WIDE];
  uint64_t keys[SIZE / 2];
  struct iovec parts[SIZE / 2];
  for (uint64_t id = 1; id <= 2; id++) open_vector(shard, entry_of(id, PAWL_F64, WIDE, SIZE, is_sparse));
  for (size_t i = 0; i < WIDE; i++) ones[i] = 1;
  for (size_t i = 0; i < SIZE / 2; i++) {
    keys[i] = 2 * i;
    parts[i] = (struct iovec){ones, sizeof ones};
  }
  struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  push.terms.keys = PWI_KEYS_LIST;
  push.terms.rows = SIZE / 2;
  push.keys = keys;
  push.task = 1;
  push.values = parts;
  push.value_parts = SIZE / 2;
  push.value_type = PAWL_F64;
  assert_served(shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  /* In the sparse vector only every other key has a row. */
  assert_int_equal(run_slices(shard, linear_of(2, PWI_LINEAR_AXPY, 3, 1, 0, 2)), is_sparse ? 13 : 25);
  assert_int_equal(run_slices(shard, linear_of(2, PWI_LINEAR_AXPY, 3, 1, 0, 2)), is_sparse ? 13 : 25);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 2, SIZE);
  static double row[4 * WIDE];
  pull.terms.claim = pull.terms.range = pawl_range_of(SIZE - 4, SIZE);
  pull.terms.rows = 4;
  assert_served(shard, &pull, row, PWI_CODE_OK, PAWL_OK);
  for (size_t i = 0; i < 4 * WIDE; i++) assert_true(row[i] == (i / WIDE % 2 ? 0 : 3));
  /* Sums come in slices too; the slices add up to the whole. */
  struct pwi_request dot = linear_of(1, PWI_LINEAR_DOT, 0, 2, 1, 0);
  double sum = 0;
  size_t slices = 0;
  for (; dot.terms.range.begin < SIZE; slices++) {
    struct pwi_served served = serve(shard, &dot, NULL);
    sum += fold(shard, dot);
    dot.terms.claim.begin = dot.terms.range.begin = served.outcome.next;
    dot.terms.rows = pawl_range_size(dot.terms.range);
  }
  assert_true(slices > 0 && sum == 3.0 * WIDE * SIZE / 2);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_long_work_is_cut_into_slices_that_tile_the_claim(void **state) {
  (void)state;
  check_slices(false);
  check_slices(true);
}

/* The result for the chain is the changed rows. */
static void test_the_result_is_the_rows_as_they_are_then(void **state) {
  struct fixture f;
  int64_t result[SIZE] = {0};
  (void)state;
  start(&f, UINT64_MAX);
  push_keys(f.shard, 3, some, 3, 5, 0, 1);
  push_keys(f.shard, 1, some, 3, 5, 0, 1);
  struct pwi_request dense = linear_of(2, PWI_LINEAR_COPY, 0, 1, 0, 2),
                     sparse = linear_of(4, PWI_LINEAR_COPY, 0, 3, 0, 2);
  assert_int_equal(run(f.shard, &dense).effect, PWI_EFFECT_ROWS);
  assert_int_equal(dense.terms.rows, SIZE);
  pwi_shard_result(f.shard, &dense, result, NULL);
  assert_true(result[3] == 5 && result[4] == 0 && result[99] == 5);
  assert_int_equal(run(f.shard, &sparse).effect, PWI_EFFECT_ROWS);
  assert_true(sparse.terms.keys == PWI_KEYS_LIST && sparse.terms.rows == 3);
  assert_memory_equal(sparse.keys, some, sizeof some);
  assert_int_equal(sparse.encoded_as.length, sizeof some);
  pwi_shard_result(f.shard, &sparse, result, NULL);
  assert_true(result[0] == 5 && result[1] == 5 && result[2] == 5);
  stop(&f);
}

/* --- sums ----------------------------------------------------------------------------------------------- */

/* Rows that were created in another order, in a table that had other rows before, give the same bits. */
static void test_the_same_rows_give_the_same_bits_however_they_came(void **state) {
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shards[2];
  uint64_t words[2][2];
  (void)state;
  for (size_t h = 0; h < 2; h++) {
    struct pwi_shard *shard = shards[h] = shard_of_all(&membership);
    open_vector(shard, entry_of(1, PAWL_F64, 1, 1 << 20, true));
    for (uint64_t i = 0; i < 5000; i++) {
      uint64_t key = (h ? 4999 - i : i) * 7;
      double value = 1 / (double)(key + 3);
      struct iovec part = {&value, sizeof value};
      struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, 1 << 20);
      push.terms.keys = PWI_KEYS_LIST;
      push.terms.rows = 1;
      push.terms.prior = i;
      push.keys = &key;
      push.task = i + 1;
      push.values = &part;
      push.value_parts = 1;
      push.value_type = PAWL_F64;
      assert_served(shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
    }
    struct pwi_request squares = request_of(PWI_REQUEST_FOLD, 1, 1 << 20);
    squares.operation.kind = PWI_LINEAR_SQUARES;
    struct pwi_served served = serve(shard, &squares, NULL);
    assert_int_equal(served.payload_size, sizeof words[h]);
    memcpy(words[h], served.payload, sizeof words[h]);
  }
  assert_memory_equal(words[0], words[1], sizeof words[0]);
  for (size_t h = 0; h < 2; h++) pwi_shard_destroy(shards[h]);
  pwi_membership_fini(&membership);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_without_memory_nothing_has_changed(void **state) {
  uint64_t live = pwi_memory_counts().live;
  (void)state;
  for (uint64_t x = 1; x <= 3; x += 2) {
    int failed = 1;
    for (uint64_t n = 0; failed; n++) {
      struct fixture f;
      start(&f, UINT64_MAX);
      push_keys(f.shard, x, some, 3, 5, 0, 1);
      struct pwi_request axpy = linear_of(x + 1, PWI_LINEAR_AXPY, 1, x, 0, 2), again = axpy;
      struct pwi_served served = {.outcome = {.code = PWI_CODE_FAILED, .status = PAWL_NO_MEMORY}};
      pwi_memory_fail_after(n);
      if (pwi_shard_cut_linear(f.shard, &axpy) == PAWL_OK) served = serve(f.shard, &axpy, NULL);
      failed = pwi_memory_fail_cancel();
      enum pwi_code code = served.outcome.code;
      assert_true(code == PWI_CODE_OK || served.outcome.status == PAWL_NO_MEMORY);
      assert_int_equal(pull_one(f.shard, x + 1, 50), code == PWI_CODE_OK ? 5 : 0);
      served = run(f.shard, &again);
      assert_int_equal(served.outcome.code, code == PWI_CODE_FAILED ? PWI_CODE_OK : code);
      assert_int_equal(pull_one(f.shard, x + 1, 50), code == PWI_CODE_REFUSED ? 0 : 5);
      stop(&f);
    }
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_duplicate_is_answered_and_not_applied_again),
      cmocka_unit_test(test_ranges_that_are_applied_already_are_left_out),
      cmocka_unit_test(test_an_operation_waits_for_missing_pushes_to_either_vector),
      cmocka_unit_test(test_a_change_waits_for_the_one_that_reads_its_rows),
      cmocka_unit_test(test_unknown_vectors_and_senders_are_answered_so),
      cmocka_unit_test(test_a_refusal_uses_up_the_number_and_is_remembered),
      cmocka_unit_test(test_operations_that_make_no_sense_fail),
      cmocka_unit_test(test_a_shard_that_is_full_refuses_new_rows),
      cmocka_unit_test(test_long_work_is_cut_into_slices_that_tile_the_claim),
      cmocka_unit_test(test_the_result_is_the_rows_as_they_are_then),
      cmocka_unit_test(test_the_same_rows_give_the_same_bits_however_they_came),
      cmocka_unit_test(test_without_memory_nothing_has_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
