/* Ids and keys: see scatter.h. */
#include "apps/linear/scatter.h"

__extension__ typedef unsigned __int128 wide;

uint64_t linear_times(uint64_t a, uint64_t b, uint64_t size) {
  return size >> 32 ? (uint64_t)((wide)a * b % size) : a * b % size;
}

/* The x with a x = 1 mod size, by Euclid's algorithm modulo `size`; 0 if there is none. All numbers are
 * unsigned: sanitizers check signed 128-bit products with a function that some compilers do not provide. */
static uint64_t inverse_of(uint64_t a, uint64_t size) {
  uint64_t r = a, next_r = size, x = 1 % size, next_x = 0;
  while (next_r) {
    uint64_t quotient = r / next_r, rest = r % next_r;
    uint64_t less = (uint64_t)((wide)quotient * next_x % size);
    uint64_t fresh = (uint64_t)(((wide)x + size - less) % size);
    r = next_r;
    next_r = rest;
    x = next_x;
    next_x = fresh;
  }
  return r == 1 ? x : 0;
}

void linear_scatter_init(struct linear_scatter *scatter, uint64_t size) {
  scatter->size = size;
  scatter->factor = scatter->inverse = 1 % size;
  if (size < 3) return;
  /* 0.618… of the size, in integers, so that every machine computes the same factor */
  uint64_t factor = (uint64_t)((wide)size * UINT64_C(11400714819323198485) >> 64);
  for (factor |= 1; factor < size; factor += 2) {
    uint64_t inverse = inverse_of(factor, size);
    if (!inverse) continue;
    scatter->factor = factor;
    scatter->inverse = inverse;
    return;
  }
}
