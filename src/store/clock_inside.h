/* The internals of a range vector clock, for clock*.c only. clock.c explains the steps, clock_table.c the
 * lines. */
#ifndef PWI_STORE_CLOCK_INSIDE_H
#define PWI_STORE_CLOCK_INSIDE_H

#include <assert.h>

#include "base/search.h"
#include "store/clock.h"

/* The sender has this time from `begin` on, up to the next step. */
struct pwi_clock_step {
  uint64_t begin;
  uint64_t time;
};

/* The line of one sender. A single step is stored in the line itself, as long as there never were more. */
struct pwi_clock_line {
  uint64_t mixed; /* pwi_mix64 of the sender's id */
  uint32_t count; /* steps; 0 in an empty slot of the table */
  uint32_t room;  /* capacity of `steps`; 0: the only step is `one` */
  union {
    struct pwi_clock_step one;
    struct pwi_clock_step *steps;
  };
};

static_assert(sizeof(struct pwi_clock_line) == 32, "two lines to a cache line");

static inline struct pwi_clock_step *pwi_clock_line_steps(struct pwi_clock_line *line) {
  return line->room ? line->steps : &line->one;
}

static inline const struct pwi_clock_step *pwi_clock_line_view(const struct pwi_clock_line *line) {
  return line->room ? line->steps : &line->one;
}

/* True if the time of the sender is 0 everywhere: equivalent to no line, and never shown. pwi_clock_reserve
 * leaves such lines. */
static inline bool pwi_clock_line_is_blank(const struct pwi_clock_line *line) {
  return line->count == 1 && pwi_clock_line_view(line)->time == 0;
}

/* The index of the step that contains `key`; the first begins at 0. */
static inline size_t pwi_clock_step_at(const struct pwi_clock_step *steps, size_t count, uint64_t key) {
  struct pwi_search search = {.low = 1, .high = count};
  while (pwi_search_next(&search)) pwi_search_told(&search, steps[search.middle].begin <= key);
  return search.low - 1;
}

/* Appends a step to a line under construction, unless its time equals that of the last step. */
static inline void pwi_clock_step_append(struct pwi_clock_step *steps, size_t *count, uint64_t begin, uint64_t time) {
  if (*count && steps[*count - 1].time == time) return;
  steps[*count] = (struct pwi_clock_step){*count ? begin : 0, time};
  ++*count;
}

/* Makes room for `count` steps in the line. */
PAWL_MUST_USE pawl_status pwi_clock_line_reserve(struct pwi_clock_line *line, size_t count);

/* Creates a line with a copy of these steps. */
PAWL_MUST_USE pawl_status pwi_clock_line_make(uint64_t mixed, const struct pwi_clock_step *steps, size_t count,
                                              struct pwi_clock_line *line_out);
void pwi_clock_line_free(struct pwi_clock_line *line);

/* The slot of a sender's line; `clock->room` if there is none. Slots are valid until a line is added or
 * removed. */
size_t pwi_table_find(const struct pwi_clock *clock, struct pwi_sender sender);

/* The slot of the sender's line, which is blank if there was none before. */
PAWL_MUST_USE pawl_status pwi_table_add(struct pwi_clock *clock, struct pwi_sender sender, size_t *slot_out);

/* Appends a line to a table that is filled in ascending order of `mixed`. `*next`, initially 0, is the slot
 * after the last line. On success the table owns the steps of the line. */
PAWL_MUST_USE pawl_status pwi_table_append(struct pwi_clock *clock, size_t *next, const struct pwi_clock_line *line);

/* Frees the line in the slot. The following line may move into the slot. */
void pwi_table_remove(struct pwi_clock *clock, size_t slot);

/* Frees all lines and the table. */
void pwi_table_free(struct pwi_clock *clock);

/* The first slot at or after `slot` with a line that is not blank; `clock->room` if there is none. */
size_t pwi_table_next(const struct pwi_clock *clock, size_t slot);

/* True if the range is not empty and the clock holds all of it. */
static inline bool pwi_clock_holds(const struct pwi_clock *clock, struct pawl_range range) {
  return !pawl_range_is_empty(range) && pwi_rangeset_contains(&clock->held, range);
}

#endif
