/* Random numbers that depend only on (seed, stream, position).
 *
 * Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11): a
 * block cipher in counter mode, but not secure. The seed is the key, the stream is the upper half of the
 * counter, and each block gives two 64-bit values. A seed alone replays a run. Streams of one seed are
 * independent of one another (one per node, link or worker), and value number n of a stream can be computed
 * directly. Do not use it for keys or tokens: the seed can be found from the output.
 *
 * The integers, `unit`, `chance`, `below` and `shuffle` are the same on every machine. `exponential` and
 * `normal` go through the C library's log and cos, whose last digit may differ between machines.
 *
 * Threads: a struct belongs to one thread at a time; pwi_random_at and pwi_philox4x32 are pure. Nothing here
 * fails.
 */
#ifndef PWI_BASE_RANDOM_H
#define PWI_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values computed at a time, so that the processor can work on several blocks in parallel. */
#define PWI_RANDOM_BATCH 16

/* May be copied: the copy continues from the same position. */
struct pwi_random {
  uint64_t seed;
  uint64_t stream;
  uint64_t next; /* number of the next value */
  uint64_t words[PWI_RANDOM_BATCH];
};

/* Starts at value number 0 of the stream. */
void pwi_random_init(struct pwi_random *random, uint64_t seed, uint64_t stream);

/* Value number `n` of a stream, as the n-th call of pwi_random_u64 returns it; n begins at 0. */
uint64_t pwi_random_at(uint64_t seed, uint64_t stream, uint64_t n);

/* Computes the batch that begins at `next`. Called by pwi_random_u64 only. */
void pwi_random_refill(struct pwi_random *random);

/* Each of the 2^64 values is equally likely. Every function below draws one value of this kind, except where
 * it says otherwise. */
static inline uint64_t pwi_random_u64(struct pwi_random *random) {
  size_t slot = (size_t)(random->next % PWI_RANDOM_BATCH);
  if (slot == 0) pwi_random_refill(random);
  random->next++;
  return random->words[slot];
}

static inline uint32_t pwi_random_u32(struct pwi_random *random) { return (uint32_t)(pwi_random_u64(random) >> 32); }

/* In [0, 1): a multiple of 2^-53. */
static inline double pwi_random_unit(struct pwi_random *random) {
  return (double)(pwi_random_u64(random) >> 11) * 0x1p-53;
}

/* True with probability `p`; never if p <= 0, always if p >= 1. */
static inline bool pwi_random_chance(struct pwi_random *random, double p) { return pwi_random_unit(random) < p; }

/* In [0, n), each equally likely; n must not be 0. Draws again, rarely, where n does not divide 2^64. */
uint64_t pwi_random_below(struct pwi_random *random, uint64_t n);

/* Exponentially distributed with this mean, as the time between independent events. */
double pwi_random_exponential(struct pwi_random *random, double mean);

/* Normally distributed with mean 0 and variance 1. Draws two values. */
double pwi_random_normal(struct pwi_random *random);

/* Puts `count` items of `size` bytes each into a random order, each order equally likely. Draws count - 1
 * values and, as pwi_random_below, rarely more. */
void pwi_random_shuffle(struct pwi_random *random, void *items, size_t count, size_t size);

/* The block function itself, words in the order of the paper: counter[0] is the least significant. */
void pwi_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t block_out[4]);

#endif
