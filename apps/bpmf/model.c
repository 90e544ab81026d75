/* A model in memory, prediction and recommendation. */
#include "apps/bpmf/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

/* --- memory ----------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
  uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
  return one < other ? -1 : one > other;
}

/* Who has rated what, in training or test ratings. A pair that is in both counts twice. */
static bool list_rated(struct pawl_bpmf_model *model, const struct bpmf_data *data) {
  const struct bpmf_ratings *users = &data->sides[BPMF_USERS];
  model->counts = apps_alloc_zero(users->rows, sizeof *model->counts);
  model->starts = apps_alloc_zero((size_t)users->rows + 1, sizeof *model->starts);
  model->rated = apps_alloc_zero((size_t)(data->count + data->test_count), sizeof *model->rated);
  if (!model->counts || !model->starts || !model->rated) return false;
  for (uint32_t i = 0; i < users->rows; i++) model->starts[i + 1] = users->starts[i + 1] - users->starts[i];
  for (uint64_t i = 0; i < data->test_count; i++) model->starts[data->tests[i].user + 1]++;
  for (uint32_t i = 0; i < users->rows; i++) model->starts[i + 1] += model->starts[i];
  for (uint32_t i = 0; i < users->rows; i++)
    for (uint64_t n = users->starts[i]; n < users->starts[i + 1]; n++)
      model->rated[model->starts[i] + model->counts[i]++] = users->others[n];
  for (uint64_t i = 0; i < data->test_count; i++) {
    uint32_t user = data->tests[i].user;
    model->rated[model->starts[user] + model->counts[user]++] = data->tests[i].item;
  }
  for (uint32_t i = 0; i < users->rows; i++)
    qsort(model->rated + model->starts[i], model->counts[i], sizeof *model->rated, by_number);
  return true;
}

pawl_status bpmf_model_create(struct bpmf_data *data, const struct pawl_bpmf_about *about,
                              struct pawl_bpmf_model **model_out) {
  struct pawl_bpmf_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return PAWL_NO_MEMORY;
  model->about = *about;
  model->samples = apps_alloc_zero(about->samples, bpmf_sample_size(about) * sizeof *model->samples);
  if (!model->samples || !list_rated(model, data)) {
    pawl_bpmf_model_destroy(model);
    return PAWL_NO_MEMORY;
  }
  memcpy(model->names, data->names, sizeof model->names);
  memset(data->names, 0, sizeof data->names);
  *model_out = model;
  return PAWL_OK;
}

void pawl_bpmf_model_destroy(struct pawl_bpmf_model *model) {
  if (!model) return;
  apps_free(model->samples);
  for (int side = 0; side < BPMF_SIDES; side++) apps_names_fini(&model->names[side]);
  apps_free(model->counts);
  apps_free(model->starts);
  apps_free(model->rated);
  apps_free(model);
}

void pawl_bpmf_model_about(const struct pawl_bpmf_model *model, struct pawl_bpmf_about *about_out) {
  *about_out = model->about;
}

const char *pawl_bpmf_model_item(const struct pawl_bpmf_model *model, uint32_t item) {
  return apps_names_get(&model->names[BPMF_ITEMS], item);
}

pawl_status pawl_bpmf_model_find_user(const struct pawl_bpmf_model *model, const char *id, uint32_t *user_out) {
  return apps_names_find(&model->names[BPMF_USERS], id, user_out) ? PAWL_OK : PAWL_NOT_FOUND;
}

pawl_status pawl_bpmf_model_find_item(const struct pawl_bpmf_model *model, const char *id, uint32_t *item_out) {
  return apps_names_find(&model->names[BPMF_ITEMS], id, item_out) ? PAWL_OK : PAWL_NOT_FOUND;
}

const uint32_t *pawl_bpmf_model_rated(const struct pawl_bpmf_model *model, uint32_t user, size_t *count_out) {
  *count_out = model->counts[user];
  return model->rated + model->starts[user];
}

/* --- prediction ------------------------------------------------------------------------------------------- */

/* The prediction before it is limited to the range of ratings. */
static struct pawl_bpmf_prediction predict(const struct pawl_bpmf_model *model, uint32_t user, uint32_t item) {
  const struct pawl_bpmf_about *about = &model->about;
  double mean = 0, squares = 0;
  for (uint32_t s = 0; s < about->samples; s++) { /* Welford's update */
    const float *sample = model->samples + s * bpmf_sample_size(about);
    const float *u = sample + (size_t)user * about->rank, *v = sample + ((size_t)about->users + item) * about->rank;
    double rating = about->mean;
    for (uint32_t k = 0; k < about->rank; k++) rating += (double)u[k] * (double)v[k];
    double off = rating - mean;
    mean += off / (s + 1);
    squares += off * (rating - mean);
  }
  double spread = about->samples > 1 ? squares / (about->samples - 1) : 0;
  return (struct pawl_bpmf_prediction){mean, sqrt(spread + 1 / about->alpha)};
}

static double limited(const struct pawl_bpmf_model *model, double rating) {
  return fmin(fmax(rating, model->about.lowest), model->about.highest);
}

void pawl_bpmf_predict(const struct pawl_bpmf_model *model, uint32_t user, uint32_t item,
                       struct pawl_bpmf_prediction *prediction_out) {
  *prediction_out = predict(model, user, item);
  prediction_out->mean = limited(model, prediction_out->mean);
}

static int by_merit(const void *a, const void *b) {
  const struct pawl_bpmf_choice *one = a, *other = b;
  if (one->prediction.mean != other->prediction.mean) return one->prediction.mean > other->prediction.mean ? -1 : 1;
  return one->item < other->item ? -1 : one->item > other->item;
}

pawl_status pawl_bpmf_recommend(const struct pawl_bpmf_model *model, uint32_t user, size_t top,
                                struct pawl_bpmf_choice *choices_out, size_t *count_out) {
  struct pawl_bpmf_choice *all = apps_alloc_zero(model->about.items, sizeof *all);
  const uint32_t *rated = model->rated + model->starts[user];
  size_t count = 0, next = 0;
  if (!all) return PAWL_NO_MEMORY;
  for (uint32_t item = 0; item < model->about.items; item++) {
    while (next < model->counts[user] && rated[next] < item) next++;
    if (next < model->counts[user] && rated[next] == item) continue;
    all[count++] = (struct pawl_bpmf_choice){item, predict(model, user, item)};
  }
  qsort(all, count, sizeof *all, by_merit);
  if (count > top) count = top;
  for (size_t i = 0; i < count; i++) {
    choices_out[i] = all[i];
    choices_out[i].prediction.mean = limited(model, all[i].prediction.mean);
  }
  apps_free(all);
  *count_out = count;
  return PAWL_OK;
}
