/* Key lists of vectors with mixed placement.
 *
 * The caller's list is sorted by raw key; cutting it by arcs and sending it needs it sorted by mixed key. A mixer does
 * both steps and keeps the permutation, with which values are reordered on the way out and put back on the way in.
 *
 * Threads: a mixer belongs to one thread at a time. It keeps its memory, 44 bytes per key of the longest list so far:
 * in a steady state it allocates nothing.
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
  uint64_t *keys;  /* mixed and sorted; read-only, until the next pwi_mixer_sort */
  uint32_t *order; /* keys[i] is the mix of number order[i] of the caller's list; likewise */
  size_t count;
  size_t room;
  struct pwi_mixer_pair *pairs[2];
};

/* A struct of zeros is a mixer as well. */
void pwi_mixer_init(struct pwi_mixer *mixer);
void pwi_mixer_fini(struct pwi_mixer *mixer);

/* Mixes and sorts `keys`, in whatever order they come; the list itself is not changed. Equal keys keep their order.
 * PAWL_TOO_LARGE for more than 2^32-1 keys, PAWL_NO_MEMORY; the mixer then holds what it held before. */
PAWL_MUST_USE pawl_status pwi_mixer_sort(struct pwi_mixer *mixer, const uint64_t *keys, size_t count);

#endif
