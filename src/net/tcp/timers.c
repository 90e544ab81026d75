#include "net/tcp/timers.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

struct timer_entry {
  int64_t at;
  uint64_t id;
  uint64_t cookie;
};

struct timer_place {
  uint64_t id; /* 0: free */
  size_t index;
};

#define FIRST_CAPACITY 16

void pwi_timers_init(struct pwi_timers *timers) { *timers = (struct pwi_timers){0}; }

void pwi_timers_fini(struct pwi_timers *timers) {
  pwi_free(timers->heap);
  pwi_free(timers->places);
}

static size_t place_of(const struct pwi_timers *timers, uint64_t id) {
  size_t at = (size_t)pwi_mix64(id) & timers->place_mask;
  while (timers->places[at].id != 0 && timers->places[at].id != id) at = (at + 1) & timers->place_mask;
  return at;
}

/* Closes the gap, so that linear probing still finds later entries. */
static void forget_place(struct pwi_timers *timers, uint64_t id) {
  size_t gap = place_of(timers, id);
  size_t mask = timers->place_mask;
  timers->places[gap].id = 0;
  for (size_t at = (gap + 1) & mask; timers->places[at].id != 0; at = (at + 1) & mask) {
    size_t home = (size_t)pwi_mix64(timers->places[at].id) & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    timers->places[gap] = timers->places[at];
    timers->places[at].id = 0;
    gap = at;
  }
}

static void put_at(struct pwi_timers *timers, size_t index, struct timer_entry entry) {
  timers->heap[index] = entry;
  size_t place = place_of(timers, entry.id);
  timers->places[place] = (struct timer_place){entry.id, index};
}

static bool is_before(struct timer_entry a, struct timer_entry b) { return a.at != b.at ? a.at < b.at : a.id < b.id; }

static void sift(struct pwi_timers *timers, size_t index, struct timer_entry entry) {
  while (index > 0 && is_before(entry, timers->heap[(index - 1) / 2])) {
    put_at(timers, index, timers->heap[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= timers->count) break;
    if (child + 1 < timers->count && is_before(timers->heap[child + 1], timers->heap[child])) child++;
    if (!is_before(timers->heap[child], entry)) break;
    put_at(timers, index, timers->heap[child]);
    index = child;
  }
  put_at(timers, index, entry);
}

static pawl_status grow(struct pwi_timers *timers) {
  size_t capacity = timers->capacity ? 2 * timers->capacity : FIRST_CAPACITY;
  struct timer_place *places = pwi_alloc_zero(2 * capacity, sizeof *places);
  if (!places) return PAWL_NO_MEMORY;
  struct timer_entry *heap = pwi_resize_array(timers->heap, capacity, sizeof *heap);
  if (!heap) {
    pwi_free(places);
    return PAWL_NO_MEMORY;
  }
  pwi_free(timers->places);
  timers->heap = heap;
  timers->capacity = capacity;
  timers->places = places;
  timers->place_mask = 2 * capacity - 1;
  for (size_t i = 0; i < timers->count; i++) put_at(timers, i, heap[i]);
  return PAWL_OK;
}

pawl_status pwi_timers_set(struct pwi_timers *timers, int64_t at, uint64_t cookie, uint64_t *id_out) {
  if (timers->count == timers->capacity) {
    pawl_status status = grow(timers);
    if (status != PAWL_OK) return status;
  }
  struct timer_entry entry = {at, ++timers->last_id, cookie};
  timers->count++;
  sift(timers, timers->count - 1, entry);
  *id_out = entry.id;
  return PAWL_OK;
}

static void remove_at(struct pwi_timers *timers, size_t index) {
  forget_place(timers, timers->heap[index].id);
  struct timer_entry last = timers->heap[--timers->count];
  if (index < timers->count) sift(timers, index, last);
}

void pwi_timers_cancel(struct pwi_timers *timers, uint64_t id) {
  if (timers->count == 0 || id == 0) return;
  size_t place = place_of(timers, id);
  if (timers->places[place].id == id) remove_at(timers, timers->places[place].index);
}

int64_t pwi_timers_next(const struct pwi_timers *timers) { return timers->count ? timers->heap[0].at : INT64_MAX; }

bool pwi_timers_take(struct pwi_timers *timers, int64_t now, uint64_t *id_out, uint64_t *cookie_out) {
  if (timers->count == 0 || timers->heap[0].at > now) return false;
  *id_out = timers->heap[0].id;
  *cookie_out = timers->heap[0].cookie;
  remove_at(timers, 0);
  return true;
}
