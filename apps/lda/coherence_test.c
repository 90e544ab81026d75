/* Coherence of topics: by hand, and compared with a plain count of every pair. */
#include "apps/lda/model_test.h"

#define DOCUMENTS 120

static char folder[] = "/tmp/pawl-coherence-XXXXXX";
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

static struct pawl_data *open_documents(const char *text, uint64_t piece_bytes) {
  struct pawl_data_options options;
  struct pawl_data *data = NULL;
  const char *path = "documents";
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  pawl_data_options_init(&options);
  options.format = PAWL_DATA_LIBSVM;
  options.piece_bytes = piece_bytes;
  assert_int_equal(pawl_data_open(&path, 1, &options, &data), PAWL_OK);
  return data;
}

static void near(double a, double b) {
  if (!(fabs(a - b) < 1e-9)) fail_msg("%.12f is not %.12f", a, b);
}

/* One topic, whose words are 0, 1 and 2 by falling probability. */
static struct pawl_lda_model *one_topic(void) {
  struct pawl_lda_about about = {.method = PAWL_LDA_GIBBS, .topics = 1, .words = 4, .beta = 0.01};
  double alpha = 1;
  struct pawl_lda_model *model;
  assert_int_equal(pawl_lda_model_create(&about, &alpha, NULL, &model), PAWL_OK);
  for (int32_t w = 0; w < 4; w++) {
    int32_t count = 10 - w;
    assert_int_equal(pawl_lda_model_set_counts(model, (uint64_t)w, &count), PAWL_OK);
  }
  return model;
}

static void test_both_measures_are_as_by_hand(void **state) {
  (void)state;
  struct pawl_lda_model *model = one_topic();
  struct pawl_lda_coherence is;
  /* D(0) = 3, D(1) = 2, D(2) = 1; (0, 1) twice, (0, 2) never, (1, 2) never; 5 documents. */
  struct pawl_data *data = open_documents("0 1:1 2:5\n0 1:2 2:1\n0 1:1\n0 3:1 9:1\n0 4:1\n", 0);
  assert_int_equal(pawl_lda_coherence(model, data, 3, 1, &is, error), PAWL_OK);
  near(is.umass, (log(3.0 / 3) + log(1.0 / 3) + log(1.0 / 2)) / 3);
  near(is.npmi, (log(2.0 * 5 / (3 * 2)) / -log(2.0 / 5) - 1 - 1) / 3);
  assert_int_equal(pawl_lda_coherence(model, data, 1, 1, &is, error), PAWL_OK);
  assert_true(isnan(is.umass) && isnan(is.npmi));
  assert_int_equal(pawl_lda_coherence(model, data, 100000, 1, &is, error), PAWL_INVALID);
  pawl_data_close(data);
  pawl_lda_model_destroy(model);
}

static void test_words_that_never_occur_say_nothing_and_those_of_all_documents_go_together(void **state) {
  (void)state;
  struct pawl_lda_model *model = one_topic();
  struct pawl_lda_coherence is;
  struct pawl_data *data = open_documents("0 4:1\n", 0);
  assert_int_equal(pawl_lda_coherence(model, data, 3, 1, &is, error), PAWL_OK);
  assert_true(isnan(is.umass) && isnan(is.npmi));
  pawl_data_close(data);
  data = open_documents("0 1:1 2:1\n0 1:3 2:1\n", 0);
  assert_int_equal(pawl_lda_coherence(model, data, 2, 1, &is, error), PAWL_OK);
  near(is.npmi, 1);
  near(is.umass, log(3.0 / 2));
  pawl_data_close(data);
  pawl_lda_model_destroy(model);
}

/* --- many topics ---------------------------------------------------------------------------------------- */

static bool has(const struct pawl_batch *batch, size_t row, uint64_t word) {
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
    if (batch->ids[i] == word + 1) return true;
  return false;
}

static double documents_with(const struct pawl_batch *batch, uint64_t word, uint64_t other) {
  double count = 0;
  for (size_t row = 0; row < batch->rows; row++) count += has(batch, row, word) && has(batch, row, other);
  return count;
}

static struct pawl_lda_coherence judge_plainly(const struct pawl_lda_model *model, const struct pawl_batch *batch,
                                               uint32_t topic, size_t top) {
  struct pawl_lda_word words[16];
  struct pawl_lda_coherence sum = {0, 0};
  double pairs = 0, n = (double)batch->rows;
  assert_int_equal(pawl_lda_model_top(model, topic, top, words), top);
  for (size_t i = 1; i < top; i++)
    for (size_t j = 0; j < i; j++, pairs++) {
      double both = documents_with(batch, words[i].word, words[j].word);
      double one = documents_with(batch, words[i].word, words[i].word);
      double other = documents_with(batch, words[j].word, words[j].word);
      assert_true(one > 0 && other > 0 && both < n);
      sum.umass += log((both + 1) / other);
      sum.npmi += both == 0 ? -1 : log(both / n / (one / n * (other / n))) / -log(both / n);
    }
  return (struct pawl_lda_coherence){sum.umass / pairs, sum.npmi / pairs};
}

static char *make_documents(uint64_t words) {
  char *text = NULL;
  size_t size;
  uint32_t state = 11;
  FILE *file = open_memstream(&text, &size);
  for (int d = 0; d < DOCUMENTS; d++) {
    fputs("0", file);
    for (uint64_t w = 0; w < words; w++)
      if (lda_test_draw(&state) % 4 == 0) fprintf(file, " %d:%d", (int)w + 1, (int)(lda_test_draw(&state) % 3 + 1));
    fputc('\n', file);
  }
  fclose(file);
  return text;
}

static void test_many_topics_are_judged_as_by_counting_every_pair(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 7, 40, 5, NULL);
  struct pawl_lda_coherence topics[7];
  struct pawl_batch *batch;
  char *text = make_documents(40);
  struct pawl_data *data = open_documents(text, 0);
  assert_int_equal(pawl_data_read(data, 0, &batch), PAWL_OK);
  assert_int_equal(batch->rows, DOCUMENTS);
  pawl_data_close(data);
  data = open_documents(text, 1000);
  assert_int_equal(pawl_lda_coherence(model, data, 10, 3, topics, error), PAWL_OK);
  for (uint32_t k = 0; k < 7; k++) {
    struct pawl_lda_coherence wanted = judge_plainly(model, batch, k, 10);
    near(topics[k].umass, wanted.umass);
    near(topics[k].npmi, wanted.npmi);
  }
  pawl_data_close(data);
  pawl_batch_destroy(batch);
  pawl_lda_model_destroy(model);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_measures_are_as_by_hand),
      cmocka_unit_test(test_words_that_never_occur_say_nothing_and_those_of_all_documents_go_together),
      cmocka_unit_test(test_many_topics_are_judged_as_by_counting_every_pair),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
