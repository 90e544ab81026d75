/* Changes of the head on other members of a chain (OSDI'14 4.3; docs/replication.md#life-of-a-change).
 *
 * A change contains the resulting rows, so the previous contents do not matter. The clock is set with it. On
 * positions that are being filled, rows are written to the table as well. Their times are set in the staged
 * clock if it has arrived already (shard/move.c).
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/hash.h"
#include "base/search.h"
#include "protocol/planted.h"

/* --- results and states --------------------------------------------------------------------------------- */

/* Sets the states of a range, block by block. */
static void range_state(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range range, char *state,
                        bool assign) {
  uint64_t rows = pawl_range_size(range);
  for (uint64_t done = 0; done < rows;) {
    size_t count = rows - done < PWI_BLOCK ? (size_t)(rows - done) : PWI_BLOCK;
    pawl_status status = pwi_shard_block(shard, range.begin + done, count);
    if (status == PAWL_OK) status = pwi_table_resolve(vector->table, shard->keys, count, false, &shard->slots);
    assert(status == PAWL_OK);
    (void)status;
    char *place = state + done * vector->table->state_bytes;
    if (assign)
      pwi_table_assign_state(vector->table, &shard->slots, 0, count, place);
    else
      pwi_table_gather_state(vector->table, &shard->slots, 0, count, place);
    done += count;
  }
}

void pwi_shard_result(struct pwi_shard *shard, const struct pwi_request *request, void *values, void *state) {
  struct pwi_vector *vector = pwi_shard_vector(shard, request->terms.vector);
  const struct pwi_named *named = &shard->named;
  struct pwi_table *table = vector->table;
  if (named->count == 0) return;
  bool has_values = named->has_result && values == request->result;
  if (named->keys) {
    if (!has_values) pwi_table_gather(table, named->slots, 0, named->count, values);
    if (table->state_bytes > 0) pwi_table_gather_state(table, named->slots, 0, named->count, state);
    return;
  }
  pawl_status status = PAWL_OK;
  if (!has_values)
    status = pwi_table_range_read(table, request->terms.range.begin, 0, named->count * table->is.width, values);
  assert(status == PAWL_OK);
  (void)status;
  if (table->state_bytes > 0) range_state(shard, vector, request->terms.range, state, false);
}

/* --- following ------------------------------------------------------------------------------------------ */

/* The clock with the times of these keys: of held keys, or of staged keys; NULL if the times of staged keys
 * have not arrived. */
static struct pwi_clock *clock_of(struct pwi_vector *vector, int which, struct pawl_range keys) {
  if (pwi_rangeset_contains(&vector->clocks[which].held, keys)) return &vector->clocks[which];
  return pwi_rangeset_contains(&vector->staged[which].held, keys) ? &vector->staged[which] : NULL;
}

/* The named keys that lie in `keys`. If these are not all, the slots of a kept list cannot be used. */
static struct pwi_named narrow(struct pwi_shard *shard, const struct pwi_named *named, struct pawl_range keys) {
  struct pwi_named part = *named;
  if (!named->keys) return part;
  size_t from = pwi_first_not_below(named->keys, named->count, keys.begin);
  part.count = pwi_first_not_below(named->keys, named->count, keys.end) - from;
  if (part.count == named->count) return part;
  part.keys = named->keys + from;
  part.first = from;
  part.list = NULL;
  part.slots = &shard->slots;
  shard->slots.layout = 0;
  return part;
}

static void set_state(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_change *change,
                      const struct pwi_named *named, struct pawl_range keys) {
  size_t bytes = vector->table->state_bytes;
  struct pawl_range range = change->request.terms.range, part = pawl_range_common(range, keys);
  const char *state = change->state;
  if (bytes == 0 || !state || named->count == 0) return;
  if (named->keys)
    pwi_table_assign_state(vector->table, named->slots, 0, named->count, state + named->first * bytes);
  else if (!pawl_range_is_empty(part))
    range_state(shard, vector, part, (char *)(uintptr_t)state + (size_t)(part.begin - range.begin) * bytes, true);
}

static pawl_status follow_rows(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_change *change,
                               struct pawl_range keys, struct pwi_outcome *outcome) {
  const struct pwi_request *request = &change->request;
  struct pwi_served served = {.outcome = {.code = PWI_CODE_OK}};
  struct pwi_clock *clock = clock_of(vector, PWI_TASKS, keys);
  struct pwi_named named;
  if (!vector->table) return PAWL_CORRUPT;
  if (!pwi_serve_names(shard, vector, request, &named, &served)) {
    *outcome = served.outcome;
    return served.outcome.code == PWI_CODE_FAILED ? PAWL_CORRUPT : PAWL_OK;
  }
  shard->named = named;
  if (!pwi_values_match(vector, request, named.count, vector->table->row_bytes)) return PAWL_CORRUPT;
  if (change->state_bytes != named.count * vector->table->state_bytes) return PAWL_CORRUPT;
  struct pwi_named part = narrow(shard, &named, keys);
  struct pawl_range range = pawl_range_common(request->terms.range, keys);
  pawl_status status = PAWL_OK;
  if (!pawl_range_is_empty(range)) status = pwi_rows_ready(shard, vector, request, &part, range);
  if (status == PAWL_OK && clock) status = pwi_clock_reserve(clock, request->sender, keys);
  for (size_t i = 0; i < change->stamp_count && status == PAWL_OK && clock; i++)
    status = pwi_clock_reserve(clock, change->stamps[i].sender, keys);
  if (status == PAWL_OK && clock && change->result) status = pwi_results_reserve(&vector->results, 1);
  if (status != PAWL_OK) return status;
  if (clock && change->result) pwi_run_keep(vector, request, keys, change->result);
  pwi_rows_apply(shard, vector, request, &part, keys, PWI_APPLY_ASSIGN);
  set_state(shard, vector, change, &part, keys);
  if (clock) status = pwi_clock_set(clock, request->sender, keys, request->task);
  for (size_t i = 0; i < change->stamp_count && status == PAWL_OK && clock; i++)
    status = pwi_clock_set(clock, change->stamps[i].sender, keys, change->stamps[i].task);
  pwi_contributed(shard, clock, request, request->sender, keys);
  for (size_t i = 0; i < change->stamp_count; i++)
    pwi_contributed(shard, clock, request, change->stamps[i].sender, keys);
  return status;
}

static pawl_status follow_tick(struct pwi_vector *group, const struct pwi_request *request, struct pawl_range keys) {
  struct pwi_clock *tasks = clock_of(group, PWI_TASKS, keys), *ticks = clock_of(group, PWI_TICKS, keys);
  pawl_status status = PAWL_OK;
  if (!group->is_group) return PAWL_CORRUPT;
  if (ticks) status = pwi_clock_reserve(ticks, request->sender, keys);
  if (status == PAWL_OK && tasks) status = pwi_clock_reserve(tasks, request->sender, keys);
  if (status == PAWL_OK && ticks) status = pwi_clock_set(ticks, request->sender, keys, request->tick);
  if (status == PAWL_OK && tasks) status = pwi_clock_set(tasks, request->sender, keys, request->task);
  group->ranked = false;
  return status;
}

/* If the times have not arrived, the refusals that arrive with them include this one. */
static pawl_status follow_refusal(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_change *change,
                                  struct pawl_range keys) {
  struct pwi_clock *clock = clock_of(vector, PWI_TASKS, keys);
  if (pwi_is_planted(PWI_PLANTED_LOST_REFUSAL)) return PAWL_OK;
  pwi_contributed(shard, clock, &change->request, change->request.sender, keys);
  return clock ? pwi_refusals_record(vector, clock, &change->request, keys, change->status) : PAWL_OK;
}

static pawl_status follow(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_change *change,
                          struct pawl_range keys, struct pwi_outcome *outcome) {
  switch (change->effect) {
  case PWI_EFFECT_ROWS:
    return follow_rows(shard, vector, change, keys, outcome);
  case PWI_EFFECT_TICK:
    return follow_tick(vector, &change->request, keys);
  case PWI_EFFECT_REFUSAL:
    return follow_refusal(shard, vector, change, keys);
  case PWI_EFFECT_NONE:
    break;
  }
  return PAWL_CORRUPT;
}

void pwi_shard_follow(struct pwi_shard *shard, const struct pwi_change *change, struct pawl_range positions,
                      struct pwi_outcome *outcome_out) {
  const struct pwi_terms *terms = &change->request.terms;
  struct pwi_vector *vector = pwi_shard_vector(shard, terms->vector);
  pawl_status status = vector ? PAWL_OK : PAWL_NOT_FOUND;
  *outcome_out = (struct pwi_outcome){.code = PWI_CODE_OK};
  shard->named = (struct pwi_named){0};
  if (vector && terms->incarnation < vector->entry.incarnation) return;
  if (vector && terms->incarnation > vector->entry.incarnation) status = PAWL_NOT_FOUND;
  if (status == PAWL_OK && !pawl_range_contains(pawl_range_of(0, vector->place.size), terms->claim))
    status = PAWL_CORRUPT;
  if (status == PAWL_OK) {
    struct pawl_range keys = pawl_range_common(pwi_vector_keys(vector, positions), terms->claim);
    shard->is_following = true;
    if (!pawl_range_is_empty(keys)) status = follow(shard, vector, change, keys, outcome_out);
    shard->is_following = false;
    if (vector->refusals.count > 0) pwi_refusals_settle(&vector->refusals, change->request.sender, terms->settled);
    if (vector->results.count > 0) pwi_results_settle(&vector->results, change->request.sender, terms->settled);
  }
  if (status != PAWL_OK) *outcome_out = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
}

/* --- digests -------------------------------------------------------------------------------------------- */

static bool is_zero(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) return false;
  return true;
}

static uint64_t digest_rows(const struct pwi_vector *vector, struct pawl_range keys) {
  const struct pwi_table *table = vector->table;
  struct pwi_rows rows;
  uint64_t sum = 0;
  while (table && pwi_table_scan(table, keys, &rows)) {
    for (size_t i = 0; i < rows.count; i++) {
      uint64_t key = rows.keys ? rows.keys[i] : rows.first + i;
      const char *values = rows.values + i * table->row_bytes, *state = rows.state + i * table->state_bytes;
      if (is_zero(values, table->row_bytes) && is_zero(state, table->state_bytes)) continue;
      uint64_t hash = pwi_hash(values, table->row_bytes, key);
      sum += pwi_mix64(table->state_bytes > 0 ? pwi_hash(state, table->state_bytes, hash) : hash);
    }
    keys.begin = rows.last + 1;
    if (pawl_range_is_empty(keys)) break;
  }
  return sum;
}

/* `are_ticks`: the last ticks to which clients have contributed, instead of the times of senders. */
static uint64_t digest_clock(const struct pwi_clock *clock, struct pawl_range keys,
                             const struct pwi_membership *membership, bool are_ticks) {
  struct pwi_sender sender;
  struct pawl_range run;
  uint64_t sum = 0;
  for (size_t at = 0; pwi_clock_next_sender(clock, &at, &sender);) {
    bool is_known =
        are_ticks ? pwi_contributed_is_known(membership, sender) : pwi_membership_find(membership, sender) != NULL;
    if (!is_known) continue;
    for (uint64_t from = 0; pwi_times_next_run(clock, keys, from, &run); from = run.end) {
      struct pwi_clock_pieces pieces;
      struct pwi_clock_piece piece;
      if (pwi_clock_walk(clock, sender, run, &pieces) != PAWL_OK) continue;
      while (pwi_clock_next(&pieces, &piece)) {
        uint64_t words[] = {sender.id, piece.range.begin, piece.range.end, piece.time};
        if (piece.time > 0) sum += pwi_mix64(pwi_hash(words, sizeof words, 1));
      }
    }
  }
  return sum;
}

/* Ranges of one fact count by their ends, so that it makes no difference into how many pieces a range is cut. */
static uint64_t digest_range(struct pawl_range range, uint64_t fact) {
  return pwi_mix64(range.begin + fact) - pwi_mix64(range.end + fact);
}

static uint64_t digest_refusals(const struct pwi_vector *vector, struct pawl_range keys, struct pwi_sender sender,
                                uint64_t settled) {
  uint64_t sum = 0;
  for (size_t i = 0; i < vector->refusals.count; i++) {
    const struct pwi_refusal *item = &vector->refusals.items[i];
    struct pawl_range range = pawl_range_common(item->range, keys);
    uint64_t words[] = {vector->entry.id.id, item->task, (uint64_t)(int64_t)item->status};
    if (item->sender.id != sender.id || item->task <= settled || pawl_range_is_empty(range)) continue;
    sum += digest_range(range, pwi_hash(words, sizeof words, 3));
  }
  return sum;
}

static uint64_t digest_results(const struct pwi_vector *vector, struct pawl_range keys, struct pwi_sender sender,
                               uint64_t settled) {
  uint64_t sum = 0;
  for (size_t i = 0; i < vector->results.count; i++) {
    const struct pwi_kept_result *item = &vector->results.items[i];
    struct pawl_range range = pawl_range_common(item->is.range, keys);
    uint64_t words[] = {vector->entry.id.id, item->task, item->is.origin, item->is.count};
    if (item->sender.id != sender.id || item->task <= settled || pawl_range_is_empty(range)) continue;
    uint64_t hash = pwi_hash(item->is.combine, sizeof item->is.combine, pwi_hash(words, sizeof words, 4));
    sum += digest_range(range, pwi_hash(item->is.values, sizeof item->is.values, hash));
  }
  return sum;
}

uint64_t pwi_shard_digest_kept(const struct pwi_shard *shard, struct pawl_range positions, struct pwi_sender sender,
                               uint64_t settled) {
  uint64_t digest = 0;
  for (size_t i = 0; i < shard->vector_count; i++) {
    struct pawl_range keys = pwi_vector_keys(shard->vectors[i], positions);
    if (pawl_range_is_empty(keys)) continue;
    digest += digest_refusals(shard->vectors[i], keys, sender, settled);
    digest += digest_results(shard->vectors[i], keys, sender, settled);
  }
  return digest;
}

uint64_t pwi_shard_digest_ticks(const struct pwi_shard *shard, struct pawl_range positions,
                                const struct pwi_membership *membership) {
  uint64_t digest = 0;
  for (size_t i = 0; i < shard->vector_count; i++) {
    const struct pwi_vector *vector = shard->vectors[i];
    struct pawl_range keys = pwi_vector_keys(vector, positions);
    if (pawl_range_is_empty(keys)) continue;
    digest += vector->entry.id.id * digest_clock(&vector->clocks[PWI_TASKS], keys, membership, true);
  }
  return digest;
}

bool pwi_shard_lacks_ticks(const struct pwi_shard *shard) { return shard->lacks_ticks; }

bool pwi_shard_keeps(const struct pwi_shard *shard) {
  for (size_t i = 0; i < shard->vector_count; i++)
    if (shard->vectors[i]->refusals.count > 0 || shard->vectors[i]->results.count > 0) return true;
  return false;
}

uint64_t pwi_shard_digest(const struct pwi_shard *shard, struct pawl_range positions,
                          const struct pwi_membership *membership) {
  uint64_t digest = 0;
  for (size_t i = 0; i < shard->vector_count; i++) {
    const struct pwi_vector *vector = shard->vectors[i];
    struct pawl_range keys = pwi_vector_keys(vector, positions);
    if (pawl_range_is_empty(keys)) continue;
    uint64_t words[] = {vector->entry.id.id, digest_rows(vector, keys),
                        digest_clock(&vector->clocks[PWI_TASKS], keys, membership, false),
                        vector->is_group ? digest_clock(&vector->clocks[PWI_TICKS], keys, membership, false) : 0};
    bool is_empty = words[1] == 0 && words[2] == 0 && words[3] == 0; /* same digest as an unknown vector */
    if (!is_empty) digest += pwi_mix64(pwi_hash(words, sizeof words, 2));
  }
  return digest;
}
