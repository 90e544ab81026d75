/* Whole trainings on a cluster of processes, with threads as workers, against a serial solver. */
#include "apps/linear/train/train_test.h"

#include <sys/stat.h>

#include "apps/linear/train/inside.h"

static struct rows rows, numbers, small;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1];

static int begin(void **state) {
  int status = open_cluster(state);
  if (status) return status;
  draw_rows(&rows, "rows", 400, 48, 1, false, 1);
  draw_rows(&numbers, "numbers", 300, 30, 0.5, true, 2);
  return 0;
}

/* Within a thousandth of the optimum, by two workers. */
static void check(const struct problem *problem) {
  double best = solve(problem, w);
  begin_options(&options, problem, &point, &path, &outcome);
  must_train(&options, 2, &outcome);
  assert_string_equal(outcome.last.why, "converged");
  assert_int_equal(outcome.last.rows, problem->rows->count);
  check_model(problem, &outcome, 0, best, 1e-3);
}

static void test_logistic_regression_with_l1(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 2};
  check(&problem);
  uint64_t zeros = 0;
  for (size_t j = 1; j <= rows.features; j++) zeros += outcome.w[0][j] == 0;
  assert_true(zeros > 5);
  assert_int_equal(outcome.last.nonzeros, rows.features - zeros);
  assert_true(outcome.last.accuracy > 0.7);
}

static void test_logistic_regression_with_l2(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1};
  check(&problem);
  for (size_t j = 1; j <= rows.features; j++) assert_true(fabs(outcome.w[0][j] - w[j]) < 0.1);
}

static void test_logistic_regression_with_the_elastic_net_and_a_bias(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .l2 = 0.5, .bias = true};
  check(&problem);
  assert_true(outcome.w[0][0] != 0);
}

static void test_classes_that_weigh_differently(void **state) {
  (void)state;
  struct problem problem = {
      .rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true, .class_weights = {1, 3}};
  check(&problem);
}

static void test_the_squared_hinge(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_SQUARED_HINGE, .l2 = 1, .bias = true};
  check(&problem);
  problem = (struct problem){.rows = &rows, .loss = PAWL_LINEAR_SQUARED_HINGE, .l1 = 3};
  check(&problem);
}

static void test_least_squares(void **state) {
  (void)state;
  struct problem problem = {.rows = &numbers, .loss = PAWL_LINEAR_SQUARED, .l2 = 0.5, .bias = true};
  check(&problem);
  assert_true(isnan(outcome.last.accuracy));
  problem = (struct problem){.rows = &numbers, .loss = PAWL_LINEAR_SQUARED, .l1 = 5, .bias = true};
  check(&problem);
}

/* --- how many, and how late ----------------------------------------------------------------------------- */

static void test_without_delay_the_weights_do_not_depend_on_the_number_of_workers(void **state) {
  (void)state;
  static struct outcome first;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  for (uint32_t workers = 1; workers <= 3; workers++) {
    begin_options(&options, &problem, &point, &path, &outcome);
    must_train(&options, workers, &outcome);
    if (workers == 1) first = outcome;
    assert_int_equal(outcome.last.rounds, first.last.rounds);
    for (size_t j = 0; j <= rows.features; j++) assert_true(fabs(outcome.w[0][j] - first.w[0][j]) < 1e-6);
  }
}

static void test_delay_leads_to_the_same_optimum(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  double best = solve(&problem, w);
  for (uint32_t workers = 1; workers <= 3; workers += 2) {
    begin_options(&options, &problem, &point, &path, &outcome);
    options.tau = 4;
    must_train(&options, workers, &outcome);
    check_model(&problem, &outcome, 0, best, 1e-3);
  }
}

static void test_without_the_filter_it_is_the_same_optimum(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 2};
  double best = solve(&problem, w);
  begin_options(&options, &problem, &point, &path, &outcome);
  options.keep_all = true;
  must_train(&options, 2, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-3);
}

static void test_one_block_of_all_features_converges_too(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  double best = solve(&problem, w);
  begin_options(&options, &problem, &point, &path, &outcome);
  options.blocks = 1;
  options.tau = 2;
  must_train(&options, 2, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-3);
}

static void test_more_workers_than_rows(void **state) {
  (void)state;
  struct problem problem = {.rows = &small, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  draw_rows(&small, "small", 3, 4, 0, false, 3);
  small.labels[0] = -1;
  small.labels[1] = small.labels[2] = 1;
  write_rows(&small, "small");
  double best = solve(&problem, w);
  begin_options(&options, &problem, &point, &path, &outcome);
  must_train(&options, 5, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-3);
}

static void test_rows_without_any_feature_leave_the_bias(void **state) {
  (void)state;
  struct problem problem = {.rows = &small, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  memset(&small, 0, sizeof small);
  small.count = 40;
  for (size_t i = 0; i < small.count; i++) small.labels[i] = i % 4 ? 1 : -1;
  write_rows(&small, "empty");
  begin_options(&options, &problem, &point, &path, &outcome);
  must_train(&options, 2, &outcome);
  assert_true(fabs(outcome.w[0][0] - log(3)) < 0.05); /* three of four */
  assert_int_equal(outcome.last.nonzeros, 0);
}

/* --- paths, beginnings, validation ---------------------------------------------------------------------- */

static void test_a_path_of_penalties_gives_each_its_optimum(void **state) {
  (void)state;
  static const struct pawl_linear_point points[] = {{8, 0}, {2, 0}, {0.5, 0.1}};
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .bias = true};
  begin_options(&options, &problem, &point, &path, &outcome);
  options.points = points;
  options.point_count = 3;
  must_train(&options, 2, &outcome);
  assert_int_equal(outcome.models, 3);
  for (size_t i = 0; i < 3; i++) {
    problem.l1 = points[i].l1;
    problem.l2 = points[i].l2;
    check_model(&problem, &outcome, i, solve(&problem, w), 1e-3);
  }
}

static void test_a_model_to_start_with_saves_rounds(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  double best = solve(&problem, w), weights[FEATURES_MOST];
  uint64_t ids[FEATURES_MOST];
  struct pawl_linear_model model = {.about.loss = PAWL_LINEAR_LOGISTIC,
                                    .about.labels = {-1, 1},
                                    .about.has_bias = true,
                                    .about.bias = w[0],
                                    .about.features = rows.features,
                                    .ids = ids,
                                    .weights = weights};
  for (size_t j = 1; j <= rows.features; j++) {
    if (w[j] == 0) continue;
    ids[model.about.nonzeros] = j;
    weights[model.about.nonzeros++] = w[j];
  }
  begin_options(&options, &problem, &point, &path, &outcome);
  options.start = &model;
  must_train(&options, 2, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-4);
  assert_true(outcome.last.rounds <= 8);
  /* the same model, with labels that fall */
  for (size_t i = 0; i < model.about.nonzeros; i++) weights[i] = -weights[i];
  model.about.labels[0] = 1;
  model.about.labels[1] = -1;
  model.about.bias = -model.about.bias;
  begin_options(&options, &problem, &point, &path, &outcome);
  options.start = &model;
  options.rounds = 1;
  must_train(&options, 2, &outcome);
  check_model(&problem, &outcome, 0, best, 1e-4);
}

static void test_validation_is_measured_and_ends_what_only_gets_worse(void **state) {
  (void)state;
  static struct rows noise, valid;
  struct problem problem = {.rows = &noise, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1e-4, .bias = true};
  draw_rows(&noise, "noise", 60, 48, 3, false, 5);  /* fewer rows than it takes: learned by heart */
  draw_rows(&valid, "valid", 300, 60, 1, false, 6); /* with features that nobody has trained */
  begin_options(&options, &problem, &point, &path, &outcome);
  const char *valid_paths[] = {valid.path};
  options.valid_paths = valid_paths;
  options.valid_count = 1;
  options.patience = 2;
  must_train(&options, 2, &outcome);
  assert_string_equal(outcome.last.why, "early stop");
  struct problem measured = {.rows = &valid, .loss = PAWL_LINEAR_LOGISTIC, .bias = true};
  double loss = objective_of(&measured, outcome.w[0]) / (double)valid.count;
  assert_true(fabs(outcome.last.valid_loss - loss) < 1e-6 * loss);
  /* the best round's weights, not the last one's */
  assert_true(fabs(outcome.best_valid_loss - loss) < 1e-6 * loss);
  assert_true(outcome.last.valid_accuracy > 0.4 && outcome.last.valid_accuracy < 1);
}

static bool stop_after_three(void *context) { return ((struct outcome *)context)->rounds >= 3; }

static void test_who_interrupts_keeps_what_there_is(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1};
  begin_options(&options, &problem, &point, &path, &outcome);
  options.stopping = stop_after_three;
  options.tolerance = 1e-12;
  must_train(&options, 2, &outcome);
  assert_string_equal(outcome.last.why, "interrupted");
  assert_int_equal(outcome.last.rounds, 3);
  check_model(&problem, &outcome, 0, solve(&problem, w), 0.5);
}

/* Directories in a directory. */
static size_t count_directories(const char *place) {
  char line[64] = "", command[256];
  snprintf(command, sizeof command, "find %s -mindepth 1 -maxdepth 1 -type d | wc -l", place);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_non_null(fgets(line, sizeof line, pipe));
  pclose(pipe);
  return (size_t)atoi(line);
}

static void test_a_run_goes_on_from_its_checkpoint(void **state) {
  (void)state;
  char checkpoints[160];
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
  begin_options(&options, &problem, &point, &path, &outcome);
  options.checkpoints = checkpoints;
  options.job = "resumed";
  options.resume = true;
  assert_int_equal(train(&options, 2, &outcome), PAWL_NOT_FOUND);
  options.resume = false;
  options.rounds = 4;
  options.tolerance = 1e-12;
  options.checkpoint_every_s = 1e-9; /* after each round: the two newest are kept */
  must_train(&options, 2, &outcome);
  assert_int_equal(count_directories(checkpoints), 2);
  double after_four = outcome.last.objective;
  begin_options(&options, &problem, &point, &path, &outcome);
  options.checkpoints = checkpoints;
  options.job = "resumed";
  options.resume = true;
  options.rounds = 1;
  must_train(&options, 3, &outcome);
  assert_non_null(strstr(outcome.told, "resuming from round 4"));
  assert_true(outcome.last.objective < after_four);
  point.l1 = 2;
  assert_int_equal(train(&options, 2, &outcome), PAWL_MISMATCH);
  assert_non_null(strstr(outcome.error, "--l1 was 1 and is now 2"));
}

/* The state's file is a folder from round `from` on, and before round `back`; 0: for good. */
static struct {
  char state[300];
  uint64_t from, back, unsaved;
} full;

static void fill_disk(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0) return;
  full.unsaved += *progress->unsaved != 0;
  bool is_full = progress->round >= full.from && (full.back == 0 || progress->round < full.back);
  (void)remove(full.state);
  if (is_full) assert_int_equal(mkdir(full.state, 0700), 0);
}

static void train_with_a_full_disk(const char *job, uint64_t from, uint64_t back) {
  static char checkpoints[160];
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
  snprintf(checkpoints, sizeof checkpoints, "%s/%s", folder, job);
  snprintf(full.state, sizeof full.state, "%s/%s.json", checkpoints, job);
  full.from = from;
  full.back = back;
  full.unsaved = 0;
  begin_options(&options, &problem, &point, &path, &outcome);
  options.checkpoints = checkpoints;
  options.checkpoint_every_s = 1e-9; /* after each round */
  options.job = job;
  options.rounds = 6;
  options.tolerance = 1e-12;
  options.progress = fill_disk;
  must_train(&options, 2, &outcome);
  assert_int_equal(outcome.last.rounds, 6);
  assert_true(outcome.last.can_resume && full.unsaved > 0);
}

static void test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(void **state) {
  (void)state;
  train_with_a_full_disk("full", 2, 4);
  assert_string_equal(outcome.last.unsaved, "");
  assert_int_equal(count_directories(options.checkpoints), 2);
  train_with_a_full_disk("fuller", 3, 0);
  assert_non_null(strstr(outcome.last.unsaved, "cannot write a checkpoint to "));
  assert_non_null(strstr(outcome.last.unsaved, "fuller.json: Is a directory"));
  assert_int_equal(count_directories(options.checkpoints), 3); /* that one, and those of rounds 1 and 2 */
}

static void test_what_cannot_be_learned_is_said(void **state) {
  (void)state;
  struct problem problem = {.rows = &numbers, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1};
  begin_options(&options, &problem, &point, &path, &outcome);
  assert_int_equal(train(&options, 2, &outcome), PAWL_INVALID);
  assert_non_null(strstr(outcome.error, "not of two classes"));
  small = rows;
  for (size_t i = 0; i < small.count; i++) small.labels[i] = 1;
  write_rows(&small, "alike");
  problem.rows = &small;
  begin_options(&options, &problem, &point, &path, &outcome);
  assert_int_equal(train(&options, 2, &outcome), PAWL_INVALID);
  assert_non_null(strstr(outcome.error, "training needs two labels"));
}

static enum pawl_layout layout_of(uint64_t features, uint64_t entries, const struct linear_method_descriptor *method) {
  static uint64_t serial;
  char error[PAWL_LINEAR_TEXT] = "";
  struct linear_run run = {.common = {.session = session, .error = error}};
  struct pawl_vector *vector = NULL;
  struct pawl_vector_info info;
  snprintf(run.spec.job, sizeof run.spec.job, "layout%llu", (unsigned long long)++serial);
  run.spec.method = method;
  run.order.features = features;
  run.progress.entries = entries;
  must(linear_make_vector(&run, LINEAR_GRADIENT, &vector));
  pawl_vector_info(vector, &info);
  pawl_vector_close(vector);
  linear_delete_vector(&run, &run.order, LINEAR_GRADIENT);
  return info.options.layout;
}

/* Hashed words have ids far apart. Servers would go through millions of zeros for each norm. */
static void test_vectors_over_ids_of_which_few_occur_are_sparse(void **state) {
  (void)state;
  assert_int_equal(layout_of(4000000, 600, &linear_blocks), PAWL_LAYOUT_SPARSE);
  assert_int_equal(layout_of(4000000, 300000, &linear_blocks), PAWL_LAYOUT_DENSE);
  assert_int_equal(layout_of(50000, 600, &linear_blocks), PAWL_LAYOUT_DENSE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors_over_ids_of_which_few_occur_are_sparse),
      cmocka_unit_test(test_logistic_regression_with_l1),
      cmocka_unit_test(test_logistic_regression_with_l2),
      cmocka_unit_test(test_logistic_regression_with_the_elastic_net_and_a_bias),
      cmocka_unit_test(test_classes_that_weigh_differently),
      cmocka_unit_test(test_the_squared_hinge),
      cmocka_unit_test(test_least_squares),
      cmocka_unit_test(test_without_delay_the_weights_do_not_depend_on_the_number_of_workers),
      cmocka_unit_test(test_delay_leads_to_the_same_optimum),
      cmocka_unit_test(test_without_the_filter_it_is_the_same_optimum),
      cmocka_unit_test(test_one_block_of_all_features_converges_too),
      cmocka_unit_test(test_more_workers_than_rows),
      cmocka_unit_test(test_rows_without_any_feature_leave_the_bias),
      cmocka_unit_test(test_a_path_of_penalties_gives_each_its_optimum),
      cmocka_unit_test(test_a_model_to_start_with_saves_rounds),
      cmocka_unit_test(test_validation_is_measured_and_ends_what_only_gets_worse),
      cmocka_unit_test(test_who_interrupts_keeps_what_there_is),
      cmocka_unit_test(test_a_run_goes_on_from_its_checkpoint),
      cmocka_unit_test(test_a_checkpoint_that_cannot_be_written_does_not_end_the_run),
      cmocka_unit_test(test_what_cannot_be_learned_is_said),
  };
  return cmocka_run_group_tests_name("apps.linear.train.train", tests, begin, close_cluster);
}
