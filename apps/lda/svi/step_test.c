/* Steps of stochastic variational inference, without servers: apps/lda/svi/step.h. */
#include "apps/lda/random.h"
#include "apps/lda/svi/svi_test.h"

enum { DOCUMENTS = 90, WORDS = 120, TOPICS = 19, ENTRIES_MOST = DOCUMENTS * 40 };

static struct {
  uint64_t starts[DOCUMENTS + 1], ids[ENTRIES_MOST];
  float values[ENTRIES_MOST];
  struct pawl_batch batch;
} corpus;

/* Documents of some words out of a third of the vocabulary; every tenth has none. */
static int draw_corpus(void **state) {
  (void)state;
  struct lda_random random = {7};
  uint64_t entries = 0;
  for (size_t d = 0; d < DOCUMENTS; d++) {
    uint64_t first = WORDS / 3 * (lda_draw(&random) % 3);
    corpus.starts[d] = entries;
    for (uint64_t w = first; w < first + WORDS / 3 && d % 10 != 9; w++) {
      if (lda_draw(&random) % 3 != 0) continue;
      corpus.ids[entries] = w + 1;
      corpus.values[entries++] = (float)(1 + lda_draw(&random) % 4);
    }
  }
  corpus.starts[DOCUMENTS] = entries;
  corpus.batch = (struct pawl_batch){.rows = DOCUMENTS,
                                     .entries = entries,
                                     .starts = corpus.starts,
                                     .ids = corpus.ids,
                                     .values = corpus.values,
                                     .max_id = WORDS};
  return 0;
}

/* --- numbers -------------------------------------------------------------------------------------------- */

static void test_exp_of_digamma_is_right_from_small_to_large(void **state) {
  (void)state;
  for (double x = 0.03; x < 1e10; x *= 1.07) {
    double is = exp(digamma_of(x)), said = (double)lda_exp_digamma((float)x);
    if (!(fabs(said / is - 1) < 1e-4)) fail_msg("%.9g at %g, and should be %.9g", said, x, is);
  }
  for (double x = 0.001; x < 0.02; x *= 1.1) assert_true(lda_exp_digamma((float)x) < 1e-20f);
}

static void test_steps_become_shorter_and_none_forgets_all(void **state) {
  (void)state;
  struct lda_svi_rate rate = {0.7, 0};
  double before = 1;
  for (uint64_t t = 1; t < 1000; t++) {
    double rho = lda_svi_rho(&rate, t);
    assert_true(rho <= before && rho > 0 && rho <= 0.9);
    before = rho;
  }
  rate.offset = 64;
  assert_true(fabs(lda_svi_rho(&rate, 36) - pow(100, -0.7)) < 1e-12);
  double product = 1;
  for (uint64_t t = 11; t <= 30; t++) product *= 1 - lda_svi_rho(&rate, t);
  assert_true(fabs(exp(-lda_svi_decay(&rate, 10, 30)) - product) < 1e-12);
  assert_true(lda_svi_decay(&rate, 30, 30) == 0);
}

static void test_first_weights_differ_and_can_be_drawn_again(void **state) {
  (void)state;
  float one[1000], again[1000], other[1000];
  double sum = 0, squares = 0;
  lda_svi_first(3, 17, 1000, one);
  lda_svi_first(3, 17, 1000, again);
  lda_svi_first(3, 18, 1000, other);
  assert_memory_equal(one, again, sizeof one);
  assert_memory_not_equal(one, other, sizeof one);
  for (size_t k = 0; k < 1000; k++) {
    assert_true(one[k] > 0);
    sum += (double)one[k];
    squares += ((double)one[k] - 1) * ((double)one[k] - 1);
  }
  assert_true(fabs(sum / 1000 - 1) < 0.02);
  assert_true(fabs(sqrt(squares / 1000) - 0.1) < 0.02);
}

/* --- batches -------------------------------------------------------------------------------------------- */

static void test_a_batch_has_its_words_once_and_in_order(void **state) {
  (void)state;
  struct lda_svi_batch batch = {0};
  uint64_t seen = 0;
  for (size_t d = 5; d < 25; d++) assert_int_equal(lda_svi_batch_add(&batch, &corpus.batch, d), PAWL_OK);
  assert_int_equal(lda_svi_batch_index(&batch, WORDS), PAWL_OK);
  assert_int_equal(batch.documents, 20);
  assert_int_equal(batch.entries, corpus.starts[25] - corpus.starts[5]);
  assert_int_equal(batch.keys[batch.rows], WORDS);
  for (size_t i = 0; i < batch.rows; i++) {
    assert_true(batch.keys[i] < batch.keys[i + 1]);
    for (uint64_t j = batch.row_starts[i]; j < batch.row_starts[i + 1]; j++, seen++) {
      uint32_t entry = batch.row_entries[j], d = batch.row_in[j];
      assert_int_equal(batch.words[entry], i);
      assert_in_range(entry, batch.starts[d], batch.starts[d + 1] - 1);
      assert_int_equal(corpus.ids[corpus.starts[5] + entry] - 1, batch.keys[i]);
    }
  }
  assert_int_equal(seen, batch.entries);
  lda_svi_batch_fini(&batch);
}

static void test_a_word_beyond_the_end_is_refused(void **state) {
  (void)state;
  struct lda_svi_batch batch = {0};
  uint64_t starts[] = {0, 2}, ids[] = {3, WORDS + 1}, far[] = {3, UINT64_C(1) << 40};
  struct pawl_batch from = {.rows = 1, .entries = 2, .starts = starts, .ids = ids};
  assert_int_equal(lda_svi_batch_add(&batch, &from, 0), PAWL_OK);
  assert_int_equal(lda_svi_batch_index(&batch, WORDS), PAWL_MISMATCH);
  lda_svi_batch_clear(&batch);
  from.ids = far;
  assert_int_equal(lda_svi_batch_add(&batch, &from, 0), PAWL_MISMATCH);
  lda_svi_batch_clear(&batch);
  assert_int_equal(lda_svi_batch_add(&batch, &corpus.batch, 0), PAWL_OK); /* and it can still be used */
  assert_int_equal(lda_svi_batch_index(&batch, WORDS), PAWL_OK);
  assert_int_equal(batch.entries, corpus.starts[1]);
  lda_svi_batch_fini(&batch);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* mu, as the servers would have it. */
struct table {
  float mu[(WORDS + 1) * TOPICS], rows[(WORDS + 1) * TOPICS], changes[(WORDS + 1) * TOPICS];
};

static void init_table(struct table *table, uint64_t seed) {
  memset(table, 0, sizeof *table);
  for (uint64_t w = 0; w < WORDS; w++) {
    lda_svi_first(seed, w, TOPICS, table->mu + w * TOPICS);
    for (size_t k = 0; k < TOPICS; k++) table->mu[WORDS * TOPICS + k] += table->mu[w * TOPICS + k];
  }
}

static double step_with(struct lda_svi_step *step, struct lda_svi_batch *batch, struct table *table, size_t begin,
                        size_t end) {
  double log_sum = NAN;
  size_t row = TOPICS * sizeof(float);
  lda_svi_batch_clear(batch);
  for (size_t d = begin; d < end; d++) assert_int_equal(lda_svi_batch_add(batch, &corpus.batch, d), PAWL_OK);
  assert_int_equal(lda_svi_batch_index(batch, WORDS), PAWL_OK);
  for (size_t i = 0; i <= batch->rows; i++) memcpy(table->rows + i * TOPICS, table->mu + batch->keys[i] * TOPICS, row);
  assert_int_equal(lda_svi_step_run(step, batch, table->rows, table->changes, &log_sum), PAWL_OK);
  for (size_t i = 0; i <= batch->rows; i++)
    for (size_t k = 0; k < TOPICS; k++) table->mu[batch->keys[i] * TOPICS + k] += table->changes[i * TOPICS + k];
  return log_sum;
}

/* Some passes; returns the scale at the end, and what a token's log was in the first and the last pass. */
static double run_passes(struct table *table, uint32_t threads, struct reference *reference, double logs[2]) {
  double alpha[TOPICS], decay = 0;
  struct lda_svi_rate rate = {0.6, 2};
  struct lda_svi_batch batch = {0};
  struct lda_svi_step step = {.topics = TOPICS, .threads = threads, .words = WORDS, .beta = 0.05, .alpha = alpha};
  uint64_t t = 0;
  for (size_t k = 0; k < TOPICS; k++) alpha[k] = 0.1;
  for (int pass = 0; pass < 6; pass++) {
    double log_sum = 0, tokens = 0;
    for (size_t begin = 0; begin < DOCUMENTS; begin += 30) {
      step.scale = exp(-decay);
      decay += lda_svi_decay(&rate, t, t + 1);
      double rho = lda_svi_rho(&rate, ++t);
      step.by = rho * DOCUMENTS / 30 * exp(decay);
      log_sum += step_with(&step, &batch, table, begin, begin + 30);
      tokens += (double)batch.tokens;
      if (reference) reference_step(reference, &corpus.batch, begin, begin + 30, DOCUMENTS, rho);
    }
    logs[pass > 0] = log_sum / tokens;
  }
  lda_svi_batch_fini(&batch);
  lda_svi_step_fini(&step);
  return exp(-decay);
}

/* As far as floats go, and leaving topics out: at first they are almost the same, and rounding is part of
 * what tells them apart. */
static void test_steps_are_those_of_the_plain_form(void **state) {
  (void)state;
  static struct table table;
  struct reference reference = {.topics = TOPICS, .words = WORDS, .alpha = 0.1, .beta = 0.05};
  double logs[2], weights[TOPICS], totals[TOPICS] = {0};
  reference_init(&reference, 5);
  init_table(&table, 5);
  double scale = run_passes(&table, 1, &reference, logs);
  for (uint64_t w = 0; w < WORDS; w++) {
    for (size_t k = 0; k < TOPICS; k++) {
      weights[k] = scale * (double)table.mu[w * TOPICS + k];
      totals[k] += weights[k];
    }
    check_weights(&reference, w, weights, 2e-3);
  }
  for (size_t k = 0; k < TOPICS; k++)
    assert_true(fabs(scale * (double)table.mu[WORDS * TOPICS + k] - totals[k]) <= 1e-4 * (totals[k] + 1));
  reference_fini(&reference);
}

static void test_documents_become_more_probable(void **state) {
  (void)state;
  static struct table table;
  double logs[2];
  init_table(&table, 5);
  run_passes(&table, 1, NULL, logs);
  /* about even at first; 1 in 40 of a third is -3.7 */
  assert_true(logs[0] < -4 && logs[0] > log(1.0 / WORDS) - 0.2);
  assert_true(logs[1] < -3 && logs[1] > logs[0] + 0.5);
}

static void test_any_number_of_threads_gives_the_same(void **state) {
  (void)state;
  static struct table one, three;
  double logs[2], others[2];
  init_table(&one, 5);
  init_table(&three, 5);
  run_passes(&one, 1, NULL, logs);
  run_passes(&three, 3, NULL, others);
  assert_memory_equal(one.mu, three.mu, sizeof one.mu);
  assert_true(logs[1] == others[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exp_of_digamma_is_right_from_small_to_large),
      cmocka_unit_test(test_steps_become_shorter_and_none_forgets_all),
      cmocka_unit_test(test_first_weights_differ_and_can_be_drawn_again),
      cmocka_unit_test(test_a_batch_has_its_words_once_and_in_order),
      cmocka_unit_test(test_a_word_beyond_the_end_is_refused),
      cmocka_unit_test(test_steps_are_those_of_the_plain_form),
      cmocka_unit_test(test_documents_become_more_probable),
      cmocka_unit_test(test_any_number_of_threads_gives_the_same),
  };
  return cmocka_run_group_tests_name("apps.lda.svi.step", tests, draw_corpus, NULL);
}
