/* Key lists of vectors with mixed placement.
 *
 * The list of the caller is sorted by raw key, but must be sorted by mixed key before it is cut by arcs and
 * sent. A mixer mixes and sorts the keys and keeps the permutation, by which values are reordered for sending
 * and restored on receipt.
 *
 * Threads: a mixer belongs to one thread at a time. It keeps its memory, 44 bytes per key of the longest list
 * so far: in a steady state it allocates nothing.
 */
#ifndef PWI_RING_MIX_H
#define PWI_RING_MIX_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_mixer_pair {
  uint64_t key;
  uint32_t index;
};

struct pwi_mixer {
  uint64_t *keys;  /* the mixed keys, sorted; read-only and valid until the next pwi_mixer_sort */
  uint32_t *order; /* keys[i] is the mixed key number order[i] of the caller's list; valid as `keys` */
  size_t count;
  size_t room;
  struct pwi_mixer_pair *pairs[2];
};

/* A struct of zeros is a mixer as well. */
void pwi_mixer_init(struct pwi_mixer *mixer);
void pwi_mixer_fini(struct pwi_mixer *mixer);

/* Mixes and sorts `keys`, which may be in any order and are not changed. Equal keys keep their order.
 * PAWL_TOO_LARGE for more than 2^32-1 keys, PAWL_NO_MEMORY; a failure leaves the mixer unchanged. */
PAWL_MUST_USE pawl_status pwi_mixer_sort(struct pwi_mixer *mixer, const uint64_t *keys, size_t count);

#endif
