/* Scores, against a sum that looks every weight up by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "apps/linear/model/model.h"

static double weight_of(const struct pawl_linear_model *model, uint64_t id) {
  for (size_t i = 0; i < model->about.nonzeros; i++)
    if (model->ids[i] == id) return model->weights[i];
  return 0;
}

/* Three rows over the ids that are given, the last of which has no entries. */
static void check(const struct pawl_linear_model *model, const uint64_t *ids, size_t count, const float *values) {
  uint64_t starts[] = {0, count / 2, count, count};
  struct pawl_batch batch = {.rows = 3, .entries = count, .starts = starts, .ids = ids, .values = values};
  struct pawl_linear_scorer *scorer;
  double scores[3];
  assert_int_equal(pawl_linear_scorer_create(model, &scorer), PAWL_OK);
  pawl_linear_scorer_run(scorer, &batch, scores);
  for (size_t row = 0; row < 3; row++) {
    double sum = 0;
    for (uint64_t k = starts[row]; k < starts[row + 1]; k++)
      sum += weight_of(model, ids[k]) * (values ? (double)values[k] : 1);
    assert_true(scores[row] == sum + model->about.bias);
  }
  pawl_linear_scorer_destroy(scorer);
}

static void test_small_ids_are_looked_up_in_an_array(void **state) {
  (void)state;
  uint64_t ids[] = {1, 3, 7};
  double weights[] = {0.5, -2, 4};
  struct pawl_linear_model model = {.about.nonzeros = 3,
                                    .ids = ids,
                                    .weights = weights,
                                    .about.features = 9,
                                    .about.has_bias = true,
                                    .about.bias = 0.25};
  uint64_t named[] = {1, 2, 3, 7, 8, 1000, PAWL_ID_MAX};
  float values[] = {1.5f, 2, -0.5f, 1, 1, 1, 1};
  check(&model, named, 7, values);
  check(&model, named, 7, NULL);
}

static void test_large_ids_are_looked_up_in_a_table(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  uint64_t ids[COUNT], named[COUNT];
  double weights[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    ids[i] = i * ((uint64_t)1 << 52); /* 0 as well */
    weights[i] = (double)(i + 1);
    named[i] = i % 3 ? ids[i] : ids[i] + 1;
  }
  struct pawl_linear_model model = {
      .about.nonzeros = COUNT, .ids = ids, .weights = weights, .about.features = PAWL_ID_MAX};
  check(&model, named, COUNT, NULL);
}

static void test_a_model_without_weights_says_its_bias(void **state) {
  (void)state;
  struct pawl_linear_model model = {.about.has_bias = true, .about.bias = -3};
  uint64_t named[] = {0, 1, 5};
  check(&model, named, 3, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_ids_are_looked_up_in_an_array),
      cmocka_unit_test(test_large_ids_are_looked_up_in_a_table),
      cmocka_unit_test(test_a_model_without_weights_says_its_bias),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
