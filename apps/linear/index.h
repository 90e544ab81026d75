/* Numbers the ids that occur in some data, from 0 in the order of their first occurrence, and counts their
 * entries. It is an array over all ids if that is not much larger than the data, otherwise a hash table. */
#ifndef LINEAR_INDEX_H
#define LINEAR_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct linear_index {
  uint64_t *ids; /* by number */
  uint64_t *counts;
  size_t count, room;
  uint32_t *direct; /* by id: the number of the id + 1; NULL if `slots` is used */
  uint32_t *slots;  /* by hash of the id: the number of the id + 1 */
  uint64_t mask;
};

/* For ids below `span` with about `entries` entries. Call linear_index_fini also after a failure. */
pawl_status linear_index_init(struct linear_index *index, uint64_t span, uint64_t entries);
void linear_index_fini(struct linear_index *index); /* a struct of zeros is fine */

/* Counts `times` more entries of an id. PAWL_NO_MEMORY, PAWL_TOO_LARGE (2^32 ids). */
pawl_status linear_index_count(struct linear_index *index, uint64_t id, uint64_t times);

static inline uint64_t linear_index_place(const struct linear_index *index, uint64_t id) {
  uint64_t at = (id * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & index->mask;
  while (index->slots[at] && index->ids[index->slots[at] - 1] != id) at = (at + 1) & index->mask;
  return at;
}

/* The number of an id that was counted. */
static inline uint32_t linear_index_find(const struct linear_index *index, uint64_t id) {
  return (index->direct ? index->direct[id] : index->slots[linear_index_place(index, id)]) - 1;
}

/* Forgets all ids and keeps the memory. */
void linear_index_clear(struct linear_index *index);

#endif
