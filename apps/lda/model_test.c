/* Topic models in memory: what is set is what is there, phi by its formula, and the most probable words. */
#include "apps/lda/model_test.h"

#include <float.h>

static void test_counts_and_weights_come_back_as_they_were_set(void **state) {
  (void)state;
  for (int method = PAWL_LDA_GIBBS; method <= PAWL_LDA_SVI; method++) {
    struct pawl_lda_model *model = lda_test_model((enum pawl_lda_method)method, 13, 40, 4, NULL);
    float weights[13];
    for (uint64_t w = 0; w < 40; w++) {
      pawl_lda_model_get(model, w, weights);
      for (uint32_t k = 0; k < 13; k++) {
        float count = (float)lda_test_count(w, k, 4);
        assert_true(weights[k] == (method == PAWL_LDA_SVI ? count / 3 : count));
        assert_true((float)lda_row_weight(lda_model_row(model, w), k) == weights[k]);
      }
    }
    pawl_lda_model_destroy(model);
  }
}

static void test_totals_are_sums_over_words(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 13, 40, 4, NULL);
  for (uint32_t k = 0; k < 13; k++) {
    double sum = 0;
    for (uint64_t w = 0; w < 40; w++) sum += lda_test_count(w, k, 4);
    assert_true(pawl_lda_model_totals(model)[k] == sum);
  }
  pawl_lda_model_destroy(model);
}

static void test_phi_is_as_the_formula_says_and_sums_to_one(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 5, 60, 5, NULL);
  double sums[5] = {0};
  float phi[5];
  for (uint64_t w = 0; w < 60; w++) {
    pawl_lda_model_phi(model, w, phi);
    for (uint32_t k = 0; k < 5; k++) {
      double wanted = (lda_test_count(w, k, 5) + 0.01) / (pawl_lda_model_totals(model)[k] + 60 * 0.01);
      assert_true(fabs((double)phi[k] - wanted) < 1e-7 * wanted);
      sums[k] += (double)phi[k];
    }
  }
  for (uint32_t k = 0; k < 5; k++) assert_true(fabs(sums[k] - 1) < 1e-6);
  pawl_lda_model_destroy(model);
}

static void test_a_word_that_is_not_there_has_betas_share(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 3, 4, 0, NULL);
  float weights[3] = {9, 9, 9}, phi[3];
  pawl_lda_model_get(model, 4, weights);
  pawl_lda_model_phi(model, UINT64_MAX, phi);
  for (uint32_t k = 0; k < 3; k++) {
    assert_true(weights[k] == 0);
    assert_true(fabs((double)phi[k] * (pawl_lda_model_totals(model)[k] + 0.04) - 0.01) < 1e-8);
  }
  pawl_lda_model_destroy(model);
}

static void test_large_counts_stay_exact_in_totals_and_rows(void **state) {
  (void)state;
  struct pawl_lda_about about = {.method = PAWL_LDA_GIBBS, .topics = 2, .words = 2, .beta = 0.5};
  double alpha[2] = {1, 1};
  int32_t counts[2] = {INT32_MAX, 16777217};
  struct pawl_lda_model *model;
  assert_int_equal(pawl_lda_model_create(&about, alpha, NULL, &model), PAWL_OK);
  for (uint64_t w = 0; w < 2; w++) assert_int_equal(pawl_lda_model_set_counts(model, w, counts), PAWL_OK);
  assert_true(pawl_lda_model_totals(model)[0] == 2.0 * INT32_MAX);
  assert_true(lda_row_weight(lda_model_row(model, 1), 1) == 16777217);
  pawl_lda_model_destroy(model);
}

static void test_what_cannot_be_is_refused_and_changes_nothing(void **state) {
  (void)state;
  struct pawl_lda_about about = {.method = PAWL_LDA_SVI, .topics = 2, .words = 3, .beta = 0.5};
  double alpha[2] = {1, 1}, bad_alpha[2] = {1, 0};
  float negative[2] = {1, -1}, nan[2] = {NAN, 1}, infinite[2] = {INFINITY, 0}, zeros[2] = {0, -0.0F};
  int32_t below[2] = {-1, 3}, fine[2] = {0, 3};
  struct pawl_lda_model *model;
  assert_int_equal(pawl_lda_model_create(&about, alpha, NULL, &model), PAWL_OK);
  assert_int_equal(pawl_lda_model_set(model, 0, negative), PAWL_INVALID);
  assert_int_equal(pawl_lda_model_set(model, 0, nan), PAWL_INVALID);
  assert_int_equal(pawl_lda_model_set(model, 0, infinite), PAWL_INVALID);
  assert_int_equal(pawl_lda_model_set_counts(model, 0, below), PAWL_INVALID);
  assert_int_equal(pawl_lda_model_set_counts(model, 3, fine), PAWL_OUT_OF_SPAN);
  assert_true(pawl_lda_model_totals(model)[1] == 0);
  assert_int_equal(pawl_lda_model_set_counts(model, 0, fine), PAWL_OK);
  assert_int_equal(pawl_lda_model_set_counts(model, 0, fine), PAWL_INVALID);
  assert_int_equal(pawl_lda_model_set(model, 1, zeros), PAWL_OK);
  assert_int_equal(lda_model_row(model, 1)->count, 0);
  assert_int_equal(pawl_lda_model_set(model, 1, zeros), PAWL_INVALID);
  assert_true(pawl_lda_model_totals(model)[1] == 3);
  pawl_lda_model_destroy(model);
  assert_int_equal(pawl_lda_model_create(&about, bad_alpha, NULL, &model), PAWL_INVALID);
  struct pawl_lda_about others[] = {about, about, about, about, about, about};
  others[0].topics = 0;
  others[1].topics = PAWL_LDA_TOPICS_MAX + 1;
  others[2].words = 0;
  others[3].beta = NAN;
  others[4].beta = 0;
  others[5].beta = 1e-320;
  for (size_t i = 0; i < 6; i++) assert_int_equal(pawl_lda_model_create(&others[i], alpha, NULL, &model), PAWL_INVALID);
}

static void test_a_vocabulary_of_another_size_is_refused(void **state) {
  (void)state;
  struct pawl_lda_about about = {.method = PAWL_LDA_SVI, .topics = 1, .words = 3, .beta = 0.5};
  double alpha = 1;
  struct pawl_words *words;
  struct pawl_lda_model *model;
  assert_int_equal(pawl_words_parse("two", "one\ntwo", 7, &words), PAWL_OK);
  assert_int_equal(pawl_lda_model_create(&about, &alpha, words, &model), PAWL_INVALID);
  about.words = 2;
  assert_int_equal(pawl_lda_model_create(&about, &alpha, words, &model), PAWL_OK);
  pawl_words_release(words);
  assert_string_equal(pawl_words_at(pawl_lda_model_words(model), 1), "two");
  pawl_lda_model_destroy(model);
}

/* --- the most probable words ---------------------------------------------------------------------------- */

/* Whether all is sorted, and nobody is left out who belongs there. */
static void check_top(const struct pawl_lda_model *model, uint32_t topic, const struct pawl_lda_word *top, size_t count,
                      uint64_t words) {
  bool *is_there = calloc(words, sizeof *is_there);
  assert_non_null(is_there);
  for (size_t i = 0; i < count; i++) {
    assert_true(top[i].word < words && !is_there[top[i].word]);
    is_there[top[i].word] = true;
    double weight = lda_row_weight(lda_model_row(model, top[i].word), topic);
    double wanted = (weight + 0.01) / (pawl_lda_model_totals(model)[topic] + (double)words * 0.01);
    assert_true(fabs(top[i].phi - wanted) <= 1e-12 * wanted);
    if (i > 0)
      assert_true(top[i].phi < top[i - 1].phi || (top[i].phi == top[i - 1].phi && top[i].word > top[i - 1].word));
  }
  double least = lda_row_weight(lda_model_row(model, top[count - 1].word), topic);
  for (uint64_t w = 0; w < words; w++) {
    double weight = lda_row_weight(lda_model_row(model, w), topic);
    if (!is_there[w]) assert_true(weight < least || (weight == least && w > top[count - 1].word));
  }
  free(is_there);
}

static void test_top_words_are_the_most_probable_equal_ones_by_number(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 6, 200, 6, NULL);
  struct pawl_lda_word one[200], all[6 * 200];
  const size_t rooms[] = {1, 2, 3, 10, 77, 150, 200};
  for (size_t r = 0; r < sizeof rooms / sizeof *rooms; r++) {
    assert_int_equal(lda_model_tops(model, rooms[r], all), rooms[r]);
    for (uint32_t k = 0; k < 6; k++) {
      assert_int_equal(pawl_lda_model_top(model, k, rooms[r], one), rooms[r]);
      check_top(model, k, one, rooms[r], 200);
      assert_memory_equal(one, all + k * rooms[r], rooms[r] * sizeof *one);
    }
  }
  pawl_lda_model_destroy(model);
}

static void test_there_are_never_more_top_words_than_words(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_SVI, 2, 3, 4, NULL);
  struct pawl_lda_word top[10], all[20];
  assert_int_equal(pawl_lda_model_top(model, 1, 10, top), 3);
  assert_int_equal(pawl_lda_model_top(model, 2, 10, top), 0);
  assert_int_equal(pawl_lda_model_top(model, 0, 0, top), 0);
  assert_int_equal(lda_model_tops(model, 10, all), 3);
  assert_memory_equal(all + 10, top, 3 * sizeof *top);
  pawl_lda_model_destroy(model);
  pawl_lda_model_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_and_weights_come_back_as_they_were_set),
      cmocka_unit_test(test_totals_are_sums_over_words),
      cmocka_unit_test(test_phi_is_as_the_formula_says_and_sums_to_one),
      cmocka_unit_test(test_a_word_that_is_not_there_has_betas_share),
      cmocka_unit_test(test_large_counts_stay_exact_in_totals_and_rows),
      cmocka_unit_test(test_what_cannot_be_is_refused_and_changes_nothing),
      cmocka_unit_test(test_a_vocabulary_of_another_size_is_refused),
      cmocka_unit_test(test_top_words_are_the_most_probable_equal_ones_by_number),
      cmocka_unit_test(test_there_are_never_more_top_words_than_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
