/* Positions: one division for a position, one multiplication for a boundary. */
#include "ring/place.h"

#include <assert.h>

#include "base/hash.h"

pawl_status pwi_place_check(const struct pwi_place *place) {
  if (place->size == 0) return PAWL_INVALID;
  if (place->mixed && place->size != PAWL_KEY_END) return PAWL_INVALID;
  return PAWL_OK;
}

uint64_t pwi_place_position(const struct pwi_place *place, uint64_t key) {
  assert(key < place->size);
  if (place->size == PAWL_KEY_END) return key;
  return (uint64_t)(((unsigned __int128)key << 64) / place->size);
}

/* One key would map to the reserved key; it gets the image of the reserved key instead. */
uint64_t pwi_place_mix(uint64_t key) {
  uint64_t mixed = pwi_mix64(key);
  if (key == PAWL_KEY_END) return PAWL_KEY_END;
  return mixed == PAWL_KEY_END ? pwi_mix64(PAWL_KEY_END) : mixed;
}

uint64_t pwi_place_unmix(uint64_t key) {
  uint64_t plain = pwi_unmix64(key);
  if (key == PAWL_KEY_END) return PAWL_KEY_END;
  return plain == PAWL_KEY_END ? pwi_unmix64(PAWL_KEY_END) : plain;
}
