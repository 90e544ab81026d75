/* The sampler beside the plain one that it stands for: collapsed Gibbs sampling, a token at a time (Griffiths
 * and Steyvers 2004). */
#include "apps/lda/sample_test.h"

enum { CHAINS = 2, KEPT = 50 };

/* How topics begin: by chance, or as the corpus was made, which is where a chain stays. */
enum start { BY_CHANCE, TRUE_ONES };

static uint32_t z[ROOM];

static void begin_plain(enum start start, struct lda_random *random) {
  for (uint32_t i = 0; i < tokens; i++)
    z[i] = start == BY_CHANCE ? below(random, TOPICS) : word_of[i] / (WORDS / TRUE_TOPICS);
}

static void plain_sweep(struct counts *n, struct lda_random *random) {
  for (uint32_t i = 0; i < tokens; i++) {
    double weights[TOPICS], sum = 0;
    int32_t *document = n->documents[document_of[i]], *word = n->words[word_of[i]];
    document[z[i]]--, word[z[i]]--, n->totals[z[i]]--;
    for (uint32_t k = 0; k < TOPICS; k++)
      sum += weights[k] =
          (document[k] + sampler.alpha[k]) * (word[k] + sampler.beta) / (n->totals[k] + WORDS * sampler.beta);
    double left = (double)lda_unit(lda_draw(random)) * sum;
    for (z[i] = 0; z[i] + 1 < TOPICS && left >= weights[z[i]]; z[i]++) left -= weights[z[i]];
    document[z[i]]++, word[z[i]]++, n->totals[z[i]]++;
  }
}

/* Means over the last sweeps. */
static double plain_likelihood(enum start start, uint64_t seed, int sweeps) {
  static struct counts counts;
  struct lda_random random = {seed};
  double sum = 0;
  begin_plain(start, &random);
  count(&counts, z);
  for (int s = 0; s < sweeps; s++) {
    plain_sweep(&counts, &random);
    if (s >= sweeps - KEPT) sum += likelihood(z) / KEPT;
  }
  return sum;
}

static double fast_likelihood(enum start start, uint64_t seed, int sweeps) {
  struct lda_random random = {seed};
  double sum = 0;
  begin_topics(seed);
  begin_plain(start, &random);
  for (uint32_t i = 0; i < tokens; i++) pairs[i] = lda_pair(z[i], z[i]);
  sampler.seed = seed;
  for (int s = 0; s < sweeps; s++) {
    sweep((uint64_t)s);
    check_counts();
    topics_of_pairs(z);
    if (s >= sweeps - KEPT) sum += likelihood(z) / KEPT;
  }
  return sum;
}

/* Its steps are smaller, and it takes more of them. */
static double compare(enum start start, int sweeps) {
  double plain = 0, fast = 0;
  for (uint64_t seed = 1; seed <= CHAINS; seed++) {
    plain += plain_likelihood(start, seed, sweeps / 4) / CHAINS;
    fast += fast_likelihood(start, seed, sweeps) / CHAINS;
  }
  print_message("log p(w, z) per token: plain %.4f, fast %.4f\n", plain, fast);
  return fabs(fast / plain - 1);
}

static void test_it_arrives_where_the_plain_sampler_does(void **state) {
  (void)state;
  begin_topics(1);
  topics_of_pairs(z);
  assert_true(likelihood(z) < -8);
  assert_true(compare(BY_CHANCE, 400) < 0.01);
  assert_true(likelihood(z) > -4.6);
}

static void test_it_stays_where_the_plain_sampler_stays(void **state) {
  (void)state;
  /* so that there is no drift to them */
  for (uint32_t k = TRUE_TOPICS; k < TOPICS; k++) sampler.alpha[k] = 1e-6;
  assert_true(compare(TRUE_ONES, 240) < 0.002);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_SAMPLER(test_it_arrives_where_the_plain_sampler_does),
      WITH_SAMPLER(test_it_stays_where_the_plain_sampler_stays),
  };
  return cmocka_run_group_tests_name("apps.lda.sample_plain", tests, NULL, NULL);
}
