/* Layers that look at one value at a time, and the loss. */
#include <math.h>

#include "apps/cnn/layers.h"
#include "apps/cnn/random.h"

/* A NaN stays a NaN, so that a run that diverges is noticed. */
void cnn_relu_forward(size_t count, float *values) {
  for (size_t i = 0; i < count; i++) values[i] = values[i] < 0 ? 0 : values[i];
}

void cnn_relu_backward(size_t count, const float *values, float *slope) {
  for (size_t i = 0; i < count; i++) slope[i] = values[i] > 0 ? slope[i] : 0;
}

/* --- dropout --------------------------------------------------------------------------------------------- */

static float dropout_scale(const struct cnn_layer *layer) { return 1 / (1 - layer->drop); }

void cnn_dropout_forward(const struct cnn_layer *layer, size_t number, size_t images, const struct cnn_drops *drops,
                         float *values, uint8_t *kept) {
  size_t plane = cnn_shape_plane(layer->in);
  float scale = dropout_scale(layer);
  for (size_t image = 0; image < images; image++) {
    uint64_t which = apps_random_mix(drops->step + 1) + drops->first + image;
    struct apps_random random = apps_random_of(drops->seed, CNN_FOR_DROPOUT, number, which);
    for (size_t c = 0; c < layer->in.channels; c++)
      for (size_t i = 0, at = (c * images + image) * plane; i < plane; i++, at++) {
        kept[at] = cnn_unit(&random) >= layer->drop;
        values[at] = kept[at] ? values[at] * scale : 0;
      }
  }
}

void cnn_dropout_backward(const struct cnn_layer *layer, size_t count, const uint8_t *kept, float *slope) {
  float scale = dropout_scale(layer);
  for (size_t i = 0; i < count; i++) slope[i] = kept[i] ? slope[i] * scale : 0;
}

/* --- softmax and cross-entropy --------------------------------------------------------------------------- */

/* The highest score of an image, and the sum of exp(score - highest). */
struct cnn_softmax {
  float most;
  double sum;
};

static struct cnn_softmax softmax_of(size_t classes, size_t images, const float *scores, size_t image) {
  struct cnn_softmax softmax = {scores[image], 0};
  for (size_t k = 1; k < classes; k++)
    if (scores[k * images + image] > softmax.most) softmax.most = scores[k * images + image];
  for (size_t k = 0; k < classes; k++) softmax.sum += exp((double)(scores[k * images + image] - softmax.most));
  return softmax;
}

static bool is_highest(size_t classes, size_t images, const float *scores, size_t image, size_t label) {
  float own = scores[label * images + image];
  for (size_t k = 0; k < classes; k++)
    if (k != label && !(scores[k * images + image] < own)) return false;
  return true;
}

double cnn_loss(size_t classes, size_t images, const float *scores, const uint8_t *labels, float *slope,
                size_t *wrong_out) {
  double loss = 0;
  size_t wrong = 0;
  for (size_t image = 0; image < images; image++) {
    struct cnn_softmax softmax = softmax_of(classes, images, scores, image);
    size_t label = labels[image];
    wrong += !is_highest(classes, images, scores, image, label);
    loss += log(softmax.sum) - (double)(scores[label * images + image] - softmax.most);
    for (size_t k = 0; slope && k < classes; k++) {
      double probability = exp((double)(scores[k * images + image] - softmax.most)) / softmax.sum;
      slope[k * images + image] = (float)((probability - (k == label)) / (double)images);
    }
  }
  *wrong_out = wrong;
  return loss;
}

void cnn_probabilities(size_t classes, size_t images, const float *scores, size_t image, float *probabilities_out) {
  struct cnn_softmax softmax = softmax_of(classes, images, scores, image);
  for (size_t k = 0; k < classes; k++)
    probabilities_out[k] = (float)(exp((double)(scores[k * images + image] - softmax.most)) / softmax.sum);
}
