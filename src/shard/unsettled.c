/* Retired senders that may not know the outcome of a task here. */
#include "shard/inside.h"

static bool has_later(const struct pwi_clock *clock, struct pwi_sender sender, uint64_t settled) {
  if (!pwi_clock_has(clock, sender)) return false;
  for (size_t i = 0; i < clock->held.count && settled > 0; i++) {
    uint64_t latest;
    if (pwi_clock_max(clock, sender, clock->held.ranges[i], &latest) || latest > settled) return true;
  }
  return settled == 0;
}

/* Refusals use up their number, so clocks include them. */
static bool is_unsettled(const struct pwi_shard *shard, struct pwi_sender sender, uint64_t settled) {
  for (size_t i = 0; i < shard->vector_count; i++) {
    const struct pwi_vector *vector = shard->vectors[i];
    if (has_later(&vector->clocks[PWI_TASKS], sender, settled) ||
        has_later(&vector->staged[PWI_TASKS], sender, settled))
      return true;
  }
  return pwi_aggregate_has_sender(shard, sender);
}

size_t pwi_shard_unsettled(const struct pwi_shard *shard, const struct pwi_settle *senders, size_t count,
                           uint64_t *unsettled) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    struct pwi_sender sender = {senders[i].sender};
    bool is_known = shard->membership && pwi_membership_is_retired(shard->membership, sender);
    if (!is_known || is_unsettled(shard, sender, senders[i].settled)) unsettled[found++] = sender.id;
  }
  return found;
}
