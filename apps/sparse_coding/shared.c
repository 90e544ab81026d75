/* The scheduler of a training by workers: steps of all workers instead of those of this process, and what they cost. */
#include "apps/sparse_coding/shared.h"

#include <math.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/shared_matrix/cost.h"
#include "apps/common/shared_matrix/options.h"
#include "apps/sparse_coding/options.h"

#define SAMPLE_ROWS 1000 /* of an estimate */

static uint32_t workers_of(const struct pawl_matrix_sharing *sharing) {
  return sharing->workers ? sharing->workers : 1;
}

/* --- the matrix ------------------------------------------------------------------------------------------- */

static void pack(const struct sparse_sums *sums, double *matrix) {
  size_t features = sums->features, atoms = sums->atoms;
  for (size_t j = 0; j < atoms; j++, matrix += features + atoms) {
    memcpy(matrix, sums->c + j * features, features * sizeof *matrix);
    memcpy(matrix + features, sums->a + j * atoms, atoms * sizeof *matrix);
  }
}

void sparse_unpack(struct sparse_sums *sums, const double *matrix, double factor) {
  size_t features = sums->features, atoms = sums->atoms;
  for (size_t j = 0; j < atoms; j++, matrix += features + atoms) {
    for (size_t d = 0; d < features; d++) sums->c[j * features + d] = factor * matrix[d];
    for (size_t k = 0; k < atoms; k++) sums->a[j * atoms + k] = factor * matrix[features + k];
  }
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static json_t *write_terms(const struct sparse_run *run) {
  const struct pawl_sparse_options *is = &run->is;
  return json_pack("{s:o, s:f, s:b, s:b, s:f, s:o, s:o, s:o, s:o, s:o}", "atoms", apps_json_wide(is->atoms), "lambda",
                   is->lambda, "center", (int)is->center, "unit_rows", (int)is->unit_rows, "code_tolerance",
                   is->code_tolerance, "seed", apps_json_wide(is->seed), "patch",
                   apps_json_wide(run->rows->info.shape.patch), "drawn", apps_json_wide(run->rows->drawn), "draw",
                   apps_json_wide(run->rows->seed), "batch", apps_json_wide(is->batch));
}

static pawl_status prepare(struct sparse_run *run) {
  struct sparse_shared *shared = run->shared;
  struct matrix_scheduler *scheduler = &shared->scheduler;
  const struct pawl_matrix_sharing sharing = scheduler->sharing;
  struct pawl_session *session = scheduler->common.session;
  uint32_t workers = workers_of(&sharing);
  const struct matrix_shape shape = sparse_shape(run);
  shared->matrix = apps_alloc_zero(shape.rows, shape.columns * sizeof *shared->matrix);
  if (!shared->matrix) return apps_say(run->error, PAWL_NO_MEMORY, "no memory for the sums of %zu atoms", shape.rows);
  *scheduler = (struct matrix_scheduler){
      .common = {.error = run->error, .context = run->is.context, .stopping = run->is.stopping},
      .spec = {.app = "sparse",
               .threads = run->is.threads > workers ? run->is.threads / workers : 1,
               .digest = sparse_rows_digest(run->rows),
               .shape = shape},
      .place = {.values = shared->matrix,
                .extra = run->dictionary.at,
                .extra_size = run->dictionary.atoms * run->dictionary.features * sizeof *run->dictionary.at}};
  return matrix_scheduler_init(scheduler, session, &sharing, write_terms(run), shared->figures);
}

void sparse_shared_note(const struct sparse_run *run, struct pawl_sparse_progress *progress) {
  const struct pawl_matrix_shared *figures = run->shared->figures;
  progress->update_bytes = figures->update_bytes;
  progress->work_s = figures->work_s;
  progress->wait_s = figures->wait_s;
}

/* The sums and the dictionary, which follows the last step here: workers compute it before they code. */
static pawl_status fetch(struct sparse_run *run) {
  pawl_status status = matrix_scheduler_fetch(&run->shared->scheduler);
  if (status) return status;
  sparse_unpack(&run->sums, run->shared->matrix, 1);
  sparse_dictionary_step(&run->dictionary, &run->sums, run->scratch);
  return PAWL_OK;
}

pawl_status sparse_shared_steps(struct sparse_run *run) {
  struct sparse_shared *shared = run->shared;
  uint64_t made = 0, steps = sparse_run_steps(run), phase = run->epoch << 32 | run->batch;
  pawl_status status = shared->has_begun ? PAWL_OK : prepare(run);
  if (status) return status;
  shared->has_begun = true;
  if (run->epoch == 0) sparse_sums_clear(&run->sums);
  pack(&run->sums, shared->matrix);
  shared->scheduler.must_hand_out = true;
  status = matrix_scheduler_steps(&shared->scheduler, 0, steps, UINT32_MAX, phase, &made);
  run->is_stopping |= shared->scheduler.common.is_stopping;
  run->coded += made < steps ? made * run->batch : run->rows->info.rows;
  if (status == PAWL_DIVERGED && !*run->error) return sparse_run_diverged(run);
  return status || made == 0 ? status : fetch(run);
}

/* --- the interface ---------------------------------------------------------------------------------------- */

static pawl_status resolve(struct sparse_run *run, const struct pawl_matrix_sharing *sharing,
                           const struct pawl_sparse_options *options, struct pawl_matrix_sharing *is_out) {
  bool is_fine =
      matrix_sharing_resolve(sharing, is_out, run->error) && sparse_options_resolve(options, &run->is, run->error);
  return is_fine ? PAWL_OK : PAWL_INVALID;
}

pawl_status pawl_sparse_train_shared(struct pawl_session *session, const struct pawl_matrix_sharing *sharing,
                                     const struct pawl_sparse_rows *rows, const struct pawl_sparse_rows *test,
                                     const struct pawl_sparse_options *options, struct pawl_sparse_model **model_out,
                                     struct pawl_sparse_result *result_out, struct pawl_matrix_shared *shared_out,
                                     char error[PAWL_SPARSE_TEXT]) {
  char room[PAWL_SPARSE_TEXT];
  struct pawl_matrix_shared figures = {.each = NULL};
  struct sparse_shared shared = {.figures = &figures};
  struct sparse_run run = {.rows = rows, .test = test, .error = error ? error : room, .begun_ns = apps_now()};
  run.shared = &shared;
  run.error[0] = 0;
  if (!session) return apps_say(run.error, PAWL_INVALID, "session is NULL");
  pawl_status status = resolve(&run, sharing, options, &shared.scheduler.sharing);
  if (status) return status;
  shared.scheduler.common.session = session;
  status = sparse_run_train(&run, model_out, result_out);
  matrix_scheduler_fini(&shared.scheduler);
  apps_free(shared.matrix);
  if (status)
    pawl_matrix_shared_fini(&figures);
  else
    *shared_out = figures;
  return status ? apps_fail_as_said(&(struct apps_run){.error = run.error}, status) : PAWL_OK;
}

/* --- bytes ------------------------------------------------------------------------------------------------ */

static uint64_t count_nonzeros(const double *values, size_t count) {
  uint64_t nonzeros = 0;
  for (size_t i = 0; i < count; i++) nonzeros += values[i] < 0 || values[i] > 0;
  return nonzeros;
}

/* A target that counts the bytes of pairs. */
static pawl_status count(void *context, const struct sparse_pairs *pairs, double keep) {
  struct matrix_sample *sample = context;
  (void)keep;
  for (size_t i = 0; i < pairs->count; i++) {
    uint64_t code = count_nonzeros(pairs->a + i * pairs->atoms, pairs->atoms);
    uint64_t row = count_nonzeros(pairs->x + i * pairs->features, pairs->features);
    if (code == 0) continue; /* it is not sent */
    sample->pairs++;
    sample->u_nonzeros += code;
    sample->v_nonzeros += row + code;
    sample->pair_bytes += matrix_vector_bytes(&sample->shape, pairs->atoms, code) +
                          matrix_vector_bytes(&sample->shape, pairs->features + pairs->atoms, row + code);
  }
  return PAWL_OK;
}

static pawl_status estimate(struct sparse_run *run, struct matrix_sample *sample) {
  size_t rows = (size_t)run->rows->info.rows, looked = 0;
  pawl_status status = sparse_run_prepare(run);
  if (!status) status = sparse_run_draw_atoms(run);
  if (status) return status;
  sample->shape = sparse_shape(run);
  run->target = (struct sparse_target){count, sample};
  sparse_run_shuffle(run, 0);
  for (uint64_t step = 0; !status && looked < SAMPLE_ROWS && step < sparse_run_steps(run); step++) {
    size_t size = sparse_run_size(run, step), some = size < SAMPLE_ROWS - looked ? size : SAMPLE_ROWS - looked;
    status = sparse_run_code(run, step, 0, some, 1);
    looked += some;
  }
  if (status == PAWL_CANCELLED) return apps_say(run->error, status, "interrupted before the first step");
  sample->pairs_per_step = (double)rows / (double)sparse_run_steps(run) * (double)sample->pairs / (double)looked;
  return status;
}

pawl_status pawl_sparse_costs(const struct pawl_sparse_rows *rows, const struct pawl_sparse_options *options,
                              const struct pawl_matrix_sharing *sharing, struct pawl_matrix_costs *costs_out,
                              char error[PAWL_SPARSE_TEXT]) {
  struct pawl_matrix_sharing is;
  struct matrix_sample sample = {.pairs = 0};
  struct sparse_run run = {.rows = rows, .error = error};
  pawl_status status = resolve(&run, sharing, options, &is);
  if (status) return status;
  status = estimate(&run, &sample);
  if (!status) *costs_out = matrix_costs(&sample, &is, workers_of(&is));
  sparse_run_fini(&run);
  return status;
}
