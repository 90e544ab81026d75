/* What the tests of the sampler share: a corpus in memory, sweeps over it, and log p(w, z) as it is in the
 * book. */
#ifndef LDA_SAMPLE_TEST_H
#define LDA_SAMPLE_TEST_H

#include <math.h>

#include "base/testing.h"
#include "apps/lda/random.h"
#include "apps/lda/sample.h"

/* A corpus like that of train_test.h, in memory: five true topics with 40 words each, of which a document has
 * two. */
enum { TRUE_TOPICS = 5, WORDS = 200, TOPICS = 8, DOCUMENTS = 200, ROOM = DOCUMENTS * 60 };

static uint32_t documents_at[DOCUMENTS + 1], starts[WORDS + 1], at[ROOM], document_of[ROOM], word_of[ROOM], pairs[ROOM];
static uint16_t counted[ROOM];
static uint32_t tokens;
static int32_t rows[WORDS][TOPICS], totals[TOPICS];
static struct lda_sampler sampler;
static struct lda_scratch scratch;

static inline uint32_t below(struct lda_random *random, uint32_t n) {
  return lda_below((uint32_t)(lda_draw(random) >> 32), n);
}

static inline void draw_corpus(uint64_t seed) {
  static uint32_t words[ROOM];
  struct lda_random random = {seed};
  uint32_t next[WORDS] = {0};
  tokens = 0;
  for (uint32_t d = 0; d < DOCUMENTS; d++) {
    uint32_t length = 20 + below(&random, 40), first = below(&random, TRUE_TOPICS);
    documents_at[d] = tokens;
    for (uint32_t i = 0; i < length; i++, tokens++) {
      uint32_t topic = (first + (below(&random, 10) >= 7)) % TRUE_TOPICS;
      double part = (double)lda_unit(lda_draw(&random));
      words[tokens] = topic * (WORDS / TRUE_TOPICS) + (uint32_t)(part * part * (WORDS / TRUE_TOPICS));
      next[words[tokens]]++;
    }
  }
  documents_at[DOCUMENTS] = tokens;
  starts[0] = 0;
  for (uint32_t w = 0; w < WORDS; w++) starts[w + 1] = starts[w] + next[w];
  memcpy(next, starts, sizeof next);
  for (uint32_t d = 0; d < DOCUMENTS; d++)
    for (uint32_t i = documents_at[d]; i < documents_at[d + 1]; i++) {
      at[i] = next[words[i]]++;
      document_of[at[i]] = d;
      word_of[at[i]] = words[i];
    }
}

/* Topics by chance, none of them counted. */
static inline void begin_topics(uint64_t seed) {
  struct lda_random random = {seed};
  memset(rows, 0, sizeof rows);
  memset(totals, 0, sizeof totals);
  for (uint32_t i = 0; i < tokens; i++) {
    uint32_t topic = below(&random, TOPICS);
    pairs[i] = lda_pair(topic, topic);
    counted[i] = LDA_NONE;
  }
}

static inline int begin(void **state) {
  (void)state;
  draw_corpus(1);
  if (!lda_sampler_init(&sampler, TOPICS) || !lda_scratch_init(&scratch, TOPICS, 60)) return -1;
  sampler.words = WORDS;
  sampler.beta = 0.01;
  for (uint32_t k = 0; k < TOPICS; k++) sampler.alpha[k] = 0.1 + 0.02 * k;
  return 0;
}

static inline int end(void **state) {
  (void)state;
  lda_sampler_fini(&sampler);
  lda_scratch_fini(&scratch);
  return 0;
}

/* --- sweeps --------------------------------------------------------------------------------------------- */

static inline void sample_documents(void) {
  for (uint32_t d = 0; d < DOCUMENTS; d++)
    lda_sample_document(&sampler, &scratch, d, pairs, at + documents_at[d], documents_at[d + 1] - documents_at[d]);
}

/* The word's tokens [begin, end), as if two pieces had them. */
static inline void sample_word(uint32_t w, uint32_t begin_at, uint32_t end_at) {
  uint32_t middle = begin_at + (end_at - begin_at) / 3;
  const struct lda_span spans[] = {{pairs + begin_at, counted + begin_at, middle - begin_at},
                                   {pairs + middle, counted + middle, end_at - middle}};
  lda_sample_word(&sampler, &scratch, w, spans, 2, rows[w]);
}

static inline void sum_totals(void) {
  memset(totals, 0, sizeof totals);
  for (uint32_t w = 0; w < WORDS; w++)
    for (uint32_t k = 0; k < TOPICS; k++) totals[k] += rows[w][k];
}

static inline void sample_words(void) {
  for (uint32_t w = 0; w < WORDS; w++)
    if (starts[w] < starts[w + 1]) sample_word(w, starts[w], starts[w + 1]);
  sum_totals();
}

static inline void sweep(uint64_t number) {
  sampler.sweep = number;
  lda_sampler_prepare(&sampler, totals);
  sample_documents();
  sample_words();
}

/* Rows are the histograms of topics. */
static inline void check_counts(void) {
  static int32_t expected[WORDS][TOPICS];
  memset(expected, 0, sizeof expected);
  for (uint32_t i = 0; i < tokens; i++) {
    assert_int_equal(counted[i], lda_topic(pairs[i]));
    assert_true(lda_topic(pairs[i]) < TOPICS && lda_proposed(pairs[i]) < TOPICS);
    expected[word_of[i]][counted[i]]++;
  }
  assert_memory_equal(rows, expected, sizeof rows);
  for (uint32_t k = 0; k < TOPICS; k++) assert_true(scratch.counts[k] == 0);
}

/* --- what is compared with ------------------------------------------------------------------------------ */

struct counts {
  int32_t documents[DOCUMENTS][TOPICS], words[WORDS][TOPICS], totals[TOPICS];
};

static inline void count(struct counts *counts, const uint32_t *topics) {
  memset(counts, 0, sizeof *counts);
  for (uint32_t i = 0; i < tokens; i++) {
    counts->documents[document_of[i]][topics[i]]++;
    counts->words[word_of[i]][topics[i]]++;
    counts->totals[topics[i]]++;
  }
}

/* The two parts of log p(w, z), each as it is in the book. */
static inline double direct_document_part(const struct counts *counts) {
  double sum = 0, alpha_sum = 0;
  for (uint32_t k = 0; k < TOPICS; k++) alpha_sum += sampler.alpha[k];
  for (uint32_t d = 0; d < DOCUMENTS; d++) {
    sum += lgamma(alpha_sum) - lgamma(alpha_sum + documents_at[d + 1] - documents_at[d]);
    for (uint32_t k = 0; k < TOPICS; k++)
      sum += lgamma(sampler.alpha[k] + counts->documents[d][k]) - lgamma(sampler.alpha[k]);
  }
  return sum;
}

static inline double direct_word_part(const struct counts *counts) {
  double sum = 0, beta = sampler.beta;
  for (uint32_t k = 0; k < TOPICS; k++) {
    sum += lgamma(WORDS * beta) - lgamma(WORDS * beta + counts->totals[k]);
    for (uint32_t w = 0; w < WORDS; w++) sum += lgamma(beta + counts->words[w][k]) - lgamma(beta);
  }
  return sum;
}

static inline double likelihood(const uint32_t *topics) {
  static struct counts counts;
  count(&counts, topics);
  return (direct_document_part(&counts) + direct_word_part(&counts)) / tokens;
}

static inline void topics_of_pairs(uint32_t *topics) {
  for (uint32_t i = 0; i < tokens; i++) topics[i] = lda_topic(pairs[i]);
}

#define WITH_SAMPLER(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
