/* Finds the heaviest things of one stream, which a writer offers as candidates.
 *
 * Misra and Gries' algorithm (1982) in batches. A table has room for PWI_HEAVY_ROOM things. Weight is added
 * to a thing that is in the table; another thing takes a free place. When none is left, the count of the
 * PWI_HEAVY_KEPT-th largest is subtracted from all, and things without a count are removed. Each time at
 * least PWI_HEAVY_KEPT counts lose that much, so over a stream of weight N no thing has lost more than N /
 * PWI_HEAVY_KEPT, and every heavier thing is in the table. The cost is amortised: half of the places are free
 * after each subtraction.
 *
 * Most things of a long tail come once and are never seen again. Once the table is half full they are kept
 * out by a *doorkeeper*: a thing of weight 1 passes only if it has come before since the doorkeeper was last
 * cleared, which happens after PWI_HEAVY_DOORKEEPER things that did not pass. The doorkeeper is a small bit
 * field, so most things cost one lookup there and no search of the table. A thing may lose another N /
 * PWI_HEAVY_DOORKEEPER + 1 that way; in total, every thing heavier than N / 1600 is in the table.
 *
 * Names are copied when a thing enters the table, truncated to the length that servers keep. Numbers have no
 * names: their hash can be inverted.
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
#define PWI_HEAVY_DOORKEEPER 8192
#define PWI_HEAVY_DOORKEEPER_BITS (16 * PWI_HEAVY_DOORKEEPER) /* large enough that few things pass by mistake */
#define PWI_HEAVY_PLACES (4 * PWI_HEAVY_KEPT)                 /* size of the hash table; a power of two */

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
    uint32_t thing; /* its index plus 1; 0: free */
  } places[PWI_HEAVY_PLACES];
  struct pwi_heavy_thing things[PWI_HEAVY_ROOM];
  uint64_t counts[PWI_HEAVY_ROOM]; /* scratch memory to select the PWI_HEAVY_KEPT-th largest */
  uint64_t doorkeeper[PWI_HEAVY_DOORKEEPER_BITS / 64];
  uint32_t stopped; /* things that did not pass since the doorkeeper was cleared */
};

/* Empties the table. A struct of zeros is empty. */
void pwi_heavy_clear(struct pwi_heavy *heavy);

/* Handles a thing that is not in the table. */
void pwi_heavy_admit(struct pwi_heavy *heavy, uint64_t hash, uint64_t weight, enum pwi_top_kind kind, const char *name,
                     size_t length);

void pwi_heavy_clear_doorkeeper(struct pwi_heavy *heavy);

static inline bool pwi_heavy_is_let_in(struct pwi_heavy *heavy, uint64_t hash) {
  uint64_t *word = &heavy->doorkeeper[hash >> 38 & (PWI_HEAVY_DOORKEEPER_BITS / 64 - 1)], bit = UINT64_C(1)
                                                                                                << (hash >> 32 & 63);
  if (*word & bit) return true;
  *word |= bit;
  if (++heavy->stopped == PWI_HEAVY_DOORKEEPER) pwi_heavy_clear_doorkeeper(heavy);
  return false;
}

/* Adds weight to a thing; counts saturate at 2^64 - 1. */
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
