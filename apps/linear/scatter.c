/* Ids and keys: see scatter.h. */
#include "apps/linear/scatter.h"

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 wide_signed;

uint64_t linear_times(uint64_t a, uint64_t b, uint64_t size) {
  return size >> 32 ? (uint64_t)((wide)a * b % size) : a * b % size;
}

/* The x with a x = 1 mod size, by Euclid; 0 if there is none. */
static uint64_t inverse_of(uint64_t a, uint64_t size) {
  wide_signed x = 1, next_x = 0;
  uint64_t r = a, next_r = size;
  while (next_r) {
    uint64_t quotient = r / next_r, rest = r % next_r;
    wide_signed fresh = x - (wide_signed)quotient * next_x;
    r = next_r;
    next_r = rest;
    x = next_x;
    next_x = fresh;
  }
  if (r != 1) return 0;
  return (uint64_t)(x < 0 ? x + (wide_signed)size : x);
}

void linear_scatter_init(struct linear_scatter *scatter, uint64_t size) {
  scatter->size = size;
  scatter->factor = scatter->inverse = 1 % size;
  if (size < 3) return;
  /* 0.618… of the size, in whole numbers so that every machine finds the same */
  uint64_t factor = (uint64_t)((wide)size * UINT64_C(11400714819323198485) >> 64);
  for (factor |= 1; factor < size; factor += 2) {
    uint64_t inverse = inverse_of(factor, size);
    if (!inverse) continue;
    scatter->factor = factor;
    scatter->inverse = inverse;
    return;
  }
}
