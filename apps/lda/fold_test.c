/* Folding in, inference and perplexity, compared with plain loops in doubles that follow the definition. */
#include "apps/lda/model_test.h"

#include <float.h>

#include <pawl/session.h>

#include "apps/lda/fold.h"

#define WORDS 300
#define DOCUMENTS 150

static char folder[] = "/tmp/pawl-fold-XXXXXX";
static char error[PAWL_LDA_TEXT];

static int set_up(void **state) {
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  unlink("documents");
  return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Documents of a few words, one empty, as LIBSVM rows; some words are beyond the model's. */
static void write_documents(uint64_t words, bool broken) {
  FILE *file = fopen("documents", "w");
  uint32_t state = 5;
  assert_non_null(file);
  for (int d = 0; d < DOCUMENTS; d++) {
    uint64_t id = 0;
    fputs("0", file);
    for (int i = 0; d != 3 && i < 12; i++) {
      id += 1 + lda_test_draw(&state) % (words / 5);
      fprintf(file, " %d:%d", (int)id, (int)(lda_test_draw(&state) % 5 + 1 + (i == 5 ? 100 : 0)));
    }
    fputs(broken && d == 70 ? " 9999:1.5\n" : "\n", file);
  }
  fclose(file);
}

static struct pawl_data *open_documents(uint64_t piece_bytes) {
  struct pawl_data_options options;
  struct pawl_data *data = NULL;
  const char *path = "documents";
  pawl_data_options_init(&options);
  options.format = PAWL_DATA_LIBSVM;
  options.piece_bytes = piece_bytes;
  assert_int_equal(pawl_data_open(&path, 1, &options, &data), PAWL_OK);
  return data;
}

static struct pawl_batch *read_documents(void) {
  struct pawl_data *data = open_documents(0);
  struct pawl_batch *batch = NULL;
  assert_int_equal(pawl_data_read(data, 0, &batch), PAWL_OK);
  pawl_data_close(data);
  assert_int_equal(batch->rows, DOCUMENTS);
  return batch;
}

/* --- the reference -------------------------------------------------------------------------------------- */

static void fold_plainly(const struct pawl_lda_model *model, const uint64_t *words, const double *counts, size_t count,
                         const double *alpha, uint32_t iterations, double *theta) {
  uint32_t topics = model->about.topics;
  double *next = calloc(topics, sizeof *next);
  float *phi = calloc(topics, sizeof *phi);
  assert_true(next && phi);
  for (uint32_t k = 0; k < topics; k++) theta[k] = 1.0 / topics;
  for (uint32_t round = 0; round < iterations; round++) {
    double all = 0;
    for (uint32_t k = 0; k < topics; k++) next[k] = alpha[k];
    for (size_t i = 0; i < count; i++) {
      double sum = 0;
      pawl_lda_model_phi(model, words[i], phi);
      for (uint32_t k = 0; k < topics; k++) sum += (double)phi[k] * theta[k];
      for (uint32_t k = 0; k < topics; k++) next[k] += counts[i] * (double)phi[k] * theta[k] / sum;
    }
    for (uint32_t k = 0; k < topics; k++) all += next[k];
    for (uint32_t k = 0; k < topics; k++) theta[k] = next[k] / all;
  }
  free(next);
  free(phi);
}

/* theta of a row of the batch. */
static void infer_plainly(const struct pawl_lda_model *model, const struct pawl_batch *batch, size_t row,
                          const double *alpha, uint32_t iterations, double *theta) {
  uint64_t words[64];
  double counts[64];
  size_t known = 0;
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
    if (batch->ids[i] <= model->about.words) {
      words[known] = batch->ids[i] - 1;
      counts[known++] = batch->values ? (double)batch->values[i] : 1;
    }
  fold_plainly(model, words, counts, known, alpha, iterations, theta);
}

/* --- inference ------------------------------------------------------------------------------------------ */

static void check_inference(uint32_t topics, uint32_t zeros_in_8, double alpha) {
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, topics, WORDS, zeros_in_8, NULL);
  struct pawl_lda_folding folding;
  struct pawl_batch *batch = read_documents();
  float *theta = calloc(batch->rows * topics, sizeof *theta);
  double *wanted = calloc(topics, sizeof *wanted), *alphas = calloc(topics, sizeof *alphas);
  uint64_t unknown = 0, beyond = 0;
  assert_true(theta && wanted && alphas);
  pawl_lda_folding_init(&folding);
  assert_int_equal(folding.iterations, 100);
  folding.alpha = alpha;
  folding.threads = 3;
  assert_int_equal(pawl_lda_infer(model, batch, &folding, theta, &unknown), PAWL_OK);
  for (uint32_t k = 0; k < topics; k++) alphas[k] = alpha > 0 ? alpha : pawl_lda_model_alpha(model)[k];
  for (size_t row = 0; row < batch->rows; row++) {
    infer_plainly(model, batch, row, alphas, 100, wanted);
    for (uint32_t k = 0; k < topics; k++) assert_true(fabs((double)theta[row * topics + k] - wanted[k]) < 2e-4);
  }
  for (size_t i = 0; i < batch->entries; i++)
    if (batch->ids[i] > WORDS) beyond += (uint64_t)batch->values[i];
  assert_true(beyond > 0);
  assert_int_equal(unknown, beyond);
  free(theta);
  free(wanted);
  free(alphas);
  pawl_batch_destroy(batch);
  pawl_lda_model_destroy(model);
}

static void test_theta_is_that_of_a_plain_loop_in_doubles(void **state) {
  (void)state;
  write_documents(WORDS + 40, false);
  check_inference(16, 2, 0);   /* rows of all topics */
  check_inference(23, 7, 0.1); /* both kinds, and padding */
  check_inference(1, 0, 0.5);
  check_inference(150, 8, 0.1); /* no word has any topic */
}

static void test_a_document_without_known_words_has_alphas_own(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 3, 5, 2, NULL);
  const uint64_t starts[] = {0, 0, 2, 3}, ids[] = {0, 6, 2};
  const float values[] = {4, 3, 0};
  const struct pawl_batch batch = {
      .rows = 3, .entries = 3, .starts = starts, .ids = ids, .values = values, .unknown = 100};
  float theta[9];
  uint64_t unknown;
  assert_int_equal(pawl_lda_infer(model, &batch, NULL, theta, &unknown), PAWL_OK);
  assert_int_equal(unknown, 107);
  for (int i = 0; i < 9; i++) assert_true(fabs((double)theta[i] - (0.1 + 0.01 * (i % 3)) / 0.33) < 1e-6);
  struct pawl_lda_folding folding = {.struct_size = sizeof folding, .alpha = -1};
  assert_int_equal(pawl_lda_infer(model, &batch, &folding, theta, &unknown), PAWL_INVALID);
  pawl_lda_model_destroy(model);
}

/* Words whose probability is too small for a float, and an alpha that is: theta stays a distribution. */
static void test_numbers_at_the_edge_leave_theta_a_distribution(void **state) {
  (void)state;
  struct pawl_lda_about about = {.method = PAWL_LDA_SVI, .topics = 3, .words = 4, .beta = 1e-300};
  double alpha[3] = {1e-200, 1e-200, 1e-200};
  float weights[2][3] = {{1e-38F, 0, 0}, {3e38F, 0, 1}}, theta[3];
  struct pawl_lda_model *model;
  struct lda_fold *fold;
  assert_int_equal(pawl_lda_model_create(&about, alpha, NULL, &model), PAWL_OK);
  for (uint64_t w = 0; w < 2; w++) assert_int_equal(pawl_lda_model_set(model, w, weights[w]), PAWL_OK);
  assert_int_equal(lda_fold_create(model, 0, 50, &fold), PAWL_OK);
  for (uint64_t last = 0; last < 4; last++) {
    lda_fold_clear(fold);
    for (uint64_t w = 0; w <= last; w++) assert_int_equal(lda_fold_add(fold, w, 3), PAWL_OK);
    lda_fold_run(fold, theta);
    assert_true(fabs((double)(theta[0] + theta[1] + theta[2]) - 1) < 1e-5);
  }
  lda_fold_destroy(fold);
  lda_fold_destroy(NULL);
  pawl_lda_model_destroy(model);
}

static void test_the_probability_of_a_word_is_theta_times_phi(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_SVI, 9, 20, 5, NULL);
  struct lda_fold *fold;
  float theta[9], phi[9];
  assert_int_equal(lda_fold_create(model, 0.1, 0, &fold), PAWL_OK);
  assert_int_equal(lda_fold_add(fold, 3, 2), PAWL_OK);
  assert_int_equal(lda_fold_add(fold, 17, 1), PAWL_OK);
  lda_fold_run(fold, theta);
  for (uint64_t w = 0; w < 20; w++) {
    double wanted = 0;
    pawl_lda_model_phi(model, w, phi);
    for (int k = 0; k < 9; k++) wanted += (double)theta[k] * (double)phi[k];
    assert_true(fabs(lda_fold_probability(fold, w) - wanted) < 1e-6 * wanted);
  }
  lda_fold_destroy(fold);
  pawl_lda_model_destroy(model);
}

/* --- perplexity ----------------------------------------------------------------------------------------- */

static struct pawl_lda_score score(const struct pawl_lda_model *model, uint64_t piece_bytes, uint32_t threads,
                                   uint64_t seed) {
  struct pawl_lda_folding folding;
  struct pawl_lda_score is;
  struct pawl_data *data = open_documents(piece_bytes);
  pawl_lda_folding_init(&folding);
  folding.threads = threads;
  folding.seed = seed;
  assert_int_equal(pawl_lda_perplexity(model, data, &folding, &is, error), PAWL_OK);
  pawl_data_close(data);
  return is;
}

/* By the definition, but with halves of its own: the mean of many seeds must be that of the other. */
static double perplexity_plainly(const struct pawl_lda_model *model, const struct pawl_batch *batch, uint32_t seed) {
  double sum = 0, tokens = 0, theta[64], alpha[64], first[64];
  uint64_t words[64];
  float phi[64];
  uint32_t topics = model->about.topics;
  for (uint32_t k = 0; k < topics; k++) alpha[k] = 0.1;
  for (size_t row = 0; row < batch->rows; row++) {
    size_t known = 0;
    double second[64];
    for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
      if (batch->ids[i] > model->about.words) continue;
      first[known] = second[known] = 0;
      for (int t = 0; t < (int)batch->values[i]; t++)
        *(lda_test_draw(&seed) >> 7 & 1 ? &first[known] : &second[known]) += 1;
      words[known++] = batch->ids[i] - 1;
    }
    fold_plainly(model, words, first, known, alpha, 100, theta);
    for (size_t i = 0; i < known; i++) {
      double probability = 0;
      pawl_lda_model_phi(model, words[i], phi);
      for (uint32_t k = 0; k < topics; k++) probability += (double)phi[k] * theta[k];
      sum += second[i] * log(probability);
      tokens += second[i];
    }
  }
  return exp(-sum / tokens);
}

static void test_perplexity_is_that_of_a_plain_loop_but_for_chance(void **state) {
  (void)state;
  write_documents(WORDS + 40, false);
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 12, WORDS, 6, NULL);
  struct pawl_batch *batch = read_documents();
  double ours = 0, plain = 0;
  for (uint32_t seed = 1; seed <= 10; seed++) {
    ours += score(model, 0, 1, seed).perplexity / 10;
    plain += perplexity_plainly(model, batch, seed) / 10;
  }
  if (fabs(ours / plain - 1) >= 0.01) fail_msg("perplexity %.4f, by plain loops %.4f", ours, plain);
  pawl_batch_destroy(batch);
  pawl_lda_model_destroy(model);
}

static void test_perplexity_does_not_depend_on_threads_or_pieces(void **state) {
  (void)state;
  write_documents(WORDS + 40, false);
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 12, WORDS, 6, NULL);
  struct pawl_lda_score one = score(model, 0, 1, 1), other = score(model, 1000, 4, 1);
  assert_memory_equal(&one, &other, sizeof one);
  assert_int_equal(one.documents, DOCUMENTS);
  assert_int_equal(one.empty, 1);
  assert_true(one.unknown > 0 && one.tokens > 1000);
  assert_true(fabs(log(one.perplexity) + one.log_likelihood / (double)one.tokens) < 1e-12);
  assert_true(score(model, 0, 1, 2).perplexity != one.perplexity);
  pawl_lda_model_destroy(model);
}

static void test_a_topic_that_is_all_there_is_scores_as_by_hand(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 1, 2, 8, NULL); /* both words alike */
  FILE *file = fopen("documents", "w");
  assert_non_null(file);
  fputs("0 1:1000 2:1000\n", file);
  fclose(file);
  struct pawl_lda_score is = score(model, 0, 1, 3);
  assert_true(fabs(is.perplexity - 2) < 1e-6);
  assert_true(is.tokens > 900 && is.tokens < 1100); /* half of them: 4 standard deviations are 90 */
  pawl_lda_model_destroy(model);
}

static void test_what_cannot_be_scored_is_said(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 4, WORDS, 6, NULL);
  struct pawl_lda_folding folding = {.struct_size = sizeof folding, .alpha = (double)NAN};
  struct pawl_lda_score is;
  write_documents(WORDS, true);
  struct pawl_data *data = open_documents(0);
  assert_int_equal(pawl_lda_perplexity(model, data, NULL, &is, error), PAWL_INVALID);
  assert_non_null(strstr(error, "count"));
  assert_int_equal(pawl_lda_perplexity(model, data, &folding, &is, error), PAWL_INVALID);
  assert_non_null(strstr(error, "alpha"));
  pawl_data_close(data);
  FILE *file = fopen("documents", "w");
  assert_non_null(file);
  fputs("0 1000:3\n0\n", file);
  fclose(file);
  data = open_documents(0);
  assert_int_equal(pawl_lda_perplexity(model, data, NULL, &is, error), PAWL_INVALID);
  assert_non_null(strstr(error, "2 documents without a known word"));
  pawl_data_close(data);
  pawl_lda_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_theta_is_that_of_a_plain_loop_in_doubles),
      cmocka_unit_test(test_a_document_without_known_words_has_alphas_own),
      cmocka_unit_test(test_numbers_at_the_edge_leave_theta_a_distribution),
      cmocka_unit_test(test_the_probability_of_a_word_is_theta_times_phi),
      cmocka_unit_test(test_perplexity_is_that_of_a_plain_loop_but_for_chance),
      cmocka_unit_test(test_perplexity_does_not_depend_on_threads_or_pieces),
      cmocka_unit_test(test_a_topic_that_is_all_there_is_scores_as_by_hand),
      cmocka_unit_test(test_what_cannot_be_scored_is_said),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
