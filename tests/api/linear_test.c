/* Linear algebra through a whole cluster: the same as with arrays of one's own, also while servers are lost. */
#include "scene.h"

#include <math.h>

#define KEYS 30000 /* of f64 and width 2: several arcs and, on each, blocks that are not full */
#define WIDTH 2
#define VALUES (KEYS * WIDTH)
#define LONG 1200000 /* values: several slices */

static struct pawl_vector *make(struct pawl_session *session, const char *name, enum pawl_type type, uint32_t width,
                                uint64_t size, enum pawl_layout layout, enum pawl_placement placement) {
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  pawl_vector_options_init(&options);
  options.type = type;
  options.width = width;
  options.size = size;
  options.layout = layout;
  options.placement = placement;
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  return vector;
}

static struct pawl_vector *dense(struct pawl_session *session, const char *name) {
  return make(session, name, PAWL_F64, WIDTH, KEYS, PAWL_LAYOUT_DENSE, PAWL_PLACE_ORDERED);
}

static double dot(struct pawl_vector *x, struct pawl_vector *y, struct pawl_range range) {
  double result = NAN;
  must(pawl_vector_dot(x, y, range, PATIENCE, &result));
  return result;
}

static double norm(struct pawl_vector *x, struct pawl_range range, enum pawl_norm kind) {
  double result = NAN;
  must(pawl_vector_norm(x, range, kind, PATIENCE, &result));
  return result;
}

/* Quarters: every sum of them is exact. */
static double x_at(size_t i) { return (double)(i % 41) / 4 - 5; }
static double y_at(size_t i) { return (double)(i % 23) / 4; }

static double xs[VALUES], ys[VALUES], found[VALUES];

static void fill_arrays(void) {
  for (size_t i = 0; i < VALUES; i++) {
    xs[i] = x_at(i);
    ys[i] = y_at(i);
  }
}

static void test_changes_and_sums_are_those_of_arrays(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = dense(session, "a/x"), *y = dense(session, "a/y");
  struct pawl_range middle = pawl_range_of(1000, 20001);
  double sum = 0, absolute = 0, squares = 0, part = 0;
  (void)state;
  fill_arrays();
  push(x, pawl_at_range(0, KEYS), xs);
  push(y, pawl_at_range(0, KEYS), ys);
  must(pawl_vector_axpy(y, 3, x, PAWL_ALL, NULL));
  must(pawl_vector_scale(x, middle, -2, NULL));
  must(pawl_vector_axpy(y, 0.5, x, middle, NULL));
  must(pawl_vector_fill(x, pawl_range_of(5, 7), 1.25, NULL));
  must(pawl_vector_copy(y, x, pawl_range_of(0, 10), NULL));
  for (size_t i = 0; i < VALUES; i++) {
    size_t key = i / WIDTH;
    ys[i] += 3 * xs[i];
    if (pawl_range_has(middle, key)) xs[i] *= -2, ys[i] += 0.5 * xs[i];
    if (key == 5 || key == 6) xs[i] = 1.25;
    if (key < 10) ys[i] = xs[i];
    sum += xs[i] * ys[i];
    absolute += fabs(xs[i]);
    squares += xs[i] * xs[i];
    if (pawl_range_has(middle, key)) part += xs[i] * ys[i];
  }
  pull(x, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, xs, sizeof xs);
  pull(y, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, ys, sizeof ys);
  assert_true(dot(x, y, PAWL_ALL) == sum);
  assert_true(dot(y, x, middle) == part);
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_1) == absolute);
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_2) == sqrt(squares));
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_MAX) == 10);
  assert_true(dot(x, x, pawl_range_of(7, 7)) == 0);
  must(pawl_session_close(session, PATIENCE));
}

/* The part of a worker without data is [0, 0): it must never stand for everything. */
static void test_an_empty_range_names_nothing(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = dense(session, "a/x"), *y = dense(session, "a/y");
  struct pawl_vector *mixed = make(session, "a/mixed", PAWL_F32, 1, PAWL_KEY_END, PAWL_LAYOUT_SPARSE, PAWL_PLACE_MIXED);
  struct pawl_range empty[] = {pawl_range_of(0, 0), pawl_range_of(7, 7), pawl_range_of(KEYS, KEYS)};
  double column = NAN;
  (void)state;
  fill_arrays();
  push(x, pawl_at_range(0, KEYS), xs);
  push(y, pawl_at_range(0, KEYS), ys);
  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    must(pawl_vector_fill(x, empty[i], 9, NULL));
    must(pawl_vector_scale(x, empty[i], 0, NULL));
    must(pawl_vector_copy(x, y, empty[i], NULL));
    must(pawl_vector_axpy(x, 2, y, empty[i], NULL));
    must(pawl_vector_scale(mixed, empty[i], 0, NULL));
    assert_true(dot(x, y, empty[i]) == 0);
    for (int kind = PAWL_NORM_1; kind <= PAWL_NORM_COUNT; kind++)
      assert_true(norm(x, empty[i], (enum pawl_norm)kind) == 0);
    must(pawl_vector_norm_column(x, empty[i], 1, PAWL_NORM_1, PATIENCE, &column));
    assert_true(column == 0);
  }
  pull(x, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, xs, sizeof xs);
  must(pawl_session_close(session, PATIENCE));
}

static void test_all_is_the_whole_span(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = dense(session, "a/x"), *y = dense(session, "a/y");
  (void)state;
  must(pawl_vector_fill(x, PAWL_ALL, 2, NULL));
  must(pawl_vector_scale(x, PAWL_ALL, 3, NULL));
  must(pawl_vector_copy(y, x, PAWL_ALL, NULL));
  must(pawl_vector_axpy(y, 0.5, x, PAWL_ALL, NULL));
  pull(y, pawl_at_range(0, KEYS), found);
  for (size_t i = 0; i < VALUES; i++) assert_true(found[i] == 9);
  assert_true(dot(x, y, PAWL_ALL) == 54.0 * VALUES);
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_COUNT) == VALUES);
  assert_true(norm(x, pawl_range_of(KEYS - 1, PAWL_KEY_END), PAWL_NORM_COUNT) == WIDTH);
  must_fail(pawl_vector_fill(x, pawl_range_of(KEYS + 1, PAWL_KEY_END), 1, NULL), PAWL_OUT_OF_SPAN, "a/x");
  must(pawl_session_close(session, PATIENCE));
}

/* What rows of two values hold in one of them, dense and sparse: rows are cut into several blocks and arcs. */
static void check_columns(enum pawl_layout layout, uint64_t stride) {
  struct pawl_session *session = open_pair();
  uint64_t size = KEYS * stride;
  struct pawl_vector *x = make(session, "a/x", PAWL_F64, WIDTH, size, layout, PAWL_PLACE_ORDERED);
  struct pawl_range middle = pawl_range_of(1000 * stride, 20001 * stride);
  static uint64_t keys[KEYS];
  fill_arrays();
  for (size_t i = 0; i < KEYS; i++) keys[i] = i * stride;
  push(x, pawl_at_keys(keys, KEYS), xs);
  for (uint32_t column = 0; column < WIDTH; column++) {
    double result, absolute = 0, squares = 0, count = 0, part = 0;
    for (size_t i = 0; i < KEYS; i++) {
      double value = xs[i * WIDTH + column];
      absolute += fabs(value);
      squares += value * value;
      count += value != 0;
      if (pawl_range_has(middle, keys[i])) part += value != 0;
    }
    must(pawl_vector_norm_column(x, PAWL_ALL, column, PAWL_NORM_1, PATIENCE, &result));
    assert_true(result == absolute);
    must(pawl_vector_norm_column(x, PAWL_ALL, column, PAWL_NORM_2, PATIENCE, &result));
    assert_true(result == sqrt(squares));
    must(pawl_vector_norm_column(x, PAWL_ALL, column, PAWL_NORM_MAX, PATIENCE, &result));
    assert_true(result == 5);
    must(pawl_vector_norm_column(x, PAWL_ALL, column, PAWL_NORM_COUNT, PATIENCE, &result));
    assert_true(result == count && count < KEYS);
    must(pawl_vector_norm_column(x, middle, column, PAWL_NORM_COUNT, PATIENCE, &result));
    assert_true(result == part);
  }
  double result = 0, both = 0;
  must(pawl_vector_norm_column(x, PAWL_ALL, 0, PAWL_NORM_COUNT, PATIENCE, &result));
  must(pawl_vector_norm_column(x, PAWL_ALL, 1, PAWL_NORM_COUNT, PATIENCE, &both));
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_COUNT) == result + both);
  must_fail(pawl_vector_norm_column(x, PAWL_ALL, WIDTH, PAWL_NORM_1, PATIENCE, &result), PAWL_INVALID, "no column 2");
  must_fail(pawl_vector_norm_column(x, PAWL_ALL, UINT32_MAX, PAWL_NORM_1, PATIENCE, &result), PAWL_INVALID, "column");
  must(pawl_session_close(session, PATIENCE));
}

static void test_a_norm_can_be_that_of_one_column(void **state) {
  (void)state;
  check_columns(PAWL_LAYOUT_DENSE, 1);
  check_columns(PAWL_LAYOUT_SPARSE, 1000);
}

/* Width 1 under a rule that stores pairs: there are two columns. */
static void test_columns_are_those_that_are_stored(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector_options options;
  struct pawl_vector *x = NULL;
  double pairs[] = {-4, 2, 0, 1, 3, 0.5}, result = 0;
  (void)state;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = 10;
  strcpy(options.rule, "block_newton l1=1 eps=1e-30");
  must(pawl_vector_create(session, "a/w", &options, PATIENCE, &x));
  push(x, pawl_at_range(2, 5), pairs);
  must(pawl_vector_norm_column(x, PAWL_ALL, 0, PAWL_NORM_1, PATIENCE, &result));
  assert_true(result == 1.5 + 4); /* w: (4 - 1) / 2, 0, -(3 - 1) / 0.5 */
  must(pawl_vector_norm_column(x, PAWL_ALL, 0, PAWL_NORM_COUNT, PATIENCE, &result));
  assert_true(result == 2);
  must(pawl_vector_norm_column(x, PAWL_ALL, 1, PAWL_NORM_MAX, PATIENCE, &result));
  assert_true(result == 4); /* g */
  must_fail(pawl_vector_norm_column(x, PAWL_ALL, 2, PAWL_NORM_1, PATIENCE, &result), PAWL_INVALID, "no column 2");
  must(pawl_session_close(session, PATIENCE));
}

/* Sparse, and mixed: rows that one has and the other has not. */
static void check_sparse(enum pawl_placement placement) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = make(session, "a/x", PAWL_I64, 1, PAWL_KEY_END, PAWL_LAYOUT_SPARSE, placement);
  struct pawl_vector *y = make(session, "a/y", PAWL_I64, 1, PAWL_KEY_END, PAWL_LAYOUT_SPARSE, placement);
  static uint64_t x_keys[70000], y_keys[70000], keys[2], more;
  static int64_t ones[70000], values[2];
  double sum;
  for (size_t i = 0; i < 70000; i++) {
    x_keys[i] = i * i * 3;
    y_keys[i] = i * i * 3 + (i % 2 ? 1 : 0);
    ones[i] = (int64_t)(i % 5);
  }
  push(x, pawl_at_keys(x_keys, 70000), ones);
  push(y, pawl_at_keys(y_keys, 70000), ones);
  must(pawl_vector_scale(x, PAWL_ALL, 3, NULL));
  must(pawl_vector_axpy(y, -2, x, PAWL_ALL, NULL));
  keys[0] = x_keys[4], keys[1] = x_keys[13];
  pull(y, pawl_at_keys(keys, 2), values);
  assert_true(values[0] == 4 - 24 && values[1] == -18);
  pull(y, pawl_at_keys(&y_keys[13], 1), values);
  assert_int_equal(values[0], 3);
  sum = 0;
  for (size_t i = 0; i < 70000; i++) {
    int64_t old = i % 2 ? 0 : ones[i];
    sum += 3.0 * (double)ones[i] * (double)(old - 6 * ones[i]);
  }
  assert_true(dot(x, y, PAWL_ALL) == sum);
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_MAX) == 12);
  must(pawl_vector_copy(y, x, PAWL_ALL, NULL));
  pull(y, pawl_at_keys(keys, 2), values);
  assert_true(values[0] == 12 && values[1] == 9);
  more = y_keys[13];
  pull(y, pawl_at_keys(&more, 1), values);
  assert_int_equal(values[0], 0);
  assert_true(dot(y, y, PAWL_ALL) == dot(x, x, PAWL_ALL));
  must_fail(pawl_vector_fill(x, PAWL_ALL, 1, NULL), PAWL_UNSUPPORTED, "a/x");
  must(pawl_session_flush(session, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
}

static void test_sparse_vectors_are_worked_on_where_they_have_rows(void **state) {
  (void)state;
  check_sparse(PAWL_PLACE_ORDERED);
  check_sparse(PAWL_PLACE_MIXED);
}

static void test_what_does_not_go_together_is_found_before_anything_is_sent(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *x = dense(session, "a/x"), *counts = create(session, "a/counts", PAWL_I64, KEYS);
  struct pawl_vector *shorter = create(session, "a/short", PAWL_I64, KEYS - 1);
  struct pawl_vector *mixed = make(session, "a/mixed", PAWL_F32, 1, PAWL_KEY_END, PAWL_LAYOUT_SPARSE, PAWL_PLACE_MIXED);
  double result;
  (void)state;
  must_fail(pawl_vector_axpy(x, 1, counts, PAWL_ALL, NULL), PAWL_MISMATCH, "a/x with a/counts");
  must_fail(pawl_vector_copy(counts, shorter, PAWL_ALL, NULL), PAWL_MISMATCH, "a/counts with a/short");
  must_fail(pawl_vector_dot(x, counts, PAWL_ALL, PATIENCE, &result), PAWL_MISMATCH, "dot product of a/x");
  must_fail(pawl_vector_scale(x, pawl_range_of(0, KEYS + 1), 2, NULL), PAWL_OUT_OF_SPAN, "a/x");
  must_fail(pawl_vector_scale(x, pawl_range_of(9, 2), 2, NULL), PAWL_INVALID, "a/x");
  must_fail(pawl_vector_scale(counts, PAWL_ALL, 0.5, NULL), PAWL_INVALID, "0.5 does not fit");
  must_fail(pawl_vector_fill(counts, PAWL_ALL, 1e30, NULL), PAWL_INVALID, "a/counts");
  must_fail(pawl_vector_scale(mixed, pawl_range_of(0, 100), 2, NULL), PAWL_UNSUPPORTED, "the whole vector");
  must_fail(pawl_vector_norm(x, PAWL_ALL, (enum pawl_norm)7, PATIENCE, &result), PAWL_INVALID, "7");
  must_fail(pawl_vector_dot(x, NULL, PAWL_ALL, PATIENCE, &result), PAWL_INVALID, "vector is NULL");
  must_fail(pawl_vector_norm(x, PAWL_ALL, PAWL_NORM_1, PATIENCE, NULL), PAWL_INVALID, "result_out is NULL");
  struct pawl_session *reader = open_beside(session, true);
  must(pawl_vector_open(reader, "a/x", PATIENCE, &x));
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_1) == 0);
  must_fail(pawl_vector_fill(x, PAWL_ALL, 1, NULL), PAWL_FORBIDDEN, "a/x");
  must(pawl_session_close(reader, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
}

/* x changes right behind every call that reads it: none of them sees that, and all see what came before. */
static void test_calls_of_one_session_keep_their_order_over_two_vectors(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = create(session, "a/x", PAWL_F64, LONG), *y = create(session, "a/y", PAWL_F64, LONG);
  static double values[LONG];
  double wanted = 0;
  (void)state;
  must(pawl_vector_fill(x, PAWL_ALL, 1, NULL));
  for (int round = 1; round <= 8; round++) {
    must(pawl_vector_axpy(y, 1, x, PAWL_ALL, NULL));
    must(pawl_vector_scale(x, PAWL_ALL, 2, NULL));
    wanted += ldexp(1, round - 1);
  }
  pull(y, pawl_at_range(0, LONG), values);
  for (size_t i = 0; i < LONG; i++) assert_true(values[i] == wanted);
  assert_true(norm(x, PAWL_ALL, PAWL_NORM_MAX) == 256);
  must(pawl_session_flush(session, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
}

static void test_a_vector_with_a_rule_keeps_its_state(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector_options options;
  struct pawl_vector *ruled = NULL, *twin = NULL;
  float gradients[100], first[100], second[100];
  (void)state;
  pawl_vector_options_init(&options);
  options.type = PAWL_F32;
  options.size = 100;
  snprintf(options.rule, sizeof options.rule, "adagrad rate=0.5");
  must(pawl_vector_create(session, "a/one", &options, PATIENCE, &ruled));
  must(pawl_vector_create(session, "a/two", &options, PATIENCE, &twin));
  for (size_t i = 0; i < 100; i++) gradients[i] = 1 + (float)(i % 3);
  push(ruled, pawl_at_range(0, 100), gradients);
  push(twin, pawl_at_range(0, 100), gradients);
  /* The sums of squares stay: the next step is as short as that of the twin. */
  must(pawl_vector_fill(ruled, PAWL_ALL, 0, NULL));
  pull(twin, pawl_at_range(0, 100), first);
  push(ruled, pawl_at_range(0, 100), gradients);
  push(twin, pawl_at_range(0, 100), gradients);
  pull(twin, pawl_at_range(0, 100), second);
  for (size_t i = 0; i < 100; i++) first[i] = second[i] - first[i];
  pull(ruled, pawl_at_range(0, 100), second);
  for (size_t i = 0; i < 100; i++) assert_true(fabsf(first[i] - second[i]) < 1e-6f);
  must(pawl_session_close(session, PATIENCE));
}

/* Each round doubles y by adding it to itself: a round too many, or one that is lost, is a factor of two somewhere. */
static void test_a_server_that_dies_in_between_costs_nothing(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *x = create(session, "a/x", PAWL_F64, LONG), *y = create(session, "a/y", PAWL_F64, LONG);
  struct pawl_task *tasks[40];
  pid_t servers[4];
  (void)state;
  must(pawl_vector_fill(y, PAWL_ALL, 1, NULL));
  must(pawl_session_flush(session, PATIENCE));
  assert_int_equal(find_children(getpid(), "--join", servers, 4), 2);
  for (size_t round = 0; round < 20; round++) {
    must(pawl_vector_copy(x, y, PAWL_ALL, &tasks[2 * round]));
    must(pawl_vector_axpy(y, 1, x, PAWL_ALL, &tasks[2 * round + 1]));
    if (round == 7) {
      await_copies(session);
      assert_int_equal(kill(servers[0], SIGKILL), 0);
    }
  }
  for (size_t i = 0; i < 40; i++) must(pawl_task_finish(tasks[i], PATIENCE));
  assert_true(norm(y, PAWL_ALL, PAWL_NORM_1) == ldexp(LONG, 20));
  assert_true(norm(y, PAWL_ALL, PAWL_NORM_MAX) == ldexp(1, 20));
  assert_true(dot(x, y, PAWL_ALL) == ldexp(LONG, 39));
  must(pawl_session_close(session, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_changes_and_sums_are_those_of_arrays),
      cmocka_unit_test(test_an_empty_range_names_nothing),
      cmocka_unit_test(test_all_is_the_whole_span),
      cmocka_unit_test(test_a_norm_can_be_that_of_one_column),
      cmocka_unit_test(test_columns_are_those_that_are_stored),
      cmocka_unit_test(test_sparse_vectors_are_worked_on_where_they_have_rows),
      cmocka_unit_test(test_what_does_not_go_together_is_found_before_anything_is_sent),
      cmocka_unit_test(test_calls_of_one_session_keep_their_order_over_two_vectors),
      cmocka_unit_test(test_a_vector_with_a_rule_keeps_its_state),
      cmocka_unit_test(test_a_server_that_dies_in_between_costs_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
