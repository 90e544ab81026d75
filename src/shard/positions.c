/* Held and frozen positions.
 *
 * A change of all vectors is prepared first, vector by vector (`next`), and takes effect when nothing can
 * fail any more. Dropping works the other way: the positions are frozen first, so that it may stop at any
 * point.
 */
#include "shard/inside.h"

#include "base/memory.h"

bool pwi_times_next_run(const struct pwi_clock *clock, struct pawl_range keys, uint64_t from,
                        struct pawl_range *run_out) {
  struct pawl_range run;
  if (from < keys.begin) from = keys.begin;
  if (!pwi_rangeset_next(&clock->held, from, &run)) return false;
  run = pawl_range_common(run, keys);
  if (pawl_range_is_empty(run)) return false;
  *run_out = run;
  return true;
}

pawl_status pwi_times_leave(struct pwi_clock *clock, struct pawl_range keys) {
  struct pawl_range run;
  while (pwi_times_next_run(clock, keys, 0, &run)) {
    pawl_status status = pwi_clock_drop(clock, run);
    if (status != PAWL_OK) return status;
  }
  return PAWL_OK;
}

static pawl_status copy_clock(const struct pwi_clock *clock, struct pwi_clock *copy_out) {
  struct pwi_clock copy = {0};
  for (size_t i = 0; i < clock->held.count; i++) {
    struct pwi_clock part = {0};
    pawl_status status = pwi_clock_copy(clock, clock->held.ranges[i], &part);
    if (status == PAWL_OK) status = pwi_clock_absorb(&copy, &part);
    if (status != PAWL_OK) {
      pwi_clock_fini(&part);
      pwi_clock_fini(&copy);
      return status;
    }
  }
  *copy_out = copy;
  return PAWL_OK;
}

static pawl_status prepare(struct pwi_vector *vector, int which, struct pawl_range keys, pwi_more *more) {
  struct pwi_clock added = {0};
  pawl_status status = copy_clock(&vector->clocks[which], &vector->next[which]);
  if (status == PAWL_OK) status = more(vector, which, keys, &added);
  if (status == PAWL_OK) status = pwi_clock_absorb(&vector->next[which], &added);
  pwi_clock_fini(&added);
  return status;
}

static void commit(struct pwi_vector *vector) {
  for (int which = 0; which < pwi_vector_clocks(vector); which++) {
    pwi_clock_fini(&vector->clocks[which]);
    vector->clocks[which] = vector->next[which];
    vector->next[which] = (struct pwi_clock){0};
  }
  vector->ranked = false;
}

static void cancel(struct pwi_vector *vector) {
  for (int which = 0; which < PWI_CLOCKS; which++) pwi_clock_fini(&vector->next[which]);
}

pawl_status pwi_shard_extend(struct pwi_shard *shard, struct pawl_range positions, pwi_more *more) {
  pawl_status status = PAWL_OK;
  if (pwi_rangeset_intersects(&shard->held, positions)) return PAWL_INVALID;
  for (size_t i = 0; i < shard->vector_count && status == PAWL_OK; i++) {
    struct pwi_vector *vector = shard->vectors[i];
    for (int which = 0; which < pwi_vector_clocks(vector) && status == PAWL_OK; which++)
      status = prepare(vector, which, pwi_vector_keys(vector, positions), more);
  }
  if (status == PAWL_OK) status = pwi_rangeset_add(&shard->held, positions);
  for (size_t i = 0; i < shard->vector_count; i++) {
    if (status == PAWL_OK)
      commit(shard->vectors[i]);
    else
      cancel(shard->vectors[i]);
  }
  return status;
}

static pawl_status nothing_yet(struct pwi_vector *vector, int which, struct pawl_range keys,
                               struct pwi_clock *more_out) {
  (void)vector, (void)which;
  return pwi_clock_init(more_out, &keys, 1);
}

/* If memory is lacking, staged times may remain. They do no harm: the positions are held from now on, and the
 * times are discarded when the positions are dropped. */
void pwi_vector_forget_staged(struct pwi_vector *vector, struct pawl_range keys) {
  for (int which = 0; which < PWI_CLOCKS; which++)
    if (pwi_times_leave(&vector->staged[which], keys) != PAWL_OK) return;
}

static void delete_rows(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range keys) {
  if (!vector->table || pawl_range_is_empty(keys)) return;
  pwi_table_delete(vector->table, keys);
  pwi_shard_count_bytes(shard, vector);
}

/* Staged contents there, if any, do not belong to the positions that the caller adds. */
pawl_status pwi_shard_hold(struct pwi_shard *shard, struct pawl_range positions) {
  pawl_status status = pwi_shard_extend(shard, positions, nothing_yet);
  for (size_t i = 0; i < shard->vector_count && status == PAWL_OK; i++) {
    struct pawl_range keys = pwi_vector_keys(shard->vectors[i], positions);
    pwi_vector_forget_staged(shard->vectors[i], keys);
    delete_rows(shard, shard->vectors[i], keys);
  }
  return status;
}

static pawl_status drop_vector(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range keys) {
  for (int which = 0; which < PWI_CLOCKS; which++) {
    pawl_status status = pwi_times_leave(&vector->clocks[which], keys);
    if (status == PAWL_OK) status = pwi_times_leave(&vector->staged[which], keys);
    if (status != PAWL_OK) return status;
  }
  pwi_refusals_drop(&vector->refusals, keys);
  pwi_results_drop(&vector->results, keys);
  delete_rows(shard, vector, keys);
  vector->ranked = false;
  return PAWL_OK;
}

/* --- frozen positions ----------------------------------------------------------------------------------- */

static pawl_status make_frozen_room(struct pwi_shard *shard, size_t wanted) {
  return PWI_GROW(shard->frozen, shard->frozen_room, wanted) ? PAWL_OK : PAWL_NO_MEMORY;
}

static bool is_frozen_at_once(const struct pwi_shard *shard, struct pawl_range positions) {
  for (size_t i = 0; i < shard->frozen_count; i++)
    if (pawl_range_contains(shard->frozen[i], positions)) return true;
  return false;
}

pawl_status pwi_shard_freeze(struct pwi_shard *shard, struct pawl_range positions) {
  if (pawl_range_is_empty(positions) || is_frozen_at_once(shard, positions)) return PAWL_OK;
  pawl_status status = make_frozen_room(shard, shard->frozen_count + 2);
  if (status != PAWL_OK) return status;
  shard->frozen[shard->frozen_count++] = positions;
  pwi_groups_leave(shard, positions);
  return PAWL_OK;
}

/* If memory is lacking, the reserved place in the array is used. */
static pawl_status freeze_for_drop(struct pwi_shard *shard, struct pawl_range positions) {
  if (!is_frozen_at_once(shard, positions)) {
    pawl_status status = make_frozen_room(shard, shard->frozen_count + 2);
    if (status != PAWL_OK && shard->frozen_count == shard->frozen_room) return status;
    shard->frozen[shard->frozen_count++] = positions;
  }
  pwi_groups_leave(shard, positions);
  return PAWL_OK;
}

/* Thawing the middle of a frozen range leaves two parts. All second parts begin at the end of the thawed
 * range, so one entry covers them. If even its memory is lacking, the range stays frozen, which does no
 * harm. */
void pwi_shard_thaw(struct pwi_shard *shard, struct pawl_range positions) {
  size_t kept = 0, count = shard->frozen_count;
  struct pawl_range behind = {positions.end, positions.end};
  bool room = make_frozen_room(shard, count + 1) == PAWL_OK;
  for (size_t i = 0; i < count; i++) {
    struct pawl_range range = shard->frozen[i];
    bool met = !pawl_range_is_empty(pawl_range_common(range, positions));
    bool before = range.begin < positions.begin;
    bool after = range.end > positions.end;
    if (!met || (before && after && !room)) {
      shard->frozen[kept++] = range;
    } else if (before) {
      if (after && range.end > behind.end) behind.end = range.end;
      shard->frozen[kept++] = pawl_range_of(range.begin, positions.begin);
    } else if (after) {
      shard->frozen[kept++] = pawl_range_of(positions.end, range.end);
    }
  }
  if (!pawl_range_is_empty(behind)) shard->frozen[kept++] = behind;
  shard->frozen_count = kept;
}

bool pwi_shard_is_frozen(const struct pwi_shard *shard, const struct pwi_vector *vector, struct pawl_range keys) {
  for (size_t i = 0; i < shard->frozen_count; i++) {
    struct pawl_range frozen = pwi_vector_keys(vector, shard->frozen[i]);
    if (!pawl_range_is_empty(pawl_range_common(frozen, keys))) return true;
  }
  return false;
}

pawl_status pwi_shard_drop(struct pwi_shard *shard, struct pawl_range positions) {
  if (pawl_range_is_empty(positions)) return PAWL_OK;
  pawl_status status = freeze_for_drop(shard, positions);
  for (size_t i = 0; i < shard->vector_count && status == PAWL_OK; i++)
    status = drop_vector(shard, shard->vectors[i], pwi_vector_keys(shard->vectors[i], positions));
  if (status == PAWL_OK) status = pwi_rangeset_remove(&shard->held, positions);
  if (status == PAWL_OK) pwi_shard_thaw(shard, positions);
  return status;
}

bool pwi_shard_holds(const struct pwi_shard *shard, struct pawl_range positions) {
  return pwi_rangeset_contains(&shard->held, positions);
}
