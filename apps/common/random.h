/* Random numbers: splitmix64 (Steele et al. 2014). A stream belongs to what is drawn, such as an image of a step or a row
 * of an iteration, so that results do not depend on which thread or process draws, and in which order. */
#ifndef APPS_COMMON_RANDOM_H
#define APPS_COMMON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define APPS_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

struct apps_random {
  uint64_t state;
};

static inline uint64_t apps_random_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* The stream of (a, b) for one purpose of a seed. */
static inline struct apps_random apps_random_of(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  uint64_t state = apps_random_mix(seed + APPS_RANDOM_STEP * purpose);
  return (struct apps_random){apps_random_mix(apps_random_mix(state + a) + b)};
}

/* 64 bits. */
static inline uint64_t apps_random_draw(struct apps_random *random) {
  return apps_random_mix(random->state += APPS_RANDOM_STEP);
}

/* A number in [0, n). */
static inline uint64_t apps_random_below(struct apps_random *random, uint64_t n) {
  return (uint64_t)(((unsigned __int128)apps_random_draw(random) * n) >> 64);
}

/* Puts 0 … count - 1 into a random order (Fisher and Yates). */
static inline void apps_shuffle(struct apps_random *random, uint32_t *order, size_t count) {
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = count; i > 1; i--) {
    size_t other = (size_t)apps_random_below(random, i);
    uint32_t number = order[i - 1];
    order[i - 1] = order[other];
    order[other] = number;
  }
}

#endif
