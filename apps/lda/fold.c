/* Folding in: see fold.h.
 *
 * phi_w is stored in one of two ways. A word with many topics has a row of all K, for loops without branches.
 * For a word with few topics only those are stored; the contribution of beta, which is the same for all
 * words, is added for all of them at once.
 */
#include "apps/lda/fold.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/memory.h"
#include "apps/lda/model_inside.h"

#define LANES 16                            /* number of parallel sums; rows are padded to a multiple of it */
#define FULL 8                              /* a word with at least one in FULL topics has a full row */
#define ROWS_MAX ((size_t)64 * 1024 * 1024) /* maximum of floats in full rows; further words are stored sparse */
#define SHARE 16                            /* documents per share of a thread */

struct known {
  float count;
  bool is_full;
  uint32_t topics;        /* number of topics of a word that is not full */
  size_t at;              /* index in full[] or in some[] */
  const uint16_t *places; /* topics of a word that is not full, in the model */
};

struct lda_fold {
  const struct pawl_lda_model *model;
  uint32_t topics, iterations;
  size_t stride;      /* topics, padded */
  float *alpha;       /* `stride` elements, with zeros at the end */
  float *base;        /* beta / (n_k + V beta) */
  float *theta, *sum; /* `sum` is the sum over tokens of their contributions to a topic, divided by theta_k */
  struct known *words;
  size_t word_count, word_room;
  float *full, *some; /* phi; n_wk / (n_k + V beta) */
  size_t full_count, full_room, some_count, some_room;
  double base_mass; /* base . theta, after a run */
};

/* --- life ----------------------------------------------------------------------------------------------- */

static void fill_constants(struct lda_fold *fold, double alpha) {
  const struct pawl_lda_model *model = fold->model;
  for (uint32_t k = 0; k < fold->topics; k++) {
    fold->alpha[k] = fmaxf((float)(alpha > 0 ? alpha : model->alpha[k]), FLT_MIN);
    fold->base[k] = (float)(model->about.beta * model->inverse[k]);
  }
}

pawl_status lda_fold_create(const struct pawl_lda_model *model, double alpha, uint32_t iterations,
                            struct lda_fold **fold_out) {
  if (!(alpha >= 0) || !isfinite(alpha)) return PAWL_INVALID;
  struct lda_fold *fold = apps_alloc_zero(1, sizeof *fold);
  if (!fold) return PAWL_NO_MEMORY;
  fold->model = model;
  fold->topics = model->about.topics;
  fold->iterations = iterations ? iterations : LDA_FOLD_ITERATIONS;
  fold->stride = (fold->topics + (size_t)LANES - 1) / LANES * LANES;
  fold->alpha = apps_alloc_zero(fold->stride * 4, sizeof *fold->alpha);
  if (!fold->alpha) {
    apps_free(fold);
    return PAWL_NO_MEMORY;
  }
  fold->base = fold->alpha + fold->stride;
  fold->theta = fold->base + fold->stride;
  fold->sum = fold->theta + fold->stride;
  fill_constants(fold, alpha);
  *fold_out = fold;
  return PAWL_OK;
}

void lda_fold_destroy(struct lda_fold *fold) {
  if (!fold) return;
  apps_free(fold->alpha);
  apps_free(fold->words);
  apps_free(fold->full);
  apps_free(fold->some);
  apps_free(fold);
}

/* --- words ---------------------------------------------------------------------------------------------- */

void lda_fold_clear(struct lda_fold *fold) { fold->word_count = fold->full_count = fold->some_count = 0; }

/* Makes room for `more` elements behind `count`. */
static bool have_room(void *array, size_t each, size_t count, size_t more, size_t *room) {
  void *before, *larger;
  if (*room - count >= more) return true;
  size_t wanted = *room + *room / 2 + more + 64;
  if (wanted > SIZE_MAX / 2 / each) return false;
  memcpy(&before, array, sizeof before);
  larger = apps_resize(before, wanted * each);
  if (!larger) return false;
  memcpy(array, &larger, sizeof larger);
  *room = wanted;
  return true;
}

static bool add_full(struct lda_fold *fold, uint64_t word, struct known *known) {
  if (!have_room(&fold->full, sizeof *fold->full, fold->full_count, fold->stride, &fold->full_room)) return false;
  float *row = fold->full + fold->full_count;
  memset(row + fold->topics, 0, (fold->stride - fold->topics) * sizeof *row);
  pawl_lda_model_phi(fold->model, word, row);
  known->is_full = true;
  known->at = fold->full_count;
  fold->full_count += fold->stride;
  return true;
}

static bool add_some(struct lda_fold *fold, const struct lda_row *row, struct known *known) {
  if (!have_room(&fold->some, sizeof *fold->some, fold->some_count, row->count, &fold->some_room)) return false;
  known->at = fold->some_count;
  known->topics = row->count;
  if (row->count == 0) return true;
  known->places = lda_row_topics(row);
  for (uint32_t i = 0; i < row->count; i++)
    fold->some[fold->some_count++] = (float)(lda_row_value(row, i) * fold->model->inverse[known->places[i]]);
  return true;
}

pawl_status lda_fold_add(struct lda_fold *fold, uint64_t word, float count) {
  const struct lda_row *row = lda_model_row(fold->model, word);
  struct known known = {.count = count};
  if (!have_room(&fold->words, sizeof *fold->words, fold->word_count, 1, &fold->word_room)) return PAWL_NO_MEMORY;
  bool is_full = (size_t)row->count * FULL >= fold->topics && fold->full_count + fold->stride <= ROWS_MAX;
  if (!(is_full ? add_full(fold, word, &known) : add_some(fold, row, &known))) return PAWL_NO_MEMORY;
  fold->words[fold->word_count++] = known;
  return PAWL_OK;
}

/* --- theta ---------------------------------------------------------------------------------------------- */

static float dot(const float *restrict a, const float *restrict b, size_t count) {
  float sums[LANES] = {0};
  for (size_t i = 0; i < count; i += LANES)
    for (size_t lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
  for (size_t half = LANES / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

static void add_scaled(float *restrict to, const float *restrict from, float by, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += by * from[i];
}

/* count / probability; 0 if the probability underflows a float. */
static float weigh(float count, float probability) { return probability >= FLT_MIN ? count / probability : 0; }

static void share_full(struct lda_fold *fold, const struct known *word) {
  const float *row = fold->full + word->at;
  add_scaled(fold->sum, row, weigh(word->count, dot(row, fold->theta, fold->stride)), fold->stride);
}

/* Returns the contribution of beta, which is added to every topic later. */
static float share_some(struct lda_fold *fold, const struct known *word, float base_mass) {
  if (word->topics == 0) return weigh(word->count, base_mass);
  const float *part = fold->some + word->at;
  float probability = base_mass;
  for (uint32_t i = 0; i < word->topics; i++) probability += part[i] * fold->theta[word->places[i]];
  float by = weigh(word->count, probability);
  for (uint32_t i = 0; i < word->topics; i++) fold->sum[word->places[i]] += by * part[i];
  return by;
}

static void normalise(float *theta, size_t count) {
  double sum = 0;
  for (size_t k = 0; k < count; k++) sum += (double)theta[k];
  float by = (float)(1 / sum);
  for (size_t k = 0; k < count; k++) theta[k] *= by;
}

static void step(struct lda_fold *fold) {
  float *theta = fold->theta, *sum = fold->sum, rest = 0, base_mass = dot(fold->base, theta, fold->stride);
  memset(sum, 0, fold->stride * sizeof *sum);
  for (size_t i = 0; i < fold->word_count; i++) {
    if (fold->words[i].is_full)
      share_full(fold, &fold->words[i]);
    else
      rest += share_some(fold, &fold->words[i], base_mass);
  }
  for (size_t k = 0; k < fold->stride; k++) theta[k] = fold->alpha[k] + theta[k] * (sum[k] + rest * fold->base[k]);
  normalise(theta, fold->stride);
}

void lda_fold_run(struct lda_fold *fold, float *theta_out) {
  for (size_t k = 0; k < fold->topics; k++) fold->theta[k] = 1 / (float)fold->topics;
  for (uint32_t i = 0; i < fold->iterations; i++) {
    step(fold);
    if (fold->word_count == 0) break; /* without words theta is alpha's */
  }
  fold->base_mass = 0;
  for (size_t k = 0; k < fold->topics; k++) fold->base_mass += (double)fold->base[k] * (double)fold->theta[k];
  if (theta_out) memcpy(theta_out, fold->theta, fold->topics * sizeof *theta_out);
}

double lda_fold_probability(const struct lda_fold *fold, uint64_t word) {
  const struct lda_row *row = lda_model_row(fold->model, word);
  double probability = fold->base_mass;
  for (uint32_t i = 0; i < row->count; i++) {
    uint16_t k = lda_row_topics(row)[i];
    probability += lda_row_value(row, i) * fold->model->inverse[k] * (double)fold->theta[k];
  }
  return probability;
}

/* --- many documents ------------------------------------------------------------------------------------- */

struct crew {
  const struct pawl_lda_model *model;
  double alpha;
  uint32_t iterations;
  size_t count;
  atomic_size_t next;
  _Atomic int failure; /* the first failure */
  pawl_status (*work)(void *context, struct lda_fold *fold, size_t begin, size_t end);
  void *context;
};

static void *run(void *argument) {
  struct crew *crew = argument;
  struct lda_fold *fold = NULL;
  pawl_status status = lda_fold_create(crew->model, crew->alpha, crew->iterations, &fold);
  while (status == PAWL_OK && atomic_load(&crew->failure) == PAWL_OK) {
    size_t begin = atomic_fetch_add(&crew->next, SHARE);
    if (begin >= crew->count) break;
    status = crew->work(crew->context, fold, begin, crew->count - begin < SHARE ? crew->count : begin + SHARE);
  }
  int none = PAWL_OK;
  if (status) atomic_compare_exchange_strong(&crew->failure, &none, (int)status);
  lda_fold_destroy(fold);
  return NULL;
}

static size_t processors(void) {
  cpu_set_t set;
  long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (size_t)count : 1;
}

pawl_status lda_fold_crew(const struct pawl_lda_model *model, double alpha, uint32_t iterations, uint32_t threads,
                          size_t count,
                          pawl_status (*work)(void *context, struct lda_fold *fold, size_t begin, size_t end),
                          void *context) {
  struct crew crew = {
      .model = model, .alpha = alpha, .iterations = iterations, .count = count, .work = work, .context = context};
  size_t wanted = threads ? threads : processors(), most = (count + SHARE - 1) / SHARE, started = 0;
  size_t others = (wanted < most ? wanted : most) > 1 ? (wanted < most ? wanted : most) - 1 : 0;
  pthread_t *ids = others ? apps_alloc(others * sizeof *ids) : NULL;
  if (!ids) others = 0; /* continues with this thread only */
  while (started < others && pthread_create(&ids[started], NULL, run, &crew) == 0) started++;
  run(&crew);
  for (size_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  apps_free(ids);
  return (pawl_status)atomic_load(&crew.failure);
}
