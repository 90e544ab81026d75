#include "base/hash.h"

#include <assert.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if PAWL_HAS_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions with the widest vectors of this processor: twice as fast */
#endif

static_assert(sizeof(XXH3_state_t) <= sizeof(struct pwi_hasher), "the streaming state fits");

uint64_t pwi_hash(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

void pwi_hasher_init(struct pwi_hasher *hasher, uint64_t seed) {
  XXH3_state_t *state = (XXH3_state_t *)(void *)hasher->state;
  XXH3_INITSTATE(state);
  XXH3_64bits_reset_withSeed(state, seed);
}

void pwi_hasher_add(struct pwi_hasher *hasher, const void *data, size_t size) {
  XXH3_64bits_update((XXH3_state_t *)(void *)hasher->state, data, size);
}

uint64_t pwi_hasher_value(const struct pwi_hasher *hasher) {
  return XXH3_64bits_digest((const XXH3_state_t *)(const void *)hasher->state);
}

uint64_t pwi_unmix64(uint64_t value) {
  value = (value ^ (value >> 31) ^ (value >> 62)) * UINT64_C(0x319642b2d24d8ec3);
  value = (value ^ (value >> 27) ^ (value >> 54)) * UINT64_C(0x96de1b173f119089);
  return value ^ (value >> 30) ^ (value >> 60);
}
