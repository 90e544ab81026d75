/* Whole trainings by stochastic variational inference, with workers that are processes. */
#include "apps/common/allocator_test.h"
#include "apps/lda/svi/svi_test.h"
#include "apps/lda/train_test.h"

static struct corpus corpus;
static const char *path, *heldout;
static struct pawl_lda_options options;
static struct outcome outcome;

static int begin(void **state) {
  if (open_cluster(state)) return -1;
  draw_corpus(&corpus, 400, 11);
  path = corpus.path;
  heldout = corpus.heldout;
  return 0;
}

static void begin_svi(const char *name) {
  begin_options(&options, &corpus, &path, name, &outcome);
  options.method = PAWL_LDA_SVI;
  options.sweeps = 12;
  options.batch = 20;
  options.kappa = 0.6;
  options.offset = 4;
  options.heldout = &heldout;
  options.heldout_count = 1;
}

/* Finite and not negative; the totals are the sums of the rows. In all about as many tokens as the corpus
 * has. */
static void check_model(void) {
  float row[TOPICS];
  double totals[TOPICS] = {0}, all = 0;
  struct pawl_lda_about about;
  pawl_lda_model_about(outcome.model, &about);
  assert_int_equal(about.method, PAWL_LDA_SVI);
  assert_int_equal(about.words, WORDS);
  for (uint64_t w = 0; w < about.words; w++) {
    pawl_lda_model_get(outcome.model, w, row);
    for (uint32_t k = 0; k < TOPICS; k++) {
      assert_true(isfinite(row[k]) && row[k] >= 0);
      totals[k] += (double)row[k];
      all += (double)row[k];
    }
  }
  for (uint32_t k = 0; k < TOPICS; k++)
    assert_true(fabs(totals[k] - pawl_lda_model_totals(outcome.model)[k]) < 1e-3 * (totals[k] + 1));
  if (!(all > 0.8 * (double)corpus.tokens && all < 1.2 * (double)corpus.tokens))
    fail_msg("weights of %g in all, for %llu tokens", all, (unsigned long long)corpus.tokens);
}

/* As in train_test.c: a unigram model has about 150, the truth about 50. */
static void check_quality(double most) {
  double found = outcome.result.perplexity;
  if (!(found > 30 && found < most)) fail_msg("perplexity %g", found);
  assert_true(outcome.result.log_likelihood > -4.6 && outcome.result.log_likelihood < -3);
}

static void test_it_finds_the_topics(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 2; workers++) {
    begin_svi(workers == 1 ? "one" : "two");
    options.workers = workers;
    options.reading.piece_bytes = 8000;
    must_train(&options, &outcome);
    assert_int_equal(outcome.result.sweeps, 12);
    assert_int_equal(outcome.result.documents, corpus.documents);
    assert_int_equal(outcome.result.tokens, corpus.tokens);
    check_model();
    check_quality(80);
  }
}

static struct pawl_batch *read_corpus(void) {
  struct pawl_data_options reading;
  struct pawl_data *data;
  struct pawl_batch *batch;
  pawl_data_options_init(&reading);
  reading.piece_bytes = 1 << 30;
  must(pawl_data_open(&path, 1, &reading, &data));
  must(pawl_data_read(data, 0, &batch));
  pawl_data_close(data);
  assert_int_equal(batch->rows, corpus.documents);
  return batch;
}

/* A batch of all documents is the same in any order. Rounding may add a turn here and there. */
static void test_one_worker_does_what_the_plain_form_does(void **state) {
  (void)state;
  struct reference reference = {.topics = TOPICS, .words = WORDS, .alpha = 0.2, .beta = 0.01};
  struct lda_svi_rate rate = {0.6, 4};
  struct pawl_batch *batch = read_corpus();
  float row[TOPICS];
  double weights[TOPICS];
  begin_svi("plain");
  options.sweeps = 4;
  options.batch = 1000;
  must_train(&options, &outcome);
  reference_init(&reference, options.seed);
  for (uint64_t t = 1; t <= 4; t++)
    reference_step(&reference, batch, 0, batch->rows, (double)batch->rows, lda_svi_rho(&rate, t));
  for (uint64_t w = 0; w < WORDS; w++) {
    pawl_lda_model_get(outcome.model, w, row);
    for (size_t k = 0; k < TOPICS; k++) weights[k] = (double)row[k];
    check_weights(&reference, w, weights, 2e-3);
  }
  reference_fini(&reference);
  pawl_batch_destroy(batch);
}

/* A step for each document, each of them long: in a pass the scale falls below what floats can hold, and it
 * must be cut into parts. */
static void test_passes_of_many_steps_are_cut_into_parts(void **state) {
  (void)state;
  struct lda_svi_rate rate = {0.51, 0};
  assert_true(lda_svi_decay(&rate, 0, 2 * corpus.documents) > 50);
  begin_svi("parts");
  options.sweeps = 2;
  options.batch = 1;
  options.kappa = rate.kappa;
  options.offset = rate.offset;
  options.workers = 2;
  must_train(&options, &outcome);
  check_model();
  assert_true(outcome.result.perplexity < 120);
}

static void test_its_model_is_where_sampling_starts(void **state) {
  (void)state;
  static struct outcome sampled;
  char file[300];
  snprintf(file, sizeof file, "%s/svi.model", folder);
  begin_svi("before");
  must_train(&options, &outcome);
  must(pawl_lda_model_write(outcome.model, file, outcome.error));
  begin_options(&options, &corpus, &path, "after", &sampled);
  options.heldout = &heldout;
  options.heldout_count = 1;
  options.start = file;
  options.sweeps = 3;
  must_train(&options, &sampled);
  check_exact(&corpus, &sampled);
  assert_true(sampled.result.perplexity < 80);
  pawl_lda_model_destroy(sampled.model);
}

static bool stop_after_a_pass(void *context) {
  (void)context;
  return true;
}

static void test_what_is_interrupted_keeps_what_there_is(void **state) {
  (void)state;
  begin_svi("stopped");
  options.stopping = stop_after_a_pass;
  options.sweeps = 50;
  pawl_status status = train(&options, &outcome);
  assert_true(status == PAWL_OK || status == PAWL_CANCELLED);
  if (!status) assert_string_equal(outcome.result.why, "interrupted");
}

int main(int count, char **words) {
  use_own_allocator(); /* in workers too */
  if (count == 3) return be_worker(words[1], words[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_finds_the_topics),
      cmocka_unit_test(test_one_worker_does_what_the_plain_form_does),
      cmocka_unit_test(test_passes_of_many_steps_are_cut_into_parts),
      cmocka_unit_test(test_its_model_is_where_sampling_starts),
      cmocka_unit_test(test_what_is_interrupted_keeps_what_there_is),
  };
  int failed = cmocka_run_group_tests_name("apps.lda.svi.svi", tests, begin, close_cluster);
  pawl_lda_model_destroy(outcome.model);
  return failed || own_blocks_left();
}
