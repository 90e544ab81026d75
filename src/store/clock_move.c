/* Copying, dropping and joining parts of clocks.
 *
 * These operations happen when arcs move between shards. They may allocate memory and visit every sender, but
 * happen completely or not at all: steps that can fail come first, and the new state of a clock is built
 * separately. */
#include "store/clock_inside.h"

#include <string.h>

#include "base/memory.h"

/* --- copy ----------------------------------------------------------------------------------------------- */

/* Any run of steps is valid once its first step begins at 0. */
static pawl_status copy_line(const struct pwi_clock_line *line, struct pawl_range range, struct pwi_clock *copy,
                             size_t *next) {
  const struct pwi_clock_step *steps = pwi_clock_line_view(line);
  size_t first = pwi_clock_step_at(steps, line->count, range.begin);
  size_t last = pwi_clock_step_at(steps, line->count, range.end - 1);
  struct pwi_clock_line made;
  pawl_status status = pwi_clock_line_make(line->mixed, steps + first, last - first + 1, &made);
  if (status) return status;
  pwi_clock_line_steps(&made)[0].begin = 0;
  status = pwi_clock_line_is_blank(&made) ? PAWL_OK : pwi_table_append(copy, next, &made);
  if (status) pwi_clock_line_free(&made);
  return status;
}

pawl_status pwi_clock_copy(const struct pwi_clock *clock, struct pawl_range range, struct pwi_clock *copy_out) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  struct pwi_clock copy;
  pawl_status status = pwi_clock_init(&copy, &range, 1);
  if (status) return status;
  size_t next = 0;
  for (size_t i = pwi_table_next(clock, 0); i < clock->room; i = pwi_table_next(clock, i + 1)) {
    status = copy_line(&clock->lines[i], range, &copy, &next);
    if (status) {
      pwi_clock_fini(&copy);
      return status;
    }
  }
  *copy_out = copy;
  return PAWL_OK;
}

/* --- drop ----------------------------------------------------------------------------------------------- */

/* The held keys on both sides of a dropped range. */
struct sides {
  bool before;
  bool after;
  struct pawl_range range;
  uint64_t after_begin;
};

/* The dropped keys become part of a hole, which has the time of the key before it. Steps inside the hole are
 * removed, and the first held key after it gets its own step if its time differs. That step replaces the one
 * that contained the key, so the number of steps never grows. */
static void drop_steps(struct pwi_clock_line *line, const struct sides *sides) {
  struct pwi_clock_step *steps = pwi_clock_line_steps(line);
  size_t put = sides->before ? pwi_clock_step_at(steps, line->count, sides->range.begin - 1) + 1 : 0;
  size_t get = line->count;
  if (sides->after) {
    get = pwi_clock_step_at(steps, line->count, sides->after_begin);
    uint64_t time = steps[get++].time;
    pwi_clock_step_append(steps, &put, sides->after_begin, time);
  }
  if (get < line->count && get != put) memmove(steps + put, steps + get, (line->count - get) * sizeof *steps);
  line->count = (uint32_t)(put + (line->count - get));
}

pawl_status pwi_clock_drop(struct pwi_clock *clock, struct pawl_range range) {
  if (!pwi_clock_holds(clock, range)) return PAWL_INVALID;
  struct sides sides = {.before = clock->held.ranges[0].begin < range.begin, .range = range};
  pawl_status status = pwi_rangeset_remove(&clock->held, range);
  if (status) return status;
  struct pawl_range run;
  sides.after = pwi_rangeset_next(&clock->held, range.end, &run);
  if (sides.after) sides.after_begin = run.begin;
  if (!sides.before && !sides.after) {
    pwi_table_free(clock);
    return PAWL_OK;
  }
  for (size_t i = 0; i < clock->room; i++)
    if (clock->lines[i].count) drop_steps(&clock->lines[i], &sides);
  for (size_t i = 0; i < clock->room;) {
    if (clock->lines[i].count && pwi_clock_line_is_blank(&clock->lines[i]))
      pwi_table_remove(clock, i);
    else
      i++;
  }
  return PAWL_OK;
}

pawl_status pwi_clock_take(struct pwi_clock *clock, struct pawl_range range, struct pwi_clock *taken_out) {
  struct pwi_clock taken;
  pawl_status status = pwi_clock_copy(clock, range, &taken);
  if (status) return status;
  status = pwi_clock_drop(clock, range);
  if (status) {
    pwi_clock_fini(&taken);
    return status;
  }
  *taken_out = taken;
  return PAWL_OK;
}

/* --- absorb --------------------------------------------------------------------------------------------- */

/* One of the two clocks to join. */
struct joined_clock {
  const struct pwi_clock *clock;
  size_t slot; /* slot of the next sender */
  size_t run;  /* index of the next held range */
};

static size_t most_steps(const struct pwi_clock *clock) {
  size_t most = 1;
  for (size_t i = 0; i < clock->room; i++)
    if (clock->lines[i].count > most) most = clock->lines[i].count;
  return most;
}

static const struct pwi_clock_line *line_at(const struct joined_clock *half) {
  return half->slot < half->clock->room ? &half->clock->lines[half->slot] : NULL;
}

static uint64_t run_begin(const struct joined_clock *half) {
  const struct pwi_rangeset *held = &half->clock->held;
  return half->run < held->count ? held->ranges[half->run].begin : UINT64_MAX;
}

/* Appends the next held range of one half with the times of its line; without a line the time is 0. */
static void append_run(struct joined_clock *half, const struct pwi_clock_line *line, struct pwi_clock_step *steps,
                       size_t *count) {
  struct pawl_range run = half->clock->held.ranges[half->run++];
  if (!line) {
    pwi_clock_step_append(steps, count, run.begin, 0);
    return;
  }
  const struct pwi_clock_step *from = pwi_clock_line_view(line);
  for (size_t i = pwi_clock_step_at(from, line->count, run.begin); i < line->count && from[i].begin < run.end; i++)
    pwi_clock_step_append(steps, count, from[i].begin > run.begin ? from[i].begin : run.begin, from[i].time);
}

/* Builds the steps of the next sender, of either half or both, over the held ranges of both in key order. */
static pawl_status join_next(struct joined_clock *a, struct joined_clock *b, struct pwi_clock_step *scratch,
                             struct pwi_clock *sum, size_t *next) {
  const struct pwi_clock_line *in_a = line_at(a);
  const struct pwi_clock_line *in_b = line_at(b);
  uint64_t mixed = !in_b || (in_a && in_a->mixed < in_b->mixed) ? in_a->mixed : in_b->mixed;
  if (in_a && in_a->mixed != mixed) in_a = NULL;
  if (in_b && in_b->mixed != mixed) in_b = NULL;
  size_t count = 0;
  for (a->run = b->run = 0; a->run < a->clock->held.count || b->run < b->clock->held.count;) {
    if (run_begin(a) < run_begin(b))
      append_run(a, in_a, scratch, &count);
    else
      append_run(b, in_b, scratch, &count);
  }
  if (in_a) a->slot = pwi_table_next(a->clock, a->slot + 1);
  if (in_b) b->slot = pwi_table_next(b->clock, b->slot + 1);

  struct pwi_clock_line line;
  pawl_status status = pwi_clock_line_make(mixed, scratch, count, &line);
  if (status) return status;
  status = pwi_table_append(sum, next, &line);
  if (status) pwi_clock_line_free(&line);
  return status;
}

/* Fills the empty clock `sum` with the lines of both. After a failure it has some of them. */
static pawl_status join_lines(const struct pwi_clock *a, const struct pwi_clock *b, struct pwi_clock *sum) {
  size_t most = most_steps(a) + most_steps(b) + a->held.count + b->held.count;
  struct pwi_clock_step *scratch = pwi_alloc_zero(most, sizeof *scratch);
  if (!scratch) return PAWL_NO_MEMORY;
  struct joined_clock in_a = {.clock = a, .slot = pwi_table_next(a, 0)};
  struct joined_clock in_b = {.clock = b, .slot = pwi_table_next(b, 0)};
  size_t next = 0;
  pawl_status status = PAWL_OK;
  while (!status && (line_at(&in_a) || line_at(&in_b))) status = join_next(&in_a, &in_b, scratch, sum, &next);
  pwi_free(scratch);
  return status;
}

static bool have_common_keys(const struct pwi_rangeset *a, const struct pwi_rangeset *b) {
  for (size_t i = 0; i < b->count; i++)
    if (pwi_rangeset_intersects(a, b->ranges[i])) return true;
  return false;
}

pawl_status pwi_clock_absorb(struct pwi_clock *clock, struct pwi_clock *other) {
  if (have_common_keys(&clock->held, &other->held)) return PAWL_INVALID;
  if (pwi_rangeset_is_empty(&other->held)) return PAWL_OK;
  struct pwi_clock sum = {0};
  pawl_status status = pwi_rangeset_copy(&clock->held, &sum.held);
  if (!status) status = pwi_rangeset_add_all(&sum.held, &other->held);
  if (!status) status = join_lines(clock, other, &sum);
  if (status) {
    pwi_clock_fini(&sum);
    return status;
  }
  pwi_clock_fini(clock);
  pwi_clock_fini(other);
  *clock = sum;
  return PAWL_OK;
}
