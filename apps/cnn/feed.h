/* From images to the input of a net: an order of the images, and pixels that are scaled. */
#ifndef CNN_FEED_H
#define CNN_FEED_H

#include <pawl/cnn.h>
#include <pawl/images.h>

#include "apps/cnn/random.h"

/* Mean and standard deviation of each channel, over all images. The deviation of a channel whose pixels are all equal
 * is 1. */
void cnn_feed_measure(const struct pawl_images *images, double *mean_out, double *deviation_out);

/* Images order[0] … order[count - 1] as [channel][image][pixel], (pixel - mean) / deviation. `order` NULL: images
 * `first` … first + count - 1. */
void cnn_feed(const struct pawl_images *images, const struct pawl_cnn_about *about, const uint32_t *order, size_t first,
              size_t count, float *input_out);

#endif
