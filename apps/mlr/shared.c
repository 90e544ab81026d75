/* The scheduler of a training by workers: a method (run.h) whose passes are steps of all workers. Between two passes it has
 * the weights, which train.c measures and saves as those of one process. */
#include "apps/mlr/shared.h"

#include <math.h>
#include <stdlib.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/mlr/options.h"
#include "apps/mlr/sgd.h"
#include "apps/common/shared_matrix/cost.h"
#include "apps/common/shared_matrix/options.h"

#define SHRINKS 460 /* by a factor of e: so often the factor of the weights may shrink in a round */
#define SAMPLE 8    /* steps whose pairs are counted */

static struct matrix_shape shape_of(const struct pawl_mlr_rows *rows, bool no_bias) {
  return (struct matrix_shape){(size_t)rows->info.features + !no_bias, rows->info.classes, true};
}

/* --- the scheduler ---------------------------------------------------------------------------------------- */

static uint32_t workers_of(const struct pawl_matrix_sharing *sharing) {
  return sharing->workers ? sharing->workers : 1;
}

/* SDCA: steps of a pass over all rows. */
static uint64_t pass_steps(const struct mlr_run *run, const struct pawl_matrix_sharing *sharing) {
  uint64_t each = (uint64_t)MLR_SDCA_ROWS * workers_of(sharing);
  return (run->rows->info.rows + each - 1) / each;
}

static json_t *write_terms(const struct mlr_run *run) {
  const struct pawl_mlr_options *is = &run->is;
  uint64_t steps = pass_steps(run, &run->shared->scheduler.sharing);
  return json_pack("{s:i, s:f, s:b, s:o, s:o, s:f, s:i, s:o, s:f, s:o}", "method", (int)is->method, "l2", is->l2,
                   "no_bias", (int)is->no_bias, "epochs", apps_json_wide(is->epochs), "batch",
                   apps_json_wide(is->batch), "rate", is->rate, "schedule", (int)is->schedule, "seed",
                   apps_json_wide(is->seed), "tolerance", is->tolerance, "steps", apps_json_wide(steps));
}

/* The rate is known. */
static pawl_status prepare(struct mlr_run *run) {
  struct mlr_shared *shared = run->shared;
  struct matrix_scheduler *scheduler = &shared->scheduler;
  const struct pawl_matrix_sharing sharing = scheduler->sharing;
  struct pawl_session *session = scheduler->common.session;
  uint32_t workers = workers_of(&sharing);
  json_t *terms = write_terms(run);
  *scheduler = (struct matrix_scheduler){
      .common = {.error = run->error, .context = run->is.context, .stopping = run->is.stopping},
      .spec = {.app = "mlr",
               .threads = run->is.threads > workers ? run->is.threads / workers : 1,
               .digest = pawl_mlr_rows_digest(run->rows),
               .shape = shape_of(run->rows, run->is.no_bias),
               .is_sparse = !run->rows->dense},
      .place = {.values = run->model->matrix.at},
      .must_hand_out = run->epoch > 0};
  return matrix_scheduler_init(scheduler, session, &sharing, terms, shared->figures);
}

static void note(struct mlr_run *run) {
  const struct pawl_matrix_shared *figures = run->shared->figures;
  run->progress.update_bytes = figures->update_bytes;
  run->progress.work_s = figures->work_s;
  run->progress.wait_s = figures->wait_s;
  run->is_stopping |= run->shared->scheduler.common.is_stopping;
}

/* Steps so that the factor of the weights stays a number. */
static uint64_t most_steps(const struct mlr_run *run) {
  double shrinks = log1p(run->is.rate * run->is.l2 / (double)run->rows->info.rows);
  return shrinks * (double)UINT32_MAX > SHRINKS ? (uint64_t)fmax(SHRINKS / shrinks, 1) : UINT32_MAX;
}

/* Steps, and then the weights. */
static pawl_status take_steps(struct mlr_run *run, uint64_t first, uint64_t count, uint64_t most, uint64_t phase,
                              uint64_t *made_out) {
  struct mlr_shared *shared = run->shared;
  pawl_status status = shared->has_begun ? PAWL_OK : prepare(run);
  *made_out = 0;
  shared->has_begun = true;
  if (!status) status = matrix_scheduler_steps(&shared->scheduler, first, count, most, phase, made_out);
  note(run);
  if (status == PAWL_DIVERGED && !*run->error) return mlr_run_diverged(run);
  return status || *made_out == 0 ? status : matrix_scheduler_fetch(&shared->scheduler);
}

static pawl_status pass(struct mlr_run *run, uint64_t epoch) {
  uint64_t steps = mlr_sgd_steps(run), made;
  pawl_status status = take_steps(run, epoch * steps, steps, most_steps(run), 0, &made);
  if (made > 0) run->progress.rate = mlr_sgd_rate(run, epoch, made - 1);
  return status;
}

const struct mlr_method mlr_sgd_shared = {mlr_sgd_begin, pass, mlr_sgd_bound};

/* --- SDCA ------------------------------------------------------------------------------------------------- */

/* A pass over all rows, or one that rebuilds the weights from the duals. */
static pawl_status pass_duals(struct mlr_run *run, bool rebuilds) {
  struct mlr_shared *shared = run->shared;
  uint64_t steps = pass_steps(run, &shared->scheduler.sharing), made;
  if (rebuilds) shared->scheduler.must_clear = true;
  pawl_status status = take_steps(run, shared->step, steps, UINT32_MAX, 2 * shared->era + rebuilds, &made);
  shared->step += steps;
  shared->has_all = made == steps && shared->scheduler.is_whole && shared->scheduler.changes == shared->changes;
  return status;
}

/* Workers have come or gone: they divide the rows anew. */
static pawl_status begin_era(struct mlr_run *run) {
  struct mlr_shared *shared = run->shared;
  pawl_status status = PAWL_OK;
  while (!status && shared->scheduler.changes != shared->changes && !run->is_stopping) {
    shared->changes = shared->scheduler.changes;
    shared->era = shared->step;
    status = pass_duals(run, true);
  }
  return status;
}

/* The first era begins with weights of 0, in the first round; the workers that come for it are no change. */
static pawl_status pass_sdca(struct mlr_run *run, uint64_t epoch) {
  struct mlr_shared *shared = run->shared;
  (void)epoch;
  pawl_status status = shared->step > 0 ? begin_era(run) : PAWL_OK;
  return status || run->is_stopping ? status : pass_duals(run, false);
}

static double gap_of(const struct mlr_run *run) {
  double entropy = run->shared->scheduler.reports;
  if (!run->shared->has_all) return (double)NAN;
  return fmax(run->objective - entropy + run->is.l2 / 2 * mlr_matrix_square(&run->model->matrix), 0);
}

/* As in one process: a gap that is small enough counts when the weights were computed from the duals anew. */
static pawl_status bound_sdca(struct mlr_run *run, bool is_last, double *gap_out) {
  *gap_out = gap_of(run);
  if (!(*gap_out <= run->is.tolerance * run->objective) && !(is_last && run->shared->has_all)) return PAWL_OK;
  if (run->is_stopping) return PAWL_OK;
  pawl_status status = pass_duals(run, true);
  if (!status) status = mlr_run_measure(run);
  if (!status) *gap_out = gap_of(run);
  return status;
}

static pawl_status begin_sdca(struct mlr_run *run) {
  (void)run; /* workers have the duals */
  return PAWL_OK;
}

const struct mlr_method mlr_sdca_shared = {begin_sdca, pass_sdca, bound_sdca};

/* --- the interface ---------------------------------------------------------------------------------------- */

static pawl_status resolve(struct mlr_run *run, const struct pawl_matrix_sharing *sharing,
                           const struct pawl_mlr_options *options, struct pawl_matrix_sharing *is_out) {
  if (!matrix_sharing_resolve(sharing, is_out, run->error)) return PAWL_INVALID;
  if (!mlr_options_resolve(options, &run->is, run->error)) return PAWL_INVALID;
  if (run->is.method == PAWL_MLR_SGD) return PAWL_OK;
  if (run->is.checkpoint)
    return apps_say(run->error, PAWL_INVALID,
                    "sdca by workers has no checkpoints, because each keeps the duals of its rows; "
                    "use sgd, or one process");
  if (is_out->staleness == 0 && !is_out->graph) return PAWL_OK;
  return apps_say(run->error, PAWL_INVALID,
                  "sdca needs the weights after each step: it has no staleness and no graph; "
                  "use sgd");
}

pawl_status pawl_mlr_train_shared(struct pawl_session *session, const struct pawl_matrix_sharing *sharing,
                                  const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                  const struct pawl_mlr_options *options, struct pawl_mlr_model **model_out,
                                  struct pawl_mlr_result *result_out, struct pawl_matrix_shared *shared_out,
                                  char error[PAWL_MLR_TEXT]) {
  char room[PAWL_MLR_TEXT];
  struct pawl_matrix_shared figures = {.each = NULL};
  struct mlr_shared shared = {.figures = &figures};
  struct mlr_run run = {.rows = rows, .test = test, .error = error ? error : room, .begun_ns = apps_now()};
  run.shared = &shared;
  run.error[0] = 0;
  if (!session) return apps_say(run.error, PAWL_INVALID, "session is NULL");
  pawl_status status = resolve(&run, sharing, options, &shared.scheduler.sharing);
  if (status) return status;
  run.method = run.is.method == PAWL_MLR_SGD ? &mlr_sgd_shared : &mlr_sdca_shared;
  shared.scheduler.common.session = session;
  status = mlr_run_train(&run, model_out, result_out);
  matrix_scheduler_fini(&shared.scheduler);
  if (status)
    pawl_matrix_shared_fini(&figures);
  else
    *shared_out = figures;
  return status ? apps_fail_as_said(&(struct apps_run){.error = run.error}, status) : PAWL_OK;
}

/* --- bytes ------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
  uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
  return one < other ? -1 : one > other;
}

/* Different features of rows [begin, end) of the order, with the constant. `list` has room for all of them. */
static uint64_t count_features(const struct mlr_run *run, size_t begin, size_t end, uint32_t *list) {
  size_t count = 0;
  uint64_t different = !run->is.no_bias && end > begin;
  for (size_t i = begin; i < end; i++) {
    struct mlr_row row = mlr_row_of(run->rows, NULL, run->order[i]);
    for (size_t n = 0; n < row.count; n++) list[count++] = row.at[n];
  }
  if (count > 0) qsort(list, count, sizeof *list, by_value);
  for (size_t i = 0; i < count; i++) different += i == 0 || list[i] != list[i - 1];
  return different;
}

static void add_pair(const struct mlr_run *run, uint32_t number, struct matrix_sample *sample) {
  struct mlr_row row = mlr_row_of(run->rows, NULL, number);
  uint64_t nonzeros = !run->is.no_bias;
  for (size_t n = 0; n < row.count; n++) nonzeros += row.values[n] != 0;
  sample->pairs++; /* no error of a class is 0 */
  sample->u_nonzeros += nonzeros;
  sample->v_nonzeros += sample->shape.columns;
  sample->pair_bytes += matrix_vector_bytes(&sample->shape, sample->shape.rows, nonzeros) +
                        matrix_vector_bytes(&sample->shape, sample->shape.columns, sample->shape.columns);
}

static void add_step(const struct mlr_run *run, uint64_t step, uint32_t workers, uint32_t *list,
                     struct matrix_sample *sample) {
  size_t first = (size_t)(step * run->is.batch), size = mlr_sgd_size(run, step);
  for (size_t i = 0; i < size; i++) add_pair(run, run->order[first + i], sample);
  for (uint32_t rank = 0; rank < workers && sample->is_sparse; rank++)
    sample->rows += count_features(run, first + size * rank / workers, first + size * (rank + 1) / workers, list);
}

pawl_status pawl_mlr_costs(const struct pawl_mlr_rows *rows, const struct pawl_mlr_options *options,
                           const struct pawl_matrix_sharing *sharing, struct pawl_matrix_costs *costs_out,
                           char error[PAWL_MLR_TEXT]) {
  struct pawl_matrix_sharing is;
  struct mlr_run run = {.rows = rows, .error = error};
  pawl_status status = resolve(&run, sharing, options, &is);
  if (status) return status;
  if (rows->info.rows == 0) return apps_say(error, PAWL_INVALID, "there are no rows to train on");
  uint32_t workers = workers_of(&is);
  if (run.is.method == PAWL_MLR_SDCA) run.is.batch = (uint64_t)MLR_SDCA_ROWS * workers;
  if (run.is.batch > rows->info.rows) run.is.batch = rows->info.rows;
  struct matrix_sample sample = {.shape = shape_of(rows, run.is.no_bias), .is_sparse = !rows->dense};
  uint64_t steps = mlr_sgd_steps(&run), every = steps / SAMPLE + 1;
  run.order = apps_alloc_zero((size_t)rows->info.rows, sizeof *run.order);
  uint32_t *list = apps_alloc_zero((size_t)rows->info.entries + 1, sizeof *list);
  if (run.order && list) {
    mlr_run_shuffle(&run, 0);
    for (uint64_t step = 0; step < steps; step += every) add_step(&run, step, workers, list, &sample);
    sample.pairs_per_step = (double)rows->info.rows / (double)steps;
    *costs_out = matrix_costs(&sample, &is, workers);
  } else {
    status = apps_say(error, PAWL_NO_MEMORY, "out of memory");
  }
  apps_free(run.order);
  apps_free(list);
  return status;
}
