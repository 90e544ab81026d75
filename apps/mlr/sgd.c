/* Stochastic gradient descent on batches. A step with the rate r on a batch of K rows, of N in all, is
 *
 *   W  becomes  prox(W - r/K sum of u v'),   u = p - y,   v = x
 *
 * where prox divides by 1 + r l2/N: the exact step for the penalty, which is stable for every rate.
 */
#include <inttypes.h>
#include <math.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/random.h"
#include "apps/mlr/sgd.h"
#include "apps/mlr/softmax.h"

#define POWER_STEPS 12 /* of the power method; the rate needs no digits */

pawl_status mlr_batch_init(struct mlr_batch *batch, const struct mlr_run *run) {
  size_t count = (size_t)run->is.batch, classes = run->model->about.classes;
  bool is_dense = run->rows->dense != NULL;
  batch->rows = apps_alloc_zero(count, sizeof *batch->rows);
  batch->u = apps_alloc_zero(count, classes * sizeof *batch->u);
  if (is_dense) batch->block = apps_alloc_zero(MLR_BLOCK * run->model->matrix.features + 1, sizeof *batch->block);
  if (batch->rows && batch->u && (batch->block || !is_dense)) return PAWL_OK;
  return apps_say(run->error, PAWL_NO_MEMORY, "no memory for batches of %" PRIu64 " rows; use smaller ones",
                  run->is.batch);
}

void mlr_batch_fini(struct mlr_batch *batch) {
  apps_free(batch->rows);
  apps_free(batch->u);
  apps_free(batch->block);
}

/* --- the rate --------------------------------------------------------------------------------------------- */

/* The largest eigenvalue of the mean of v v', roughly, by the power method. */
static double sharpest(const struct mlr_run *run, double *along, double *next) {
  const struct pawl_mlr_rows *rows = run->rows;
  size_t width = (size_t)rows->info.features + !run->is.no_bias;
  double size = 0;
  for (size_t d = 0; d < width; d++) along[d] = 1 / sqrt((double)width);
  for (int step = 0; step < POWER_STEPS; step++) {
    for (size_t d = 0; d < width; d++) next[d] = 0;
    for (uint64_t i = 0; i < rows->info.rows; i++) {
      struct mlr_row row = mlr_row_of(rows, NULL, (size_t)i);
      double dot = run->is.no_bias ? 0 : along[width - 1];
      for (size_t n = 0; n < row.count; n++) dot += (double)row.values[n] * along[row.at ? row.at[n] : n];
      for (size_t n = 0; n < row.count; n++) next[row.at ? row.at[n] : n] += dot * (double)row.values[n];
      if (!run->is.no_bias) next[width - 1] += dot;
    }
    size = 0;
    for (size_t d = 0; d < width; d++) size += next[d] * next[d];
    size = sqrt(size) / (double)rows->info.rows;
    for (size_t d = 0; d < width && size > 0; d++) along[d] = next[d] / (double)rows->info.rows / size;
  }
  return size;
}

/* The second derivative of a row's loss by its scores is at most 1/2. That of a batch is at most half of the sharpest
 * direction, but for the noise of its rows: half of their mean square, divided by the size of the batch. */
static pawl_status choose_rate(struct mlr_run *run) {
  size_t width = (size_t)run->rows->info.features + 1;
  double square = run->is.no_bias ? 0 : 1, *memory = apps_alloc_zero(2 * width, sizeof *memory);
  if (!memory) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  for (uint64_t i = 0; i < run->rows->info.rows; i++)
    square += mlr_row_square(mlr_row_of(run->rows, NULL, (size_t)i)) / (double)run->rows->info.rows;
  double bend = (sharpest(run, memory, memory + width) + square / (double)run->is.batch) / 2;
  apps_free(memory);
  run->is.rate = bend > 0 ? fmin(fmax(1 / bend, 1e-30), 1e30) : 1;
  return PAWL_OK;
}

double mlr_sgd_rate(const struct mlr_run *run, uint64_t epoch, uint64_t step) {
  double done = (double)epoch + (double)step / (double)mlr_sgd_steps(run); /* epochs */
  switch (run->is.schedule) {
  case PAWL_MLR_COSINE:
    return run->is.rate * 0.5 * (1 + cos(acos(-1) * done / (double)run->is.epochs));
  case PAWL_MLR_INVERSE:
    return run->is.rate / (1 + done);
  default:
    return run->is.rate;
  }
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static void make_pairs(const struct mlr_run *run, struct mlr_batch *batch, size_t first, size_t count) {
  size_t classes = run->model->about.classes;
  for (size_t i = 0; i < count; i++) batch->rows[i] = mlr_row_of(run->rows, NULL, run->order[first + i]);
  for (size_t i = 0; i < count; i += MLR_BLOCK) {
    size_t some = count - i < MLR_BLOCK ? count - i : MLR_BLOCK;
    mlr_matrix_scores(&run->model->matrix, batch->rows + i, some, batch->block, batch->u + i * classes);
  }
  for (size_t i = 0; i < count; i++) {
    double *u = batch->u + i * classes;
    mlr_probabilities(classes, u, mlr_log_sum(classes, u), u);
    u[run->rows->classes[run->order[first + i]]] -= 1;
  }
}

uint64_t mlr_sgd_steps(const struct mlr_run *run) { return (run->rows->info.rows + run->is.batch - 1) / run->is.batch; }

size_t mlr_sgd_size(const struct mlr_run *run, uint64_t step) {
  uint64_t left = run->rows->info.rows - step * run->is.batch;
  return (size_t)(left < run->is.batch ? left : run->is.batch);
}

pawl_status mlr_sgd_step(struct mlr_run *run, struct mlr_batch *batch, uint64_t epoch, uint64_t step, size_t begin,
                         size_t end) {
  size_t first = (size_t)(step * run->is.batch) + begin;
  double rate = run->progress.rate = mlr_sgd_rate(run, epoch, step);
  double keep = 1 / (1 + rate * run->is.l2 / (double)run->rows->info.rows);
  make_pairs(run, batch, first, end - begin);
  const struct mlr_pairs pairs = {end - begin, run->model->about.classes, batch->u, batch->rows};
  return run->target.apply(run->target.context, &pairs, keep, -keep * rate / (double)mlr_sgd_size(run, step));
}

static pawl_status take_steps(struct mlr_run *run, uint64_t epoch, struct mlr_batch *batch) {
  pawl_status status = PAWL_OK;
  for (uint64_t step = 0; !status && step < mlr_sgd_steps(run) && !mlr_run_is_stopping(run); step++)
    status = mlr_sgd_step(run, batch, epoch, step, 0, mlr_sgd_size(run, step));
  mlr_matrix_settle(&run->model->matrix); /* a resumed run begins like this, too */
  return status;
}

pawl_status mlr_sgd_begin(struct mlr_run *run) {
  if (run->is.batch > run->rows->info.rows) run->is.batch = run->rows->info.rows;
  pawl_status status = run->is.rate > 0 ? PAWL_OK : choose_rate(run);
  run->result.rate = run->is.rate;
  run->result.batch = run->is.batch;
  return status;
}

static pawl_status pass(struct mlr_run *run, uint64_t epoch) {
  struct mlr_batch batch = {.rows = NULL};
  mlr_run_shuffle(run, epoch);
  pawl_status status = mlr_batch_init(&batch, run);
  if (!status) status = take_steps(run, epoch, &batch);
  mlr_batch_fini(&batch);
  return status;
}

/* The objective is convex, and curved at least as l2/2 |W|^2: it is at most |slope|^2 / (2 l2) above the optimum. */
pawl_status mlr_sgd_bound(struct mlr_run *run, bool is_last, double *gap_out) {
  const struct mlr_matrix *matrix = &run->model->matrix;
  struct mlr_matrix slope;
  *gap_out = (double)NAN;
  if (run->is.l2 == 0 || (!is_last && run->is.tolerance == 0)) return PAWL_OK;
  pawl_status status =
      mlr_matrix_init(&slope, matrix->classes, matrix->features, matrix->has_bias, run->rows->dense != NULL);
  if (!status) status = mlr_slope(matrix, run->rows, mlr_matrix_target(&slope));
  for (size_t i = 0; !status && i < mlr_matrix_size(matrix); i++) slope.at[i] += run->is.l2 * matrix->at[i];
  if (!status) *gap_out = mlr_matrix_square(&slope) / (2 * run->is.l2);
  mlr_matrix_fini(&slope);
  if (run->is.tolerance == 0) return PAWL_OK; /* the bound is not needed, and the model is worth more */
  return status ? apps_say(run->error, status, "no memory for the slope of all weights") : PAWL_OK;
}

const struct mlr_method mlr_sgd = {mlr_sgd_begin, pass, mlr_sgd_bound};
