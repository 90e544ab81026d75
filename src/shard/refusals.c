/* Refusals that may have to be repeated.
 *
 * A refused task has used up its number, so its resend looks like a duplicate of an applied task. Refusals
 * are kept to tell the two apart, until the sender has settled them. A sender has few tasks in flight and
 * refusals are rare, so an unsorted array is enough. Bounds of the task numbers spare most searches: a new task
 * has a higher number than those that were refused.
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/checked.h"
#include "base/memory.h"

void pwi_refusals_fini(struct pwi_refusals *refusals) {
  pwi_free(refusals->items);
  *refusals = (struct pwi_refusals){0};
}

pawl_status pwi_refusals_reserve(struct pwi_refusals *refusals, size_t more) {
  size_t wanted;
  if (!pwi_add_size(refusals->count, more, &wanted)) return PAWL_NO_MEMORY;
  return PWI_GROW(refusals->items, refusals->room, wanted) ? PAWL_OK : PAWL_NO_MEMORY;
}

void pwi_refusals_add(struct pwi_refusals *refusals, const struct pwi_refusal *refusal) {
  assert(refusals->count < refusals->room);
  bool is_first = refusals->count == 0;
  if (is_first || refusal->task < refusals->lowest) refusals->lowest = refusal->task;
  if (is_first || refusal->task > refusals->highest) refusals->highest = refusal->task;
  refusals->items[refusals->count++] = *refusal;
}

static bool may_have(const struct pwi_refusals *refusals, uint64_t task) {
  return refusals->count > 0 && task >= refusals->lowest && task <= refusals->highest;
}

pawl_status pwi_refusals_find(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                              struct pawl_range range) {
  if (!may_have(refusals, task)) return PAWL_OK;
  for (size_t i = 0; i < refusals->count; i++) {
    const struct pwi_refusal *item = &refusals->items[i];
    if (item->sender.id != sender.id || item->task != task) continue;
    if (!pawl_range_is_empty(pawl_range_common(item->range, range))) return item->status;
  }
  return PAWL_OK;
}

struct pawl_range pwi_refusals_range(const struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t task,
                                     struct pawl_range range) {
  struct pawl_range all = {0, 0};
  if (!may_have(refusals, task)) return all;
  for (size_t i = 0; i < refusals->count; i++) {
    const struct pwi_refusal *item = &refusals->items[i];
    struct pawl_range common = pawl_range_common(item->range, range);
    if (item->sender.id != sender.id || item->task != task || pawl_range_is_empty(common)) continue;
    if (pawl_range_is_empty(all)) all = common;
    if (common.begin < all.begin) all.begin = common.begin;
    if (common.end > all.end) all.end = common.end;
  }
  return all;
}

size_t pwi_refusals_count(const struct pwi_refusals *refusals, struct pwi_sender sender) {
  size_t count = 0;
  for (size_t i = 0; i < refusals->count; i++) count += refusals->items[i].sender.id == sender.id;
  return count;
}

void pwi_refusals_settle(struct pwi_refusals *refusals, struct pwi_sender sender, uint64_t settled) {
  size_t kept = 0;
  uint64_t lowest = UINT64_MAX;
  if (refusals->count == 0 || settled < refusals->lowest) return;
  for (size_t i = 0; i < refusals->count; i++) {
    struct pwi_refusal item = refusals->items[i];
    if (item.sender.id == sender.id && item.task <= settled) continue;
    if (item.task < lowest) lowest = item.task;
    refusals->items[kept++] = item;
  }
  refusals->count = kept;
  refusals->lowest = lowest;
}

void pwi_refusals_strike(struct pwi_refusals *refusals, const struct pwi_membership *membership) {
  size_t kept = 0;
  for (size_t i = 0; i < refusals->count; i++) {
    struct pwi_refusal item = refusals->items[i];
    if (!pwi_membership_has_forgotten(membership, item.sender)) refusals->items[kept++] = item;
  }
  refusals->count = kept;
}

void pwi_refusals_drop(struct pwi_refusals *refusals, struct pawl_range range) {
  size_t kept = 0;
  for (size_t i = 0; i < refusals->count; i++) {
    struct pwi_refusal item = refusals->items[i];
    if (pawl_range_contains(range, item.range)) continue;
    if (pawl_range_has(range, item.range.begin)) item.range.begin = range.end;
    if (pawl_range_has(range, item.range.end - 1)) item.range.end = range.begin;
    refusals->items[kept++] = item;
  }
  refusals->count = kept;
}

/* Only for pieces that were due: on other keys the push was applied, and the sender was told so. */
pawl_status pwi_refusals_record(struct pwi_vector *vector, struct pwi_clock *clock, const struct pwi_request *request,
                                struct pawl_range keys, pawl_status why) {
  struct pwi_clock_pieces pieces = {0}, again;
  struct pawl_range due;
  size_t count = 0;
  pawl_status status = pwi_clock_reserve(clock, request->sender, keys);
  if (status == PAWL_OK) status = pwi_clock_walk(clock, request->sender, keys, &pieces);
  again = pieces;
  while (status == PAWL_OK && pwi_clock_next_due(&pieces, request->task, &due)) count++;
  if (status == PAWL_OK) status = pwi_refusals_reserve(&vector->refusals, count);
  if (status != PAWL_OK) return status;
  while (pwi_clock_next_due(&again, request->task, &due)) {
    struct pwi_refusal refusal = {request->sender, request->task, due, why};
    pwi_refusals_add(&vector->refusals, &refusal);
  }
  status = pwi_clock_set(clock, request->sender, keys, request->task);
  assert(status == PAWL_OK);
  return status;
}
