/* Dual coordinate ascent where all rows are here: passes come to the optimum, and rows that are left out are
 * those that stay where they are. */
#include "apps/linear/ascent.h"

#include "apps/linear/train/train_test.h"

static struct rows rows;
static double w[FEATURES_MOST + 1];

/* The rows as an ascent has them. Features are numbered from 0. */
struct scene {
  struct linear_rows rows;
  float y[ROWS_MOST], c[ROWS_MOST];
  double squares[ROWS_MOST], a[ROWS_MOST], w[FEATURES_MOST];
  uint32_t order[ROWS_MOST];
  struct linear_ascent ascent;
};

static struct scene scene;

static void begin(const struct problem *problem) {
  const struct rows *from = problem->rows;
  linear_rows_fini(&scene.rows);
  memset(&scene, 0, sizeof scene);
  scene.rows.starts = calloc(from->count + 1, sizeof *scene.rows.starts);
  scene.rows.feature_of = calloc(from->count * FEATURES_MOST, sizeof *scene.rows.feature_of);
  scene.rows.values = calloc(from->count * FEATURES_MOST, sizeof *scene.rows.values);
  assert_true(scene.rows.starts && scene.rows.feature_of && scene.rows.values);
  uint64_t at = 0;
  for (size_t i = 0; i < from->count; i++) {
    for (size_t j = 1; j <= from->features; j++) {
      if (from->x[i][j] == 0) continue;
      scene.rows.feature_of[at] = (uint32_t)j - 1;
      scene.rows.values[at++] = from->x[i][j];
      scene.squares[i] += (double)from->x[i][j] * (double)from->x[i][j];
    }
    scene.rows.starts[i + 1] = at;
    scene.y[i] = (float)from->labels[i];
    scene.c[i] = (float)c_of(problem, i);
  }
  scene.ascent = (struct linear_ascent){.rows = &scene.rows,
                                        .count = from->count,
                                        .y = scene.y,
                                        .c = scene.c,
                                        .squares = scene.squares,
                                        .l2 = problem->l2,
                                        .has_bias = problem->bias,
                                        .a = scene.a,
                                        .w = scene.w,
                                        .order = scene.order};
  linear_ascent_begin(&scene.ascent);
}

static double objective(const struct problem *problem) {
  double all[FEATURES_MOST + 1] = {problem->bias ? scene.ascent.bias : 0};
  memcpy(all + 1, scene.w, sizeof scene.w);
  return objective_of(problem, all);
}

/* Multipliers lie within their bounds, and the weights are their sum. */
static void check_weights(const struct problem *problem) {
  double sum[FEATURES_MOST] = {0};
  for (size_t i = 0; i < problem->rows->count; i++) {
    assert_true(scene.a[i] >= 0 && scene.a[i] <= (double)scene.c[i]);
    for (size_t j = 0; j < problem->rows->features; j++)
      sum[j] += scene.a[i] * (double)scene.y[i] * (double)problem->rows->x[i][j + 1] / problem->l2;
  }
  for (size_t j = 0; j < problem->rows->features; j++) assert_true(fabs(sum[j] - scene.w[j]) < 1e-6);
}

static void check_ascent(const struct problem *problem, int passes, int widens) {
  uint64_t random = 5;
  double best = solve_hinge(problem, w);
  begin(problem);
  for (int i = 0; i < passes; i++) {
    if (i % widens == 0) linear_ascent_widen(&scene.ascent);
    linear_ascent_pass(&scene.ascent, &random);
  }
  check_weights(problem);
  double is = objective(problem);
  if (!(is <= best * (1 + 1e-3))) fail_msg("%.9g instead of %.9g after %d passes", is, best, passes);
}

static void test_passes_come_to_the_optimum(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    draw_rows(&rows, "rows", 300, 30, 1, false, seed);
    for (int bias = 0; bias < 2; bias++) {
      struct problem problem = {.rows = &rows,
                                .loss = PAWL_LINEAR_HINGE,
                                .l2 = 0.7,
                                .bias = bias,
                                .penalises_bias = true,
                                .class_weights = {1, 3}};
      check_ascent(&problem, 1500, 10);
      check_ascent(&problem, 1500, 1);
    }
  }
}

/* Also those that have no features, and cannot be helped. */
static void test_rows_that_stay_where_they_are_are_left_out(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  uint64_t random = 5;
  draw_rows(&rows, "rows", 400, 20, 0.5, false, 3);
  begin(&problem);
  for (int i = 0; i < 200; i++) linear_ascent_pass(&scene.ascent, &random);
  size_t free_ones = 0;
  for (size_t i = 0; i < rows.count; i++) free_ones += scene.a[i] > 0 && scene.a[i] < (double)scene.c[i];
  assert_in_range(scene.ascent.active, free_ones, rows.count / 2);
  assert_true(scene.ascent.steps < 200 * rows.count / 2);
  for (size_t i = 9; i < rows.count; i += 10) assert_true(scene.a[i] == 1); /* draw_rows: without features */
  /* the order still has every row, once */
  bool is_there[ROWS_MOST] = {0};
  for (size_t i = 0; i < rows.count; i++) is_there[scene.order[i]] = true;
  for (size_t i = 0; i < rows.count; i++) assert_true(is_there[i]);
}

/* Rows that were left out by mistake, here as if by thresholds that are far too narrow, come back. */
static void test_rows_that_were_left_out_by_mistake_come_back(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1, .bias = true, .penalises_bias = true};
  uint64_t random = 7;
  draw_rows(&rows, "rows", 300, 30, 1, false, 4);
  double best = solve_hinge(&problem, w);
  begin(&problem);
  for (int i = 0; i < 400; i++) {
    linear_ascent_widen(&scene.ascent);
    if (i < 20 && i % 2) scene.ascent.most = scene.ascent.least = 0;
    linear_ascent_pass(&scene.ascent, &random);
    linear_ascent_pass(&scene.ascent, &random);
  }
  assert_true(objective(&problem) <= best * (1 + 1e-3));
}

static int end(void **state) {
  linear_rows_fini(&scene.rows);
  return close_cluster(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_passes_come_to_the_optimum),
      cmocka_unit_test(test_rows_that_stay_where_they_are_are_left_out),
      cmocka_unit_test(test_rows_that_were_left_out_by_mistake_come_back),
  };
  return cmocka_run_group_tests_name("apps.linear.ascent", tests, open_cluster, end);
}
