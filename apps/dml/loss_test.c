/* Parts: the slope of the objective, found numerically; nearest points and PCA as plain computations find them. */
#include "apps/dml/loss.h"
#include "apps/dml/nearest.h"
#include "apps/dml/scene_test.h"

enum { COUNT = 700, WIDTH = 6, RANK = 3, PAIRS = 60 };

static struct dml_points points;
static struct apps_crew *crew;

static int make_points(void **state) {
  struct apps_random random = apps_random_of(9, 61, 0, 0);
  (void)state;
  if (dml_points_init(&points, COUNT, WIDTH) || apps_crew_create(3, &crew)) return -1;
  for (size_t i = 0; i < (size_t)COUNT * WIDTH; i++)
    points.at[i] = (float)(normal_of(&random) * (double)(1 + i % WIDTH));
  for (size_t i = 0; i < COUNT; i++) points.classes[i] = (uint32_t)apps_random_below(&random, 4);
  memcpy(points.at + 30 * WIDTH, points.at, WIDTH * sizeof *points.at); /* equal points */
  return 0;
}

static int remove_points(void **state) {
  (void)state;
  dml_points_fini(&points);
  apps_crew_destroy(crew);
  return 0;
}

/* --- the slope ---------------------------------------------------------------------------------------------- */

static double objective_of(const struct dml_loss *loss, const struct dml_pair_list *pairs, const double *w) {
  double sum = 0;
  for (size_t p = 0; p < pairs->count; p++) {
    const float *one = points.at + pairs->at[p].one * WIDTH, *other = points.at + pairs->at[p].other * WIDTH;
    double square = 0;
    for (size_t r = 0; r < RANK; r++) {
      double u = 0;
      for (size_t d = 0; d < WIDTH; d++) u += w[r * WIDTH + d] * ((double)one[d] - (double)other[d]);
      square += u * u;
    }
    sum += p < pairs->similar ? fmax(0, square - loss->near) : loss->weight * fmax(0, 1 - square);
  }
  return sum / (double)pairs->count;
}

static struct dml_pair_list make_pairs(struct dml_pair at[PAIRS], uint32_t numbers[PAIRS]) {
  for (uint32_t p = 0; p < PAIRS; p++) {
    at[p] = (struct dml_pair){p, p * 7 % 100 + 100};
    numbers[p] = p;
  }
  return (struct dml_pair_list){at, PAIRS / 2, PAIRS};
}

/* One step of length 1 by the target is minus the slope: differences of the objective in each direction say the same. */
static void test_the_step_is_the_numerical_slope(void **state) {
  (void)state;
  const struct dml_loss loss = {0.8, 2.5};
  struct dml_pair at[PAIRS];
  uint32_t numbers[PAIRS];
  struct dml_pair_list pairs = make_pairs(at, numbers);
  struct dml_weights weights;
  struct dml_batch batch;
  struct apps_random random = apps_random_of(9, 62, 0, 0);
  double w[RANK * WIDTH], largest = 0;
  assert_int_equal(dml_weights_init(&weights, RANK, WIDTH, crew), PAWL_OK);
  assert_int_equal(dml_batch_init(&batch, PAIRS, &weights), PAWL_OK);
  for (size_t i = 0; i < RANK * WIDTH; i++) w[i] = weights.at[i] = (float)(0.1 * normal_of(&random));
  struct dml_pairs step = dml_batch_fill(&batch, &loss, &pairs, numbers, PAIRS, &points, &weights);
  assert_true(step.count > 10 && step.count < PAIRS); /* both sides of the hinges */
  struct dml_target target = dml_weights_target(&weights);
  assert_int_equal(target.apply(target.context, &step, 1.0 / PAIRS), PAWL_OK);
  for (size_t i = 0; i < RANK * WIDTH; i++) {
    double before = w[i], little = 1e-6, slope;
    w[i] = before + little;
    slope = objective_of(&loss, &pairs, w);
    w[i] = before - little;
    slope = (slope - objective_of(&loss, &pairs, w)) / (2 * little);
    w[i] = before;
    assert_true(fabs(slope - (before - (double)weights.at[i])) < 1e-3 * fmax(1, fabs(slope)));
    largest = fmax(largest, fabs(slope));
  }
  assert_true(largest > 0.1);
  dml_batch_fini(&batch);
  dml_weights_fini(&weights);
}

static void test_the_objective_is_that_of_a_plain_sum(void **state) {
  (void)state;
  const struct dml_loss loss = {0.7, 3};
  struct dml_pair at[PAIRS];
  uint32_t numbers[PAIRS];
  struct dml_pair_list pairs = make_pairs(at, numbers);
  struct dml_weights weights;
  struct dml_points mapped;
  struct apps_random random = apps_random_of(9, 63, 0, 0);
  double w[RANK * WIDTH];
  assert_int_equal(dml_weights_init(&weights, RANK, WIDTH, crew), PAWL_OK);
  assert_int_equal(dml_points_init(&mapped, COUNT, RANK), PAWL_OK);
  for (size_t i = 0; i < RANK * WIDTH; i++) w[i] = weights.at[i] = (float)(0.1 * normal_of(&random));
  dml_weights_map(&weights, points.at, COUNT, mapped.at);
  double wanted = objective_of(&loss, &pairs, w);
  assert_true(fabs(dml_objective(&loss, &pairs, &mapped) - wanted) < 1e-5 * wanted);
  mapped.at[at[3].one * RANK] = NAN;
  assert_true(isnan(dml_objective(&loss, &pairs, &mapped)));
  mapped.at[at[3].one * RANK] = INFINITY;
  assert_true(isnan(dml_objective(&loss, &pairs, &mapped)));
  dml_points_fini(&mapped);
  dml_weights_fini(&weights);
}

/* --- nearest points ----------------------------------------------------------------------------------------- */

static double square_of(size_t i, size_t j) {
  double sum = 0;
  for (size_t d = 0; d < WIDTH; d++) {
    double from = (double)points.at[i * WIDTH + d] - (double)points.at[j * WIDTH + d];
    sum += from * from;
  }
  return sum;
}

/* Each list is of the right class, without the point itself, and no point outside is nearer than its last. */
static void check_list(size_t point, const uint32_t *list, uint32_t k, bool is_own) {
  for (uint32_t n = 0; n < k; n++) {
    assert_true(list[n] != DML_NOBODY && list[n] != point);
    assert_int_equal(points.classes[list[n]] == points.classes[point], is_own);
    assert_true(n == 0 || square_of(point, list[n]) >= square_of(point, list[n - 1]) - 1e-3);
  }
  for (size_t j = 0; j < COUNT; j++) {
    bool is_listed = j == point || (points.classes[j] == points.classes[point]) != is_own;
    for (uint32_t n = 0; n < k; n++) is_listed |= list[n] == j;
    assert_true(is_listed || square_of(point, j) >= square_of(point, list[k - 1]) - 1e-3);
  }
}

static void test_nearest_points_are_those_of_a_plain_search(void **state) {
  (void)state;
  uint32_t *lists = apps_alloc_zero(COUNT, 8 * sizeof *lists), *again = apps_alloc_zero(COUNT, 8 * sizeof *again);
  assert_int_equal(dml_nearest_by_class(&points, 4, crew, 3, lists), PAWL_OK);
  for (size_t i = 0; i < COUNT; i++) {
    check_list(i, lists + i * 8, 4, true);
    check_list(i, lists + i * 8 + 4, 4, false);
  }
  struct apps_crew *alone;
  assert_int_equal(apps_crew_create(1, &alone), PAWL_OK);
  assert_int_equal(dml_nearest_by_class(&points, 4, alone, 1, again), PAWL_OK);
  assert_memory_equal(lists, again, COUNT * 8 * sizeof *lists);
  apps_crew_destroy(alone);
  apps_free(lists);
  apps_free(again);
}

static void test_lists_longer_than_the_points_end_with_nobody(void **state) {
  (void)state;
  const struct dml_points few = dml_points_part(&points, 0, 2);
  uint32_t lists[2 * 5];
  assert_int_equal(dml_nearest(&few, &few, 5, crew, 3, lists), PAWL_OK);
  assert_true(lists[0] == 0 && lists[1] == 1 && lists[2] == DML_NOBODY && lists[4] == DML_NOBODY);
  assert_true(lists[5] == 1 && lists[6] == 0 && lists[7] == DML_NOBODY);
}

static void test_votes_are_of_most_and_then_of_the_nearest(void **state) {
  (void)state;
  const uint32_t classes[] = {5, 6, 6, 7, 5};
  assert_int_equal(dml_vote(classes, (const uint32_t[]){0, 1, 2}, 3), 6);
  assert_int_equal(dml_vote(classes, (const uint32_t[]){3, 1, 0}, 3), 7);
  assert_int_equal(dml_vote(classes, (const uint32_t[]){3, 1, 0, 2, 4}, 5), 6);
  assert_int_equal(dml_vote(classes, (const uint32_t[]){0, DML_NOBODY, DML_NOBODY}, 3), 5);
}

/* --- PCA ---------------------------------------------------------------------------------------------------- */

/* Feature i has the deviation i + 1 and is independent of the others: PCA finds the last ones. */
static void test_pca_finds_the_directions_of_greatest_variance(void **state) {
  (void)state;
  struct dml_weights weights;
  float *scratch = apps_alloc_zero(COUNT, WIDTH * sizeof *scratch);
  assert_int_equal(dml_weights_init(&weights, 2, WIDTH, crew), PAWL_OK);
  dml_weights_pca(&weights, &points, 1, scratch);
  for (size_t d = 0; d < WIDTH; d++) {
    double part = hypot((double)weights.at[d], (double)weights.at[WIDTH + d]);
    assert_true(d >= WIDTH - 2 ? part > 0.9 : part < 0.4);
  }
  dml_weights_fini(&weights);
  apps_free(scratch);
}

/* Points on a line, and a rank of all features: the other rows are any at right angles. */
static void test_pca_has_its_rank_even_if_points_do_not_vary(void **state) {
  (void)state;
  struct dml_weights weights;
  struct dml_points line;
  float *scratch = apps_alloc_zero(40, 4 * sizeof *scratch);
  assert_int_equal(dml_points_init(&line, 40, 4), PAWL_OK);
  assert_int_equal(dml_weights_init(&weights, 4, 4, crew), PAWL_OK);
  for (size_t i = 0; i < 40; i++) line.at[i * 4 + 1] = (float)i - 19.5F;
  dml_weights_pca(&weights, &line, 1, scratch);
  for (size_t r = 0; r < 4; r++)
    for (size_t s = 0; s < 4; s++) {
      double dot = 0;
      for (size_t d = 0; d < 4; d++) dot += (double)weights.at[r * 4 + d] * (double)weights.at[s * 4 + d];
      assert_true(fabs(dot - (r == s)) < 1e-5);
    }
  dml_weights_fini(&weights);
  dml_points_fini(&line);
  apps_free(scratch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_step_is_the_numerical_slope),
      cmocka_unit_test(test_the_objective_is_that_of_a_plain_sum),
      cmocka_unit_test(test_nearest_points_are_those_of_a_plain_search),
      cmocka_unit_test(test_lists_longer_than_the_points_end_with_nobody),
      cmocka_unit_test(test_votes_are_of_most_and_then_of_the_nearest),
      cmocka_unit_test(test_pca_finds_the_directions_of_greatest_variance),
      cmocka_unit_test(test_pca_has_its_rank_even_if_points_do_not_vary),
  };
  return cmocka_run_group_tests(tests, make_points, remove_points);
}
