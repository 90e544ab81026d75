#include "apps/common/factors.h"

#include <pawl/pawl.h>

#include "apps/common/clock.h"

#define LOOK PAWL_SECOND            /* between two checks whether the job has ended */
#define GIVE_UP (120 * PAWL_SECOND) /* for one commit */

static pawl_status run(struct pawl_worker *worker, struct pawl_factor *factor, bool flushes, double scale,
                       double *waited_s) {
  struct pawl_factor_report report = {.waited_ns = 0};
  int64_t begun = apps_now();
  pawl_status status;
  do status = flushes ? pawl_factor_flush(factor, LOOK, &report) : pawl_factor_commit(factor, scale, 0, LOOK, &report);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(worker) && apps_now() - begun < GIVE_UP);
  *waited_s += (double)report.waited_ns * 1e-9;
  return status;
}

pawl_status apps_factor_commit(struct pawl_worker *worker, struct pawl_factor *factor, double scale, double *waited_s) {
  return run(worker, factor, false, scale, waited_s);
}

pawl_status apps_factor_flush(struct pawl_worker *worker, struct pawl_factor *factor, double *waited_s) {
  return run(worker, factor, true, 0, waited_s);
}

void apps_factor_place(const struct pawl_factor *factor, uint32_t *rank_out, uint32_t *size_out) {
  struct pawl_factor_state state;
  pawl_factor_state(factor, &state);
  *size_out = state.size ? state.size : 1;
  *rank_out = state.rank < *size_out ? state.rank : 0;
}

uint64_t apps_factor_bytes(const struct pawl_factor *factor) {
  struct pawl_factor_state state;
  pawl_factor_state(factor, &state);
  return state.sent + state.shown;
}
