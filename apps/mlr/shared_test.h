/* What tests of trainings by workers share: made-up rows in a file, workers that are threads, and models to compare. */
#ifndef MLR_SHARED_TEST_H
#define MLR_SHARED_TEST_H

#include <pawl/mlr.h>

#include "apps/common/shared_matrix/workers_test.h"
#include "apps/mlr/model.h"

static inline struct pawl_mlr_rows *make_rows(uint32_t count, uint32_t classes, uint32_t features) {
  char error[PAWL_MLR_TEXT] = "";
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  write_rows(count, classes, features);
  pawl_data_options_init(&reading);
  if (pawl_mlr_rows_read(rows_files, 1, &reading, 1, &rows, error)) fail_msg("%s", error);
  return rows;
}

static inline struct pawl_mlr_options options_of(uint64_t epochs, uint64_t batch) {
  struct pawl_mlr_options options;
  pawl_mlr_options_init(&options);
  options.method = PAWL_MLR_SGD;
  options.epochs = epochs;
  options.batch = batch;
  options.rate = 0.1;
  options.threads = 1;
  return options;
}

struct outcome {
  pawl_status status;
  struct pawl_mlr_model *model;
  struct pawl_mlr_result result;
  struct pawl_matrix_shared shared;
  char error[PAWL_MLR_TEXT];
};

static inline struct outcome train_alone(const struct pawl_mlr_rows *rows, const struct pawl_mlr_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status = pawl_mlr_train(rows, NULL, options, &outcome.model, &outcome.result, outcome.error);
  return outcome;
}

/* Trains with sharing->workers workers. */
static inline struct outcome train_shared(const struct pawl_mlr_rows *rows, const struct pawl_matrix_sharing *given,
                                          const struct pawl_mlr_options *options) {
  struct outcome outcome = {.model = NULL};
  struct pawl_matrix_sharing sharing = *given;
  struct hands hands;
  start_hands(&hands, pawl_mlr_work, &sharing);
  outcome.status = pawl_mlr_train_shared(session, &sharing, rows, NULL, options, &outcome.model, &outcome.result,
                                         &outcome.shared, outcome.error);
  join_hands(&hands);
  return outcome;
}

/* The largest difference of weights, relative to the largest weight. */
static inline double distance(const struct outcome *one, const struct outcome *other) {
  double most = 0, largest = 0;
  if (one->status) fail_msg("%s", one->error);
  if (other->status) fail_msg("%s", other->error);
  assert_int_equal(mlr_matrix_size(&one->model->matrix), mlr_matrix_size(&other->model->matrix));
  for (size_t i = 0; i < mlr_matrix_size(&one->model->matrix); i++) {
    most = fmax(most, fabs(one->model->matrix.at[i] - other->model->matrix.at[i]));
    largest = fmax(largest, fabs(one->model->matrix.at[i]));
  }
  return most / largest;
}

static inline void forget(struct outcome *outcome) {
  pawl_mlr_model_destroy(outcome->model);
  pawl_matrix_shared_fini(&outcome->shared);
}

/* --- for both ways ---------------------------------------------------------------------------------------- */

#define CLOSE 1e-9 /* by rounding, after many steps */

/* As many steps, rows and batches as one process has: the same weights. */
static inline void check_equals(enum pawl_matrix_way way, uint32_t workers, uint32_t count, uint64_t batch, double l2) {
  struct pawl_mlr_rows *rows = make_rows(count, 4, 12);
  struct pawl_mlr_options options = options_of(6, batch);
  struct pawl_matrix_sharing sharing = sharing_of(way, workers);
  options.l2 = l2;
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  double far = distance(&alone, &shared);
  if (!(far < CLOSE)) fail_msg("%u workers, batches of %u: %g", workers, (unsigned)batch, far);
  assert_true(fabs(alone.result.objective - shared.result.objective) < CLOSE * alone.result.objective);
  assert_true(alone.result.train_error == shared.result.train_error);
  assert_int_equal(shared.shared.workers, workers);
  assert_int_equal(shared.shared.workers_lost, 0);
  assert_int_equal(shared.shared.steps, 6 * ((count + batch - 1) / batch));
  assert_int_equal(shared.shared.each_count, workers);
  forget(&alone), forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

/* A value has changed since the scheduler read the file. */
static inline void check_other_rows(enum pawl_matrix_way way) {
  struct pawl_mlr_rows *rows = make_rows(60, 4, 12);
  struct pawl_mlr_options options = options_of(5, 6);
  struct pawl_matrix_sharing sharing = sharing_of(way, 1); /* a second one may come when the job is over, and wait */
  rows->values[0] += 1;
  struct outcome shared = train_shared(rows, &sharing, &options);
  assert_int_equal(shared.status, PAWL_REFUSED);
  if (!strstr(shared.error, "differ from the scheduler's")) fail_msg("%s", shared.error);
  assert_null(shared.model);
  pawl_mlr_rows_destroy(rows);
}

/* A model that is no better than weights of zero says so, as with one process. */
static inline void check_divergence(enum pawl_matrix_way way) {
  struct pawl_mlr_rows *rows = make_rows(60, 4, 12);
  struct pawl_mlr_options options = options_of(5, 6);
  struct pawl_matrix_sharing sharing = sharing_of(way, 3);
  options.rate = 1e6;
  options.schedule = PAWL_MLR_CONSTANT;
  options.l2 = 0;
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  assert_string_equal(alone.result.why, "diverged");
  assert_string_equal(shared.result.why, "diverged");
  assert_false(shared.result.is_certain);
  forget(&alone), forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

/* The optimum of one process, and a bound that holds. With 70 classes the duals are sparse. */
static inline void check_sdca(enum pawl_matrix_way way, uint32_t workers, uint32_t count, uint32_t classes) {
  struct pawl_mlr_rows *rows = make_rows(count, classes, 12);
  struct pawl_mlr_options options = options_of(1000, 0);
  struct pawl_matrix_sharing sharing = sharing_of(way, workers);
  options.method = PAWL_MLR_SDCA;
  options.rate = 0;
  options.tolerance = 1e-5;
  struct outcome shared = train_shared(rows, &sharing, &options);
  options.tolerance = 1e-9;
  struct outcome alone = train_alone(rows, &options);
  if (shared.status) fail_msg("%s", shared.error);
  if (strcmp(shared.result.why, "converged") != 0)
    fail_msg("%u workers, %u rows: %s with a bound of %g; %u workers at the end, %u lost", workers, count,
             shared.result.why, shared.result.gap, shared.shared.workers, shared.shared.workers_lost);
  double above = shared.result.objective / alone.result.objective - 1;
  if (!(above > -1e-9 && above <= shared.result.gap && shared.result.gap <= 1e-5))
    fail_msg("%u workers: %g above the optimum, with a bound of %g", workers, above, shared.result.gap);
  forget(&alone), forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

/* Staleness changes the steps, but not where they lead. */
static inline void check_staleness(enum pawl_matrix_way way, uint32_t staleness) {
  struct pawl_mlr_rows *rows = make_rows(240, 4, 12);
  struct pawl_mlr_options options = options_of(30, 12);
  struct pawl_matrix_sharing sharing = sharing_of(way, 3);
  sharing.staleness = staleness;
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  if (shared.status) fail_msg("staleness %u: %s", staleness, shared.error);
  if (!(shared.result.objective < 1.02 * alone.result.objective))
    fail_msg("staleness %u: %g, not %g", staleness, shared.result.objective, alone.result.objective);
  assert_int_equal(shared.shared.steps, 600);
  forget(&alone), forget(&shared);
  pawl_mlr_rows_destroy(rows);
}

/* What was sent, against the model of the costs. */
static inline void check_bytes(enum pawl_matrix_way way, uint32_t workers,
                               double (*of)(const struct pawl_matrix_costs *)) {
  struct pawl_mlr_rows *rows = make_rows(400, 40, 300);
  struct pawl_mlr_options options = options_of(2, 100);
  struct pawl_matrix_sharing sharing = sharing_of(way, workers);
  struct pawl_matrix_costs costs;
  char error[PAWL_MLR_TEXT];
  must(pawl_mlr_costs(rows, &options, &sharing, &costs, error));
  double sent = 0;
  for (int i = 0; i < TRIES && !is_near(sent, of(&costs)); i++) {
    struct outcome shared = train_shared(rows, &sharing, &options);
    if (shared.status) fail_msg("%s", shared.error);
    sent = (double)shared.shared.update_bytes / (double)shared.shared.steps;
    forget(&shared);
  }
  if (!is_near(sent, of(&costs))) fail_msg("%u workers: %.0f bytes in a step, not %.0f", workers, sent, of(&costs));
  pawl_mlr_rows_destroy(rows);
}

#endif
