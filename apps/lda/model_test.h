/* Models that tests make up: word w of V has topic k of K with a count that a small generator gives, many of
 * them 0. */
#ifndef LDA_MODEL_TEST_H
#define LDA_MODEL_TEST_H

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "apps/lda/model_inside.h"

static inline uint32_t lda_test_draw(uint32_t *state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

static inline int32_t lda_test_count(uint64_t word, uint32_t topic, uint32_t zeros_in_8) {
  uint32_t state = (uint32_t)word * 7919 + topic * 104729 + 1;
  for (int i = 0; i < 4; i++) lda_test_draw(&state);
  return lda_test_draw(&state) % 8 < zeros_in_8 ? 0 : (int32_t)(lda_test_draw(&state) % 50 + 1);
}

/* With floats if `method` is SVI; then values are a third of the counts. */
static inline struct pawl_lda_model *lda_test_model(enum pawl_lda_method method, uint32_t topics, uint64_t words,
                                                    uint32_t zeros_in_8, const struct pawl_words *vocabulary) {
  struct pawl_lda_about about = {.method = method,
                                 .topics = topics,
                                 .words = words,
                                 .beta = 0.01,
                                 .sweeps = 7,
                                 .documents = 5,
                                 .tokens = 99,
                                 .log_likelihood = -123.5};
  double *alpha = calloc(topics, sizeof *alpha);
  int32_t *counts = calloc(topics, sizeof *counts);
  float *weights = calloc(topics, sizeof *weights);
  struct pawl_lda_model *model = NULL;
  assert_true(alpha && counts && weights);
  for (uint32_t k = 0; k < topics; k++) alpha[k] = 0.1 + 0.01 * k;
  assert_int_equal(pawl_lda_model_create(&about, alpha, vocabulary, &model), PAWL_OK);
  for (uint64_t w = 0; w < words; w++) {
    for (uint32_t k = 0; k < topics; k++) {
      counts[k] = lda_test_count(w, k, zeros_in_8);
      weights[k] = (float)counts[k] / 3;
    }
    pawl_status status =
        method == PAWL_LDA_SVI ? pawl_lda_model_set(model, w, weights) : pawl_lda_model_set_counts(model, w, counts);
    assert_int_equal(status, PAWL_OK);
  }
  free(alpha);
  free(counts);
  free(weights);
  return model;
}

#endif
