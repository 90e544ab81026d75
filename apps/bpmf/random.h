/* Random numbers: splitmix64 (Steele et al. 2014). A stream belongs to what is drawn: a row of an iteration, or the
 * hyper-parameters of a side. So samples do not depend on which thread or process draws them. */
#ifndef BPMF_RANDOM_H
#define BPMF_RANDOM_H

#include <stdint.h>

struct bpmf_random {
  uint64_t state;
};

/* Purposes of the streams of one seed; those of the two sides differ by the side, 0 or 1. */
enum bpmf_purpose { BPMF_FOR_ROWS = 1, BPMF_FOR_HYPER = 3, BPMF_FOR_SPLIT = 5 };

static inline uint64_t bpmf_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* The stream of (iteration, side, row). */
static inline struct bpmf_random bpmf_random_of(uint64_t seed, enum bpmf_purpose purpose, unsigned side,
                                                uint64_t iteration, uint64_t row) {
  uint64_t state = bpmf_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)purpose + side));
  return (struct bpmf_random){bpmf_mix(bpmf_mix(state + iteration) + row)};
}

static inline uint64_t bpmf_bits(struct bpmf_random *random) {
  return bpmf_mix(random->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* In (0, 1). */
static inline double bpmf_unit(struct bpmf_random *random) {
  return ((double)(bpmf_bits(random) >> 11) + 0.5) * 0x1p-53;
}

/* Makes the tables of bpmf_normal. Call it before the first normal number; any thread may, any number of times. */
void bpmf_random_prepare(void);

/* Normally distributed with mean 0 and variance 1: the ziggurat of Marsaglia and Tsang (2000) in Doornik's version
 * (2005), which uses every bit of a number once. */
double bpmf_normal(struct bpmf_random *random);

/* Gamma distributed with this shape, above 0, and scale 1: Marsaglia and Tsang (2000), "A simple method". */
double bpmf_gamma(struct bpmf_random *random, double shape);

#endif
