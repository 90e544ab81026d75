#include "base/idmap.h"

#include <assert.h>

#include "base/hash.h"
#include "base/memory.h"

void pwi_idmap_fini(struct pwi_idmap *map) {
  pwi_free(map->slots);
  *map = (struct pwi_idmap){0};
}

/* The slot of an id, or the free slot where it would be added. */
static size_t find(const struct pwi_idmap *map, uint64_t id) {
  size_t mask = map->room - 1, at = (size_t)pwi_mix64(id) & mask;
  while (map->slots[at].id != 0 && map->slots[at].id != id) at = (at + 1) & mask;
  return at;
}

static pawl_status grow(struct pwi_idmap *map) {
  struct pwi_idmap larger = {.room = map->room ? map->room * 2 : 16, .count = map->count};
  larger.slots = pwi_alloc_zero(larger.room, sizeof *larger.slots);
  if (!larger.slots) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < map->room; i++)
    if (map->slots[i].id != 0) larger.slots[find(&larger, map->slots[i].id)] = map->slots[i];
  pwi_free(map->slots);
  *map = larger;
  return PAWL_OK;
}

pawl_status pwi_idmap_put(struct pwi_idmap *map, uint64_t id, void *item) {
  assert(id != 0);
  if (map->count * 2 >= map->room) {
    pawl_status status = grow(map);
    if (status) return status;
  }
  size_t at = find(map, id);
  if (map->slots[at].id == 0) map->count++;
  map->slots[at] = (struct pwi_idmap_slot){id, item};
  return PAWL_OK;
}

void *pwi_idmap_get(const struct pwi_idmap *map, uint64_t id) {
  if (map->room == 0 || id == 0) return NULL;
  return map->slots[find(map, id)].item;
}

void pwi_idmap_remove(struct pwi_idmap *map, uint64_t id) {
  if (map->room == 0 || id == 0) return;
  size_t mask = map->room - 1, hole = find(map, id);
  if (map->slots[hole].id == 0) return;
  map->count--;
  /* Moves every entry that probed past the hole into it. */
  for (size_t at = (hole + 1) & mask; map->slots[at].id != 0; at = (at + 1) & mask) {
    size_t home = (size_t)pwi_mix64(map->slots[at].id) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    map->slots[hole] = map->slots[at];
    hole = at;
  }
  map->slots[hole] = (struct pwi_idmap_slot){0, NULL};
}
