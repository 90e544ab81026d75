/* Random numbers of samplers: apps/common/random.h. */
#ifndef BPMF_RANDOM_H
#define BPMF_RANDOM_H

#include "apps/common/random.h"

/* Purposes of the streams of one seed; those of the two sides differ by the side, 0 or 1. */
enum bpmf_purpose { BPMF_FOR_ROWS = 1, BPMF_FOR_HYPER = 3, BPMF_FOR_SPLIT = 5 };

/* The stream of (iteration, side, row). */
static inline struct apps_random bpmf_random_of(uint64_t seed, enum bpmf_purpose purpose, unsigned side,
                                                uint64_t iteration, uint64_t row) {
  return apps_random_of(seed, (uint64_t)purpose + side, iteration, row);
}

/* In (0, 1). */
static inline double bpmf_unit(struct apps_random *random) {
  return ((double)(apps_random_draw(random) >> 11) + 0.5) * 0x1p-53;
}

/* Makes the tables of bpmf_normal. Call it before the first normal number; any thread may, any number of times. */
void bpmf_random_prepare(void);

/* Normally distributed with mean 0 and variance 1: the ziggurat of Marsaglia and Tsang (2000) in Doornik's version
 * (2005), which uses every bit of a number once. */
double bpmf_normal(struct apps_random *random);

/* Gamma distributed with this shape, above 0, and scale 1: Marsaglia and Tsang (2000), "A simple method". */
double bpmf_gamma(struct apps_random *random, double shape);

#endif
