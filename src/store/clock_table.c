/* The table of a clock's senders: a sorted hash table.
 *
 * Ids are scrambled by the bijection pwi_mix64, and lines are sorted by the scrambled id. The upper bits of
 * the scrambled id give the home slot of a line; the line is in that slot, or as soon after it as the lines
 * before it permit. This is linear probing with an additional order, which has three advantages. A lookup
 * stops at the first greater line, so a miss costs no more than a hit. The order of senders depends only on
 * their ids, so equal clocks have equal encodings. And two tables can be joined like sorted lists.
 *
 * The table does not wrap around. Some slots after the last home take overflowing lines, and the very last
 * slot is always empty, so that a search need not check for the end. */
#include "store/clock_inside.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define SMALLEST_BITS 2
#define SMALLEST_ROOM 4 /* steps */

/* --- lines ---------------------------------------------------------------------------------------------- */

pawl_status pwi_clock_line_reserve(struct pwi_clock_line *line, size_t count) {
  size_t room = line->room ? line->room : 1;
  if (count <= room) return PAWL_OK;
  if (count > UINT32_MAX / 2) return PAWL_NO_MEMORY;
  if (room < SMALLEST_ROOM) room = SMALLEST_ROOM;
  while (room < count) room *= 2;
  struct pwi_clock_step *steps = pwi_resize_array(line->room ? line->steps : NULL, room, sizeof *steps);
  if (!steps) return PAWL_NO_MEMORY;
  if (!line->room) steps[0] = line->one;
  line->steps = steps;
  line->room = (uint32_t)room;
  return PAWL_OK;
}

pawl_status pwi_clock_line_make(uint64_t mixed, const struct pwi_clock_step *steps, size_t count,
                                struct pwi_clock_line *line_out) {
  struct pwi_clock_line line = {.mixed = mixed, .count = 1, .one = steps[0]};
  pawl_status status = pwi_clock_line_reserve(&line, count);
  if (status) return status;
  memcpy(pwi_clock_line_steps(&line), steps, count * sizeof *steps);
  line.count = (uint32_t)count;
  *line_out = line;
  return PAWL_OK;
}

void pwi_clock_line_free(struct pwi_clock_line *line) {
  if (line->room) pwi_free(line->steps);
  *line = (struct pwi_clock_line){0};
}

/* --- the table ------------------------------------------------------------------------------------------ */

static size_t home(unsigned bits, uint64_t mixed) { return (size_t)(mixed >> (64 - bits)); }

/* The slot for a line that is greater than all earlier ones, the last of which is before slot `next`. */
static size_t place_behind(unsigned bits, uint64_t mixed, size_t next) {
  size_t at = home(bits, mixed);
  return at > next ? at : next;
}

/* The slot after the last line, in a table of 2^bits homes. */
static size_t reach(const struct pwi_clock *clock, unsigned bits) {
  size_t next = 0;
  for (size_t i = 0; i < clock->room; i++)
    if (clock->lines[i].count) next = place_behind(bits, clock->lines[i].mixed, next) + 1;
  return next;
}

/* Moves the lines into a table of 2^bits homes, with some empty slots at its end. If that is as many homes as
 * before, every line keeps its slot. */
static pawl_status rebuild(struct pwi_clock *clock, unsigned bits) {
  size_t homes = (size_t)1 << bits;
  size_t room = reach(clock, bits);
  if (room < homes) room = homes;
  room += homes / 8 + 2;
  struct pwi_clock_line *lines = pwi_alloc_zero(room, sizeof *lines);
  if (!lines) return PAWL_NO_MEMORY;
  size_t next = 0;
  for (size_t i = 0; i < clock->room; i++) {
    if (!clock->lines[i].count) continue;
    next = place_behind(bits, clock->lines[i].mixed, next);
    lines[next++] = clock->lines[i];
  }
  pwi_free(clock->lines);
  clock->lines = lines;
  clock->room = room;
  clock->bits = bits;
  return PAWL_OK;
}

/* Grows the table so that with one more line it is at most three quarters full. */
static pawl_status grow(struct pwi_clock *clock) {
  if (!clock->room) return rebuild(clock, SMALLEST_BITS);
  size_t homes = (size_t)1 << clock->bits;
  return clock->count < homes - homes / 4 ? PAWL_OK : rebuild(clock, clock->bits + 1);
}

/* The slot of the line, or the slot where it would be inserted. */
static size_t search(const struct pwi_clock *clock, uint64_t mixed) {
  size_t at = home(clock->bits, mixed);
  while (clock->lines[at].count && clock->lines[at].mixed < mixed) at++;
  return at;
}

size_t pwi_table_find(const struct pwi_clock *clock, struct pwi_sender sender) {
  if (!clock->count) return clock->room;
  uint64_t mixed = pwi_mix64(sender.id);
  size_t at = search(clock, mixed);
  return clock->lines[at].count && clock->lines[at].mixed == mixed ? at : clock->room;
}

/* Opens a slot for a new line: the lines up to the next empty slot move by one. */
static pawl_status open_slot(struct pwi_clock *clock, size_t at) {
  size_t empty = at;
  while (clock->lines[empty].count) empty++;
  if (empty == clock->room - 1) {
    pawl_status status = rebuild(clock, clock->bits);
    if (status) return status;
  }
  memmove(clock->lines + at + 1, clock->lines + at, (empty - at) * sizeof *clock->lines);
  return PAWL_OK;
}

pawl_status pwi_table_add(struct pwi_clock *clock, struct pwi_sender sender, size_t *slot_out) {
  size_t at = pwi_table_find(clock, sender);
  if (at == clock->room) {
    uint64_t mixed = pwi_mix64(sender.id);
    pawl_status status = grow(clock);
    if (status) return status;
    at = search(clock, mixed);
    status = open_slot(clock, at);
    if (status) return status;
    clock->lines[at] = (struct pwi_clock_line){.mixed = mixed, .count = 1};
    clock->count++;
  }
  *slot_out = at;
  return PAWL_OK;
}

pawl_status pwi_table_append(struct pwi_clock *clock, size_t *next, const struct pwi_clock_line *line) {
  unsigned bits = clock->bits;
  pawl_status status = grow(clock);
  if (status) return status;
  if (clock->bits != bits) *next = reach(clock, clock->bits);
  size_t at = place_behind(clock->bits, line->mixed, *next);
  if (at == clock->room - 1) {
    status = rebuild(clock, clock->bits);
    if (status) return status;
  }
  clock->lines[at] = *line;
  clock->count++;
  *next = at + 1;
  return PAWL_OK;
}

/* Lines after the hole move up until one is at its home or a slot is empty, so that searches stay correct. */
void pwi_table_remove(struct pwi_clock *clock, size_t slot) {
  pwi_clock_line_free(&clock->lines[slot]);
  size_t end = slot + 1;
  while (clock->lines[end].count && home(clock->bits, clock->lines[end].mixed) < end) end++;
  memmove(clock->lines + slot, clock->lines + slot + 1, (end - slot - 1) * sizeof *clock->lines);
  clock->lines[end - 1] = (struct pwi_clock_line){0};
  clock->count--;
}

void pwi_table_free(struct pwi_clock *clock) {
  for (size_t i = 0; i < clock->room; i++) pwi_clock_line_free(&clock->lines[i]);
  pwi_free(clock->lines);
  clock->lines = NULL;
  clock->room = 0;
  clock->count = 0;
  clock->bits = 0;
}

size_t pwi_table_next(const struct pwi_clock *clock, size_t slot) {
  while (slot < clock->room && (!clock->lines[slot].count || pwi_clock_line_is_blank(&clock->lines[slot]))) slot++;
  return slot;
}
