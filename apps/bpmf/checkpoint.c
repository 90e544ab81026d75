/* Checkpoints: the state of a training between two iterations. Random numbers have no state, because streams belong to
 * iterations. Behind the header (apps/common/model_arrays.h) are
 *
 *   rows        float32: of all users, then of all items, `rank` each
 *   samples     float32: those of the model so far
 *   tests       float64: sum of the predictions of each test rating
 *   training    float64: the same of each training rating, unless they are not measured
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/common/model_arrays.h"
#include "apps/bpmf/run.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/common/resume.h"

#define KIND "bpmf-checkpoint"

/* --- options ---------------------------------------------------------------------------------------------- */

/* The options that must be the same. */
static json_t *make_terms(const struct pawl_bpmf_options *is) {
  json_t *terms = json_object();
  apps_term(terms, "--rank", "%u", is->rank);
  apps_term(terms, "--iterations", "%" PRIu64, is->iterations);
  apps_term(terms, "--burn-in", "%" PRIu64, is->burn_in);
  apps_term(terms, "--alpha", "%.17g", is->alpha);
  apps_term(terms, "--keep", "%u", is->keep);
  apps_term(terms, "--seed", "%" PRIu64, is->seed);
  apps_term(terms, "--test-split", "%.17g", is->test_share);
  apps_term_flag(terms, "--no-train-rmse", is->no_train_rmse);
  return terms;
}

/* --- writing ---------------------------------------------------------------------------------------------- */

struct checkpoint_draft {
  const struct bpmf_run *run;
  const float *rows;
  size_t row_count; /* numbers of all rows */
};

static json_t *make_header(const struct bpmf_run *run) {
  return json_pack("{s:s, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", KIND, "iteration",
                   (json_int_t)run->sampler.iteration, "measured", (json_int_t)run->tests.samples, "samples",
                   (json_int_t)run->model->about.samples, "alpha", run->model->about.alpha, "digest",
                   apps_json_wide(run->data.digest), "options", make_terms(&run->is), "train_rmse",
                   apps_json_number(run->progress.train_rmse), "test_rmse", apps_json_number(run->progress.test_rmse),
                   "mean_train_rmse", apps_json_number(run->progress.mean_train_rmse), "mean_test_rmse",
                   apps_json_number(run->progress.mean_test_rmse));
}

static pawl_status fill(FILE *file, const void *context) {
  const struct checkpoint_draft *draft = context;
  const struct bpmf_run *run = draft->run;
  const struct apps_array arrays[] = {
      {draft->rows, draft->row_count, 4},
      {run->model->samples, run->model->about.samples * draft->row_count, 4},
      {run->tests.sums, (size_t)run->tests.count, 8},
      {run->training.sums, (size_t)run->training.count, 8},
  };
  return apps_arrays_write(file, make_header(run), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status bpmf_checkpoint_write(struct bpmf_run *run) {
  size_t count = bpmf_sample_size(&run->model->about);
  float *rows = apps_alloc_zero(count, sizeof *rows);
  locale_t before, c;
  if (!rows) return apps_say(run->error, PAWL_NO_MEMORY, "no memory for a checkpoint");
  pawl_status status = apps_state_place(run->is.checkpoint, KIND, run->error);
  bpmf_sampler_get(&run->sampler, rows);
  c = apps_locale_enter(&before);
  if (!status)
    status = apps_file_write(run->is.checkpoint, fill, &(struct checkpoint_draft){run, rows, count}, run->error);
  apps_locale_leave(c, before);
  apps_free(rows);
  return status;
}

/* --- reading ---------------------------------------------------------------------------------------------- */

/* What a header says of the state. */
struct checkpoint_state {
  uint64_t iteration, measured;
  uint32_t samples;
};

static pawl_status compare(struct bpmf_run *run, const json_t *header, char *why) {
  char text[APPS_RESUME_TEXT] = "";
  uint64_t digest = 0;
  json_t *terms = make_terms(&run->is);
  bool is_same = apps_terms_same(json_object_get(header, "options"), terms, text);
  json_decref(terms);
  if (!is_same) return apps_say(why, PAWL_MISMATCH, "this checkpoint belongs to another training: %s", text);
  if (!apps_json_wide_of(json_object_get(header, "digest"), &digest) || digest != run->data.digest)
    return apps_say(why, PAWL_MISMATCH, "this checkpoint belongs to a training with other ratings");
  return PAWL_OK;
}

static pawl_status read_state(struct bpmf_run *run, const json_t *header, struct checkpoint_state *state, char *why) {
  double *alpha = &run->model->about.alpha;
  if ((run->is.alpha == 0 && !apps_state_chosen(header, "alpha", DBL_MIN, DBL_MAX, alpha)) ||
      !apps_model_count(header, "iteration", 0, run->is.iterations, &state->iteration) ||
      !apps_model_count(header, "measured", 0, run->is.iterations, &state->measured) ||
      !apps_model_count32(header, "samples", run->room, &state->samples))
    return apps_say(why, PAWL_CORRUPT, "invalid numbers in the header");
  run->sampler.alpha = *alpha * run->data.scale * run->data.scale;
  run->progress.train_rmse = apps_json_number_of(json_object_get(header, "train_rmse"));
  run->progress.test_rmse = apps_json_number_of(json_object_get(header, "test_rmse"));
  run->progress.mean_train_rmse = apps_json_number_of(json_object_get(header, "mean_train_rmse"));
  run->progress.mean_test_rmse = apps_json_number_of(json_object_get(header, "mean_test_rmse"));
  return PAWL_OK;
}

static pawl_status read_rows(struct bpmf_run *run, struct apps_arrays *code, uint64_t iteration, char *why) {
  size_t count = bpmf_sample_size(&run->model->about);
  pawl_status status;
  float *rows = apps_arrays_next(code, count, 4, &status);
  if (!rows) return apps_say(why, status, "%s", pawl_status_text(status));
  if (apps_is_finite(rows, count))
    bpmf_sampler_set(&run->sampler, rows, iteration);
  else
    status = apps_say(why, PAWL_CORRUPT, "a number of a row is not finite");
  apps_free(rows);
  return status;
}

static pawl_status read_all(struct bpmf_run *run, struct apps_arrays *code, const json_t *header, char *why) {
  struct checkpoint_state state = {0};
  size_t size = bpmf_sample_size(&run->model->about);
  pawl_status status = compare(run, header, why);
  if (!status) status = read_state(run, header, &state, why);
  if (!status) status = read_rows(run, code, state.iteration, why);
  if (!status) status = apps_arrays_into(code, run->model->samples, state.samples * (uint64_t)size, 4, why);
  if (!status) status = apps_arrays_into(code, run->tests.sums, run->tests.count, 8, why);
  if (!status) status = apps_arrays_into(code, run->training.sums, run->training.count, 8, why);
  if (!status && (!apps_arrays_are_over(code) || !apps_is_finite(run->model->samples, state.samples * size)))
    status = apps_say(why, PAWL_CORRUPT, "the checkpoint is damaged");
  if (status) return status;
  run->model->about.samples = state.samples;
  run->tests.samples = run->training.samples = state.measured;
  run->shown = run->result.resumed = state.iteration;
  return PAWL_OK;
}

pawl_status bpmf_checkpoint_read(struct bpmf_run *run) {
  char why[PAWL_BPMF_TEXT] = "", *bytes;
  struct apps_arrays code;
  json_t *header = NULL;
  locale_t before, c;
  size_t size;
  pawl_status status = apps_file_read(run->is.checkpoint, &bytes, &size, run->error);
  if (status) return status;
  c = apps_locale_enter(&before);
  code = (struct apps_arrays){.bytes = bytes, .size = size};
  status = apps_arrays_open(&code, KIND, &header, why);
  if (!status) status = read_all(run, &code, header, why);
  apps_locale_leave(c, before);
  json_decref(header);
  apps_free(bytes);
  return status ? apps_say(run->error, status, "cannot resume from %s: %s", run->is.checkpoint, why) : PAWL_OK;
}
