/* Random numbers of nets: apps/common/random.h. */
#ifndef CNN_RANDOM_H
#define CNN_RANDOM_H

#include "apps/common/random.h"

/* Purposes of streams of one seed. */
enum cnn_purpose { CNN_FOR_WEIGHTS = 1, CNN_FOR_ORDER = 2, CNN_FOR_DROPOUT = 3 };

/* A number in [0, 1), from the upper bits. */
static inline float cnn_unit(struct apps_random *random) {
  return (float)(apps_random_draw(random) >> 40) * (1.0f / 16777216);
}

#endif
