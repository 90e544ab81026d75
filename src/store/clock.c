/* Range vector clocks: OSDI'14 4.1, Algorithm 2, and merging.
 *
 * A vector clock would store a time vc_i(k) for every sender i and key k. Senders push ranges, so the keys of
 * a range share their time, and the paper stores vc_i(R) for ranges R instead. Its Algorithm 2 sets the time
 * of a range R to t as follows: every range S of the clock that overlaps R is cut into the part inside R and
 * the parts outside. The outer parts keep the time of S; the inner parts get t. A range that contains R
 * becomes three, so each set adds at most two ranges. In the paper their number grows to that of all
 * different ranges ever set, O(mk) for m senders and k ranges. Here two neighbours with equal times merge at
 * once, so that there are never more ranges than necessary.
 *
 * Steps. For one sender the time is a step function of the key. It is stored as a sorted array of steps, each
 * with the key from which on its time is valid. This representation can only describe disjoint ranges without
 * gaps, so that this is no separate invariant. The remaining invariants are
 *
 *   - the first step begins at 0, every other one at a held key that is not the first held key,
 *   - begins ascend strictly, and neighbouring times differ.
 *
 * A shard may hold several ranges with holes between them. The times of keys in a hole are never read. A hole
 * has the time of the held key before it, and keys before all held ones have the time of the first. A sender
 * with the same time everywhere thus has one step, whatever the number of holes; and given times on given
 * keys have exactly one array of steps.
 *
 * Setting. `raise_steps` rewrites the steps that overlap R, from left to right and in place: the part left of
 * R, then the pieces of R with the later of their time and t, then the part right of R with its old time.
 * Each is appended unless its time equals that of the previous step. The result may have up to two more steps
 * than the input, so the array is first moved up by that much: writing then never overtakes reading. */
#include "store/clock_inside.h"

#include <string.h>

#include "base/hash.h"

static const struct pwi_clock_step never = {0, 0}; /* the steps of a sender without a line */

pawl_status pwi_clock_init(struct pwi_clock *clock, const struct pawl_range *ranges, size_t count) {
  struct pwi_clock made = {0};
  for (size_t i = 0; i < count; i++) {
    pawl_status status = pwi_rangeset_add(&made.held, ranges[i]);
    if (status) {
      pwi_rangeset_fini(&made.held);
      return status;
    }
  }
  *clock = made;
  return PAWL_OK;
}

void pwi_clock_fini(struct pwi_clock *clock) {
  pwi_table_free(clock);
  pwi_rangeset_fini(&clock->held);
}

/* --- setting -------------------------------------------------------------------------------------------- */

/* The held keys on both sides of a range that is set. */
struct around {
  bool left;
  bool right;
  uint64_t right_begin; /* the first held key after the range, if `right` */
};

static struct around look_around(const struct pwi_clock *clock, struct pawl_range range) {
  struct around around = {.left = clock->held.ranges[0].begin < range.begin};
  struct pawl_range run;
  around.right = pwi_rangeset_next(&clock->held, range.end, &run);
  if (around.right) around.right_begin = run.begin;
  return around;
}

static size_t extra_steps(struct around around) { return (size_t)around.left + (size_t)around.right; }

/* Algorithm 2, as described above. The line has room for extra_steps more. */
static void raise_steps(struct pwi_clock_line *line, struct pawl_range range, struct around around, uint64_t time) {
  struct pwi_clock_step *steps = pwi_clock_line_steps(line);
  size_t put = pwi_clock_step_at(steps, line->count, range.begin);
  size_t get = put + extra_steps(around);
  size_t end = line->count + extra_steps(around);
  if (get != put) memmove(steps + get, steps + put, (line->count - put) * sizeof *steps);

  struct pwi_clock_step last = steps[get];
  if (around.left && last.begin < range.begin) pwi_clock_step_append(steps, &put, last.begin, last.time);
  do {
    last = steps[get++];
    uint64_t begin = last.begin > range.begin ? last.begin : range.begin;
    pwi_clock_step_append(steps, &put, begin, last.time > time ? last.time : time);
  } while (get < end && steps[get].begin < range.end);
  if (around.right && (get == end || steps[get].begin > around.right_begin))
    pwi_clock_step_append(steps, &put, around.right_begin, last.time);

  if (get < end && steps[get].time == steps[put - 1].time) get++;
  if (get < end && get != put) memmove(steps + put, steps + get, (end - get) * sizeof *steps);
  line->count = (uint32_t)(put + (end - get));
}

static pawl_status reserve(struct pwi_clock *clock, struct pwi_sender sender, struct around around, size_t *slot_out) {
  size_t slot;
  pawl_status status = pwi_table_add(clock, sender, &slot);
  if (status) return status;
  struct pwi_clock_line *line = &clock->lines[slot];
  status = pwi_clock_line_reserve(line, line->count + extra_steps(around));
  if (status) return status;
  *slot_out = slot;
  return PAWL_OK;
}

pawl_status pwi_clock_reserve(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  size_t slot;
  return reserve(clock, sender, look_around(clock, range), &slot);
}

/* The first lines are a fast path for the normal case: one step that is set as a whole. */
pawl_status pwi_clock_set(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range, uint64_t time) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  struct around around = look_around(clock, range);
  size_t slot = pwi_table_find(clock, sender);
  if (slot < clock->room && clock->lines[slot].count == 1) {
    struct pwi_clock_step *step = pwi_clock_line_steps(&clock->lines[slot]);
    if (step->time >= time) return PAWL_OK;
    if (!extra_steps(around)) {
      step->time = time;
      return PAWL_OK;
    }
  }
  if (time == 0) return PAWL_OK;
  pawl_status status = reserve(clock, sender, around, &slot);
  if (status) return status;
  raise_steps(&clock->lines[slot], range, around, time);
  return PAWL_OK;
}

/* --- reading -------------------------------------------------------------------------------------------- */

pawl_status pwi_clock_walk(const struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range,
                           struct pwi_clock_pieces *pieces_out) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  size_t slot = pwi_table_find(clock, sender);
  const struct pwi_clock_step *steps = slot < clock->room ? pwi_clock_line_view(&clock->lines[slot]) : &never;
  size_t count = slot < clock->room ? clock->lines[slot].count : 1;
  size_t first = pwi_clock_step_at(steps, count, range.begin);
  *pieces_out = (struct pwi_clock_pieces){steps + first, count - first, range};
  return PAWL_OK;
}

bool pwi_clock_next(struct pwi_clock_pieces *pieces, struct pwi_clock_piece *piece_out) {
  struct pawl_range *rest = &pieces->range;
  if (pawl_range_is_empty(*rest)) return false;
  uint64_t end = rest->end;
  if (pieces->left > 1 && pieces->steps[1].begin < end) end = pieces->steps[1].begin;
  *piece_out = (struct pwi_clock_piece){pawl_range_of(rest->begin, end), pieces->steps[0].time};
  rest->begin = end;
  pieces->steps++;
  pieces->left--;
  return true;
}

bool pwi_clock_next_due(struct pwi_clock_pieces *pieces, uint64_t task, struct pawl_range *range_out) {
  struct pwi_clock_piece piece;
  while (pwi_clock_next(pieces, &piece)) {
    if (piece.time >= task) continue;
    *range_out = piece.range;
    return true;
  }
  return false;
}

pawl_status pwi_clock_min(const struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range,
                          uint64_t *time_out) {
  struct pwi_clock_pieces pieces;
  pawl_status status = pwi_clock_walk(clock, sender, range, &pieces);
  if (status) return status;
  uint64_t lowest = UINT64_MAX;
  struct pwi_clock_piece piece;
  while (pwi_clock_next(&pieces, &piece))
    if (piece.time < lowest) lowest = piece.time;
  *time_out = lowest;
  return PAWL_OK;
}

pawl_status pwi_clock_max(const struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range,
                          uint64_t *time_out) {
  struct pwi_clock_pieces pieces;
  pawl_status status = pwi_clock_walk(clock, sender, range, &pieces);
  if (status) return status;
  uint64_t highest = 0;
  struct pwi_clock_piece piece;
  while (pwi_clock_next(&pieces, &piece))
    if (piece.time > highest) highest = piece.time;
  *time_out = highest;
  return PAWL_OK;
}

pawl_status pwi_clock_min_of(const struct pwi_clock *clock, const struct pwi_sender *senders, size_t count,
                             struct pawl_range range, uint64_t *time_out) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  uint64_t lowest = UINT64_MAX;
  for (size_t i = 0; i < count && lowest; i++) {
    uint64_t time;
    pawl_status status = pwi_clock_min(clock, senders[i], range, &time);
    if (status) return status;
    if (time < lowest) lowest = time;
  }
  *time_out = lowest;
  return PAWL_OK;
}

size_t pwi_clock_piece_count(const struct pwi_clock *clock, struct pwi_sender sender) {
  size_t slot = pwi_table_find(clock, sender);
  return slot < clock->room ? clock->lines[slot].count : 0;
}

bool pwi_clock_has(const struct pwi_clock *clock, struct pwi_sender sender) {
  size_t slot = pwi_table_find(clock, sender);
  return slot < clock->room && !pwi_clock_line_is_blank(&clock->lines[slot]);
}

bool pwi_clock_next_sender(const struct pwi_clock *clock, size_t *at, struct pwi_sender *sender_out) {
  size_t slot = pwi_table_next(clock, *at);
  if (slot == clock->room) return false;
  *at = slot + 1;
  *sender_out = (struct pwi_sender){pwi_unmix64(clock->lines[slot].mixed)};
  return true;
}

static bool same_line(const struct pwi_clock_line *a, const struct pwi_clock_line *b) {
  return a->mixed == b->mixed && a->count == b->count &&
         memcmp(pwi_clock_line_view(a), pwi_clock_line_view(b), a->count * sizeof(struct pwi_clock_step)) == 0;
}

bool pwi_clock_equal(const struct pwi_clock *a, const struct pwi_clock *b) {
  if (!pwi_rangeset_equal(&a->held, &b->held)) return false;
  size_t i = pwi_table_next(a, 0);
  size_t j = pwi_table_next(b, 0);
  while (i < a->room && j < b->room) {
    if (!same_line(&a->lines[i], &b->lines[j])) return false;
    i = pwi_table_next(a, i + 1);
    j = pwi_table_next(b, j + 1);
  }
  return i == a->room && j == b->room;
}

void pwi_clock_retire(struct pwi_clock *clock, struct pwi_sender sender) {
  size_t slot = pwi_table_find(clock, sender);
  if (slot < clock->room) pwi_table_remove(clock, slot);
}

/* --- verdicts on pushes --------------------------------------------------------------------------------- */

/* The findings from the pieces so far. */
struct seen {
  bool done;
  bool due;
  bool behind;
  bool broken;
  uint64_t lowest;
  uint64_t impossible; /* the first impossible time, if `broken` */
};

static void see(struct seen *seen, const struct pwi_clock_claim *claim, uint64_t time) {
  if (time < seen->lowest) seen->lowest = time;
  if (time >= claim->task) {
    seen->done = true;
  } else if (time == claim->prior || (claim->prior == 0 && claim->may_be_anew)) {
    seen->due = true;
  } else if (time < claim->prior) {
    seen->behind = true;
  } else if (!seen->broken) {
    seen->broken = true;
    seen->impossible = time;
  }
}

static enum pwi_clock_verdict judge(const struct seen *seen) {
  if (seen->broken) return PWI_CLAIM_BROKEN;
  if (seen->behind) return PWI_CLAIM_GAP;
  return seen->due ? PWI_CLAIM_DUE : PWI_CLAIM_DONE;
}

pawl_status pwi_clock_check(const struct pwi_clock *clock, const struct pwi_clock_claim *claim,
                            struct pwi_clock_finding *finding_out) {
  if (claim->prior >= claim->task) return PAWL_INVALID;
  struct pwi_clock_pieces pieces;
  pawl_status status = pwi_clock_walk(clock, claim->sender, claim->range, &pieces);
  if (status) return status;
  struct seen seen = {.lowest = UINT64_MAX};
  struct pwi_clock_piece piece;
  while (pwi_clock_next(&pieces, &piece)) see(&seen, claim, piece.time);
  enum pwi_clock_verdict verdict = judge(&seen);
  *finding_out = (struct pwi_clock_finding){
      .verdict = verdict,
      .whole = verdict == PWI_CLAIM_DUE && !seen.done,
      .found = seen.broken ? seen.impossible : seen.lowest,
  };
  return PAWL_OK;
}
