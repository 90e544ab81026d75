#include "api/sketch/sketch_heavy.h"

#include <string.h>

static void forget_places(struct pwi_heavy *heavy) { memset(heavy->places, 0, sizeof heavy->places); }

void pwi_heavy_clear_doorkeeper(struct pwi_heavy *heavy) {
  memset(heavy->doorkeeper, 0, sizeof heavy->doorkeeper);
  heavy->stopped = 0;
}

void pwi_heavy_clear(struct pwi_heavy *heavy) {
  heavy->count = 0;
  forget_places(heavy);
  pwi_heavy_clear_doorkeeper(heavy);
}

static void take_place(struct pwi_heavy *heavy, size_t thing) {
  uint64_t hash = heavy->things[thing].hash;
  size_t at = (size_t)(hash & (PWI_HEAVY_PLACES - 1));
  while (heavy->places[at].thing != 0) at = (at + 1) & (PWI_HEAVY_PLACES - 1);
  heavy->places[at] = (struct pwi_heavy_place){hash, (uint32_t)thing + 1};
}

/* The value at `rank` if `counts` were sorted in decreasing order. Reorders `counts`. */
static uint64_t select_rank(uint64_t *counts, size_t count, size_t rank) {
  for (size_t low = 0, high = count;;) {
    uint64_t pivot = counts[low + (high - low) / 2];
    size_t larger = low, at = low, smaller = high;
    while (at < smaller) {
      uint64_t value = counts[at];
      if (value > pivot) {
        counts[at++] = counts[larger];
        counts[larger++] = value;
      } else if (value < pivot) {
        counts[at] = counts[--smaller];
        counts[smaller] = value;
      } else {
        at++;
      }
    }
    if (rank < larger)
      high = larger;
    else if (rank >= smaller)
      low = smaller;
    else
      return pivot;
  }
}

static void make_room(struct pwi_heavy *heavy) {
  size_t kept = 0;
  for (size_t i = 0; i < heavy->count; i++) heavy->counts[i] = heavy->things[i].count;
  uint64_t off = select_rank(heavy->counts, heavy->count, PWI_HEAVY_KEPT - 1);
  for (size_t i = 0; i < heavy->count; i++) {
    if (heavy->things[i].count <= off) continue;
    if (kept != i) heavy->things[kept] = heavy->things[i];
    heavy->things[kept++].count -= off;
  }
  forget_places(heavy);
  heavy->count = kept;
  for (size_t i = 0; i < kept; i++) take_place(heavy, i);
}

void pwi_heavy_admit(struct pwi_heavy *heavy, uint64_t hash, uint64_t weight, enum pwi_top_kind kind, const char *name,
                     size_t length) {
  if (heavy->count == PWI_HEAVY_ROOM) make_room(heavy);
  struct pwi_heavy_thing *thing = &heavy->things[heavy->count];
  if (length > PWI_TOP_NAME_MAX) length = PWI_TOP_NAME_MAX;
  thing->hash = hash;
  thing->count = weight;
  thing->kind = (uint8_t)kind;
  thing->length = (uint16_t)length;
  if (length > 0) memcpy(thing->name, name, length);
  take_place(heavy, heavy->count++);
}
