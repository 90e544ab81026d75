/* A model in memory, and prediction. */
#include "apps/cnn/model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/cnn/feed.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

#define BATCH 64 /* images that are predicted at a time */

pawl_status cnn_model_create(const struct pawl_cnn_about *about, struct pawl_cnn_model **model_out, char *error) {
  const struct cnn_spec *spec = cnn_spec_find(about->net);
  struct cnn_shape input = {about->channels, about->height, about->width};
  if (!spec) return apps_say(error, PAWL_UNSUPPORTED, "unknown net '%s'; this pawl knows lenet and vgg", about->net);
  if (about->channels > PAWL_CNN_CHANNELS_MAX)
    return apps_say(error, PAWL_TOO_LARGE, "images of %" PRIu32 " channels; at most %d are possible", about->channels,
                    PAWL_CNN_CHANNELS_MAX);
  struct pawl_cnn_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  pawl_status status = cnn_net_create(spec, input, about->classes, &model->net, error);
  if (!status && about->parameters && about->parameters != model->net->parameters)
    status = apps_say(error, PAWL_UNSUPPORTED,
                      "%" PRIu64 " parameters, but %s has %zu; a different version of pawl "
                      "wrote this model",
                      about->parameters, about->net, model->net->parameters);
  if (!status) {
    model->about = *about;
    model->about.parameters = model->net->parameters;
    model->about.tensors = model->net->tensor_count;
    model->parameters = apps_alloc_zero(model->net->parameters, sizeof *model->parameters);
    if (!model->parameters) status = apps_say(error, PAWL_NO_MEMORY, "out of memory");
  }
  if (status)
    pawl_cnn_model_destroy(model);
  else
    *model_out = model;
  return status;
}

void pawl_cnn_model_destroy(struct pawl_cnn_model *model) {
  if (!model) return;
  cnn_net_destroy(model->net);
  apps_free(model->parameters);
  apps_free(model);
}

void pawl_cnn_model_about(const struct pawl_cnn_model *model, struct pawl_cnn_about *about_out) {
  *about_out = model->about;
}

const struct pawl_cnn_tensor *pawl_cnn_model_tensor(const struct pawl_cnn_model *model, size_t number) {
  return number < model->net->tensor_count ? &model->net->tensors[number] : NULL;
}

const float *pawl_cnn_model_parameters(const struct pawl_cnn_model *model) { return model->parameters; }

bool cnn_model_is_finite(const struct pawl_cnn_model *model) {
  for (size_t i = 0; i < model->net->parameters; i++)
    if (!isfinite(model->parameters[i])) return false;
  return true;
}

/* --- prediction ------------------------------------------------------------------------------------------ */

pawl_status cnn_model_fits(const struct pawl_cnn_model *model, const struct pawl_images *images, char *error) {
  const struct pawl_cnn_about *about = &model->about;
  struct pawl_images_info info;
  pawl_images_info(images, &info);
  if (info.channels != about->channels || info.height != about->height || info.width != about->width)
    return apps_say(error, PAWL_MISMATCH,
                    "the images have %" PRIu32 " x %" PRIu32 " x %" PRIu32 " values, but the net was made for %" PRIu32
                    " x %" PRIu32 " x %" PRIu32,
                    info.channels, info.height, info.width, about->channels, about->height, about->width);
  if (info.classes > about->classes)
    return apps_say(error, PAWL_MISMATCH,
                    "an image has the label %" PRIu32 ", but the net has the classes 0 to %" PRIu32, info.classes - 1,
                    about->classes - 1);
  return PAWL_OK;
}

/* The class with the highest score; of equal ones the first. */
static uint8_t best_of(size_t classes, size_t images, const float *scores, size_t image) {
  size_t best = 0;
  for (size_t k = 1; k < classes; k++)
    if (scores[k * images + image] > scores[best * images + image]) best = k;
  return (uint8_t)best;
}

void cnn_model_predict(const struct pawl_cnn_model *model, struct cnn_pass *pass, size_t batch,
                       const struct pawl_images *images, uint8_t *classes_out, float *probabilities_out,
                       struct pawl_cnn_score *score_out) {
  const uint8_t *labels = pawl_images_labels(images);
  size_t classes = model->about.classes;
  struct pawl_images_info info;
  pawl_images_info(images, &info);
  struct pawl_cnn_score score = {.images = info.count};
  for (size_t first = 0; first < info.count; first += batch) {
    size_t count = info.count - first < batch ? (size_t)(info.count - first) : batch, wrong = 0;
    cnn_feed(images, &model->about, NULL, first, count, cnn_pass_input(pass));
    const float *scores = cnn_pass_forward(pass, model->parameters, count, NULL);
    if (labels) score.loss += cnn_loss(classes, count, scores, labels + first, NULL, &wrong);
    score.wrong += wrong;
    for (size_t i = 0; i < count; i++) {
      if (classes_out) classes_out[first + i] = best_of(classes, count, scores, i);
      if (probabilities_out) cnn_probabilities(classes, count, scores, i, probabilities_out + (first + i) * classes);
    }
  }
  score.loss = labels ? score.loss / (double)info.count : (double)NAN;
  *score_out = score;
}

pawl_status pawl_cnn_predict(const struct pawl_cnn_model *model, const struct pawl_images *images, uint8_t *classes_out,
                             float *probabilities_out, struct pawl_cnn_score *score_out, char error[PAWL_CNN_TEXT]) {
  struct cnn_pass *pass;
  pawl_status status = cnn_model_fits(model, images, error);
  if (status) return status;
  status = cnn_pass_create(model->net, BATCH, false, &pass);
  if (status) return apps_say(error, status, "no memory for %d images of %s", BATCH, model->about.net);
  cnn_model_predict(model, pass, BATCH, images, classes_out, probabilities_out, score_out);
  cnn_pass_destroy(pass);
  return PAWL_OK;
}
