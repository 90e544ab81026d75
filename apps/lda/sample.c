/* The two phases of the sampler: see sample.h. The loops avoid branches that depend on random numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/random.h"
#include "apps/lda/sample.h"

enum { AHEAD = 32 }; /* tokens to prefetch */

/* `b` if the condition holds, else `a`; by arithmetic, because random branches are mispredicted. */
static inline uint32_t choose(bool is_so, uint32_t a, uint32_t b) { return a ^ ((a ^ b) & (0 - (uint32_t)is_so)); }

/* --- preparation ---------------------------------------------------------------------------------------- */

bool lda_sampler_init(struct lda_sampler *sampler, uint32_t topics) {
  *sampler = (struct lda_sampler){.topics = topics};
  sampler->alpha = apps_alloc(topics * sizeof *sampler->alpha);
  sampler->priors = apps_alloc(topics * sizeof *sampler->priors);
  sampler->inverse = apps_alloc(topics * sizeof *sampler->inverse);
  if (sampler->alpha && sampler->priors && sampler->inverse && lda_alias_init(&sampler->prior, topics)) return true;
  lda_sampler_fini(sampler);
  return false;
}

void lda_sampler_fini(struct lda_sampler *sampler) {
  apps_free(sampler->alpha);
  apps_free(sampler->priors);
  apps_free(sampler->inverse);
  lda_alias_fini(&sampler->prior);
  memset(sampler, 0, sizeof *sampler);
}

void lda_sampler_prepare(struct lda_sampler *sampler, const int32_t *totals) {
  double beta_sum = sampler->beta * (double)sampler->words;
  sampler->alpha_sum = 0;
  for (uint32_t k = 0; k < sampler->topics; k++) {
    sampler->alpha_sum += sampler->alpha[k];
    sampler->inverse[k] = (float)(1 / ((totals[k] > 0 ? totals[k] : 0) + beta_sum));
    sampler->priors[k] = (struct lda_prior){(float)sampler->alpha[k], sampler->inverse[k]};
  }
  sampler->is_even = true;
  for (uint32_t k = 1; k < sampler->topics; k++) sampler->is_even &= sampler->alpha[k] == sampler->alpha[0];
  lda_alias_of_weights(&sampler->prior, sampler->alpha, sampler->topics);
}

bool lda_scratch_init(struct lda_scratch *scratch, uint32_t topics, size_t longest) {
  *scratch = (struct lda_scratch){.room = longest};
  scratch->counts = apps_alloc_zero(topics, sizeof *scratch->counts);
  scratch->pairs = apps_alloc((longest + 1) * sizeof *scratch->pairs);
  scratch->topics = apps_alloc((longest + 1) * sizeof *scratch->topics);
  scratch->tally.alpha_sums = apps_alloc_zero(topics, sizeof *scratch->tally.alpha_sums);
  if (scratch->counts && scratch->pairs && scratch->topics && scratch->tally.alpha_sums &&
      lda_urn_init(&scratch->urn, topics))
    return true;
  lda_scratch_fini(scratch);
  return false;
}

void lda_scratch_fini(struct lda_scratch *scratch) {
  apps_free(scratch->counts);
  apps_free(scratch->pairs);
  apps_free(scratch->topics);
  apps_free(scratch->tally.alpha_sums);
  lda_urn_fini(&scratch->urn);
  memset(scratch, 0, sizeof *scratch);
}

void lda_tally_clear(struct lda_tally *tally, uint32_t topics) {
  double *sums = tally->alpha_sums;
  memset(sums, 0, topics * sizeof *sums);
  *tally = (struct lda_tally){.alpha_sums = sums};
}

void lda_tally_add(struct lda_tally *sum, const struct lda_tally *tally, uint32_t topics) {
  for (uint32_t k = 0; k < topics; k++) sum->alpha_sums[k] += tally->alpha_sums[k];
  sum->document_part += tally->document_part;
  sum->word_part += tally->word_part;
  sum->alpha_length += tally->alpha_length;
  sum->beta_sum += tally->beta_sum;
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Adds the document to the sums for alpha and the likelihood, and clears the counts. */
static void tally_document(const struct lda_sampler *sampler, struct lda_scratch *scratch, uint32_t count) {
  struct lda_tally *tally = &scratch->tally;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t k = scratch->topics[i];
    uint64_t n = (uint64_t)scratch->counts[k];
    if (n == 0) continue;
    if (sampler->measures) tally->document_part += lda_log_rising(sampler->alpha[k], n);
    if (sampler->optimises) tally->alpha_sums[k] += lda_digamma_rise(sampler->alpha[k], n);
    scratch->counts[k] = 0;
  }
  if (sampler->measures) tally->document_part -= lda_log_rising(sampler->alpha_sum, count);
  if (sampler->optimises) tally->alpha_length += lda_digamma_rise(sampler->alpha_sum, count);
}

/* Accepts or rejects the proposals by words. */
static void accept_in_document(const struct lda_sampler *sampler, struct lda_scratch *scratch,
                               struct lda_random *random, uint32_t count) {
  const struct lda_prior *priors = sampler->priors;
  float *counts = scratch->counts;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t s = lda_topic(scratch->pairs[i]), t = lda_proposed(scratch->pairs[i]);
    float without = counts[s] - 1;
    float stay = lda_unit(lda_draw(random)) * (without + priors[s].alpha) * priors[s].inverse;
    float go = (counts[t] + priors[t].alpha) * priors[t].inverse;
    uint32_t topic = stay < go ? t : s; /* s == t: the same either way */
    counts[s] = without;
    counts[topic] += 1;
    scratch->topics[i] = (uint16_t)topic;
  }
}

/* Proposes another token's topic, or one drawn by alpha, so that topic k has the weight n_dk + alpha_k
 * without the token itself. */
static void propose_by_document(const struct lda_sampler *sampler, struct lda_scratch *scratch,
                                struct lda_random *random, uint32_t *pairs, const uint32_t *at, uint32_t count) {
  double others = (double)count - 1; /* number of other tokens; if it is 0, the threshold is 0 */
  bool is_even = sampler->is_even;
  uint32_t topics = sampler->topics;
  uint32_t threshold = (uint32_t)(others / (others + sampler->alpha_sum) * 4294967295.0);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = lda_draw(random);
    uint32_t high = (uint32_t)(bits >> 32), other = lda_below(high, count - 1);
    uint32_t by_chance = is_even ? lda_below(high, topics) : lda_alias_draw(&sampler->prior, high);
    uint32_t by_other = scratch->topics[other + (other >= i)];
    pairs[at[i]] = lda_pair(scratch->topics[i], choose((uint32_t)bits < threshold, by_chance, by_other));
  }
}

void lda_sample_document(const struct lda_sampler *sampler, struct lda_scratch *scratch, uint64_t name, uint32_t *pairs,
                         const uint32_t *at, uint32_t count) {
  struct lda_random random = lda_random_of(sampler->seed, sampler->sweep * 2, name);
  for (uint32_t i = 0; i < count; i++) {
    if (i + AHEAD < count) __builtin_prefetch(&pairs[at[i + AHEAD]], 1);
    uint32_t pair = pairs[at[i]];
    scratch->pairs[i] = pair;
    scratch->counts[lda_topic(pair)] += 1;
  }
  accept_in_document(sampler, scratch, &random, count);
  propose_by_document(sampler, scratch, &random, pairs, at, count);
  if (sampler->measures || sampler->optimises)
    tally_document(sampler, scratch, count);
  else
    for (uint32_t i = 0; i < count; i++) scratch->counts[scratch->topics[i]] = 0;
}

/* --- words ---------------------------------------------------------------------------------------------- */

/* Updates the row from the counted topics to the current topics of the tokens. Returns the number of
 * tokens. */
static uint64_t bring_up_to_date(const struct lda_span *spans, size_t span_count, int32_t *row) {
  uint64_t tokens = 0;
  for (size_t j = 0; j < span_count; j++) {
    const struct lda_span *span = &spans[j];
    for (uint32_t i = 0; i < span->count; i++) {
      uint32_t before = span->counted[i];
      if (before != LDA_NONE) row[before]--;
      row[lda_topic(span->pairs[i])]++;
    }
    tokens += span->count;
  }
  return tokens;
}

/* Accepts or rejects the proposals by documents. */
static void accept_in_word(const struct lda_sampler *sampler, struct lda_random *random, const struct lda_span *span,
                           int32_t *row) {
  const float *inverse = sampler->inverse;
  float beta = (float)sampler->beta;
  for (uint32_t i = 0; i < span->count; i++) {
    uint32_t s = lda_topic(span->pairs[i]), t = lda_proposed(span->pairs[i]);
    int32_t without = row[s] - 1;
    float stay = lda_unit(lda_draw(random)) * ((float)without + beta) * inverse[s];
    float go = ((float)row[t] + beta) * inverse[t];
    uint32_t topic = stay < go ? t : s;
    row[s] = without;
    row[topic]++;
    span->counted[i] = (uint16_t)topic;
  }
}

/* Proposes a topic with weight n_wk + beta, not counting the token itself. The threshold, which depends on
 * the number of other tokens, has decided whether to draw from the row or from beta; a token without others
 * never draws from the row. If the draw from the row may have been the token itself, it is repeated. */
static void propose_by_word(const struct lda_sampler *sampler, const struct lda_urn *urn, struct lda_random *random,
                            const struct lda_span *span, const int32_t *row, uint32_t threshold) {
  for (uint32_t i = 0; i < span->count; i++) {
    uint32_t topic = span->counted[i], proposed;
    uint64_t bits = lda_draw(random);
    uint32_t high = (uint32_t)(bits >> 32);
    if ((uint32_t)bits >= threshold) {
      proposed = lda_below(high, sampler->topics);
    } else {
      proposed = lda_urn_draw(urn, high);
      while (proposed == topic && lda_below((uint32_t)(lda_draw(random) >> 32), (uint32_t)row[topic]) == 0)
        proposed = lda_urn_draw(urn, (uint32_t)(lda_draw(random) >> 32));
    }
    span->pairs[i] = lda_pair(topic, proposed);
  }
}

static void tally_word(const struct lda_sampler *sampler, struct lda_scratch *scratch, const int32_t *row,
                       double share) {
  const struct lda_urn *urn = &scratch->urn;
  double likelihood = 0, beta = 0;
  for (uint32_t i = 0; i < urn->count; i++) {
    uint64_t n = (uint64_t)row[urn->topics[i]];
    if (sampler->measures) likelihood += lda_log_rising(sampler->beta, n);
    if (sampler->optimises) beta += lda_digamma_rise(sampler->beta, n);
  }
  scratch->tally.word_part += share * likelihood;
  scratch->tally.beta_sum += share * beta;
}

void lda_sample_word(const struct lda_sampler *sampler, struct lda_scratch *scratch, uint64_t word,
                     const struct lda_span *spans, size_t span_count, int32_t *row) {
  struct lda_random random = lda_random_of(sampler->seed, sampler->sweep * 2 + 1, word);
  uint64_t tokens = bring_up_to_date(spans, span_count, row);
  for (size_t j = 0; j < span_count; j++) accept_in_word(sampler, &random, &spans[j], row);
  lda_urn_fill(&scratch->urn, row, sampler->topics);
  uint64_t all = scratch->urn.sum;
  double others = all > 0 ? (double)all - 1 : 0;
  uint32_t threshold = (uint32_t)(others / (others + sampler->beta * sampler->topics) * 4294967295.0);
  for (size_t j = 0; j < span_count; j++) propose_by_word(sampler, &scratch->urn, &random, &spans[j], row, threshold);
  if (sampler->measures || sampler->optimises) tally_word(sampler, scratch, row, (double)tokens / (double)all);
}

/* --- figures -------------------------------------------------------------------------------------------- */

double lda_log_rising(double x, uint64_t n) {
  if (n == 1) return log(x);
  if (n == 2) return log(x * (x + 1));
  int sign;
  return lgamma_r(x + (double)n, &sign) - lgamma_r(x, &sign);
}

static double digamma(double x) {
  double below = 0;
  for (; x < 6; x++) below -= 1 / x;
  double square = 1 / (x * x);
  return below + log(x) - 0.5 / x - square * (1 / 12.0 - square * (1 / 120.0 - square / 252));
}

double lda_digamma_rise(double x, uint64_t n) {
  if (n <= 8) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += 1 / (x + (double)i);
    return sum;
  }
  return digamma(x + (double)n) - digamma(x);
}

double lda_totals_part(const struct lda_sampler *sampler, const int32_t *totals) {
  double beta_sum = sampler->beta * (double)sampler->words, sum = 0;
  for (uint32_t k = 0; k < sampler->topics; k++)
    if (totals[k] > 0) sum -= lda_log_rising(beta_sum, (uint64_t)totals[k]);
  return sum;
}
