#include "data/id_names.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"

#define SLOTS_MIN 64

const char *pwi_id_names_get(const struct pwi_id_names *names, uint32_t number) {
  return names->text + names->starts[number];
}

/* The slot of a name: its own, or the free one where it belongs. */
static uint32_t *find(const struct pwi_id_names *names, const char *name, size_t size) {
  size_t mask = names->slot_count - 1, at = (size_t)pwi_hash(name, size, 0) & mask;
  for (; names->slots[at]; at = (at + 1) & mask) {
    const char *there = pwi_id_names_get(names, names->slots[at] - 1);
    if (strncmp(there, name, size) == 0 && there[size] == 0) break;
  }
  return &names->slots[at];
}

bool pwi_id_names_find(const struct pwi_id_names *names, const char *name, size_t size, uint32_t *number_out) {
  const uint32_t *slot = names->count ? find(names, name, size) : NULL;
  if (!slot || !*slot) return false;
  *number_out = *slot - 1;
  return true;
}

static bool enlarge(struct pwi_id_names *names) {
  struct pwi_id_names larger = *names;
  if (names->slot_count / 2 > names->count) return true;
  larger.slot_count = names->slot_count ? 2 * names->slot_count : SLOTS_MIN;
  larger.slots = pwi_alloc_zero(larger.slot_count, sizeof *larger.slots);
  if (!larger.slots) return false;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = pwi_id_names_get(names, i);
    *find(&larger, name, strlen(name)) = i + 1;
  }
  pwi_free(names->slots);
  *names = larger;
  return true;
}

static bool append(struct pwi_id_names *names, const char *name, size_t size) {
  size_t whole;
  if (!pwi_add_size(names->size, size + 1, &whole) || !PWI_GROW(names->text, names->room, whole) ||
      !PWI_GROW(names->starts, names->starts_room, (size_t)names->count + 1))
    return false;
  memcpy(names->text + names->size, name, size);
  names->text[names->size + size] = 0;
  names->starts[names->count] = names->size;
  names->size += size + 1;
  return true;
}

bool pwi_id_names_add(struct pwi_id_names *names, const char *name, size_t size, uint32_t *number_out) {
  if (!enlarge(names)) return false;
  uint32_t *slot = find(names, name, size);
  if (!*slot) {
    if (names->count == UINT32_MAX - 1 || !append(names, name, size)) return false;
    *slot = ++names->count;
  }
  *number_out = *slot - 1;
  return true;
}

void pwi_id_names_fini(struct pwi_id_names *names) {
  pwi_free(names->text);
  pwi_free(names->starts);
  pwi_free(names->slots);
}
