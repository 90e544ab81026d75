/* Minibatches: scores and gradients as one computes them from the rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/inside.h"
#include "apps/linear/minibatch.h"

enum { ROWS = 60, WIDTH = 7, MOST = ROWS * WIDTH };

static uint64_t starts[ROWS + 1], ids[MOST];
static float values[MOST];

/* Rows of up to seven features, with rising ids between 0 and the largest there are; some have none. */
static struct pawl_batch draw_rows(uint64_t *random, bool has_values) {
  static const uint64_t bases[] = {0, 1, 1000, 1 << 20, UINT64_C(1) << 40, PAWL_ID_MAX - 60};
  size_t at = 0;
  for (size_t i = 0; i < ROWS; i++) {
    starts[i] = at;
    uint64_t id = bases[linear_draw(random) % 6], count = linear_draw(random) % (WIDTH + 1);
    for (uint64_t k = 0; k < count; k++) {
      ids[at] = id;
      values[at++] = (float)((double)(linear_draw(random) % 2001) / 100 - 10);
      id += 1 + linear_draw(random) % 8;
    }
  }
  starts[ROWS] = at;
  return (struct pawl_batch){
      .rows = ROWS, .entries = at, .starts = starts, .ids = ids, .values = has_values ? values : NULL};
}

/* A weight for each id. */
static double weight_of(uint64_t id) { return (double)(id % 17) - 8; }

static double value_at(const struct pawl_batch *batch, uint64_t k) {
  return batch->values ? (double)batch->values[k] : 1;
}

static void check_rows(struct linear_minibatch *minibatch, const struct pawl_batch *batch, size_t begin, size_t end) {
  assert_int_equal(linear_minibatch_fill(minibatch, batch, begin, end), PAWL_OK);
  assert_int_equal(minibatch->rows, end - begin);
  for (size_t j = 0; j < minibatch->features; j++) {
    if (j > 0) assert_true(minibatch->keys[j - 1] < minibatch->keys[j]);
    assert_true(minibatch->gradient[j] == 0);
    minibatch->weights[j] = weight_of(minibatch->keys[j]);
  }
  assert_true(minibatch->bias_gradient == 0);
  minibatch->bias = 0.25;
  double bias_gradient = 0;
  for (size_t i = begin; i < end; i++) {
    double z = 0.25, by = (double)i + 1;
    for (uint64_t k = batch->starts[i]; k < batch->starts[i + 1]; k++)
      z += value_at(batch, k) * weight_of(batch->ids[k]);
    assert_true(fabs(linear_minibatch_score(minibatch, i - begin) - z) < 1e-9);
    linear_minibatch_add(minibatch, i - begin, by);
    bias_gradient += by;
  }
  assert_true(minibatch->bias_gradient == bias_gradient);
}

/* Every key's gradient is the sum over the rows that have it, and every id of the rows is a key. */
static void check_gradient(const struct linear_minibatch *minibatch, const struct pawl_batch *batch, size_t begin,
                           size_t end) {
  double sum = 0, expected_sum = 0;
  for (size_t j = 0; j < minibatch->features; j++) {
    double expected = 0;
    bool occurs = false;
    for (size_t i = begin; i < end; i++)
      for (uint64_t k = batch->starts[i]; k < batch->starts[i + 1]; k++)
        if (batch->ids[k] == minibatch->keys[j]) {
          occurs = true;
          expected += ((double)i + 1) * value_at(batch, k);
        }
    assert_true(occurs);
    assert_true(fabs(minibatch->gradient[j] - expected) < 1e-9);
    sum += minibatch->gradient[j];
  }
  for (size_t i = begin; i < end; i++)
    for (uint64_t k = batch->starts[i]; k < batch->starts[i + 1]; k++)
      expected_sum += ((double)i + 1) * value_at(batch, k);
  assert_true(fabs(sum - expected_sum) < 1e-7);
}

static void test_scores_and_gradients_are_those_of_the_rows(void **state) {
  (void)state;
  struct linear_minibatch minibatch = {0};
  uint64_t random = 11;
  for (int turn = 0; turn < 100; turn++) { /* its memory is used again and again */
    struct pawl_batch batch = draw_rows(&random, turn % 2);
    size_t begin = linear_draw(&random) % ROWS, end = begin + linear_draw(&random) % (ROWS - begin + 1);
    check_rows(&minibatch, &batch, begin, end);
    check_gradient(&minibatch, &batch, begin, end);
  }
  linear_minibatch_fini(&minibatch);
}

static void test_rows_without_features_have_the_bias_for_a_score(void **state) {
  (void)state;
  const uint64_t nothing[4] = {0};
  struct pawl_batch batch = {.rows = 3, .starts = nothing};
  struct linear_minibatch minibatch = {0};
  assert_int_equal(linear_minibatch_fill(&minibatch, &batch, 0, 3), PAWL_OK);
  assert_int_equal(minibatch.features, 0);
  minibatch.bias = -2;
  assert_true(linear_minibatch_score(&minibatch, 2) == -2);
  linear_minibatch_add(&minibatch, 2, 3);
  assert_true(minibatch.bias_gradient == 3);
  assert_int_equal(linear_minibatch_fill(&minibatch, &batch, 1, 1), PAWL_OK);
  assert_int_equal(minibatch.rows, 0);
  linear_minibatch_fini(&minibatch);
  linear_minibatch_fini(&minibatch); /* an empty one */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scores_and_gradients_are_those_of_the_rows),
      cmocka_unit_test(test_rows_without_features_have_the_bias_for_a_score),
  };
  return cmocka_run_group_tests_name("apps.linear.minibatch", tests, NULL, NULL);
}
