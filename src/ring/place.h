/* Where keys lie on the ring.
 *
 * The ring has 64-bit positions. Every vector is laid over the whole of it, so that even a small one spreads over all
 * servers:
 *
 *   a span [0, n)           in order: key k lies at floor(k * 2^64 / n), exactly, the same on every machine
 *   the full span, ordered  the same with n = PAWL_KEY_END, which comes to position = key
 *   the full span, mixed    a key is scrambled first, and what is stored, cut and sent is the scrambled key
 *
 * With n < 2^64 no key of any vector ever lies at the last position, 2^64-1. So a half-open range of positions that
 * ends at PWI_RING_END leaves nothing out, and neither the last arc nor the last key range is a special case.
 *
 * "Stored keys" below are keys as the store knows them: the mixed ones where placement is mixed, else the raw ones.
 * Ranges of positions are ranges of stored keys.
 *
 * Threads: all functions are pure. Nothing here allocates.
 */
#ifndef PWI_RING_PLACE_H
#define PWI_RING_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#define PWI_RING_END UINT64_MAX

struct pwi_place {
  uint64_t size; /* n: keys are [0, n); PAWL_KEY_END for the full 64 bits */
  bool mixed;    /* only with the full 64 bits */
};

/* PAWL_INVALID for an empty span, and for a mixed one that is not full. */
PAWL_MUST_USE pawl_status pwi_place_check(const struct pwi_place *place);

/* The position of a stored key, which must lie in the span. */
uint64_t pwi_place_position(const struct pwi_place *place, uint64_t key);

/* The first stored key whose position is not before `position`; the size of the span if there is none. */
static inline uint64_t pwi_place_first_key(const struct pwi_place *place, uint64_t position) {
  /* floor(k * 2^64 / n) >= p for an integer p exactly if k >= p * n / 2^64: no division, and p * n + 2^64 - 1 fits. */
  unsigned __int128 product = (unsigned __int128)position * place->size;
  return (uint64_t)((product + UINT64_MAX) >> 64);
}

/* The stored keys whose positions lie in the arc [begin, end). Arcs that tile the ring give ranges that tile the span;
 * a range is empty where a short arc lies between two keys. */
static inline struct pawl_range pwi_place_keys(const struct pwi_place *place, struct pawl_range arc) {
  return pawl_range_of(pwi_place_first_key(place, arc.begin), pwi_place_first_key(place, arc.end));
}

/* The scramble of mixed placement and its inverse: pwi_mix64, but with the reserved key PAWL_KEY_END, which no vector
 * stores, kept where it is, so that every other key has a stored key that is not the reserved one. */
uint64_t pwi_place_mix(uint64_t key);
uint64_t pwi_place_unmix(uint64_t key);

#endif
