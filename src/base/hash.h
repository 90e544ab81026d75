/* Hashing: XXH3 for checksums, key signatures and trace hashes. */
#ifndef PWI_BASE_HASH_H
#define PWI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64 of the bytes. */
uint64_t pwi_hash(const void *data, size_t size, uint64_t seed);

/* The same hash for data that arrives in pieces. The state is opaque and need not be freed. It must stay where
 * pwi_hasher_init found it: XXH3 needs a multiple of 64 as its address, which the allocator does not promise,
 * so the state begins at such an address within `room`. */
struct pwi_hasher {
  void *state;
  unsigned char room[576 + 63];
};

void pwi_hasher_init(struct pwi_hasher *hasher, uint64_t seed);
void pwi_hasher_add(struct pwi_hasher *hasher, const void *data, size_t size);
uint64_t pwi_hasher_value(const struct pwi_hasher *hasher);

/* A bijection of 64-bit numbers that scatters neighbouring inputs, and its inverse. Two rounds of xor-shift
 * and multiplication by an odd number (the finaliser of SplitMix64); every step is invertible. */
static inline uint64_t pwi_mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}
uint64_t pwi_unmix64(uint64_t value);

#endif
