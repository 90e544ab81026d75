/* The rule `barrier`.
 *
 * A session is in a group from the answer to its ENTER until it is gone. An AWAIT that began meanwhile ends
 * only after the session has begun the tick. A client sends a tick once all its earlier pushes are answered;
 * so at the end of the AWAIT these pushes have taken effect. */
#include "sim/history/inside.h"

static bool is_of(const struct call *call, enum pwi_history_verb verb, const struct call *await) {
  return call->verb == verb && call->name && strcmp(call->name, await->name) == 0;
}

/* The last tick up to that of the AWAIT that a session began before the AWAIT ended; NULL: none. */
static const struct call *last_tick(const struct pwi_history *history, uint32_t session, const struct call *await) {
  const struct call *last = NULL;
  for (size_t i = 0; i < history->call_count && history->calls[i].began < await->ended; i++) {
    const struct call *call = &history->calls[i];
    bool has_failed = call->ended != NEVER && call->status;
    if (call->session == session && is_of(call, PWI_HISTORY_TICK, await) && call->tick <= await->tick && !has_failed)
      last = call;
  }
  return last;
}

static void note_pushes(struct pwi_history *history, const struct call *tick, uint64_t effective) {
  for (size_t i = 0; i < history->call_count && history->calls[i].began < tick->began; i++) {
    struct call *call = &history->calls[i];
    if (call->session == tick->session && call->pushed && call->effective > effective) call->effective = effective;
  }
}

static bool check_await(struct pwi_history *history, const struct history_report *report, const struct call *await) {
  for (size_t i = 0; i < history->call_count; i++) {
    const struct call *enter = &history->calls[i];
    if (!is_of(enter, PWI_HISTORY_ENTER, await) || enter->ended >= await->began || enter->status) continue;
    if (history->sessions[enter->session].gone < await->ended) continue;
    const struct call *tick = last_tick(history, enter->session, await);
    if (enter->tick < await->tick && (!tick || tick->tick < await->tick))
      return pwi_history_broken(report, "barrier", NULL, NULL, await, "ended before a tick of the member that made the",
                                enter);
    if (tick) note_pushes(history, tick, await->ended);
  }
  return true;
}

bool pwi_history_check_barriers(struct pwi_history *history, const struct history_report *report) {
  for (size_t i = 0; i < history->call_count; i++) {
    const struct call *call = &history->calls[i];
    bool has_passed = call->verb == PWI_HISTORY_AWAIT && call->ended != NEVER && call->status == PAWL_OK;
    if (has_passed && !check_await(history, report, call)) return false;
  }
  return true;
}
