/* Numbers of ids: see index.h. */
#include "apps/linear/index.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

void linear_index_fini(struct linear_index *index) {
  apps_free(index->ids);
  apps_free(index->counts);
  apps_free(index->direct);
  apps_free(index->slots);
  memset(index, 0, sizeof *index);
}

pawl_status linear_index_init(struct linear_index *index, uint64_t span, uint64_t entries) {
  memset(index, 0, sizeof *index);
  if (span <= 4 * entries + (1u << 20)) {
    index->direct = apps_alloc_zero(span ? (size_t)span : 1, sizeof *index->direct);
    return index->direct ? PAWL_OK : PAWL_NO_MEMORY;
  }
  index->mask = 1023;
  index->slots = apps_alloc_zero((size_t)index->mask + 1, sizeof *index->slots);
  return index->slots ? PAWL_OK : PAWL_NO_MEMORY;
}

/* At most half of the slots are used. */
static pawl_status widen(struct linear_index *index) {
  struct linear_index wider = *index;
  wider.mask = 2 * index->mask + 1;
  wider.slots = apps_alloc_zero((size_t)wider.mask + 1, sizeof *wider.slots);
  if (!wider.slots) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < index->count; i++) wider.slots[linear_index_place(&wider, index->ids[i])] = (uint32_t)i + 1;
  apps_free(index->slots);
  *index = wider;
  return PAWL_OK;
}

static pawl_status grow(struct linear_index *index) {
  size_t room = index->room ? 2 * index->room : 1024;
  uint64_t *ids = apps_resize(index->ids, room * sizeof *ids);
  if (ids) index->ids = ids;
  uint64_t *counts = apps_resize(index->counts, room * sizeof *counts);
  if (counts) index->counts = counts;
  if (!ids || !counts) return PAWL_NO_MEMORY;
  index->room = room;
  return PAWL_OK;
}

pawl_status linear_index_count(struct linear_index *index, uint64_t id, uint64_t times) {
  uint32_t *slot = index->direct ? &index->direct[id] : &index->slots[linear_index_place(index, id)];
  if (*slot) {
    index->counts[*slot - 1] += times;
    return PAWL_OK;
  }
  if (index->count == UINT32_MAX - 1) return PAWL_TOO_LARGE;
  pawl_status status = index->count == index->room ? grow(index) : PAWL_OK;
  if (status) return status;
  index->ids[index->count] = id;
  index->counts[index->count] = times;
  *slot = (uint32_t)++index->count;
  return !index->direct && 2 * index->count > index->mask ? widen(index) : PAWL_OK;
}

void linear_index_clear(struct linear_index *index) {
  for (size_t i = 0; i < index->count; i++)
    if (index->direct) index->direct[index->ids[i]] = 0;
  if (index->slots) memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof *index->slots);
  index->count = 0;
}
