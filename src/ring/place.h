/* The positions of keys on the ring.
 *
 * The ring has 64-bit positions. Every vector covers the whole ring, so that even a small vector spreads over
 * all servers:
 *
 *   a span [0, n)           in order: key k has position floor(k * 2^64 / n), exactly and on every machine
 *   the full span, ordered  the same with n = PAWL_KEY_END, so that position = key
 *   the full span, mixed    keys are scrambled first; the scrambled keys are stored, cut and sent
 *
 * Since n < 2^64, no key has the last position, 2^64-1. A half-open range of positions that ends at
 * PWI_RING_END is therefore complete, and neither the last arc nor the last key range is a special case.
 *
 * "Stored keys" are keys as the store knows them: mixed keys for mixed placement, otherwise raw keys. Ranges
 * of positions correspond to ranges of stored keys.
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
  uint64_t size; /* n: keys are [0, n); PAWL_KEY_END for the full span */
  bool mixed;    /* only for the full span */
};

/* PAWL_INVALID for an empty span, and for mixed placement of a span that is not full. */
PAWL_MUST_USE pawl_status pwi_place_check(const struct pwi_place *place);

/* The position of a stored key of the span. */
uint64_t pwi_place_position(const struct pwi_place *place, uint64_t key);

/* The first stored key whose position is at least `position`; the size of the span if there is none. */
static inline uint64_t pwi_place_first_key(const struct pwi_place *place, uint64_t position) {
  /* floor(k * 2^64 / n) >= p for an integer p if and only if k >= p * n / 2^64. This needs no division, and p
   * * n + 2^64 - 1 does not overflow. */
  unsigned __int128 product = (unsigned __int128)position * place->size;
  return (uint64_t)((product + UINT64_MAX) >> 64);
}

/* The stored keys whose positions lie in the arc [begin, end). Arcs that tile the ring give ranges that tile
 * the span. A short arc between two keys gives an empty range. */
static inline struct pawl_range pwi_place_keys(const struct pwi_place *place, struct pawl_range arc) {
  return pawl_range_of(pwi_place_first_key(place, arc.begin), pwi_place_first_key(place, arc.end));
}

/* The bijection of mixed placement and its inverse: pwi_mix64, changed so that the reserved key PAWL_KEY_END
 * maps to itself. Every other key thus has a stored key that is not the reserved one. */
uint64_t pwi_place_mix(uint64_t key);
uint64_t pwi_place_unmix(uint64_t key);

#endif
