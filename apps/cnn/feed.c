#include "apps/cnn/feed.h"

#include <math.h>

void cnn_feed_measure(const struct pawl_images *images, double *mean_out, double *deviation_out) {
  struct pawl_images_info info;
  pawl_images_info(images, &info);
  const uint8_t *pixels = pawl_images_pixels(images);
  size_t plane = (size_t)info.height * info.width;
  for (size_t c = 0; c < info.channels; c++) {
    uint64_t counts[256] = {0};
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < info.count; i++)
      for (size_t j = 0; j < plane; j++) counts[pixels[(i * info.channels + c) * plane + j]]++;
    for (size_t v = 0; v < 256; v++) count += (double)counts[v], sum += (double)counts[v] * (double)v;
    mean_out[c] = sum / count;
    for (size_t v = 0; v < 256; v++) squares += (double)counts[v] * pow((double)v - mean_out[c], 2);
    deviation_out[c] = squares > 0 ? sqrt(squares / count) : 1;
  }
}

void cnn_feed(const struct pawl_images *images, const struct pawl_cnn_about *about, const uint32_t *order, size_t first,
              size_t count, float *input_out) {
  const uint8_t *pixels = pawl_images_pixels(images);
  size_t plane = (size_t)about->height * about->width;
  for (size_t c = 0; c < about->channels; c++) {
    float mean = (float)about->mean[c], scale = (float)(1 / about->deviation[c]);
    for (size_t i = 0; i < count; i++) {
      const uint8_t *from = pixels + ((order ? order[i] : first + i) * about->channels + c) * plane;
      for (size_t j = 0; j < plane; j++) *input_out++ = ((float)from[j] - mean) * scale;
    }
  }
}
