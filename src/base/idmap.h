/* A map from non-zero numbers to pointers, such as from links to peers or from ids to vectors.
 *
 * Open addressing with linear probing, at most half full. Removal closes the gap, so that there are no
 * tombstones. Threads: belongs to one thread at a time.
 */
#ifndef PWI_BASE_IDMAP_H
#define PWI_BASE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_idmap_slot {
  uint64_t id; /* 0: free */
  void *item;
};

/* A struct of zeros is an empty map. */
struct pwi_idmap {
  struct pwi_idmap_slot *slots;
  size_t room; /* a power of two, or 0 */
  size_t count;
};

void pwi_idmap_fini(struct pwi_idmap *map);

/* Adds an item, or replaces the item of the same id. PAWL_NO_MEMORY changes nothing. */
PAWL_MUST_USE pawl_status pwi_idmap_put(struct pwi_idmap *map, uint64_t id, void *item);

/* Returns NULL if the id is not in the map. */
void *pwi_idmap_get(const struct pwi_idmap *map, uint64_t id);

/* Does nothing if the id is not in the map. Allocates nothing. */
void pwi_idmap_remove(struct pwi_idmap *map, uint64_t id);

#endif
