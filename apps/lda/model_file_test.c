/* Topic models on disk: there and back, damaged in every place, and what other files are. */
#include "apps/lda/model_test.h"

#include <xxhash.h>

#include "apps/linear/model/model.h"

static char folder[] = "/tmp/pawl-topics-XXXXXX";
static char error[PAWL_LDA_TEXT];

static int set_up(void **state) {
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  unlink("m");
  return chdir("/") == 0 ? rmdir(folder) : -1; /* a draft that was left behind is noticed here */
}

static char *written(const struct pawl_lda_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(lda_model_fill(file, model), PAWL_OK);
  fclose(file);
  return bytes;
}

static void same_models(const struct pawl_lda_model *a, const struct pawl_lda_model *b) {
  size_t size, other_size;
  char *bytes = written(a, &size), *other = written(b, &other_size);
  assert_int_equal(size, other_size);
  assert_memory_equal(bytes, other, size);
  free(bytes);
  free(other);
}

static struct pawl_words *vocabulary(uint64_t count) {
  struct pawl_words *words = NULL;
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  for (uint64_t w = 0; w < count; w++) fprintf(file, "w%c%d\n", 'a' + (int)(w % 26), (int)w);
  fclose(file);
  assert_int_equal(pawl_words_parse("made up", text, size, &words), PAWL_OK);
  free(text);
  return words;
}

static void check_there_and_back(enum pawl_lda_method method, bool named) {
  struct pawl_words *words = named ? vocabulary(30) : NULL;
  struct pawl_lda_model *model = lda_test_model(method, 11, 30, 5, words), *again = NULL;
  struct pawl_lda_about about;
  float before[11], after[11];
  pawl_words_release(words);
  assert_int_equal(pawl_lda_model_write(model, "m", error), PAWL_OK);
  assert_int_equal(pawl_lda_model_read("m", &again, error), PAWL_OK);
  same_models(model, again);
  pawl_lda_model_about(again, &about);
  assert_int_equal(about.method, method);
  assert_true(about.beta == 0.01 && about.sweeps == 7 && about.documents == 5 && about.tokens == 99);
  assert_true(about.log_likelihood == -123.5);
  assert_memory_equal(pawl_lda_model_alpha(model), pawl_lda_model_alpha(again), 11 * sizeof(double));
  assert_memory_equal(pawl_lda_model_totals(model), pawl_lda_model_totals(again), 11 * sizeof(double));
  for (uint64_t w = 0; w < 30; w++) {
    pawl_lda_model_phi(model, w, before);
    pawl_lda_model_phi(again, w, after);
    assert_memory_equal(before, after, sizeof before);
    if (named)
      assert_string_equal(pawl_words_at(pawl_lda_model_words(model), w), pawl_words_at(pawl_lda_model_words(again), w));
  }
  assert_true(named == (pawl_lda_model_words(again) != NULL));
  pawl_lda_model_destroy(model);
  pawl_lda_model_destroy(again);
}

static void test_a_model_that_is_read_again_is_the_same(void **state) {
  (void)state;
  check_there_and_back(PAWL_LDA_GIBBS, true);
  check_there_and_back(PAWL_LDA_GIBBS, false);
  check_there_and_back(PAWL_LDA_SVI, true);
  check_there_and_back(PAWL_LDA_SVI, false);
}

static void test_counts_beyond_what_floats_count_are_kept(void **state) {
  (void)state;
  struct pawl_lda_about about = {
      .method = PAWL_LDA_GIBBS, .topics = 2, .words = 1, .beta = 1.0 / 3, .log_likelihood = (double)NAN};
  double alpha[2] = {1e-300, 1e300};
  int32_t counts[2] = {INT32_MAX, 16777217};
  struct pawl_lda_model *model, *again;
  assert_int_equal(pawl_lda_model_create(&about, alpha, NULL, &model), PAWL_OK);
  assert_int_equal(pawl_lda_model_set_counts(model, 0, counts), PAWL_OK);
  assert_int_equal(pawl_lda_model_write(model, "m", error), PAWL_OK);
  assert_int_equal(pawl_lda_model_read("m", &again, error), PAWL_OK);
  assert_true(lda_row_weight(lda_model_row(again, 0), 0) == INT32_MAX);
  assert_true(lda_row_weight(lda_model_row(again, 0), 1) == 16777217);
  pawl_lda_model_about(again, &about);
  assert_true(isnan(about.log_likelihood) && about.beta == 1.0 / 3);
  pawl_lda_model_destroy(model);
  pawl_lda_model_destroy(again);
}

/* --- damage --------------------------------------------------------------------------------------------- */

/* Reads a copy that ends where its memory ends, but for the 0 behind it. */
static pawl_status decode(const char *bytes, size_t size, char *why) {
  struct pawl_lda_model *model = NULL;
  char *copy = malloc(size + 1);
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  copy[size] = 0;
  why[0] = 0;
  pawl_status status = lda_model_decode(copy, size, &model, why);
  if (status)
    assert_null(model);
  else
    pawl_lda_model_destroy(model);
  free(copy);
  return status;
}

static void test_every_byte_that_changes_is_noticed(void **state) {
  (void)state;
  char why[PAWL_LDA_TEXT];
  struct pawl_words *words = vocabulary(9);
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 4, 9, 4, words);
  size_t size;
  char *bytes = written(model, &size);
  for (size_t i = 0; i < size; i++) {
    bytes[i] ^= 0x10;
    assert_int_not_equal(decode(bytes, size, why), PAWL_OK);
    assert_true(why[0] != 0);
    bytes[i] ^= 0x10;
  }
  assert_int_equal(decode(bytes, size, why), PAWL_OK);
  free(bytes);
  pawl_words_release(words);
  pawl_lda_model_destroy(model);
}

static void test_wherever_it_is_cut_off_is_noticed(void **state) {
  (void)state;
  char why[PAWL_LDA_TEXT];
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_SVI, 4, 9, 4, NULL);
  size_t size;
  char *bytes = written(model, &size);
  for (size_t i = 0; i < size; i++) assert_int_equal(decode(bytes, i, why), PAWL_TRUNCATED);
  char *longer = calloc(size + 1, 1);
  assert_non_null(longer);
  memcpy(longer, bytes, size);
  assert_int_equal(decode(longer, size + 1, why), PAWL_CORRUPT);
  free(longer);
  free(bytes);
  pawl_lda_model_destroy(model);
}

/* With the checksum made to fit, so that what stands before it is looked at. Whatever is accepted is
 * sound. */
static void test_bytes_that_lie_do_no_harm_even_with_a_checksum_that_fits(void **state) {
  (void)state;
  char why[PAWL_LDA_TEXT];
  struct pawl_words *words = vocabulary(9);
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 4, 9, 4, words);
  size_t size;
  char *bytes = written(model, &size);
  char *copy = malloc(size);
  assert_non_null(copy);
  const unsigned char lies[] = {0, 1, '9', 0x7f, 0x80, 0xff};
  for (size_t i = 0; i < size - 8; i++)
    for (size_t j = 0; j < sizeof lies; j++) {
      memcpy(copy, bytes, size);
      copy[i] = (char)lies[j];
      uint64_t sum = XXH3_64bits(copy, size - 8);
      for (int b = 0; b < 8; b++) copy[size - 8 + (size_t)b] = (char)(unsigned char)(sum >> (8 * b));
      if (decode(copy, size, why)) assert_true(why[0] != 0);
    }
  free(copy);
  free(bytes);
  pawl_words_release(words);
  pawl_lda_model_destroy(model);
}

static void check_text(const char *text, pawl_status wanted, const char *says) {
  char why[PAWL_LDA_TEXT];
  assert_int_equal(decode(text, strlen(text), why), wanted);
  assert_non_null(strstr(why, says));
}

static void test_other_files_are_told_from_topic_models(void **state) {
  (void)state;
  check_text("", PAWL_TRUNCATED, "empty");
  check_text("pawl-mo", PAWL_TRUNCATED, "first line");
  check_text("some text\n", PAWL_CORRUPT, "not a topic model");
  check_text("pawl-model 2 00000384\n{}", PAWL_UNSUPPORTED, "unknown version");
  check_text("pawl-model 1 0000038x\n{}", PAWL_CORRUPT, "first line");
  check_text("pawl-model 1 00000024\n{}", PAWL_MISMATCH, "linear");
  check_text("pawl-model 1 00000024\n[]", PAWL_CORRUPT, "JSON");
  check_text("pawl-model 1 00000040\n{\"kind\":\"forest\"}\n", PAWL_MISMATCH, "forest");
  check_text("pawl-model 1 00000040\n{\"kind\":\"topics\"}\n", PAWL_CORRUPT, "invalid value");
  check_text("solver_type L2R_LR\nnr_class 2\n", PAWL_MISMATCH, "linear");
  check_text("pawl-model 1 00000200\n{\"kind\":\"topics\",\"method\":\"svi\",\"topics\":65000,\"words\":2147483647,"
             "\"beta\":1,\"sweeps\":0,\"documents\":0,\"tokens\":0,\"entries\":9223372036854775807,\"vocabulary\":0}"
             "                                                  ",
             PAWL_TRUNCATED, "too early");
}

static void test_reading_names_the_file_and_the_linear_reader_knows_topics(void **state) {
  (void)state;
  struct pawl_lda_model *model = lda_test_model(PAWL_LDA_GIBBS, 4, 9, 4, NULL), *none = NULL;
  struct pawl_linear_model linear;
  assert_int_equal(pawl_lda_model_read("nowhere", &none, error), PAWL_NOT_FOUND);
  assert_non_null(strstr(error, "nowhere"));
  assert_int_equal(pawl_lda_model_read("nowhere", &none, NULL), PAWL_NOT_FOUND);
  assert_int_equal(pawl_lda_model_write(model, "no/folder", error), PAWL_NOT_FOUND);
  assert_int_equal(pawl_lda_model_write(model, "m", NULL), PAWL_OK);
  assert_int_equal(linear_model_read("m", &linear, error), PAWL_MISMATCH);
  assert_non_null(strstr(error, "pawl lda topics"));
  pawl_lda_model_destroy(model);
  const struct pawl_linear_model other = {
      .about.loss = PAWL_LINEAR_LOGISTIC, .about.labels = {0, 1}, .about.features = 3};
  assert_int_equal(pawl_linear_model_write(&other, "m", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_OK);
  assert_int_equal(pawl_lda_model_read("m", &none, error), PAWL_MISMATCH);
  assert_non_null(strstr(error, "m: this is a linear model"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_model_that_is_read_again_is_the_same),
      cmocka_unit_test(test_counts_beyond_what_floats_count_are_kept),
      cmocka_unit_test(test_every_byte_that_changes_is_noticed),
      cmocka_unit_test(test_wherever_it_is_cut_off_is_noticed),
      cmocka_unit_test(test_bytes_that_lie_do_no_harm_even_with_a_checksum_that_fits),
      cmocka_unit_test(test_other_files_are_told_from_topic_models),
      cmocka_unit_test(test_reading_names_the_file_and_the_linear_reader_knows_topics),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
