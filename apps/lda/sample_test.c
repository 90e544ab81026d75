/* The parts of the sampler: its sums are correct, and it proposes and accepts with the probabilities that
 * sample.h gives. */
#include "apps/lda/sample_test.h"

/* --- tallies -------------------------------------------------------------------------------------------- */

static bool is_near(double a, double b, double part) { return fabs(a - b) <= part * (fabs(b) + 1e-300); }

/* Topics that have settled a little, all counted; every proposal is to stay. */
static void stay(void) {
  for (uint32_t i = 0; i < tokens; i++) pairs[i] = lda_pair(lda_topic(pairs[i]), lda_topic(pairs[i]));
}

static void begin_tally(struct counts *counts) {
  static uint32_t z[ROOM];
  begin_topics(5);
  for (uint64_t s = 0; s < 10; s++) sweep(s);
  topics_of_pairs(z);
  count(counts, z);
  stay();
  lda_sampler_prepare(&sampler, totals);
  lda_tally_clear(&scratch.tally, TOPICS);
  sampler.measures = sampler.optimises = true;
}

static void test_the_likelihood_is_that_of_the_topics(void **state) {
  (void)state;
  static struct counts counts;
  begin_tally(&counts);
  sample_documents();
  assert_true(is_near(scratch.tally.document_part, direct_document_part(&counts), 1e-9));
  stay();
  sample_words();
  assert_memory_equal(rows, counts.words, sizeof rows);
  double part = scratch.tally.word_part + lda_totals_part(&sampler, totals);
  assert_true(is_near(part, direct_word_part(&counts), 1e-9));
}

static double rise(double x, int32_t n) {
  double sum = 0;
  for (int32_t i = n; i-- > 0;) sum += 1 / (x + i);
  return sum;
}

static void test_what_the_priors_are_found_from_is_right(void **state) {
  (void)state;
  static struct counts counts;
  double length = 0, beta = 0;
  begin_tally(&counts);
  sample_documents();
  stay();
  sample_words();
  for (uint32_t k = 0; k < TOPICS; k++) {
    double sum = 0;
    for (uint32_t d = 0; d < DOCUMENTS; d++) sum += rise(sampler.alpha[k], counts.documents[d][k]);
    for (uint32_t w = 0; w < WORDS; w++) beta += rise(sampler.beta, counts.words[w][k]);
    assert_true(is_near(scratch.tally.alpha_sums[k], sum, 1e-8));
  }
  for (uint32_t d = 0; d < DOCUMENTS; d++)
    length += rise(sampler.alpha_sum, (int32_t)(documents_at[d + 1] - documents_at[d]));
  assert_true(is_near(scratch.tally.alpha_length, length, 1e-8));
  assert_true(is_near(scratch.tally.beta_sum, beta, 1e-8));
}

static void test_workers_that_share_a_word_share_its_part(void **state) {
  (void)state;
  static struct counts counts;
  begin_tally(&counts);
  sample_words();
  double whole = scratch.tally.word_part, beta = scratch.tally.beta_sum;
  lda_tally_clear(&scratch.tally, TOPICS);
  stay();
  for (uint32_t w = 0; w < WORDS; w++) {
    uint32_t middle = starts[w] + (starts[w + 1] - starts[w]) / 4;
    if (starts[w] < middle) sample_word(w, starts[w], middle);
    if (middle < starts[w + 1]) sample_word(w, middle, starts[w + 1]);
  }
  assert_true(is_near(scratch.tally.word_part, whole, 1e-9));
  assert_true(is_near(scratch.tally.beta_sum, beta, 1e-9));
}

static void test_tallies_add_up(void **state) {
  (void)state;
  double first[TOPICS], second[TOPICS];
  struct lda_tally sum = {1, 2, first, 3, 4}, tally = {10, 20, second, 30, 40};
  for (uint32_t k = 0; k < TOPICS; k++) first[k] = k, second[k] = 100;
  lda_tally_add(&sum, &tally, TOPICS);
  assert_true(sum.document_part == 11 && sum.word_part == 22 && sum.alpha_length == 33 && sum.beta_sum == 44);
  for (uint32_t k = 0; k < TOPICS; k++) assert_true(sum.alpha_sums[k] == 100 + k);
  lda_tally_clear(&sum, TOPICS);
  assert_true(sum.document_part == 0 && sum.word_part == 0 && sum.alpha_length == 0 && sum.beta_sum == 0);
  assert_true(sum.alpha_sums == first && first[7] == 0);
}

static void test_figures_agree_with_sums(void **state) {
  (void)state;
  static const double values[] = {1e-5, 0.01, 0.1, 0.5, 1, 7.3, 50, 2000};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    double x = values[i], logs = 0, inverses = 0;
    for (uint64_t n = 0; n < 300; n++) {
      assert_true(fabs(lda_log_rising(x, n) - logs) <= 1e-10 * (fabs(logs) + fabs(lgamma(x)) + 1));
      assert_true(fabs(lda_digamma_rise(x, n) - inverses) <= 1e-8 * (inverses + 1e-300));
      logs += log(x + (double)n);
      inverses += 1 / (x + (double)n);
    }
    assert_true(is_near(lda_log_rising(x, UINT64_C(1) << 31), lgamma(x + 2147483648.0) - lgamma(x), 1e-12));
  }
}

/* --- proposals ------------------------------------------------------------------------------------------ */

/* Compares counts of drawn topics with their weights by Pearson's chi-squared statistic, whose mean is
 * TOPICS - 1 and whose variance is twice that. */
static void check_drawn(const uint32_t *drawn, const double *weights) {
  double sum = 0, n = 0, measure = 0;
  for (uint32_t k = 0; k < TOPICS; k++) sum += weights[k], n += drawn[k];
  for (uint32_t k = 0; k < TOPICS; k++) {
    double expected = weights[k] / sum * n;
    measure += (drawn[k] - expected) * (drawn[k] - expected) / expected;
  }
  if (!(measure < TOPICS - 1 + 5 * sqrt(2 * (TOPICS - 1)))) fail_msg("%g is too far off, of %g draws", measure, n);
}

/* A token is of topic i % kinds; proposals of all who have a topic are looked at together. */
static void check_document(uint32_t length, uint32_t kinds) {
  uint32_t drawn[TOPICS][TOPICS] = {0}, places[60], n[TOPICS] = {0};
  for (uint32_t i = 0; i < length; i++) n[i % kinds]++, places[i] = length - 1 - i;
  for (uint64_t name = 0; name < 40000 / length; name++) {
    for (uint32_t i = 0; i < length; i++) pairs[places[i]] = lda_pair(i % kinds, i % kinds);
    lda_sample_document(&sampler, &scratch, name, pairs, places, length);
    for (uint32_t i = 0; i < length; i++) {
      assert_int_equal(lda_topic(pairs[places[i]]), i % kinds);
      drawn[i % kinds][lda_proposed(pairs[places[i]])]++;
    }
  }
  for (uint32_t s = 0; s < kinds && s < length; s++) {
    double weights[TOPICS];
    for (uint32_t k = 0; k < TOPICS; k++) weights[k] = n[k] - (k == s) + sampler.alpha[k];
    check_drawn(drawn[s], weights);
  }
}

static void test_documents_propose_by_their_other_tokens_and_alpha(void **state) {
  (void)state;
  memset(totals, 0, sizeof totals);
  lda_sampler_prepare(&sampler, totals);
  static const uint32_t lengths[] = {1, 2, 3, 5, 20, 60};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (uint32_t kinds = 1; kinds <= 4; kinds++) check_document(lengths[i], kinds);
}

/* Others have `more` tokens of the word, of the last topic. */
static void check_word(uint32_t length, uint32_t kinds, int32_t more) {
  uint32_t drawn[TOPICS][TOPICS] = {0};
  int32_t n[TOPICS] = {0}, row[TOPICS];
  for (uint32_t i = 0; i < length; i++) n[i % kinds]++;
  n[TOPICS - 1] += more;
  for (uint64_t word = 0; word < 40000 / length; word++) {
    struct lda_span span = {pairs, counted, length};
    for (uint32_t i = 0; i < length; i++) pairs[i] = lda_pair(i % kinds, i % kinds), counted[i] = (uint16_t)(i % kinds);
    memcpy(row, n, sizeof row);
    lda_sample_word(&sampler, &scratch, word, &span, 1, row);
    assert_memory_equal(row, n, sizeof row);
    for (uint32_t i = 0; i < length; i++) drawn[i % kinds][lda_proposed(pairs[i])]++;
  }
  for (uint32_t s = 0; s < kinds && s < length; s++) {
    double weights[TOPICS];
    for (uint32_t k = 0; k < TOPICS; k++) weights[k] = n[k] - (k == s) + sampler.beta;
    check_drawn(drawn[s], weights);
  }
}

static void test_words_propose_by_their_other_tokens_and_beta(void **state) {
  (void)state;
  sampler.beta = 0.3;
  memset(totals, 0, sizeof totals);
  lda_sampler_prepare(&sampler, totals);
  static const uint32_t lengths[] = {1, 2, 3, 5, 20, 60};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (uint32_t kinds = 1; kinds <= 4; kinds++)
      for (int32_t more = 0; more < 3; more++) check_word(lengths[i], kinds, more);
}

/* --- what is accepted ----------------------------------------------------------------------------------- */

/* Four tokens of topic 0 and two of topic 1; to one of the former topic 1 is proposed. How often it goes
 * there, of so many times. */
enum { TRIALS = 20000 };

static void begin_trials(void) {
  for (uint32_t k = 0; k < TOPICS; k++) totals[k] = 0;
  totals[0] = 30, totals[1] = 40;
  lda_sampler_prepare(&sampler, totals);
}

static void check_accepted(uint32_t accepted, double by_counts) {
  double chance = by_counts * (totals[0] + WORDS * sampler.beta) / (totals[1] + WORDS * sampler.beta);
  assert_true(chance > 0.1 && chance < 0.9);
  assert_true(fabs(accepted - chance * TRIALS) < 4 * sqrt(TRIALS * chance * (1 - chance)));
}

static void test_documents_accept_by_metropolis_and_hastings(void **state) {
  (void)state;
  uint32_t accepted = 0, places[] = {0, 1, 2, 3, 4, 5};
  begin_trials();
  for (uint64_t name = 0; name < TRIALS; name++) {
    for (uint32_t i = 0; i < 6; i++) pairs[i] = i < 4 ? lda_pair(0, i == 2) : lda_pair(1, 1);
    lda_sample_document(&sampler, &scratch, name, pairs, places, 6);
    accepted += lda_topic(pairs[2]) == 1;
  }
  check_accepted(accepted, (2 + sampler.alpha[1]) / (3 + sampler.alpha[0]));
}

static void test_words_accept_by_metropolis_and_hastings(void **state) {
  (void)state;
  uint32_t accepted = 0;
  begin_trials();
  for (uint64_t word = 0; word < TRIALS; word++) {
    struct lda_span span = {pairs, counted, 6};
    int32_t row[TOPICS] = {4, 2};
    for (uint32_t i = 0; i < 6; i++) pairs[i] = i < 4 ? lda_pair(0, i == 2) : lda_pair(1, 1), counted[i] = i >= 4;
    lda_sample_word(&sampler, &scratch, word, &span, 1, row);
    bool is_accepted = lda_topic(pairs[2]) == 1;
    assert_true(row[0] == 4 - is_accepted && row[1] == 2 + is_accepted && counted[2] == is_accepted);
    accepted += is_accepted;
  }
  check_accepted(accepted, (2 + sampler.beta) / (3 + sampler.beta));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_SAMPLER(test_the_likelihood_is_that_of_the_topics),
      WITH_SAMPLER(test_what_the_priors_are_found_from_is_right),
      WITH_SAMPLER(test_workers_that_share_a_word_share_its_part),
      WITH_SAMPLER(test_tallies_add_up),
      WITH_SAMPLER(test_figures_agree_with_sums),
      WITH_SAMPLER(test_documents_propose_by_their_other_tokens_and_alpha),
      WITH_SAMPLER(test_words_propose_by_their_other_tokens_and_beta),
      WITH_SAMPLER(test_documents_accept_by_metropolis_and_hastings),
      WITH_SAMPLER(test_words_accept_by_metropolis_and_hastings),
  };
  return cmocka_run_group_tests_name("apps.lda.sample", tests, NULL, NULL);
}
