/* The scheduler of a training by workers: steps of all workers instead of those of this process, and what they cost. */
#include "apps/dml/shared.h"

#include <math.h>

#include "apps/common/blas.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/shared_matrix/cost.h"
#include "apps/common/shared_matrix/options.h"
#include "apps/dml/options.h"

#define SAMPLE_ROWS 2000 /* of an estimate */
#define SAMPLE_STEPS 8

static uint32_t workers_of(const struct pawl_matrix_sharing *sharing) {
  return sharing->workers ? sharing->workers : 1;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static json_t *write_terms(const struct dml_run *run) {
  const struct pawl_metric_options *is = &run->is;
  return json_pack("{s:o, s:f, s:f, s:f, s:f, s:o, s:f, s:o, s:o, s:o}", "rank", apps_json_wide(is->rank), "margin",
                   is->margin, "weight", is->weight, "rate", is->rate, "scale", run->scale, "batch",
                   apps_json_wide(is->batch), "held", is->held_share, "seed", apps_json_wide(is->seed), "similar",
                   apps_json_wide(run->pairs.similar), "pairs", apps_json_wide(run->pairs.count));
}

static pawl_status prepare(struct dml_run *run) {
  struct dml_shared *shared = run->shared;
  struct matrix_scheduler *scheduler = &shared->scheduler;
  const struct pawl_matrix_sharing sharing = scheduler->sharing;
  struct pawl_session *session = scheduler->common.session;
  uint32_t workers = workers_of(&sharing);
  *scheduler = (struct matrix_scheduler){
      .common = {.error = run->error, .context = run->is.context, .stopping = run->is.stopping},
      .spec = {.app = "dml",
               .threads = run->is.threads > workers ? run->is.threads / workers : 1,
               .digest = pawl_mlr_rows_digest(run->rows),
               .shape = {run->weights.rank, run->weights.features, false}},
      .place = {.values = run->weights.at,
                .extra = run->pairs.at,
                .extra_size = run->pairs.count * sizeof *run->pairs.at,
                .extra_is_fixed = true},
      .must_hand_out = true};
  return matrix_scheduler_init(scheduler, session, &sharing, write_terms(run), shared->figures);
}

void dml_shared_note(const struct dml_run *run, struct pawl_metric_progress *progress) {
  const struct pawl_matrix_shared *figures = run->shared->figures;
  progress->update_bytes = figures->update_bytes;
  progress->work_s = figures->work_s;
  progress->wait_s = figures->wait_s;
}

pawl_status dml_shared_steps(struct dml_run *run) {
  struct dml_shared *shared = run->shared;
  uint64_t steps = dml_run_steps(run), made = 0;
  pawl_status status = shared->has_begun ? PAWL_OK : prepare(run);
  shared->has_begun = true;
  shared->scheduler.must_hand_out |= shared->undone != run->undone;
  shared->undone = run->undone;
  if (!status)
    status = matrix_scheduler_steps(&shared->scheduler, run->epoch * steps, steps, UINT32_MAX, run->undone, &made);
  run->is_stopping |= shared->scheduler.common.is_stopping;
  if (status == PAWL_DIVERGED && !*run->error) {
    run->weights.at[0] = NAN; /* the objective shows it */
    return PAWL_OK;
  }
  return status || made < steps ? status : matrix_scheduler_fetch(&shared->scheduler);
}

/* --- the interface ---------------------------------------------------------------------------------------- */

static pawl_status resolve(struct dml_run *run, const struct pawl_matrix_sharing *sharing,
                           const struct pawl_metric_options *options, struct pawl_matrix_sharing *is_out) {
  bool is_fine =
      matrix_sharing_resolve(sharing, is_out, run->error) && dml_options_resolve(options, &run->is, run->error);
  return is_fine ? PAWL_OK : PAWL_INVALID;
}

pawl_status pawl_metric_train_shared(struct pawl_session *session, const struct pawl_matrix_sharing *sharing,
                                     const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                     const struct pawl_metric_options *options, struct pawl_metric_model **model_out,
                                     struct pawl_metric_result *result_out, struct pawl_matrix_shared *shared_out,
                                     char error[PAWL_METRIC_TEXT]) {
  char room[PAWL_METRIC_TEXT];
  struct pawl_matrix_shared figures = {.each = NULL};
  struct dml_shared shared = {.figures = &figures};
  struct dml_run run = {.rows = rows, .test = test, .error = error ? error : room, .begun_ns = apps_now()};
  run.shared = &shared;
  run.error[0] = 0;
  if (!session) return apps_say(run.error, PAWL_INVALID, "session is NULL");
  pawl_status status = resolve(&run, sharing, options, &shared.scheduler.sharing);
  if (status) return status;
  shared.scheduler.common.session = session;
  status = dml_run_train(&run, model_out, result_out);
  matrix_scheduler_fini(&shared.scheduler);
  if (status)
    pawl_matrix_shared_fini(&figures);
  else
    *shared_out = figures;
  return status ? apps_fail_as_said(&(struct apps_run){.error = run.error}, status) : PAWL_OK;
}

/* --- bytes ------------------------------------------------------------------------------------------------ */

static uint64_t count_nonzeros(const float *values, size_t count) {
  uint64_t nonzeros = 0;
  for (size_t i = 0; i < count; i++) nonzeros += values[i] < 0 || values[i] > 0;
  return nonzeros;
}

/* A target that counts the bytes of pairs. */
static pawl_status count(void *context, const struct dml_pairs *pairs, double step) {
  struct matrix_sample *sample = context;
  (void)step;
  sample->pairs += pairs->count;
  for (size_t i = 0; i < pairs->count; i++) {
    uint64_t u = count_nonzeros(pairs->u + i * pairs->rank, pairs->rank);
    uint64_t v = count_nonzeros(pairs->v + i * pairs->features, pairs->features);
    sample->u_nonzeros += u;
    sample->v_nonzeros += v;
    sample->pair_bytes +=
        matrix_vector_bytes(&sample->shape, pairs->rank, u) + matrix_vector_bytes(&sample->shape, pairs->features, v);
  }
  return PAWL_OK;
}

/* The share of pairs that have a slope, of some steps of the sample, times the pairs of a step with all rows. */
static pawl_status count_steps(struct dml_run *run, uint64_t rows, struct matrix_sample *sample) {
  double all = (double)rows * (1 - run->is.held_share) * (double)run->pairs.count / (double)run->paired;
  uint64_t steps = dml_run_steps(run), looked = 0;
  pawl_status status = PAWL_OK;
  run->target = (struct dml_target){count, sample};
  dml_run_shuffle(run, 0);
  for (uint64_t step = 0; !status && step < steps && step < SAMPLE_STEPS; step++) {
    status = dml_run_step(run, step, 0, dml_run_size(run, step));
    looked += dml_run_size(run, step);
  }
  sample->pairs_per_step = all / ceil(all / (double)run->is.batch) * (double)sample->pairs / (double)looked;
  return status;
}

static pawl_status estimate(struct dml_run *run, size_t limit, struct matrix_sample *sample) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(run->rows, &info);
  run->limit = limit;
  (void)apps_blas_threads(1);
  if (apps_crew_create(run->is.threads, &run->crew)) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  pawl_status status = dml_run_prepare(run);
  sample->shape = (struct matrix_shape){run->weights.rank, run->weights.features, false};
  if (!status) status = count_steps(run, info.rows - info.unlabelled, sample);
  dml_run_fini(run);
  return status;
}

pawl_status pawl_metric_costs(const struct pawl_mlr_rows *rows, const struct pawl_metric_options *options,
                              const struct pawl_matrix_sharing *sharing, struct pawl_matrix_costs *costs_out,
                              char error[PAWL_METRIC_TEXT]) {
  struct pawl_matrix_sharing is;
  struct matrix_sample sample = {.pairs = 0};
  struct dml_run run = {.rows = rows, .error = error};
  pawl_status status = resolve(&run, sharing, options, &is);
  if (status) return status;
  run.is.resume = false;
  run.is.stage = NULL;
  struct dml_run again = run;
  status = estimate(&run, SAMPLE_ROWS, &sample);
  if (status == PAWL_INVALID)
    status = estimate(&again, SIZE_MAX, &sample); /* some rows of so many classes have no pairs */
  if (!status) *costs_out = matrix_costs(&sample, &is, workers_of(&is));
  return status;
}
