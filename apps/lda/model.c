/* Topic models in memory: see <pawl/lda.h> and model_inside.h. */
#include <math.h>
#include <stdlib.h>

#include "apps/common/memory.h"
#include "apps/lda/model_inside.h"

#define WORDS_MAX ((uint64_t)1 << 31)

/* --- life ----------------------------------------------------------------------------------------------- */

static bool is_positive(double number) { return isfinite(number) && number > 0; }

static bool is_sound(const struct pawl_lda_about *about, const double *alpha, const struct pawl_words *words) {
  double beta_sum = (double)about->words * about->beta; /* phi would not be finite with a smaller sum */
  bool is_fine = about->topics >= 1 && about->topics <= PAWL_LDA_TOPICS_MAX && about->words >= 1 &&
                 about->words < WORDS_MAX && is_positive(about->beta) && is_positive(beta_sum) &&
                 is_positive(1 / beta_sum) && (about->method == PAWL_LDA_GIBBS || about->method == PAWL_LDA_SVI);
  for (uint32_t k = 0; is_fine && k < about->topics; k++) is_fine = is_positive(alpha[k]);
  return is_fine && (!words || pawl_words_count(words) == about->words);
}

pawl_status pawl_lda_model_create(const struct pawl_lda_about *about, const double *alpha,
                                  const struct pawl_words *words, struct pawl_lda_model **model_out) {
  if (!is_sound(about, alpha, words)) return PAWL_INVALID;
  struct pawl_lda_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return PAWL_NO_MEMORY;
  model->about = *about;
  model->alpha = apps_alloc_zero(about->topics, sizeof *model->alpha);
  model->totals = apps_alloc_zero(about->topics, sizeof *model->totals);
  model->inverse = apps_alloc_zero(about->topics, sizeof *model->inverse);
  model->rows = apps_alloc_zero((size_t)about->words, sizeof *model->rows);
  model->words = pawl_words_retain(words);
  if (!model->alpha || !model->totals || !model->inverse || !model->rows) {
    pawl_lda_model_destroy(model);
    return PAWL_NO_MEMORY;
  }
  memcpy(model->alpha, alpha, about->topics * sizeof *alpha);
  for (uint32_t k = 0; k < about->topics; k++) model->inverse[k] = 1 / ((double)about->words * about->beta);
  *model_out = model;
  return PAWL_OK;
}

void pawl_lda_model_destroy(struct pawl_lda_model *model) {
  if (!model) return;
  for (uint64_t w = 0; model->rows && w < model->about.words; w++) apps_free(model->rows[w].entries);
  apps_free(model->rows);
  apps_free(model->alpha);
  apps_free(model->totals);
  apps_free(model->inverse);
  pawl_words_release(model->words);
  apps_free(model);
}

/* --- setting -------------------------------------------------------------------------------------------- */

void lda_model_take(struct pawl_lda_model *model, uint64_t word, struct lda_row row) {
  const uint16_t *topics = lda_row_topics(&row);
  double beta_sum = (double)model->about.words * model->about.beta;
  model->rows[word] = row;
  for (uint32_t i = 0; i < row.count; i++) {
    model->totals[topics[i]] += lda_row_value(&row, i);
    model->inverse[topics[i]] = 1 / (model->totals[topics[i]] + beta_sum);
  }
}

/* `values` are int32 or float, of 4 bytes. A 0 of either has no bit set, except for the float -0. */
static pawl_status set(struct pawl_lda_model *model, uint64_t word, const void *values, uint32_t count,
                       enum lda_row_kind kind) {
  struct lda_row row = {.count = count, .kind = kind};
  if (count > 0) {
    row.entries = apps_alloc((size_t)count * 6);
    if (!row.entries) return PAWL_NO_MEMORY;
    uint16_t *topics = (uint16_t *)(void *)(row.entries + (size_t)count * 4);
    uint32_t bits, next = 0;
    for (uint32_t k = 0; next < count; k++) {
      memcpy(&bits, (const char *)values + (size_t)k * 4, 4);
      if (bits << (kind == LDA_ROW_WEIGHTS) == 0) continue;
      memcpy(row.entries + (size_t)next * 4, &bits, 4);
      topics[next++] = (uint16_t)k;
    }
  }
  lda_model_take(model, word, row);
  return PAWL_OK;
}

static pawl_status check_place(const struct pawl_lda_model *model, uint64_t word) {
  if (word >= model->about.words) return PAWL_OUT_OF_SPAN;
  return model->rows[word].kind == LDA_ROW_NONE ? PAWL_OK : PAWL_INVALID;
}

pawl_status pawl_lda_model_set(struct pawl_lda_model *model, uint64_t word, const float *weights) {
  uint32_t count = 0;
  pawl_status status = check_place(model, word);
  for (uint32_t k = 0; !status && k < model->about.topics; k++) {
    if (!(weights[k] >= 0) || !isfinite(weights[k])) status = PAWL_INVALID;
    count += weights[k] > 0;
  }
  return status ? status : set(model, word, weights, count, LDA_ROW_WEIGHTS);
}

pawl_status pawl_lda_model_set_counts(struct pawl_lda_model *model, uint64_t word, const int32_t *counts) {
  uint32_t count = 0;
  pawl_status status = check_place(model, word);
  for (uint32_t k = 0; !status && k < model->about.topics; k++) {
    if (counts[k] < 0) status = PAWL_INVALID;
    count += counts[k] > 0;
  }
  return status ? status : set(model, word, counts, count, LDA_ROW_COUNTS);
}

/* --- getting -------------------------------------------------------------------------------------------- */

void pawl_lda_model_about(const struct pawl_lda_model *model, struct pawl_lda_about *about_out) {
  *about_out = model->about;
}

const double *pawl_lda_model_alpha(const struct pawl_lda_model *model) { return model->alpha; }
const double *pawl_lda_model_totals(const struct pawl_lda_model *model) { return model->totals; }
const struct pawl_words *pawl_lda_model_words(const struct pawl_lda_model *model) { return model->words; }

const struct lda_row *lda_model_row(const struct pawl_lda_model *model, uint64_t word) {
  static const struct lda_row none;
  return word < model->about.words ? &model->rows[word] : &none;
}

double lda_row_weight(const struct lda_row *row, uint32_t topic) {
  if (row->count == 0) return 0;
  const uint16_t *topics = lda_row_topics(row);
  uint32_t low = 0, high = row->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (topics[middle] < topic)
      low = middle + 1;
    else
      high = middle;
  }
  return low < row->count && topics[low] == topic ? lda_row_value(row, low) : 0;
}

void pawl_lda_model_get(const struct pawl_lda_model *model, uint64_t word, float *weights_out) {
  const struct lda_row *row = lda_model_row(model, word);
  for (uint32_t k = 0; k < model->about.topics; k++) weights_out[k] = 0;
  for (uint32_t i = 0; i < row->count; i++) weights_out[lda_row_topics(row)[i]] = (float)lda_row_value(row, i);
}

void pawl_lda_model_phi(const struct pawl_lda_model *model, uint64_t word, float *phi_out) {
  const struct lda_row *row = lda_model_row(model, word);
  double beta = model->about.beta;
  for (uint32_t k = 0; k < model->about.topics; k++) phi_out[k] = (float)(beta * model->inverse[k]);
  for (uint32_t i = 0; i < row->count; i++) {
    uint16_t k = lda_row_topics(row)[i];
    phi_out[k] = (float)((lda_row_value(row, i) + beta) * model->inverse[k]);
  }
}
