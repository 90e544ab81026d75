/* Whole trainings by collapsed Gibbs sampling: what is learnt, exactness, streaming, going on, workers that come later. */
#include "apps/common/allocator_test.h"
#include "apps/lda/train_test.h"

static struct corpus corpus;
static const char *path, *heldout;
static struct pawl_lda_options options;
static struct outcome outcome, other;

static int begin(void **state) {
  (void)state;
  if (open_cluster_of(2, 0)) return -1;
  draw_corpus(&corpus, 600, 1);
  path = corpus.path;
  heldout = corpus.heldout;
  return 0;
}

/* A unigram model would have a perplexity of about 150; words that are drawn by their true topics, about
 * 50. */
static void test_it_finds_the_topics(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 4; workers *= 2) {
    begin_options(&options, &corpus, &path, "finds", &outcome);
    options.workers = workers;
    options.heldout = &heldout;
    options.heldout_count = 1;
    must_train(&options, &outcome);
    check_exact(&corpus, &outcome);
    assert_string_equal(outcome.result.why, "sweeps");
    assert_int_equal(outcome.result.sweeps, 60);
    assert_int_equal(outcome.result.documents, corpus.documents);
    assert_int_equal(outcome.result.empty, corpus.documents / 50);
    if (!(outcome.result.perplexity > 30 && outcome.result.perplexity < 72))
      fail_msg("perplexity %g with %u workers", outcome.result.perplexity, workers);
    assert_true(outcome.result.log_likelihood < 0);
  }
}

static void compare_models(const struct outcome *a, const struct outcome *b) {
  float left[TOPICS], right[TOPICS];
  for (uint64_t w = 0; w < WORDS; w++) {
    pawl_lda_model_get(a->model, w, left);
    pawl_lda_model_get(b->model, w, right);
    assert_memory_equal(left, right, sizeof left);
  }
}

static void test_one_worker_gives_the_same_with_any_number_of_threads(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "threads-1", &outcome);
  options.sweeps = 20;
  must_train(&options, &outcome);
  begin_options(&options, &corpus, &path, "threads-3", &other);
  options.sweeps = 20;
  options.threads = 3;
  must_train(&options, &other);
  compare_models(&outcome, &other);
}

static void test_pieces_that_do_not_fit_are_streamed(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "streamed", &outcome);
  options.memory = 1; /* one piece at a time */
  options.workers = 2;
  options.heldout = &heldout;
  options.heldout_count = 1;
  must_train(&options, &outcome);
  check_exact(&corpus, &outcome);
  if (!(outcome.result.perplexity < 72)) fail_msg("perplexity %g", outcome.result.perplexity);
  assert_in_range(outcome.result.worker_memory, 1, 4 << 20);
}

static bool stop_after_a_while(void *context) {
  const struct outcome *is = context;
  (void)is;
  static int asked;
  return ++asked > 4;
}

static void test_an_interrupted_run_is_gone_on_with(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "resumed", &outcome);
  const char *directory = options.directory;
  char kept[300];
  snprintf(kept, sizeof kept, "%s", directory);
  options.sweeps = 1000000;
  options.measure_every = 1;
  options.stopping = stop_after_a_while;
  must_train(&options, &outcome);
  assert_string_equal(outcome.result.why, "interrupted");
  check_exact(&corpus, &outcome);
  uint64_t done = outcome.result.sweeps;
  assert_true(done > 0);

  begin_options(&options, &corpus, &path, "resumed", &other);
  options.directory = kept;
  assert_int_equal(train(&options, &other), PAWL_EXISTS); /* not by mistake */
  assert_non_null(strstr(other.error, "--resume"));

  begin_options(&options, &corpus, &path, "resumed", &other);
  options.directory = kept;
  options.resume = true;
  options.sweeps = done + 10;
  options.workers = 2;
  must_train(&options, &other);
  check_exact(&corpus, &other);
  assert_int_equal(other.result.sweeps, done + 10);
  assert_true(other.result.log_likelihood > outcome.result.log_likelihood - 0.5); /* it did not begin anew */

  begin_options(&options, &corpus, &path, "resumed", &other);
  options.directory = kept;
  options.resume = true;
  options.sweeps = done; /* they are all done: one more brings the counts to the servers */
  must_train(&options, &other);
  check_exact(&corpus, &other);

  begin_options(&options, &corpus, &path, "resumed", &other);
  options.directory = kept;
  options.resume = true;
  options.topics = 5;
  assert_int_equal(train(&options, &other), PAWL_MISMATCH);
  assert_non_null(strstr(other.error, "topics"));
}

/* A folder in place of the file stands for a disk that is full. */
static void fill_disk(void *context, const struct pawl_lda_progress *progress) {
  char file[320];
  (void)context;
  if (strcmp(progress->stage, "sampling") != 0) return;
  snprintf(file, sizeof file, "%s/run.json", options.directory);
  if (unlink(file) == 0) assert_int_equal(mkdir(file, 0700), 0);
}

static void test_state_that_cannot_be_written_does_not_end_the_run(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "full", &outcome);
  options.sweeps = 10;
  options.progress = fill_disk;
  must_train(&options, &outcome);
  check_exact(&corpus, &outcome);
  assert_non_null(strstr(outcome.result.unsaved, "/run.json: Is a directory"));
}

/* Rounds take their time until the newcomer is in. */
static void hire_one(void *context, const struct pawl_lda_progress *progress) {
  const struct outcome *is = context;
  if (strcmp(progress->stage, "sampling") != 0) return;
  if (pid_count == 1) launch(NULL);
  if (!strstr(is->told, "2 now")) usleep(20000);
}

static bool stop_after_the_move(void *context) {
  const struct outcome *is = context;
  static int asked;
  return strstr(is->told, "moved to") && ++asked > 4;
}

static void test_a_worker_that_joins_later_takes_its_share(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "joined", &outcome);
  options.workers_most = 2;
  options.sweeps = 1000000;
  options.stopping = stop_after_the_move;
  options.measure_every = 1;
  options.progress = hire_one;
  must_train(&options, &outcome);
  check_exact(&corpus, &outcome);
  assert_non_null(strstr(outcome.told, "2 now"));
  assert_non_null(strstr(outcome.told, "moved to"));
}

static void test_alpha_and_beta_are_found(void **state) {
  (void)state;
  begin_options(&options, &corpus, &path, "optimised", &outcome);
  options.optimise = true;
  options.alpha = 5;
  options.sweeps = 200;
  must_train(&options, &outcome);
  check_exact(&corpus, &outcome);
  const double *alpha = pawl_lda_model_alpha(outcome.model);
  for (uint32_t k = 0; k < TRUE_TOPICS; k++)
    assert_true(alpha[k] > 0.02 && alpha[k] < 2); /* documents have few topics */
}

static void test_a_model_is_where_sampling_starts(void **state) {
  (void)state;
  char file[300], error[PAWL_LDA_TEXT];
  begin_options(&options, &corpus, &path, "first", &outcome);
  must_train(&options, &outcome);
  snprintf(file, sizeof file, "%s/start.model", folder);
  must(pawl_lda_model_write(outcome.model, file, error));
  begin_options(&options, &corpus, &path, "second", &other);
  options.start = file;
  options.sweeps = 2;
  must_train(&options, &other);
  check_exact(&corpus, &other);
  assert_true(other.result.log_likelihood > outcome.result.log_likelihood - 0.4);
  begin_options(&options, &corpus, &path, "third", &other);
  options.start = file;
  options.topics = 9;
  assert_int_equal(train(&options, &other), PAWL_MISMATCH);
}

static void test_what_cannot_be_done_is_said(void **state) {
  (void)state;
  char empty[300];
  const char *only = empty;
  snprintf(empty, sizeof empty, "%s/empty.ldac", folder);
  FILE *file = fopen(empty, "w");
  fputs("0\n0\n0\n", file);
  assert_int_equal(fclose(file), 0);
  begin_options(&options, &corpus, &only, "empty", &outcome);
  options.reading.format = PAWL_DATA_LDAC;
  assert_int_equal(train(&options, &outcome), PAWL_TRUNCATED);
  assert_non_null(strstr(outcome.error, "no words"));
  begin_options(&options, &corpus, &path, "none", &outcome);
  options.topics = 0;
  assert_int_equal(train(&options, &outcome), PAWL_INVALID);
}

int main(int count, char **words) {
  use_own_allocator(); /* in workers too */
  if (count == 3) return be_worker(words[1], words[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_finds_the_topics),
      cmocka_unit_test(test_one_worker_gives_the_same_with_any_number_of_threads),
      cmocka_unit_test(test_pieces_that_do_not_fit_are_streamed),
      cmocka_unit_test(test_an_interrupted_run_is_gone_on_with),
      cmocka_unit_test(test_state_that_cannot_be_written_does_not_end_the_run),
      cmocka_unit_test(test_a_worker_that_joins_later_takes_its_share),
      cmocka_unit_test(test_alpha_and_beta_are_found),
      cmocka_unit_test(test_a_model_is_where_sampling_starts),
      cmocka_unit_test(test_what_cannot_be_done_is_said),
  };
  int failed = cmocka_run_group_tests_name("apps.lda.train", tests, begin, close_cluster);
  pawl_lda_model_destroy(outcome.model);
  pawl_lda_model_destroy(other.model);
  return failed || own_blocks_left();
}
