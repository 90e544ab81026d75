#include "apps/cnn/guess.h"

#include <math.h>

struct cnn_guess cnn_guess_of(const struct pawl_images *images) {
  const uint8_t *labels = pawl_images_labels(images);
  uint64_t counts[UINT8_MAX + 1] = {0};
  struct pawl_images_info info;
  struct cnn_guess guess = {0};
  pawl_images_info(images, &info);
  guess.error = 1;
  for (uint64_t i = 0; i < info.count; i++) counts[labels[i]]++;
  for (uint32_t label = 0; label <= UINT8_MAX; label++) {
    if (counts[label] == 0) continue;
    double share = (double)counts[label] / (double)info.count;
    guess.classes++;
    guess.label = label;
    guess.loss -= share * log(share);
    guess.error = fmin(guess.error, 1 - share);
  }
  return guess;
}
