/* Figures: by hand, by brute force, with ties, far out, and in parts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "apps/linear/losses.h"
#include "apps/linear/model/model.h"

static const struct pawl_linear_model plain = {
    .about.loss = PAWL_LINEAR_LOGISTIC, .about.labels = {-1, 1}, .about.class_weights = {1, 1}, .about.features = 10};

static void close_to(double a, double b) {
  if (!(fabs(a - b) <= 1e-12 * (1 + fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static struct pawl_linear_figures figures_of(const struct pawl_linear_model *model, const float *labels,
                                             const double *scores, const float *weights, size_t rows) {
  struct pawl_linear_metrics *metrics;
  struct pawl_linear_figures figures;
  struct pawl_batch batch = {.rows = rows, .labels = labels, .weights = weights};
  assert_int_equal(pawl_linear_metrics_create(model, NULL, &metrics), PAWL_OK);
  assert_int_equal(pawl_linear_metrics_add(metrics, &batch, scores), PAWL_OK);
  assert_int_equal(pawl_linear_metrics_figures(metrics, &figures), PAWL_OK);
  pawl_linear_metrics_destroy(metrics);
  return figures;
}

static void test_figures_are_what_one_computes_by_hand(void **state) {
  (void)state;
  const float labels[] = {1, -1, 1, -1};
  const double scores[] = {2, -1, -0.5, 0};
  struct pawl_linear_figures figures = figures_of(&plain, labels, scores, NULL, 4);
  double loss = log1p(exp(-2)) + log1p(exp(-1)) + log1p(exp(0.5)) + log(2);
  assert_int_equal(figures.rows, 4);
  assert_int_equal(figures.positive, 2);
  assert_int_equal(figures.unknown, 0);
  close_to(figures.loss, loss);
  close_to(figures.log_loss, loss / 4);
  close_to(figures.accuracy, 0.75); /* a score of 0 means the first class */
  close_to(figures.auc, 0.75);      /* of 4 pairs, -0.5 against 0 is wrong */
  close_to(figures.objective, loss);
  assert_true(isnan(figures.rmse) && isnan(figures.r2));
}

static void test_the_objective_counts_penalties_and_weights_and_not_the_bias(void **state) {
  (void)state;
  uint64_t ids[] = {1, 4};
  double own[] = {0.5, -2};
  struct pawl_linear_model model = {.about.loss = PAWL_LINEAR_HINGE,
                                    .about.labels = {0, 1},
                                    .about.class_weights = {3, 0}, /* nothing was said of the second */
                                    .about.features = 4,
                                    .about.l1 = 0.25,
                                    .about.l2 = 4,
                                    .about.has_bias = true,
                                    .about.bias = 1000,
                                    .about.nonzeros = 2,
                                    .ids = ids,
                                    .weights = own};
  const float labels[] = {0, 1, 1}, weights[] = {2, 0.5f, 1};
  const double scores[] = {0.5, -1, 3};
  struct pawl_linear_figures figures = figures_of(&model, labels, scores, weights, 3);
  close_to(figures.loss, 2 * 3 * 1.5 + 0.5 * 2 + 0);
  close_to(figures.penalty, 0.25 * 2.5 + 4.0 / 2 * 4.25);
  close_to(figures.objective, figures.loss + figures.penalty);
  close_to(figures.accuracy, 1.0 / 3);
  model.about.l2 = (double)NAN;
  assert_true(isnan(figures_of(&model, labels, scores, weights, 3).objective));
}

static void test_labels_of_neither_class_count_in_nothing_else(void **state) {
  (void)state;
  const float labels[] = {1, 7, -1, 0};
  const double scores[] = {1, 100, -1, 100};
  struct pawl_linear_figures figures = figures_of(&plain, labels, scores, NULL, 4);
  assert_int_equal(figures.rows, 4);
  assert_int_equal(figures.unknown, 2);
  close_to(figures.accuracy, 1);
  close_to(figures.log_loss, log1p(exp(-1)));
}

static void test_a_missing_class_has_no_area(void **state) {
  (void)state;
  const float labels[] = {1, 1};
  const double scores[] = {1, -1};
  struct pawl_linear_figures figures = figures_of(&plain, labels, scores, NULL, 2);
  assert_true(isnan(figures.auc));
  close_to(figures.accuracy, 0.5);
  figures = figures_of(&plain, NULL, NULL, NULL, 0);
  assert_true(isnan(figures.auc) && isnan(figures.accuracy) && isnan(figures.log_loss));
  close_to(figures.objective, 0);
}

/* Every pair counted one by one. Scores of few values make most of them ties. */
static double brute_area(const float *labels, const double *scores, size_t rows) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < rows; j++) {
      if (labels[i] < 0 || labels[j] > 0) continue;
      pairs++;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  return won / pairs;
}

static void test_the_area_is_exact_with_ties(void **state) {
  (void)state;
  enum { ROWS = 400 };
  float labels[ROWS];
  double scores[ROWS];
  uint64_t random = 12345;
  for (uint64_t values = 1; values <= 4096; values *= 4) {
    for (size_t i = 0; i < ROWS; i++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      labels[i] = random >> 63 ? 1 : -1;
      scores[i] = (double)((random >> 33) % values) - (double)values / 2 + (double)labels[i];
    }
    close_to(figures_of(&plain, labels, scores, NULL, ROWS).auc, brute_area(labels, scores, ROWS));
  }
}

static void test_extreme_scores_neither_overflow_nor_vanish(void **state) {
  (void)state;
  const float labels[] = {1, -1, 1, -1};
  const double scores[] = {1e300, 1e6, -800, -1e300};
  struct pawl_linear_figures figures = figures_of(&plain, labels, scores, NULL, 4);
  close_to(figures.loss, 1e6 + 800);
  close_to(figures.log_loss, (1e6 + 800) / 4);
  close_to(figures.auc, 0.75);
  const double no_numbers[] = {(double)NAN, (double)INFINITY, 1, -(double)INFINITY};
  figures = figures_of(&plain, labels, no_numbers, NULL, 4);
  assert_true(isnan(figures.auc) && isnan(figures.log_loss));
  close_to(figures.accuracy, 0.5);
}

static void test_regression_has_errors_instead_of_classes(void **state) {
  (void)state;
  struct pawl_linear_model model = {
      .about.loss = PAWL_LINEAR_SQUARED, .about.is_regression = true, .about.class_weights = {5, 5}};
  const float labels[] = {1, 2, 4.5f};
  const double scores[] = {1.5, 2, 3.5};
  struct pawl_linear_figures figures = figures_of(&model, labels, scores, NULL, 3);
  close_to(figures.loss, 1.25 / 2);
  close_to(figures.rmse, sqrt(1.25 / 3));
  close_to(figures.r2, 1 - 1.25 / 6.5);
  assert_true(isnan(figures.auc) && isnan(figures.accuracy) && isnan(figures.log_loss));
}

static void test_parts_add_up_to_the_whole(void **state) {
  (void)state;
  enum { ROWS = 3000, PART = 100 };
  static float labels[ROWS];
  static double scores[ROWS];
  struct pawl_linear_metrics *metrics;
  struct pawl_linear_figures parts;
  for (size_t i = 0; i < ROWS; i++) {
    labels[i] = i % 3 ? -1 : 1;
    scores[i] = sin((double)i) * 50 + (double)labels[i];
  }
  struct pawl_linear_figures whole = figures_of(&plain, labels, scores, NULL, ROWS);
  assert_int_equal(pawl_linear_metrics_create(&plain, NULL, &metrics), PAWL_OK);
  for (size_t begin = ROWS; begin > 0; begin -= PART) {
    struct pawl_batch batch = {.rows = PART, .labels = labels + begin - PART};
    assert_int_equal(pawl_linear_metrics_add(metrics, &batch, scores + begin - PART), PAWL_OK);
  }
  assert_int_equal(pawl_linear_metrics_figures(metrics, &parts), PAWL_OK);
  pawl_linear_metrics_destroy(metrics);
  assert_true(parts.auc == whole.auc && parts.accuracy == whole.accuracy);
  if (fabs(parts.loss - whole.loss) > 1e-15 * whole.loss) fail_msg("%.17g, not %.17g", parts.loss, whole.loss);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_figures_are_what_one_computes_by_hand),
      cmocka_unit_test(test_the_objective_counts_penalties_and_weights_and_not_the_bias),
      cmocka_unit_test(test_labels_of_neither_class_count_in_nothing_else),
      cmocka_unit_test(test_a_missing_class_has_no_area),
      cmocka_unit_test(test_the_area_is_exact_with_ties),
      cmocka_unit_test(test_extreme_scores_neither_overflow_nor_vanish),
      cmocka_unit_test(test_regression_has_errors_instead_of_classes),
      cmocka_unit_test(test_parts_add_up_to_the_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
