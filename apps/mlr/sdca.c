/* Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013; SFB 2.1). The dual of the objective is
 *
 *   D(q)  =  sum over rows of entropy(q_i)  -  l2/2 |W(q)|^2,    W(q)  =  1/l2  sum over rows of (y_i - q_i) x_i'
 *
 * where q_i is a distribution over the classes and y_i has 1 at the class of the row. D is at most P everywhere, and equal
 * at the optimum, where q_i is the softmax of the scores. A step finds the best q_i, given all others, and changes W by the
 * pair u = q_i before - q_i after, v = x_i. At the beginning q_i = y_i, so W = 0.
 */
#include <inttypes.h>
#include <math.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/mlr/run.h"
#include "apps/mlr/softmax.h"

#define ASK_EVERY 64    /* rows between two questions whether to stop */
#define DROPPED 1e-4    /* shares that sparse duals drop, all of a row together, relative to the tolerance */
#define UNCHANGED 1e-16 /* smaller changes of q are none */

static pawl_status no_memory(struct mlr_run *run) {
  return apps_say(run->error, PAWL_NO_MEMORY, "no memory for the duals of %" PRIu64 " rows; use sgd",
                  run->rows->info.rows);
}

static pawl_status begin(struct mlr_run *run) {
  size_t rows = (size_t)run->rows->info.rows;
  uint32_t classes = run->model->about.classes;
  double least = run->is.tolerance * DROPPED / classes;
  run->squares = apps_alloc_zero(rows, sizeof *run->squares);
  if (!run->squares || !mlr_duals_init(&run->duals, classes, rows, run->rows->classes, least)) return no_memory(run);
  for (size_t i = 0; i < rows; i++) run->squares[i] = mlr_row_square(mlr_row_of(run->rows, NULL, i)) + !run->is.no_bias;
  return PAWL_OK;
}

/* Memory of a step, for `classes` numbers each. */
struct sdca_memory {
  double *before, *scores, *q, *work;
};

static pawl_status step(struct mlr_run *run, size_t row, const struct sdca_memory *memory) {
  size_t classes = run->model->about.classes;
  struct mlr_row x = mlr_row_of(run->rows, NULL, row);
  double most = 0;
  mlr_matrix_scores(&run->model->matrix, &x, 1, NULL, memory->scores);
  mlr_duals_get(&run->duals, row, memory->before);
  mlr_best_dual(classes, memory->scores, memory->before, run->squares[row] / run->is.l2, memory->work, memory->q);
  if (!mlr_duals_set(&run->duals, row, memory->q)) return no_memory(run);
  for (size_t j = 0; j < classes; j++) { /* from here on `before` is u */
    memory->before[j] -= memory->q[j];
    most = fmax(most, fabs(memory->before[j]));
  }
  if (most < UNCHANGED) return PAWL_OK;
  const struct mlr_pairs pair = {1, classes, memory->before, &x};
  return run->target.apply(run->target.context, &pair, 1, 1 / run->is.l2);
}

static pawl_status pass(struct mlr_run *run, uint64_t epoch) {
  size_t rows = (size_t)run->rows->info.rows, classes = run->model->about.classes;
  double *memory = apps_alloc_zero(classes, 5 * sizeof *memory);
  pawl_status status = memory ? PAWL_OK : no_memory(run);
  const struct sdca_memory parts = {memory, memory + classes, memory + 2 * classes, memory + 3 * classes};
  mlr_run_shuffle(run, epoch);
  for (size_t i = 0; !status && i < rows; i++) {
    if (i % ASK_EVERY == 0 && mlr_run_is_stopping(run)) break;
    status = step(run, run->order[i], &parts);
  }
  apps_free(memory);
  return status;
}

/* Computes the weights from the duals anew, so that no error of rounding is left over from many steps. */
static pawl_status rebuild(struct mlr_run *run) {
  struct mlr_matrix *matrix = &run->model->matrix;
  size_t classes = matrix->classes;
  double *u = apps_alloc_zero(classes, sizeof *u);
  pawl_status status = u ? PAWL_OK : no_memory(run);
  for (size_t i = 0; !status && i < mlr_matrix_size(matrix); i++) matrix->at[i] = 0;
  for (size_t row = 0; !status && row < run->rows->info.rows; row++) {
    struct mlr_row x = mlr_row_of(run->rows, NULL, row);
    const struct mlr_pairs pair = {1, classes, u, &x};
    mlr_duals_get(&run->duals, row, u);
    for (size_t j = 0; j < classes; j++) u[j] = (run->rows->classes[row] == j) - u[j];
    status = run->target.apply(run->target.context, &pair, 1, 1 / run->is.l2);
  }
  apps_free(u);
  return status;
}

static double gap_of(const struct mlr_run *run) {
  double dual = mlr_duals_entropy(&run->duals) - run->is.l2 / 2 * mlr_matrix_square(&run->model->matrix);
  return fmax(run->objective - dual, 0);
}

static pawl_status bound(struct mlr_run *run, bool is_last, double *gap_out) {
  *gap_out = gap_of(run);
  bool is_near = *gap_out <= run->is.tolerance * run->objective;
  if (!is_last && !is_near) return PAWL_OK;
  pawl_status status = rebuild(run);
  if (!status) status = mlr_run_measure(run);
  if (!status) *gap_out = gap_of(run);
  return status;
}

const struct mlr_method mlr_sdca = {begin, pass, bound};
