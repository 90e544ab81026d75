/* Tracks changes for checkpoints: each vector remembers for runs of keys the version of the last change
 * (store/changes.h). Versions are the same on all members of a chain, so a new head knows the changes since a
 * checkpoint of an earlier head. */
#include "shard/inside.h"

#include "base/search.h"

void pwi_shard_begin_marks(struct pwi_shard *shard) { shard->is_marking = true; }
bool pwi_shard_is_marking(const struct pwi_shard *shard) { return shard->is_marking; }

void pwi_shard_mark(struct pwi_shard *shard, const struct pwi_request *request, struct pawl_range positions,
                    uint64_t number) {
  const struct pwi_named *named = &shard->named;
  if (!shard->is_marking || named->count == 0) return;
  struct pwi_vector *vector = pwi_shard_vector(shard, request->terms.vector);
  if (!vector || !vector->table) return;
  struct pawl_range keys = pwi_vector_keys(vector, positions);
  if (!named->keys) {
    keys = pawl_range_common(keys, request->terms.range);
    if (!pawl_range_is_empty(keys)) pwi_changes_mark_range(&vector->changes, keys, number);
    return;
  }
  size_t first = pwi_first_not_below(named->keys, named->count, keys.begin);
  size_t last = pwi_first_not_below(named->keys, named->count, keys.end);
  if (last > first) pwi_changes_mark_keys(&vector->changes, named->keys + first, last - first, number);
}

void pwi_shard_mark_all(struct pwi_shard *shard, struct pawl_range positions, uint64_t number) {
  if (!shard->is_marking || number == 0) return;
  for (size_t i = 0; i < shard->vector_count; i++) {
    struct pwi_vector *vector = shard->vectors[i];
    struct pawl_range keys = pwi_vector_keys(vector, positions);
    if (vector->table && !pawl_range_is_empty(keys)) pwi_changes_mark_range(&vector->changes, keys, number);
  }
}

/* The first run of changed keys from `from`. If memory was lacking, all keys count as changed. */
static bool next_changed(const struct pwi_vector *vector, struct pawl_range keys, uint64_t from, uint64_t since,
                         struct pawl_range *run_out) {
  struct pwi_rangeset set = {0};
  struct pawl_range rest = pawl_range_of(from > keys.begin ? from : keys.begin, keys.end);
  if (rest.begin >= rest.end) return false;
  bool found = true;
  *run_out = rest;
  if (pwi_changes_collect(&vector->changes, rest, since, &set) == PAWL_OK) {
    found = set.count > 0;
    if (found) *run_out = set.ranges[0];
  }
  pwi_rangeset_fini(&set);
  return found;
}

bool pwi_vector_next_run(const struct pwi_vector *vector, struct pawl_range keys, const struct pwi_copying *copying,
                         struct pawl_range *run_out) {
  const struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  struct pawl_range changed;
  if (!copying->is_partial) return pwi_times_next_run(clock, keys, copying->next, run_out);
  for (uint64_t from = copying->next; next_changed(vector, keys, from, copying->since, &changed); from = changed.end)
    if (pwi_times_next_run(clock, changed, from, run_out)) return true;
  return false;
}
