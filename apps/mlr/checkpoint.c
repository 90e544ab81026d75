/* Checkpoints: the state of a training between two epochs. Random numbers have no state, because orders belong to epochs.
 * Behind the header (apps/common/model_arrays.h) are
 *
 *   weights     float64, as in a model
 *   counts      SDCA: u32, number of shares of each row
 *   classes     SDCA: u32, of these shares
 *   shares      SDCA: float64
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/common/resume.h"
#include "apps/mlr/run.h"

#define KIND "multiclass-checkpoint"

/* The options that must be the same. SDCA depends on neither the number of epochs nor the tolerance, so a run may go on
 * with more of the one or less of the other. */
static json_t *make_terms(const struct mlr_run *run) {
  const struct pawl_mlr_options *is = &run->is;
  json_t *terms = json_object();
  apps_term(terms, "--method", "%s", pawl_mlr_method_name(is->method));
  apps_term(terms, "--l2", "%.17g", is->l2);
  apps_term_flag(terms, "--no-bias", is->no_bias);
  apps_term(terms, "--seed", "%" PRIu64, is->seed);
  if (is->method == PAWL_MLR_SDCA) return terms;
  apps_term(terms, "--epochs", "%" PRIu64, is->epochs);
  apps_term(terms, "--batch", "%" PRIu64, is->batch);
  apps_term(terms, "--rate", "%.17g", run->rate_given);
  apps_term(terms, "--schedule", "%s",
            is->schedule == PAWL_MLR_COSINE     ? "cosine"
            : is->schedule == PAWL_MLR_CONSTANT ? "constant"
                                                : "inverse");
  return terms;
}

/* --- duals as arrays -------------------------------------------------------------------------------------- */

struct dual_arrays {
  uint32_t *counts, *classes;
  double *shares;
  size_t count; /* of all shares */
};

static void free_arrays(struct dual_arrays *arrays) {
  apps_free(arrays->counts);
  apps_free(arrays->classes);
  apps_free(arrays->shares);
}

static size_t count_shares(const struct mlr_duals *duals, uint32_t *counts) {
  size_t all = 0;
  for (size_t row = 0; row < duals->rows; row++) {
    if (!duals->dense) counts[row] = duals->list[row].count;
    for (size_t j = 0; duals->dense && j < duals->classes; j++)
      counts[row] += duals->dense[row * duals->classes + j] > 0;
    all += counts[row];
  }
  return all;
}

static bool pack(const struct mlr_duals *duals, struct dual_arrays *arrays) {
  double *q = apps_alloc_zero((size_t)duals->classes + 1, sizeof *q);
  size_t n = 0;
  arrays->counts = apps_alloc_zero(duals->rows + 1, sizeof *arrays->counts);
  if (arrays->counts) arrays->count = count_shares(duals, arrays->counts);
  arrays->classes = apps_alloc_zero(arrays->count + 1, sizeof *arrays->classes);
  arrays->shares = apps_alloc_zero(arrays->count + 1, sizeof *arrays->shares);
  bool is_fine = q && arrays->counts && arrays->classes && arrays->shares;
  for (size_t row = 0; is_fine && row < duals->rows; row++) {
    mlr_duals_get(duals, row, q);
    for (uint32_t j = 0; j < duals->classes; j++)
      if (q[j] > 0) {
        arrays->classes[n] = j;
        arrays->shares[n++] = q[j];
      }
  }
  apps_free(q);
  return is_fine;
}

/* False: the shares of a row are no distribution, or there is no memory. */
static bool unpack_row(struct mlr_duals *duals, size_t row, const uint32_t *classes, const double *shares,
                       uint32_t count, double *q) {
  double sum = 0;
  memset(q, 0, duals->classes * sizeof *q);
  for (uint32_t i = 0; i < count; i++) {
    if (classes[i] >= duals->classes || !(shares[i] > 0)) return false;
    q[classes[i]] = shares[i];
    sum += shares[i];
  }
  return fabs(sum - 1) < 1e-9 && mlr_duals_set(duals, row, q);
}

/* --- writing ---------------------------------------------------------------------------------------------- */

struct mlr_draft {
  const struct mlr_run *run;
  struct dual_arrays duals;
};

static pawl_status fill(FILE *file, const void *context) {
  const struct mlr_draft *draft = context;
  const struct mlr_run *run = draft->run;
  json_t *header = json_pack("{s:s, s:I, s:o, s:I, s:f, s:o}", "kind", KIND, "epoch", (json_int_t)run->epoch, "digest",
                             apps_json_wide(pawl_mlr_rows_digest(run->rows)), "shares", (json_int_t)draft->duals.count,
                             "rate", run->is.rate, "options", make_terms(run));
  const struct apps_array arrays[] = {
      {run->model->matrix.at, mlr_matrix_size(&run->model->matrix), 8},
      {draft->duals.counts, run->duals.rows, 4},
      {draft->duals.classes, draft->duals.count, 4},
      {draft->duals.shares, draft->duals.count, 8},
  };
  return apps_arrays_write(file, header, arrays, run->duals.rows ? 4 : 1);
}

pawl_status mlr_checkpoint_write(struct mlr_run *run) {
  struct mlr_draft draft = {.run = run};
  pawl_status status = apps_state_place(run->is.checkpoint, KIND, run->error);
  mlr_matrix_settle(&run->model->matrix);
  if (!status && run->duals.rows && !pack(&run->duals, &draft.duals))
    status = apps_say(run->error, PAWL_NO_MEMORY, "no memory for a checkpoint");
  if (!status) status = apps_model_write(run->is.checkpoint, fill, &draft, run->error);
  free_arrays(&draft.duals);
  return status;
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static pawl_status read_duals(struct mlr_run *run, struct apps_arrays *from, uint64_t count, char *why) {
  struct mlr_duals *duals = &run->duals;
  struct dual_arrays arrays = {.counts = NULL};
  double *q = apps_alloc_zero((size_t)duals->classes + 1, sizeof *q);
  pawl_status status = q ? PAWL_OK : apps_say(why, PAWL_NO_MEMORY, "out of memory");
  size_t at = 0;
  if (!status && !(arrays.counts = apps_arrays_next(from, duals->rows, 4, &status)))
    apps_arrays_lack(why, status, "duals");
  if (!status && !(arrays.classes = apps_arrays_next(from, count, 4, &status))) apps_arrays_lack(why, status, "duals");
  if (!status && !(arrays.shares = apps_arrays_next(from, count, 8, &status))) apps_arrays_lack(why, status, "duals");
  for (size_t row = 0; !status && row < duals->rows; row++) {
    uint32_t here = arrays.counts[row];
    if (here > count - at || !unpack_row(duals, row, arrays.classes + at, arrays.shares + at, here, q))
      status = apps_say(why, PAWL_CORRUPT, "the duals are damaged, or there is no memory for them");
    at += here;
  }
  apps_free(q);
  free_arrays(&arrays);
  return status;
}

static pawl_status read_all(struct mlr_run *run, struct apps_arrays *arrays, const json_t *header, char *why) {
  uint64_t epoch = 0, shares = 0;
  pawl_status status = apps_state_compare(header, make_terms(run), pawl_mlr_rows_digest(run->rows), why);
  if (!status && (!apps_model_count(header, "epoch", 0, INT64_MAX, &epoch) ||
                  !apps_model_count(header, "shares", 0, INT64_MAX, &shares)))
    status = apps_say(why, PAWL_CORRUPT, "invalid numbers in the header");
  if (!status && run->is.rate > 0 && run->rate_given == 0 &&
      !apps_state_chosen(header, "rate", 1e-30, 1e30, &run->is.rate))
    status = apps_say(why, PAWL_CORRUPT, "invalid learning rate in the header");
  run->result.rate = run->is.rate;
  if (!status) status = apps_arrays_into(arrays, run->model->matrix.at, mlr_matrix_size(&run->model->matrix), 8, why);
  if (!status && run->duals.rows) status = read_duals(run, arrays, shares, why);
  if (!status && (!apps_arrays_are_over(arrays) || !mlr_model_is_finite(run->model)))
    status = apps_say(why, PAWL_CORRUPT, "the checkpoint is damaged");
  if (!status) run->epoch = run->result.resumed = epoch;
  return status;
}

static pawl_status decode(const char *bytes, size_t size, void *context, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (!status) status = read_all(context, &arrays, header, why);
  json_decref(header);
  return status;
}

pawl_status mlr_checkpoint_read(struct mlr_run *run) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status = apps_model_read(run->is.checkpoint, decode, run, why);
  return status ? apps_say(run->error, status, "cannot resume: %.480s", why) : PAWL_OK;
}
