#include "base/hash.h"

#include <assert.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if PAWL_HAS_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions with the widest vectors of this processor: twice as fast */
#endif

enum { STATE_ALIGN = 64 };

static_assert(sizeof(XXH3_state_t) + STATE_ALIGN - 1 <= sizeof((struct pwi_hasher *)0)->room,
              "the streaming state fits");
static_assert(_Alignof(XXH3_state_t) <= STATE_ALIGN, "the streaming state is aligned");

uint64_t pwi_hash(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

static XXH3_state_t *state_of(const struct pwi_hasher *hasher) {
  uintptr_t from = (uintptr_t)hasher->room, at = (uintptr_t)hasher->state;
  assert(at - from < STATE_ALIGN); /* the hasher was not moved */
  return hasher->state;
}

void pwi_hasher_init(struct pwi_hasher *hasher, uint64_t seed) {
  hasher->state = hasher->room + (STATE_ALIGN - (uintptr_t)hasher->room % STATE_ALIGN) % STATE_ALIGN;
  XXH3_state_t *state = state_of(hasher);
  XXH3_INITSTATE(state);
  XXH3_64bits_reset_withSeed(state, seed);
}

void pwi_hasher_add(struct pwi_hasher *hasher, const void *data, size_t size) {
  XXH3_64bits_update(state_of(hasher), data, size);
}

uint64_t pwi_hasher_value(const struct pwi_hasher *hasher) { return XXH3_64bits_digest(state_of(hasher)); }

uint64_t pwi_unmix64(uint64_t value) {
  value = (value ^ (value >> 31) ^ (value >> 62)) * UINT64_C(0x319642b2d24d8ec3);
  value = (value ^ (value >> 27) ^ (value >> 54)) * UINT64_C(0x96de1b173f119089);
  return value ^ (value >> 30) ^ (value >> 60);
}
