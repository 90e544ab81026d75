/* Trainings by workers that share W, against trainings in one process: by factors and by servers. */
#include <unistd.h>

#include <pawl/metric.h>

#include "apps/common/random.h"
#include "apps/common/shared_matrix/workers_test.h"
#include "apps/dml/model.h"

#define CLOSE 1e-4 /* by rounding of float32, after many steps */

static double uniform_of(struct apps_random *random) { return (double)(apps_random_draw(random) >> 11) * 0x1p-53; }

/* Three classes, which the first two features tell; the others are noise. A third of the rows has fewer values. */
static void write_noisy(uint32_t count, uint32_t features) {
  struct apps_random random = apps_random_of(9, count, features, 0);
  snprintf(rows_path, sizeof rows_path, "%s/rows", folder);
  FILE *file = fopen(rows_path, "w");
  assert_non_null(file);
  for (uint32_t i = 0; i < count; i++) {
    fprintf(file, "c%u 1:%.4f 2:%.4f", i % 3, 2 * (i % 3) + uniform_of(&random),
            2 * (i % 3 == 1) + uniform_of(&random));
    for (uint32_t d = 2; d < features; d++)
      if (i % 3 > 0 || d % 2) fprintf(file, " %u:%.4f", d + 1, 2 * uniform_of(&random));
    fprintf(file, "\n");
  }
  assert_int_equal(fclose(file), 0);
}

static struct pawl_mlr_rows *make_rows(uint32_t count, uint32_t features) {
  char error[PAWL_MLR_TEXT] = "";
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  write_noisy(count, features);
  pawl_data_options_init(&reading);
  if (pawl_mlr_rows_read(rows_files, 1, &reading, 1, &rows, error)) fail_msg("%s", error);
  return rows;
}

static struct pawl_metric_options options_of(uint32_t rank, uint64_t epochs, uint64_t batch) {
  struct pawl_metric_options options;
  pawl_metric_options_init(&options);
  options.rank = rank;
  options.epochs = epochs;
  options.batch = batch;
  options.neighbours = 3;
  options.threads = 1;
  return options;
}

struct outcome {
  pawl_status status;
  struct pawl_metric_model *model;
  struct pawl_metric_result result;
  struct pawl_matrix_shared shared;
  char error[PAWL_METRIC_TEXT];
};

static struct outcome train_alone(const struct pawl_mlr_rows *rows, const struct pawl_metric_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status = pawl_metric_train(rows, NULL, options, &outcome.model, &outcome.result, outcome.error);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

static struct outcome try_shared(const struct pawl_mlr_rows *rows, const struct pawl_matrix_sharing *given,
                                 const struct pawl_metric_options *options) {
  struct outcome outcome = {.model = NULL};
  struct pawl_matrix_sharing sharing = *given;
  struct hands hands;
  start_hands(&hands, pawl_metric_work, &sharing);
  outcome.status = pawl_metric_train_shared(session, &sharing, rows, NULL, options, &outcome.model, &outcome.result,
                                            &outcome.shared, outcome.error);
  join_hands(&hands);
  return outcome;
}

static struct outcome train_shared(const struct pawl_mlr_rows *rows, const struct pawl_matrix_sharing *sharing,
                                   const struct pawl_metric_options *options) {
  struct outcome outcome = try_shared(rows, sharing, options);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

/* The largest difference of W, relative to its largest number. */
static double distance(const struct outcome *one, const struct outcome *other) {
  double most = 0, largest = 0;
  assert_int_equal(dml_model_size(one->model), dml_model_size(other->model));
  for (size_t i = 0; i < dml_model_size(one->model); i++) {
    most = fmax(most, fabs((double)one->model->weights[i] - (double)other->model->weights[i]));
    largest = fmax(largest, fabs((double)one->model->weights[i]));
  }
  return most / largest;
}

static void forget(struct outcome *outcome) {
  pawl_metric_model_destroy(outcome->model);
  pawl_matrix_shared_fini(&outcome->shared);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static void check_equals(uint32_t workers, uint32_t count, uint64_t batch) {
  struct pawl_mlr_rows *rows = make_rows(count, 12);
  struct pawl_metric_options options = options_of(5, 4, batch);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, workers);
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  double far = distance(&alone, &shared);
  if (!(far < CLOSE)) fail_msg("%u workers, batches of %u: %g", workers, (unsigned)batch, far);
  double apart = fabs(alone.result.objective - shared.result.objective) / alone.result.first_objective;
  if (!(apart < CLOSE)) fail_msg("the objectives are %g apart", apart);
  assert_true(alone.result.error == shared.result.error && alone.result.best == shared.result.best);
  if (alone.result.best == 0) fail_msg("PCA, whose error is %g, is the best metric", alone.result.error);
  uint64_t pairs = shared.result.similar + shared.result.dissimilar;
  assert_int_equal(shared.shared.steps, shared.result.epochs * ((pairs + batch - 1) / batch));
  assert_identical(&shared.shared, workers);
  forget(&alone), forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals(1, 150, 16);
  check_equals(2, 240, 32);
  check_equals(4, 161, 13);
}

static void test_a_worker_may_have_no_pairs(void **state) {
  (void)state;
  check_equals(6, 60, 3);
}

/* An epoch that raises the objective is undone by all, also if W was infinite at its end. */
static void test_epochs_are_undone(void **state) {
  (void)state;
  static const double rates[] = {300, 1e9};
  struct pawl_mlr_rows *rows = make_rows(90, 12);
  for (size_t i = 0; i < 2; i++) {
    struct pawl_metric_options options = options_of(5, i == 0 ? 14 : 5, 16);
    struct pawl_matrix_sharing sharing = sharing_of(tested_way, 2);
    options.rate = rates[i];
    struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
    assert_true(shared.result.undone >= 3 && shared.result.undone == alone.result.undone);
    assert_true(shared.result.objective <= shared.result.first_objective);
    if (i == 1) assert_true(distance(&alone, &shared) == 0); /* both are PCA */
    forget(&alone), forget(&shared);
  }
  pawl_mlr_rows_destroy(rows);
}

static void test_staleness_lowers_the_objective(void **state) {
  (void)state;
  static const uint32_t staleness[] = {1, 4, PAWL_MATRIX_ASYNC};
  struct pawl_mlr_rows *rows = make_rows(120, 12);
  struct pawl_metric_options options = options_of(5, 4, 16);
  for (size_t i = 0; i < sizeof staleness / sizeof *staleness; i++) {
    struct pawl_matrix_sharing sharing = sharing_of(tested_way, 3);
    sharing.staleness = staleness[i];
    struct outcome shared = train_shared(rows, &sharing, &options);
    if (!(shared.result.best > 0 && shared.result.objective < 0.5 * shared.result.first_objective))
      fail_msg("staleness %u: from %g to %g", staleness[i], shared.result.first_objective, shared.result.objective);
    forget(&shared);
  }
  pawl_mlr_rows_destroy(rows);
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

static bool stops;
static void stop_after_two(void *context, const struct pawl_metric_progress *progress) {
  (void)context;
  stops = progress->epoch == 2;
}
static bool is_stopping(void *context) {
  (void)context;
  return stops;
}

/* Begun by two workers, ended by three. */
static void test_a_training_goes_on_from_a_checkpoint(void **state) {
  (void)state;
  char path[128];
  struct pawl_mlr_rows *rows = make_rows(90, 12);
  struct pawl_metric_options options = options_of(5, 4, 16);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, 2);
  struct outcome whole = train_alone(rows, &options);
  snprintf(path, sizeof path, "%s/state", folder);
  options.checkpoint = path;
  options.progress = stop_after_two;
  options.stopping = is_stopping;
  stops = false;
  struct outcome first = train_shared(rows, &sharing, &options);
  assert_string_equal(first.result.why, "interrupted");
  options.resume = true;
  stops = false;
  sharing.workers = 3;
  struct outcome resumed = train_shared(rows, &sharing, &options);
  assert_int_equal(resumed.result.resumed, 2);
  assert_int_equal(resumed.result.epochs, whole.result.epochs);
  assert_true(distance(&whole, &resumed) < CLOSE);
  forget(&whole), forget(&first), forget(&resumed);
  pawl_mlr_rows_destroy(rows);
}

/* --- bytes, and bad input --------------------------------------------------------------------------------- */

/* W stays nearly as it is, so that the pairs with a slope are those of the estimate. */
static void check_bytes(uint32_t workers) {
  struct pawl_mlr_rows *rows = make_rows(200, 400);
  struct pawl_metric_options options = options_of(60, 1, 10);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, workers);
  struct pawl_matrix_costs costs;
  char error[PAWL_METRIC_TEXT];
  options.rate = 1e-9;
  must(pawl_metric_costs(rows, &options, &sharing, &costs, error));
  double sent = 0, wanted = tested_way == PAWL_MATRIX_FACTORS ? costs.factors : costs.whole;
  for (int i = 0; i < TRIES && !is_near(sent, wanted); i++) {
    struct outcome shared = train_shared(rows, &sharing, &options);
    sent = (double)shared.shared.update_bytes / (double)shared.shared.steps;
    forget(&shared);
  }
  if (!is_near(sent, wanted)) fail_msg("%u workers: %.0f bytes in a step, not %.0f", workers, sent, wanted);
  pawl_mlr_rows_destroy(rows);
}

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(2);
  check_bytes(4);
}

/* A row has changed since the scheduler read the file. */
static void test_workers_with_other_rows_are_refused(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_rows(60, 12);
  struct pawl_metric_options options = options_of(5, 2, 16);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, 1); /* a second one might wait for the job that is over */
  write_noisy(61, 12);
  struct outcome shared = try_shared(rows, &sharing, &options);
  assert_int_equal(shared.status, PAWL_REFUSED);
  if (!strstr(shared.error, "differ from the scheduler's")) fail_msg("%s", shared.error);
  assert_null(shared.model);
  pawl_mlr_rows_destroy(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_a_worker_may_have_no_pairs),
      cmocka_unit_test(test_epochs_are_undone),
      cmocka_unit_test(test_staleness_lowers_the_objective),
      cmocka_unit_test(test_a_training_goes_on_from_a_checkpoint),
      cmocka_unit_test(test_bytes_are_those_of_the_model),
      cmocka_unit_test(test_workers_with_other_rows_are_refused),
  };
  const struct CMUnitTest by_servers[] = {cmocka_unit_test(test_workers_equal_one_process)};
  tested_way = PAWL_MATRIX_FACTORS;
  int failed = cmocka_run_group_tests_name("apps.dml.shared, by factors", tests, open_way, close_cluster);
  tested_way = PAWL_MATRIX_WHOLE;
  failed += cmocka_run_group_tests_name("apps.dml.shared, by matrix", tests, open_way, close_cluster);
  tested_way = PAWL_MATRIX_SERVERS;
  return failed + cmocka_run_group_tests_name("apps.dml.shared, by servers", by_servers, open_way, close_cluster);
}
