/* The things that weigh most in one stream: what a writer offers as candidates.
 *
 * Misra and Gries' algorithm (1982) in batches. A table has room for PWI_HEAVY_ROOM things. A thing that is in it is added to,
 * another takes a free place; when there is none left, the count of the PWI_HEAVY_KEPT-th largest is taken off all, and those
 * that come to nothing go. Each time at least PWI_HEAVY_KEPT counts lose that much, so over a stream of weight N no thing has
 * lost more than N / PWI_HEAVY_KEPT, and one that weighs more than that is in the table. The cost is spread: half of the
 * places are free after each time.
 *
 * Most things of a long tail come once and are never seen again. Once the table is half full they are kept out at the *door*:
 * a thing of weight 1 passes only if it has come before since the door was last closed, which is after PWI_HEAVY_DOOR things
 * that did not pass. It is a small field of bits, so that most things cost one look at it and no search of the table. So another N / PWI_HEAVY_DOOR and one may be lost; all in all a thing that weighs more than N / 1600 is in the table.
 *
 * Names are copied when a thing comes in, cut to what the servers keep. Numbers have none: their hash can be undone.
 *
 * Threads: one at a time.
 */
#ifndef PWI_API_SKETCH_SKETCH_HEAVY_H
#define PWI_API_SKETCH_SKETCH_HEAVY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "store/sketch_top.h"

#define PWI_HEAVY_KEPT 2048
#define PWI_HEAVY_ROOM (2 * PWI_HEAVY_KEPT)
#define PWI_HEAVY_DOOR 8192
#define PWI_HEAVY_DOOR_BITS (16 * PWI_HEAVY_DOOR) /* so few are let in by mistake */
#define PWI_HEAVY_PLACES (4 * PWI_HEAVY_KEPT)     /* of the hash table; a power of two */

struct pwi_heavy_thing {
  uint64_t hash, count;
  uint16_t length;
  uint8_t kind; /* enum pwi_top_kind */
  char name[PWI_TOP_NAME_MAX];
};

struct pwi_heavy {
  size_t count;
  struct pwi_heavy_place {
    uint64_t hash;
    uint32_t thing; /* its number, and one; 0: free */
  } places[PWI_HEAVY_PLACES];
  struct pwi_heavy_thing things[PWI_HEAVY_ROOM];
  uint64_t counts[PWI_HEAVY_ROOM]; /* to find the one in the middle */
  uint64_t door[PWI_HEAVY_DOOR_BITS / 64];
  uint32_t at_door; /* things that came there since it was closed */
};

/* A struct of zeros is an empty table; this makes it one again. */
void pwi_heavy_clear(struct pwi_heavy *heavy);

/* Of a thing that has no place yet. */
void pwi_heavy_admit(struct pwi_heavy *heavy, uint64_t hash, uint64_t weight, enum pwi_top_kind kind, const char *name,
                     size_t length);

void pwi_heavy_close_door(struct pwi_heavy *heavy);

static inline bool pwi_heavy_is_let_in(struct pwi_heavy *heavy, uint64_t hash) {
  uint64_t *word = &heavy->door[hash >> 38 & (PWI_HEAVY_DOOR_BITS / 64 - 1)], bit = UINT64_C(1) << (hash >> 32 & 63);
  if (*word & bit) return true;
  *word |= bit;
  if (++heavy->at_door == PWI_HEAVY_DOOR) pwi_heavy_close_door(heavy);
  return false;
}

/* Counts no further than 2^64 - 1. */
static inline void pwi_heavy_add(struct pwi_heavy *heavy, uint64_t hash, uint64_t weight, enum pwi_top_kind kind,
                                 const char *name, size_t length) {
  if (weight == 1 && heavy->count >= PWI_HEAVY_KEPT && !pwi_heavy_is_let_in(heavy, hash)) return;
  for (size_t at = (size_t)(hash & (PWI_HEAVY_PLACES - 1)); heavy->places[at].thing != 0;
       at = (at + 1) & (PWI_HEAVY_PLACES - 1)) {
    if (heavy->places[at].hash != hash) continue;
    uint64_t *count = &heavy->things[heavy->places[at].thing - 1].count;
    if (__builtin_add_overflow(*count, weight, count)) *count = UINT64_MAX;
    return;
  }
  pwi_heavy_admit(heavy, hash, weight, kind, name, length);
}

#endif
