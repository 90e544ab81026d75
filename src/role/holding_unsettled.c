/* What is here of retired senders that they may not have been told of. */
#include "role/holding_inside.h"

static bool has_later(const struct pwi_clock *clock, struct pwi_sender sender, uint64_t settled) {
  if (!pwi_clock_has(clock, sender)) return false;
  for (size_t i = 0; i < clock->held.count && settled > 0; i++) {
    uint64_t latest;
    if (pwi_clock_max(clock, sender, clock->held.ranges[i], &latest) || latest > settled) return true;
  }
  return settled == 0;
}

/* Refusals have used up their number, so clocks tell of them too. */
static bool is_unsettled(const struct pwi_holding *holding, struct pwi_sender sender, uint64_t settled) {
  for (size_t i = 0; i < holding->vector_count; i++) {
    const struct pwi_held *vector = holding->vectors[i];
    if (has_later(&vector->clocks[PWI_TASKS], sender, settled) ||
        has_later(&vector->staged[PWI_TASKS], sender, settled))
      return true;
  }
  return pwi_together_has_sender(holding, sender);
}

size_t pwi_holding_unsettled(const struct pwi_holding *holding, const struct pwi_settle *senders, size_t count,
                             uint64_t *unsettled) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    struct pwi_sender sender = {senders[i].sender};
    bool is_known = holding->roster && pwi_roster_is_retired(holding->roster, sender);
    if (!is_known || is_unsettled(holding, sender, senders[i].settled)) unsettled[found++] = sender.id;
  }
  return found;
}
