/* One step: see svi_step.h. Three phases, each shared by all threads: exp(E log beta) by rows, gamma by documents, the sums by rows again. Nobody
 * writes what another one does, so that sums are always taken in the same order.
 *
 * psi is a function of a few multiplications here. With y = x - 1/2, exp(psi(x)) = y + 1/(24 y) - 37/(5760 y^3) + …, which for x > 3 is right
 * to a few units in the sixth place, and psi(x) = psi(x + 3) - 1/x - 1/(x+1) - 1/(x+2).
 */
#include "apps/lda/svi_step.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lda/random.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES 16
#define TURNS 100
#define ENOUGH 1e-3f /* the mean change of gamma_dk by which a document is done */
#define TINY 1e-35f

/* --- steps -------------------------------------------------------------------------------------------------------------------- */

double lda_svi_rho(const struct lda_svi_rate *rate, uint64_t t) {
  return fmin(0.9, pow(rate->offset + (double)t, -rate->kappa));
}

double lda_svi_decay(const struct lda_svi_rate *rate, uint64_t from, uint64_t to) {
  double sum = 0;
  for (uint64_t t = from + 1; t <= to; t++) sum -= log1p(-lda_svi_rho(rate, t));
  return sum;
}

/* A Gamma of such a shape is almost normal, and so is the sum of four even ones. */
void lda_svi_first(uint64_t seed, uint64_t word, uint32_t topics, float *weights_out) {
  struct lda_random random = lda_random_of(seed, word, UINT64_C(0x1a3bda));
  for (uint32_t k = 0; k < topics; k++) {
    float sum = 0;
    for (int i = 0; i < 2; i++) {
      uint64_t bits = lda_draw(&random);
      sum += lda_unit(bits) + lda_unit(bits << 32);
    }
    weights_out[k] = 1 + 0.1f * 1.7320508f * (sum - 2);
  }
}

/* --- functions of numbers -------------------------------------------------------------------------------------------------------- */

/* exp of a negative number, by powers of two and a polynomial between them. */
INLINE float exp_negative(float x) {
  float v = x < -80 ? -80 : x, whole, part, power, result;
  int32_t n = (int32_t)(v * 1.44269504f - 0.5f), bits = (int32_t)((uint32_t)(n + 127) << 23);
  whole = (float)n;
  part = v - whole * 0.693359375f + whole * 2.12194440e-4f;
  result = 1.9875691500e-4f;
  result = result * part + 1.3981999507e-3f;
  result = result * part + 8.3334519073e-3f;
  result = result * part + 4.1665795894e-2f;
  result = result * part + 1.6666665459e-1f;
  result = result * part + 5.0000001201e-1f;
  memcpy(&power, &bits, sizeof power);
  return (result * part * part + part + 1) * power;
}

INLINE float exp_digamma(float x) {
  float y = x + 2.5f, inverse = 1 / y, square = inverse * inverse;
  float high = y + inverse * (0.041666667f + square * (-0.0064236111f + square * 0.0035524828f));
  float steps = (x * (3 * x + 6) + 2) / (x * (x + 1) * (x + 2));
  return high * exp_negative(-steps);
}

float lda_exp_digamma(float x) { return exp_digamma(x); }

INLINE float sum_lanes(float *lanes) {
  for (size_t half = LANES / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

/* `count` is a multiple of the lanes. */
INLINE float dot(const float *restrict a, const float *restrict b, size_t count) {
  float lanes[LANES] = {0};
  for (size_t i = 0; i < count; i += LANES)
    for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += a[i + lane] * b[i + lane];
  return sum_lanes(lanes);
}

INLINE float dot_of_any(const float *restrict a, const float *restrict b, size_t count) {
  size_t whole = count / LANES * LANES;
  float sum = dot(a, b, whole);
  for (size_t i = whole; i < count; i++) sum += a[i] * b[i];
  return sum;
}

INLINE void add(float *restrict to, const float *restrict from, float by, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += by * from[i];
}

/* --- the work, as it is compiled for any processor and for those with wider vectors ------------------------------------------------ */

/* What `own` is made of: `stride` floats each. */
enum { ALPHA, NORMAL, INVERSE, SHARED };
enum { GAMMA, SUM, PHI, OF_THREAD };

static float *shared(const struct lda_svi_step *step, size_t which) { return step->own + which * step->stride; }

struct job {
  const struct lda_svi_step *step;
  const struct lda_svi_batch *batch;
  const float *rows;
  float *changes;
};

INLINE void betas_of_row(const struct job *job, size_t row, float *restrict out) {
  const struct lda_svi_step *step = job->step;
  const float *restrict mu = job->rows + row * step->topics, *restrict normal = shared(step, NORMAL);
  float scale = (float)step->scale, beta = (float)step->beta;
  for (size_t k = 0; k < step->topics; k++) out[k] = exp_digamma(scale * mu[k] + beta) * normal[k];
  for (size_t k = step->topics; k < step->stride; k++) out[k] = 0;
}

INLINE void thetas_of(const float *restrict gamma, float *restrict theta, size_t count) {
  for (size_t k = 0; k < count; k++) theta[k] = exp_digamma(gamma[k]);
}

/* gamma from theta; how far it moves. */
INLINE float move_gamma(const float *restrict alpha, const float *restrict theta, const float *restrict sum,
                        float *restrict gamma, size_t count) {
  float lanes[LANES] = {0};
  for (size_t i = 0; i < count; i += LANES)
    for (size_t lane = 0; lane < LANES; lane++) {
      float to = alpha[i + lane] + theta[i + lane] * sum[i + lane];
      lanes[lane] += fabsf(to - gamma[i + lane]);
      gamma[i + lane] = to;
    }
  return sum_lanes(lanes);
}

INLINE void find_gamma(const struct job *job, size_t begin, size_t end, float *gamma, float *sum, float *theta) {
  const struct lda_svi_step *step = job->step;
  const float *alpha = shared(step, ALPHA);
  size_t stride = step->stride;
  float tokens = 0;
  for (size_t i = begin; i < end; i++) tokens += job->batch->counts[i];
  for (size_t k = 0; k < stride; k++) gamma[k] = k < step->topics ? alpha[k] + tokens / (float)step->topics : 0;
  for (int turn = 0; turn < TURNS; turn++) {
    thetas_of(gamma, theta, stride);
    memset(sum, 0, stride * sizeof *sum);
    for (size_t i = begin; i < end; i++) {
      const float *betas = step->betas + job->batch->words[i] * stride;
      add(sum, betas, job->batch->counts[i] / (dot(theta, betas, stride) + TINY), stride);
    }
    if (move_gamma(alpha, theta, sum, gamma, stride) < ENOUGH * (float)step->topics) break;
  }
  thetas_of(gamma, theta, stride);
}

/* Ratios, and log(theta . phi) with the means of both. */
INLINE void look_at(const struct job *job, size_t begin, size_t end, const float *gamma, float *phi, const float *theta,
                    double *log_out) {
  const struct lda_svi_step *step = job->step;
  const float *inverse = shared(step, INVERSE);
  float all = 0, base = 0;
  double sum = 0;
  for (size_t k = 0; k < step->stride; k++) all += gamma[k];
  for (size_t k = 0; k < step->stride; k++) {
    phi[k] = gamma[k] / all * inverse[k];
    base += phi[k];
  }
  for (size_t i = begin; i < end; i++) {
    size_t row = job->batch->words[i];
    float mu = dot_of_any(phi, job->rows + row * step->topics, step->topics);
    step->ratios[i] = job->batch->counts[i] / (dot(theta, step->betas + row * step->stride, step->stride) + TINY);
    sum += (double)job->batch->counts[i] * log(step->scale * (double)mu + step->beta * (double)base + 1e-300);
  }
  *log_out = sum;
}

INLINE void work_on_document(const struct job *job, size_t d, float *own) {
  const struct lda_svi_step *step = job->step;
  size_t begin = job->batch->starts[d], end = job->batch->starts[d + 1];
  float *theta = step->thetas + d * step->stride, *gamma = own + GAMMA * step->stride;
  step->logs[d] = 0;
  if (begin == end) return;
  find_gamma(job, begin, end, gamma, own + SUM * step->stride, theta);
  look_at(job, begin, end, gamma, own + PHI * step->stride, theta, &step->logs[d]);
}

INLINE void change_row(const struct job *job, size_t row, float *sum) {
  const struct lda_svi_step *step = job->step;
  const struct lda_svi_batch *batch = job->batch;
  const float *betas = step->betas + row * step->stride;
  float *change = job->changes + row * step->topics, by = (float)step->by;
  memset(sum, 0, step->stride * sizeof *sum);
  for (uint64_t i = batch->row_starts[row]; i < batch->row_starts[row + 1]; i++)
    add(sum, step->thetas + batch->row_in[i] * step->stride, step->ratios[batch->row_entries[i]], step->stride);
  for (size_t k = 0; k < step->topics; k++) change[k] = by * (betas[k] * sum[k]);
}

enum phase { BETAS, DOCUMENTS, CHANGES };

INLINE void work_on(const struct job *job, enum phase phase, size_t begin, size_t end, float *own) {
  const struct lda_svi_step *step = job->step;
  for (size_t i = begin; i < end && phase == BETAS; i++) betas_of_row(job, i, step->betas + i * step->stride);
  for (size_t i = begin; i < end && phase == DOCUMENTS; i++) work_on_document(job, i, own);
  for (size_t i = begin; i < end && phase == CHANGES; i++) change_row(job, i, own);
}

static void work_anywhere(const struct job *job, enum phase phase, size_t begin, size_t end, float *own) {
  work_on(job, phase, begin, end, own);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void work_with_avx2(const struct job *job, enum phase phase, size_t begin,
                                                               size_t end, float *own) {
  work_on(job, phase, begin, end, own);
}

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define work_with_avx2 work_anywhere
static bool has_avx2(void) { return false; }
#endif

/* --- threads -------------------------------------------------------------------------------------------------------------------- */

struct share {
  const struct job *job;
  enum phase phase;
  size_t count, at_once;
  atomic_size_t next;
  atomic_uint threads; /* that have begun, each of which has a part of `own` */
};

static void *work_on_share(void *argument) {
  struct share *share = argument;
  const struct lda_svi_step *step = share->job->step;
  float *own = shared(step, SHARED + (size_t)OF_THREAD * atomic_fetch_add(&share->threads, 1));
  bool is_wide = has_avx2();
  for (size_t begin; (begin = atomic_fetch_add(&share->next, share->at_once)) < share->count;) {
    size_t end = share->count - begin < share->at_once ? share->count : begin + share->at_once;
    (is_wide ? work_with_avx2 : work_anywhere)(share->job, share->phase, begin, end, own);
  }
  return NULL;
}

/* Threads that cannot be had are done without. */
static void share_out(const struct job *job, enum phase phase, size_t count, size_t at_once) {
  struct share share = {.job = job, .phase = phase, .count = count, .at_once = at_once};
  uint32_t others = job->step->threads > 1 ? job->step->threads - 1 : 0, started = 0;
  pthread_t *ids = others ? malloc(others * sizeof *ids) : NULL;
  while (ids && started < others && pthread_create(&ids[started], NULL, work_on_share, &share) == 0) started++;
  work_on_share(&share);
  for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  free(ids);
}

/* --- the step ------------------------------------------------------------------------------------------------------------------- */

void lda_svi_step_fini(struct lda_svi_step *step) {
  free(step->own);
  free(step->betas);
  free(step->thetas);
  free(step->ratios);
  free(step->logs);
  memset(step, 0, sizeof *step);
}

/* Nothing of what is there is kept. */
static bool have(void *array, size_t each, size_t count, size_t *room) {
  void *before;
  if (count <= *room) return true;
  count += count / 4;
  memcpy(&before, array, sizeof before);
  free(before);
  before = count <= SIZE_MAX / each ? malloc(count * each) : NULL;
  *room = before ? count : 0;
  memcpy(array, &before, sizeof before);
  return before;
}

static bool have_room(struct lda_svi_step *step, const struct lda_svi_batch *batch) {
  step->stride = (step->topics + (size_t)LANES - 1) / LANES * LANES;
  size_t threads = step->threads > 1 ? step->threads : 1;
  return have(&step->own, sizeof *step->own, (SHARED + OF_THREAD * threads) * step->stride, &step->own_room) &&
         have(&step->betas, sizeof *step->betas, batch->rows * step->stride, &step->beta_room) &&
         have(&step->thetas, sizeof *step->thetas, batch->documents * step->stride, &step->theta_room) &&
         have(&step->ratios, sizeof *step->ratios, batch->entries, &step->ratio_room) &&
         have(&step->logs, sizeof *step->logs, batch->documents, &step->log_room);
}

/* exp(E log beta) matters up to a factor, the same for all topics: with the mean of the totals in it numbers stay near 1. */
static void fill_shared(struct lda_svi_step *step, const float *totals) {
  float *alpha = shared(step, ALPHA), *normal = shared(step, NORMAL), *inverse = shared(step, INVERSE);
  double beta_sum = step->beta * (double)step->words, mean = 0;
  for (uint32_t k = 0; k < step->topics; k++) mean += step->scale * (double)totals[k] / step->topics;
  memset(alpha, 0, SHARED * step->stride * sizeof *alpha);
  for (uint32_t k = 0; k < step->topics; k++) {
    double total = step->scale * (double)totals[k] + beta_sum;
    alpha[k] = (float)step->alpha[k];
    normal[k] = exp_digamma((float)(mean + beta_sum)) / exp_digamma((float)total);
    inverse[k] = (float)(1 / total);
  }
}

static void add_up(const struct lda_svi_step *step, const struct lda_svi_batch *batch, float *changes, double *sums) {
  memset(sums, 0, step->topics * sizeof *sums);
  for (size_t row = 0; row < batch->rows; row++)
    for (uint32_t k = 0; k < step->topics; k++) sums[k] += (double)changes[row * step->topics + k];
  for (uint32_t k = 0; k < step->topics; k++) changes[batch->rows * step->topics + k] = (float)sums[k];
}

pawl_status lda_svi_step_run(struct lda_svi_step *step, const struct lda_svi_batch *batch, const float *rows,
                             float *changes_out, double *log_out) {
  struct job job = {step, batch, rows, changes_out};
  double *sums = malloc(step->topics * sizeof *sums), log_sum = 0;
  if (!sums || !have_room(step, batch)) {
    free(sums);
    return PAWL_NO_MEMORY;
  }
  fill_shared(step, rows + batch->rows * step->topics);
  share_out(&job, BETAS, batch->rows, 64);
  share_out(&job, DOCUMENTS, batch->documents, 4);
  share_out(&job, CHANGES, batch->rows, 64);
  add_up(step, batch, changes_out, sums);
  for (size_t d = 0; d < batch->documents; d++) log_sum += step->logs[d];
  free(sums);
  *log_out = log_sum;
  return PAWL_OK;
}
