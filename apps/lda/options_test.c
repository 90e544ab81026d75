/* Options: what is right passes, and what is wrong is told in a sentence. */
#include <math.h>

#include <pawl/lda.h>

#include "base/testing.h"

static const char *const paths[] = {"/data/a", "/data/b"};
static struct pawl_lda_options options;
static char error[PAWL_LDA_TEXT], text[5000];

static int begin(void **state) {
  (void)state;
  pawl_lda_options_init(&options);
  options.paths = paths;
  options.path_count = 2;
  options.directory = "/runs/1";
  *error = 0;
  return 0;
}

static void passes(void) {
  if (!pawl_lda_check(&options, error)) fail_msg("refused: %s", error);
}

static void is_refused(const char *words) {
  *error = 0;
  assert_false(pawl_lda_check(&options, error));
  if (!strstr(error, words)) fail_msg("'%s' is not in '%s'", words, error);
  assert_false(pawl_lda_check(&options, NULL));
}

/* "/aaa…" of so many letters. */
static const char *long_path(size_t length) {
  memset(text, 'a', length);
  text[0] = '/';
  text[length] = 0;
  return text;
}

static void test_what_the_defaults_are_is_fine(void **state) {
  (void)state;
  passes();
  assert_int_equal(options.method, PAWL_LDA_GIBBS);
  assert_int_equal(options.topics, 100);
  assert_true(options.alpha == 0.1 && options.beta == 0.01);
  assert_int_equal(options.staleness, 1);
  assert_int_equal(options.seed, 1);
  options.method = PAWL_LDA_SVI;
  passes();
}

static void test_there_are_two_methods(void **state) {
  (void)state;
  options.method = (enum pawl_lda_method)0;
  is_refused("unknown method");
  options.method = (enum pawl_lda_method)3;
  is_refused("unknown method");
}

static void test_topics_are_1_to_65000(void **state) {
  (void)state;
  options.topics = 1;
  passes();
  options.topics = PAWL_LDA_TOPICS_MAX;
  passes();
  options.topics = 0;
  is_refused("1 to 65000");
  options.topics = PAWL_LDA_TOPICS_MAX + 1;
  is_refused("1 to 65000");
}

static void test_priors_are_positive(void **state) {
  (void)state;
  static const double wrong[] = {0, -1, NAN, INFINITY, -INFINITY, 1e7};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    begin(NULL);
    options.alpha = wrong[i];
    is_refused("alpha must be a positive number");
    begin(NULL);
    options.beta = wrong[i];
    is_refused("beta must be a positive number");
  }
}

static void test_staleness_fits_16_bits(void **state) {
  (void)state;
  options.staleness = 0;
  passes();
  options.staleness = UINT16_MAX;
  passes();
  options.staleness = UINT16_MAX + 1;
  is_refused("staleness");
}

static void test_svi_has_steps_that_end_but_not_too_soon(void **state) {
  (void)state;
  static const double wrong[] = {0.5, 0, -1, 1.001, NAN, INFINITY};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    begin(NULL);
    options.kappa = wrong[i];
    passes(); /* of no account for gibbs */
    options.method = PAWL_LDA_SVI;
    is_refused("kappa must be above 0.5");
  }
  options.kappa = 1;
  passes();
  options.offset = 0;
  passes();
  options.offset = -1;
  is_refused("offset");
  options.offset = NAN;
  is_refused("offset");
  options.offset = INFINITY;
  is_refused("offset");
  options.offset = 64;
  options.batch = 0;
  is_refused("at least one document");
}

static void test_svi_neither_resumes_nor_starts_from_a_model(void **state) {
  (void)state;
  options.method = PAWL_LDA_SVI;
  options.resume = true;
  is_refused("cannot be resumed");
  options.resume = false;
  options.start = "/model";
  is_refused("svi cannot start from a model");
  options.method = PAWL_LDA_GIBBS;
  options.resume = true;
  passes();
}

static void test_paths_are_absolute(void **state) {
  (void)state;
  static const char *const relative[] = {"/data/a", "data/b"}, *const empty[] = {"", "/data/b"};
  options.path_count = 0;
  is_refused("no data");
  options.path_count = 2;
  options.paths = relative;
  is_refused("paths of the data must be absolute");
  options.paths = empty;
  is_refused("paths of the data must be absolute");
  options.paths = paths;
  options.vocabulary = "words";
  is_refused("path of the vocabulary");
  options.vocabulary = long_path(4001);
  is_refused("path of the vocabulary");
  options.vocabulary = long_path(4000);
  passes();
  options.start = "model";
  is_refused("model to start from");
  options.start = "/model";
  passes();
}

static void test_a_run_has_a_directory(void **state) {
  (void)state;
  options.directory = NULL;
  is_refused("the directory of the run must be given");
  options.directory = "run";
  is_refused("the directory of the run must be given");
  options.directory = long_path(3001);
  is_refused("the directory of the run must be given");
  options.directory = long_path(3000);
  passes();
}

static void test_a_job_has_a_name_of_60_letters_at_most(void **state) {
  (void)state;
  options.job = "";
  is_refused("1 to 60 characters");
  options.job = long_path(61);
  is_refused("1 to 60 characters");
  options.job = long_path(60);
  passes();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_what_the_defaults_are_is_fine, begin),
      cmocka_unit_test_setup(test_there_are_two_methods, begin),
      cmocka_unit_test_setup(test_topics_are_1_to_65000, begin),
      cmocka_unit_test_setup(test_priors_are_positive, begin),
      cmocka_unit_test_setup(test_staleness_fits_16_bits, begin),
      cmocka_unit_test_setup(test_svi_has_steps_that_end_but_not_too_soon, begin),
      cmocka_unit_test_setup(test_svi_neither_resumes_nor_starts_from_a_model, begin),
      cmocka_unit_test_setup(test_paths_are_absolute, begin),
      cmocka_unit_test_setup(test_a_run_has_a_directory, begin),
      cmocka_unit_test_setup(test_a_job_has_a_name_of_60_letters_at_most, begin),
  };
  return cmocka_run_group_tests_name("apps.lda.options", tests, NULL, NULL);
}
