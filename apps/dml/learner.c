/* A worker of a training: reads all rows, and computes the pairs of its part of each batch. See apps/common/shared_matrix. */
#include <math.h>

#include "apps/common/blas.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/shared_matrix/rows.h"
#include "apps/dml/options.h"
#include "apps/dml/shared.h"

struct dml_hand {
  struct dml_run run;
  struct pawl_mlr_rows *rows;
  struct matrix_share *share; /* of this step */
  bool has_order;
  uint64_t epoch; /* whose order the pairs have */
};

/* --- steps ------------------------------------------------------------------------------------------------ */

/* A target (pairs.h) that hands the pairs to the share. */
static pawl_status apply(void *context, const struct dml_pairs *pairs, double step) {
  struct dml_hand *hand = context;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < pairs->count; i++) {
    const struct pawl_factor_vector u = {pairs->u + i * pairs->rank, NULL, pairs->rank};
    const struct pawl_factor_vector v = {pairs->v + i * pairs->features, NULL, pairs->features};
    status = matrix_share_add(hand->share, &u, &v);
  }
  return status ? status : matrix_share_commit(hand->share, -step);
}

static pawl_status enter_epoch(struct dml_hand *hand, uint64_t epoch) {
  if (hand->has_order && hand->epoch == epoch) return PAWL_OK;
  if (!dml_run_has_points(&hand->run)) return apps_say(hand->run.error, PAWL_CORRUPT, "the list of pairs is damaged");
  dml_run_shuffle(&hand->run, epoch);
  hand->has_order = true;
  hand->epoch = epoch;
  return PAWL_OK;
}

static pawl_status step(void *state, struct matrix_share *share, uint64_t number) {
  struct dml_hand *hand = state;
  struct dml_run *run = &hand->run;
  uint64_t steps = dml_run_steps(run), place = number % steps;
  size_t begin, end;
  hand->share = share;
  run->rate = ldexp(run->is.rate, -(int)fmin((double)matrix_share_phase(share), 4000));
  matrix_share_part(share, dml_run_size(run, place), &begin, &end);
  pawl_status status = enter_epoch(hand, number / steps);
  if (!status) status = matrix_share_need(share, NULL, 0);
  return status ? status : dml_run_step(run, place, begin, end);
}

/* --- beginning -------------------------------------------------------------------------------------------- */

static bool read_terms(const struct matrix_spec *spec, struct dml_run *run, uint64_t *pairs_out) {
  struct pawl_metric_options *is = &run->is;
  json_t *rank, *batch, *seed, *similar, *pairs;
  uint64_t height, first;
  pawl_metric_options_init(is);
  if (json_unpack(spec->terms, "{s:o, s:F, s:F, s:F, s:F, s:o, s:F, s:o, s:o, s:o}", "rank", &rank, "margin",
                  &is->margin, "weight", &is->weight, "rate", &is->rate, "scale", &run->scale, "batch", &batch, "held",
                  &is->held_share, "seed", &seed, "similar", &similar, "pairs", &pairs))
    return false;
  if (!apps_json_wide_of(rank, &height) || !apps_json_wide_of(batch, &is->batch) ||
      !apps_json_wide_of(seed, &is->seed) || !apps_json_wide_of(similar, &first) ||
      !apps_json_wide_of(pairs, pairs_out) || height < 1 || height > UINT32_MAX || *pairs_out < 1 ||
      first > *pairs_out || !(run->scale > 0))
    return false;
  is->rank = (uint32_t)height;
  is->threads = spec->threads;
  run->pairs.similar = (size_t)first;
  return true;
}

static pawl_status prepare(struct dml_hand *hand, const struct matrix_spec *spec) {
  struct dml_run *run = &hand->run;
  uint64_t pairs = 0;
  if (!read_terms(spec, run, &pairs))
    return apps_say(run->error, PAWL_CORRUPT, "the options of the job are incomplete");
  const struct pawl_metric_options given = run->is;
  if (!dml_options_resolve(&given, &run->is, run->error)) return PAWL_INVALID;
  pawl_status status = matrix_rows_read(spec, &hand->rows, run->error);
  run->rows = hand->rows;
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  if (!status && apps_crew_create(run->is.threads, &run->crew))
    status = apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  if (!status) status = dml_run_read(run);
  if (!status) status = dml_run_reserve_pairs(run, (size_t)pairs);
  if (status) return status;
  run->pairs.count = (size_t)pairs;
  run->loss = (struct dml_loss){1 - run->is.margin, run->is.weight};
  run->target = (struct dml_target){apply, hand};
  if (run->weights.rank != spec->shape.rows || run->weights.features != spec->shape.columns || spec->shape.is_double)
    return apps_say(run->error, PAWL_MISMATCH, "the metric has another shape than the scheduler's");
  return dml_batch_init(&run->batch, (size_t)run->is.batch, &run->weights);
}

static void end(void *state) {
  struct dml_hand *hand = state;
  if (!hand) return;
  dml_run_fini(&hand->run);
  pawl_mlr_rows_destroy(hand->rows);
  apps_free(hand);
}

static pawl_status begin(const struct matrix_spec *spec, void **state_out, struct matrix_place *place_out,
                         char *error) {
  struct dml_hand *hand = apps_alloc_zero(1, sizeof *hand);
  if (!hand) return PAWL_NO_MEMORY;
  *state_out = hand;
  hand->run.error = error;
  pawl_status status = prepare(hand, spec);
  if (status) return status;
  *place_out = (struct matrix_place){.values = hand->run.weights.at,
                                     .extra = hand->run.pairs.at,
                                     .extra_size = hand->run.pairs.count * sizeof *hand->run.pairs.at};
  return PAWL_OK;
}

const struct matrix_learner dml_learner = {.app = "dml", .begin = begin, .step = step, .end = end};

pawl_status pawl_metric_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                             char error[PAWL_METRIC_TEXT]) {
  return matrix_work(&dml_learner, session, job, timeout_ns, error);
}
