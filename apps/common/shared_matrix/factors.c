/* Pairs from worker to worker (SFB, sections 2 and 3): <pawl/factor.h>. The factors of a serial stay open over rounds. A
 * worker that comes when the others have begun them makes no step, and the next round has another serial.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/factors.h"
#include "apps/common/reduce.h"
#include "apps/common/shared_matrix/inside.h"

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

static pawl_status open(struct matrix_share *share, const struct matrix_order *order, bool *is_late_out) {
  struct pawl_factor_state state;
  bool is_new = !share->factors.factor || share->factors.serial != order->serial;
  int64_t before = apps_now();
  if (is_new) close_factors(share);
  pawl_status status = is_new ? open_anew(share, order) : PAWL_OK;
  share->waited_s += apps_seconds_since(before);
  if (status) return status;
  share->factors.serial = order->serial;
  apps_factor_place(share->factors.factor, &share->rank, &share->size);
  pawl_factor_state(share->factors.factor, &state);
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

static pawl_status commit(struct matrix_share *share, double scale) {
  pawl_status status = apps_factor_commit(share->worker, share->factors.factor, scale, &share->waited_s);
  if (!status) apps_factor_place(share->factors.factor, &share->rank, &share->size);
  return status;
}

static pawl_status finish(struct matrix_share *share) {
  pawl_status status = apps_factor_flush(share->worker, share->factors.factor, &share->waited_s);
  if (status) return status;
  uint64_t bytes = apps_factor_bytes(share->factors.factor);
  share->update_bytes = bytes - share->factors.counted;
  share->factors.counted = bytes;
  return pawl_factor_hash(share->factors.factor, &share->hash);
}

static void quit(struct matrix_share *share, uint64_t left) {
  (void)left;
  close_factors(share); /* the others go on without it */
}

const struct matrix_way matrix_factors = {open, need, add, commit, finish, quit, close_factors};
