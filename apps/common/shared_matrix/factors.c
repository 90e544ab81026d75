/* Pairs from worker to worker (SFB, sections 2 and 3): <pawl/factor.h>. The factors of a serial stay open over rounds. A
 * worker that comes when the others have begun them makes no step, and the next round has another serial.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/reduce.h"
#include "apps/common/shared_matrix/inside.h"

#define GIVE_UP (120 * PAWL_SECOND) /* for one commit */

static void close_factors(struct matrix_share *share) {
  pawl_factor_close(share->factors.factor);
  share->factors = (struct matrix_factors_state){.factor = NULL};
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static void choose_options(const struct matrix_spec *spec, struct pawl_factor_options *options) {
  pawl_factor_options_init(options);
  options->mode = spec->staleness == 0                   ? PAWL_FACTOR_BSP
                  : spec->staleness == PAWL_MATRIX_ASYNC ? PAWL_FACTOR_ASYNC
                                                         : PAWL_FACTOR_SSP;
  if (options->mode == PAWL_FACTOR_SSP) options->staleness = spec->staleness;
  options->graph = *spec->graph ? spec->graph : NULL;
  options->forward = spec->forward;
}

static pawl_status open_anew(struct matrix_share *share, const struct matrix_order *order) {
  const struct matrix_shape *shape = &share->spec->shape;
  struct pawl_factor_options options;
  char name[PAWL_FACTOR_NAME_MAX + 1];
  pawl_status status = apps_reduce_await(share->worker, order->number);
  if (status == PAWL_MISMATCH)
    return apps_say(share->error, status, "this worker was not started for factors; start it with --peers");
  if (status) return status;
  choose_options(share->spec, &options);
  snprintf(name, sizeof name, "matrix.%" PRIu64, order->serial);
  return pawl_factor_open(pawl_worker_peers(share->worker), name, share->place.values, shape->rows, shape->columns,
                          shape->is_double ? PAWL_F64 : PAWL_F32, &options, MATRIX_TIMEOUT, &share->factors.factor);
}

static void look_at_members(struct matrix_share *share, struct pawl_factor_state *state) {
  pawl_factor_state(share->factors.factor, state);
  share->size = state->size ? state->size : 1;
  share->rank = state->rank < share->size ? state->rank : 0;
}

static pawl_status open(struct matrix_share *share, const struct matrix_order *order, bool *is_late_out) {
  struct pawl_factor_state state;
  bool is_new = !share->factors.factor || share->factors.serial != order->serial;
  int64_t before = apps_now();
  if (is_new) close_factors(share);
  pawl_status status = is_new ? open_anew(share, order) : PAWL_OK;
  share->waited_s += apps_seconds_since(before);
  if (status) return status;
  share->factors.serial = order->serial;
  look_at_members(share, &state);
  *is_late_out = is_new && state.clock > 0;
  if (*is_late_out) close_factors(share);
  return PAWL_OK;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static pawl_status need(struct matrix_share *share, const uint64_t *rows, size_t count) {
  (void)share, (void)rows, (void)count; /* the whole matrix is here */
  return PAWL_OK;
}

static pawl_status add(struct matrix_share *share, const struct pawl_factor_vector *u,
                       const struct pawl_factor_vector *v) {
  return pawl_factor_add(share->factors.factor, u, v);
}

/* A commit or, with `flushes`, a flush, that ends early if the job ends. */
static pawl_status run(struct matrix_share *share, bool flushes, double scale) {
  struct pawl_factor *factor = share->factors.factor;
  struct pawl_factor_report report = {.waited_ns = 0};
  struct pawl_factor_state state;
  int64_t begun = apps_now();
  pawl_status status;
  do
    status = flushes ? pawl_factor_flush(factor, MATRIX_LOOK, &report)
                     : pawl_factor_commit(factor, scale, 0, MATRIX_LOOK, &report);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(share->worker) && apps_now() - begun < GIVE_UP);
  share->waited_s += (double)report.waited_ns * 1e-9;
  if (!status) look_at_members(share, &state);
  return status;
}

static pawl_status commit(struct matrix_share *share, double scale) { return run(share, false, scale); }

static pawl_status finish(struct matrix_share *share) {
  struct pawl_factor_state state;
  pawl_status status = run(share, true, 0);
  if (status) return status;
  pawl_factor_state(share->factors.factor, &state);
  share->update_bytes = state.sent + state.shown - share->factors.counted;
  share->factors.counted = state.sent + state.shown;
  return pawl_factor_hash(share->factors.factor, &share->hash);
}

static void quit(struct matrix_share *share, uint64_t left) {
  (void)left;
  close_factors(share); /* the others go on without it */
}

const struct matrix_way matrix_factors = {open, need, add, commit, finish, quit, close_factors};
