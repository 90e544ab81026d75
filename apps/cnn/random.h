/* Random numbers: splitmix64 (Steele et al. 2014). A stream belongs to what is drawn, such as an image of a step or a
 * tensor, so that results do not depend on who draws and in which order. */
#ifndef CNN_RANDOM_H
#define CNN_RANDOM_H

#include <stdint.h>

struct cnn_random {
  uint64_t state;
};

/* Purposes of streams of one seed. */
enum cnn_purpose { CNN_FOR_WEIGHTS = 1, CNN_FOR_ORDER = 2, CNN_FOR_DROPOUT = 3 };

static inline uint64_t cnn_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static inline struct cnn_random cnn_random_of(uint64_t seed, enum cnn_purpose purpose, uint64_t a, uint64_t b) {
  uint64_t state = cnn_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)purpose);
  return (struct cnn_random){cnn_mix(cnn_mix(state + a) + b)};
}

static inline uint64_t cnn_draw(struct cnn_random *random) {
  return cnn_mix(random->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* A number in [0, 1), from the upper bits. */
static inline float cnn_unit(struct cnn_random *random) { return (float)(cnn_draw(random) >> 40) * (1.0f / 16777216); }

/* A number in [0, n). */
static inline uint64_t cnn_below(struct cnn_random *random, uint64_t n) {
  return (uint64_t)(((unsigned __int128)cnn_draw(random) * n) >> 64);
}

#endif
