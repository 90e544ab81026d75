/* Threads that read memory which the engine may replace. A reader counts itself in before it looks for the
 * memory and out when it has read. The engine takes memory away from all places first, and frees it once
 * each counter has been seen at zero: readers that come later find the new place.
 *
 * Threads: pwi_item_readers_in and _out any, the others the actor.
 */
#ifndef PWI_PEER_ITEM_READERS_H
#define PWI_PEER_ITEM_READERS_H

#include <stdatomic.h>
#include <stdint.h>

#define ITEM_READERS 64 /* counters; threads beyond that share them */

struct item_reader {
  _Atomic uint32_t inside;
  _Atomic uint64_t gets, torn;
  unsigned char apart[104]; /* threads with different counters do not share a cache line */
};

struct item_readers {
  struct item_reader slots[ITEM_READERS];
};

uint32_t pwi_item_readers_slot(void); /* of this thread */

static inline uint32_t pwi_item_readers_in(struct item_readers *readers, uint32_t slot) {
  atomic_fetch_add(&readers->slots[slot].inside, 1);
  return slot;
}

static inline void pwi_item_readers_out(struct item_readers *readers, uint32_t slot) {
  atomic_fetch_sub_explicit(&readers->slots[slot].inside, 1, memory_order_release);
}

/* The bits of counters that are not zero, of those in the mask. */
static inline uint64_t pwi_item_readers_inside(struct item_readers *readers, uint64_t mask) {
  uint64_t left = 0;
  for (uint32_t i = 0; i < ITEM_READERS; i++)
    if ((mask >> i & 1) && atomic_load(&readers->slots[i].inside) != 0) left |= UINT64_C(1) << i;
  return left;
}

#endif
