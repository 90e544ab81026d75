/* Random numbers: splitmix64 (Steele et al. 2014), seeded for each document and each word of a sweep, so that
 * what is drawn does not depend on how many threads share the work. */
#ifndef LDA_RANDOM_H
#define LDA_RANDOM_H

#include <stdint.h>

struct lda_random {
  uint64_t state;
};

static inline uint64_t lda_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static inline struct lda_random lda_random_of(uint64_t seed, uint64_t a, uint64_t b) {
  return (struct lda_random){lda_mix(lda_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * a) + b)};
}

static inline uint64_t lda_draw(struct lda_random *random) {
  return lda_mix(random->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* [0, 1) from the upper bits, and [0, n) from 32 bits. */
static inline float lda_unit(uint64_t bits) { return (float)(bits >> 40) * (1.0f / 16777216); }
static inline uint32_t lda_below(uint32_t bits, uint32_t n) { return (uint32_t)((uint64_t)bits * n >> 32); }

#endif
