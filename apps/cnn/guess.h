/* How good a net is that knows nothing but the share of each class among some images: every trained net should be better, on
 * the training images and on test images. */
#ifndef CNN_GUESS_H
#define CNN_GUESS_H

#include <pawl/cnn.h>

struct cnn_guess {
  uint32_t classes; /* labels that occur */
  uint32_t label;   /* one of them */
  double loss;      /* mean cross-entropy of the shares: their entropy. No constant prediction has less */
  double error;     /* of the most frequent label as the answer for all images */
};

struct cnn_guess cnn_guess_of(const struct pawl_images *images);

#endif
