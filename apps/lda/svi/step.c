/* One step: see apps/lda/svi/step.h. Three phases, each shared by all threads: exp(E log beta) by rows, gamma by
 * documents, the sums by rows again. No two threads write the same memory, so sums are always in the same order.
 *
 * psi is computed with a few multiplications. With y = x - 1/2, exp(psi(x)) = y + 1/(24 y) - 37/(5760 y^3) + …, which
 * is exact to a float for x > 5, and psi(x) = psi(x + 5) - 1/x - … - 1/(x + 4).
 */
#include "apps/lda/svi/step.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/random.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES 16 /* rows are padded with zeros to a multiple of it */
/* The highest number of iterations for a document. With 50 and 100, and with other rules for leaving out
 * topics, held-out documents had a worse likelihood on the one corpus that was tried. */
#define TURNS 30
#define ENOUGH 1e-3f /* a document has converged when its gamma_dk change by less than this on average */
#define TINY 1e-35f
#define NO_TOKENS 1e-6f /* of a word and topic in a batch: fewer tokens are sent as 0 */
#define NOTHING 0.02f   /* fewer tokens of a document than this: the topic is left out */

/* --- steps ---------------------------------------------------------------------------------------------- */

double lda_svi_rho(const struct lda_svi_rate *rate, uint64_t t) {
  return fmin(0.9, pow(rate->offset + (double)t, -rate->kappa));
}

double lda_svi_decay(const struct lda_svi_rate *rate, uint64_t from, uint64_t to) {
  double sum = 0;
  for (uint64_t t = from + 1; t <= to; t++) sum -= log1p(-lda_svi_rho(rate, t));
  return sum;
}

/* A Gamma distribution of this shape is almost normal, and so is the sum of four uniform numbers. */
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

/* --- functions of numbers ------------------------------------------------------------------------------- */

/* Vectors of eight numbers. Compilers use two or four registers for each where registers are narrower. They
 * are passed by address, because calling conventions for vectors differ between processors. */
enum { WIDE = 8 };
typedef float wide __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef int32_t wide_bits __attribute__((vector_size(4 * WIDE)));

/* exp of negative numbers: a power of two times a polynomial. */
INLINE void exp_negative(wide *x) {
  const wide least = {-80, -80, -80, -80, -80, -80, -80, -80};
  wide_bits is_more = *x > least;
  wide v = (wide)(((wide_bits)*x & is_more) | ((wide_bits)least & ~is_more));
  wide_bits n = __builtin_convertvector(v * 1.44269504f - 0.5f, wide_bits);
  wide whole = __builtin_convertvector(n, wide), part = v - whole * 0.693359375f + whole * 2.12194440e-4f;
  wide result = part * 1.9875691500e-4f + 1.3981999507e-3f;
  result = result * part + 8.3334519073e-3f;
  result = result * part + 4.1665795894e-2f;
  result = result * part + 1.6666665459e-1f;
  result = result * part + 5.0000001201e-1f;
  *x = (result * part * part + part + 1) * (wide)((n + 127) << 23);
}

INLINE void exp_digamma(wide *x) {
  wide y = *x + 4.5f, inverse = 1 / y, square = inverse * inverse;
  wide high = y + inverse * (0.041666667f + square * (-0.0064236111f + square * 0.0035524828f));
  wide steps = -(*x * (3 * *x + 6) + 2) / (*x * (*x + 1) * (*x + 2)) - (2 * *x + 7) / ((*x + 3) * (*x + 4));
  exp_negative(&steps);
  *x = high * steps;
}

float lda_exp_digamma(float x) {
  wide eight = {x, 1, 1, 1, 1, 1, 1, 1};
  exp_digamma(&eight);
  return eight[0];
}

INLINE float sum_of(const wide *x) {
  const wide v = *x;
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

/* `count` is a multiple of LANES. */
INLINE float dot(const float *a, const float *b, size_t count) {
  wide even = {0}, odd = {0};
  for (size_t i = 0; i < count; i += LANES) {
    even += *(const wide *)(a + i) * *(const wide *)(b + i);
    odd += *(const wide *)(a + i + WIDE) * *(const wide *)(b + i + WIDE);
  }
  even += odd;
  return sum_of(&even);
}

INLINE float dot_of_any(const float *a, const float *b, size_t count) {
  size_t whole = count / LANES * LANES;
  float sum = dot(a, b, whole);
  for (size_t i = whole; i < count; i++) sum += a[i] * b[i];
  return sum;
}

INLINE void add(float *to, const float *from, float by, size_t count) {
  for (size_t i = 0; i < count; i += WIDE) *(wide *)(to + i) += by * *(const wide *)(from + i);
}

/* --- the phases, compiled twice: for any processor, and for wider vectors ------------------------------- */

/* The shared arrays in `own`, of `stride` floats each. The memory of each thread follows, and ends with rows
 * of the longest document. */
enum { ALPHA, NORMAL, INVERSE, SHARED };
enum { GAMMA, SUM, PHI, THETA, OF_ALPHA, OF_GAMMA, WHICH, KEPT, ROWS };

static float *shared(const struct lda_svi_step *step, size_t which) { return step->own + which * step->stride; }
static size_t floats_of_thread(const struct lda_svi_step *step) { return (ROWS + step->longest) * step->stride; }

struct job {
  const struct lda_svi_step *step;
  const struct lda_svi_batch *batch;
  const float *rows;
  float *changes;
};

INLINE void betas_of_row(const struct job *job, size_t row, float *out) {
  const struct lda_svi_step *step = job->step;
  const float *mu = job->rows + row * step->topics, *normal = shared(step, NORMAL);
  float scale = (float)step->scale, beta = (float)step->beta;
  memcpy(out, mu, step->topics * sizeof *out);
  memset(out + step->topics, 0, (step->stride - step->topics) * sizeof *out);
  for (size_t k = 0; k < step->stride; k += WIDE) {
    wide lambda = scale * *(const wide *)(out + k) + beta;
    exp_digamma(&lambda);
    *(wide *)(out + k) = lambda * *(const wide *)(normal + k); /* padding becomes 0 */
  }
}

INLINE void thetas_of(const float *gamma, float *theta, size_t count) {
  for (size_t k = 0; k < count; k += WIDE) {
    wide value = *(const wide *)(gamma + k);
    exp_digamma(&value);
    *(wide *)(theta + k) = value;
  }
}

/* Computes gamma from theta. Returns the change. */
INLINE float move_gamma(const float *alpha, const float *theta, const float *sum, float *gamma, size_t count) {
  wide moved = {0};
  for (size_t k = 0; k < count; k += WIDE) {
    wide to = *(const wide *)(alpha + k) + *(const wide *)(theta + k) * *(const wide *)(sum + k);
    wide by = to - *(const wide *)(gamma + k);
    moved += (wide)((wide_bits)by & INT32_MAX);
    *(wide *)(gamma + k) = to;
  }
  return sum_of(&moved);
}

/* A document while its gamma is computed: a copy of its rows, with one column for each topic, and the values
 * of each column. */
struct document_look {
  const float *counts;
  /* `columns` is the number of remaining topics, padded with zeros to a multiple of LANES */
  size_t words, topics, columns;
  float *rows; /* words * columns */
  float *alpha, *gamma, *sum, *theta;
  uint32_t *which, *kept; /* by column: its topic; `kept` is scratch memory of narrow */
  float *whole;           /* gamma of all topics */
};

/* Makes one iteration. Returns the change of gamma. */
INLINE float turn(const struct document_look *look) {
  size_t columns = look->columns;
  thetas_of(look->gamma, look->theta, columns);
  memset(look->sum, 0, columns * sizeof *look->sum);
  for (size_t i = 0; i < look->words; i++) {
    const float *row = look->rows + i * columns;
    add(look->sum, row, look->counts[i] / (dot(look->theta, row, columns) + TINY), columns);
  }
  return move_gamma(look->alpha, look->theta, look->sum, look->gamma, columns);
}

INLINE void put_back(const struct document_look *look) {
  for (size_t j = 0; j < look->topics; j++) look->whole[look->which[j]] = look->gamma[j];
}

/* In place, in ascending order: each write goes to a position that was read already. */
INLINE void leave_out_columns(struct document_look *look, size_t topics, size_t columns) {
  for (size_t i = 0; i < look->words; i++) {
    const float *from = look->rows + i * look->columns;
    float *to = look->rows + i * columns;
    for (size_t j = 0; j < topics; j++) to[j] = from[look->kept[j]];
    memset(to + topics, 0, (columns - topics) * sizeof *to);
  }
  for (size_t j = 0; j < columns; j++) {
    look->gamma[j] = j < topics ? look->gamma[look->kept[j]] : 0;
    look->alpha[j] = j < topics ? look->alpha[look->kept[j]] : 0;
    if (j < topics) look->which[j] = look->which[look->kept[j]];
  }
  look->topics = topics;
  look->columns = columns;
}

/* Most documents have few topics. A topic that has almost no tokens of the document after some iterations
 * will have none in the end: its theta is smaller than that of others by orders of magnitude, and falls. So
 * its gamma is frozen, and the following iterations are shorter. */
INLINE void narrow(struct document_look *look) {
  size_t topics = 0;
  put_back(look);
  for (size_t j = 0; j < look->topics; j++)
    if (look->gamma[j] > look->alpha[j] + NOTHING) look->kept[topics++] = (uint32_t)j;
  size_t columns = (topics + LANES - 1) / LANES * LANES;
  if (topics > 0 && columns < look->columns) leave_out_columns(look, topics, columns);
}

INLINE void begin_look(const struct job *job, size_t begin, size_t end, float *own, struct document_look *look) {
  const struct lda_svi_step *step = job->step;
  size_t stride = step->stride;
  float tokens = 0;
  *look = (struct document_look){.counts = job->batch->counts + begin,
                                 .words = end - begin,
                                 .topics = step->topics,
                                 .columns = stride,
                                 .rows = own + ROWS * stride,
                                 .alpha = own + OF_ALPHA * stride,
                                 .gamma = own + OF_GAMMA * stride,
                                 .sum = own + SUM * stride,
                                 .theta = own + THETA * stride,
                                 .which = (uint32_t *)(void *)(own + WHICH * stride),
                                 .kept = (uint32_t *)(void *)(own + KEPT * stride),
                                 .whole = own + GAMMA * stride};
  memset(look->whole, 0, stride * sizeof *look->whole);
  memcpy(look->alpha, shared(step, ALPHA), stride * sizeof *look->alpha);
  for (size_t i = begin; i < end; i++) tokens += job->batch->counts[i];
  for (uint32_t k = 0; k < stride; k++) {
    look->gamma[k] = k < step->topics ? look->alpha[k] + tokens / (float)step->topics : 0;
    look->which[k] = k;
  }
  for (size_t i = begin; i < end; i++)
    memcpy(look->rows + (i - begin) * stride, step->betas + job->batch->words[i] * stride, stride * sizeof(float));
}

/* Computes gamma, in the thread's `own`, and theta. */
INLINE void find_gamma(const struct job *job, size_t begin, size_t end, float *own, float *theta) {
  struct document_look look;
  begin_look(job, begin, end, own, &look);
  for (int done = 0; done < TURNS; done++) {
    if (done > 0 && done % 4 == 0) narrow(&look);
    if (turn(&look) < ENOUGH * (float)job->step->topics) break;
  }
  put_back(&look);
  thetas_of(look.whole, theta, job->step->stride);
}

/* Computes ratios, and log(theta . phi) with the means of both. */
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
  find_gamma(job, begin, end, own, theta);
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
  for (size_t k = 0; k < step->topics; k++) {
    float tokens = betas[k] * sum[k];
    change[k] = tokens > NO_TOKENS ? by * tokens : 0;
  }
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

/* --- threads -------------------------------------------------------------------------------------------- */

struct thread_share {
  const struct job *job;
  enum phase phase;
  size_t count, at_once;
  atomic_size_t next;
  atomic_uint threads; /* number of threads that have begun; each uses a part of `own` */
};

static void *work_on_share(void *argument) {
  struct thread_share *share = argument;
  const struct lda_svi_step *step = share->job->step;
  float *own = shared(step, SHARED) + floats_of_thread(step) * atomic_fetch_add(&share->threads, 1);
  bool is_wide = has_avx2();
  for (size_t begin; (begin = atomic_fetch_add(&share->next, share->at_once)) < share->count;) {
    size_t end = share->count - begin < share->at_once ? share->count : begin + share->at_once;
    (is_wide ? work_with_avx2 : work_anywhere)(share->job, share->phase, begin, end, own);
  }
  return NULL;
}

/* If a thread cannot be started, the others do its work. */
static void share_out(const struct job *job, enum phase phase, size_t count, size_t at_once) {
  struct thread_share share = {.job = job, .phase = phase, .count = count, .at_once = at_once};
  uint32_t others = job->step->threads > 1 ? job->step->threads - 1 : 0, started = 0;
  pthread_t *ids = others ? apps_alloc(others * sizeof *ids) : NULL;
  while (ids && started < others && pthread_create(&ids[started], NULL, work_on_share, &share) == 0) started++;
  work_on_share(&share);
  for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  apps_free(ids);
}

/* --- the step ------------------------------------------------------------------------------------------- */

void lda_svi_step_fini(struct lda_svi_step *step) {
  apps_free(step->own);
  apps_free(step->betas);
  apps_free(step->thetas);
  apps_free(step->ratios);
  apps_free(step->logs);
  memset(step, 0, sizeof *step);
}

/* Allocates an array. Its old contents are lost. */
static bool have(void *array, size_t each, size_t count, size_t *room) {
  void *before;
  if (count <= *room) return true;
  count += count / 4;
  memcpy(&before, array, sizeof before);
  apps_free(before);
  before = count <= SIZE_MAX / each ? apps_alloc(count * each) : NULL;
  *room = before ? count : 0;
  memcpy(array, &before, sizeof before);
  return before;
}

static bool have_room(struct lda_svi_step *step, const struct lda_svi_batch *batch) {
  step->stride = (step->topics + (size_t)LANES - 1) / LANES * LANES;
  size_t threads = step->threads > 1 ? step->threads : 1;
  step->longest = 0;
  for (size_t d = 0; d < batch->documents; d++)
    if (batch->starts[d + 1] - batch->starts[d] > step->longest)
      step->longest = batch->starts[d + 1] - batch->starts[d];
  size_t own = SHARED * step->stride + threads * floats_of_thread(step);
  return have(&step->own, sizeof *step->own, own, &step->own_room) &&
         have(&step->betas, sizeof *step->betas, batch->rows * step->stride, &step->beta_room) &&
         have(&step->thetas, sizeof *step->thetas, batch->documents * step->stride, &step->theta_room) &&
         have(&step->ratios, sizeof *step->ratios, batch->entries, &step->ratio_room) &&
         have(&step->logs, sizeof *step->logs, batch->documents, &step->log_room);
}

/* exp(E log beta) is needed only up to a factor that is the same for all topics. The mean of the totals as a
 * factor keeps numbers near 1. */
static void fill_shared(struct lda_svi_step *step, const float *totals) {
  float *alpha = shared(step, ALPHA), *normal = shared(step, NORMAL), *inverse = shared(step, INVERSE);
  double beta_sum = step->beta * (double)step->words, mean = 0;
  for (uint32_t k = 0; k < step->topics; k++) mean += step->scale * (double)totals[k] / step->topics;
  memset(alpha, 0, SHARED * step->stride * sizeof *alpha);
  for (uint32_t k = 0; k < step->topics; k++) {
    double total = step->scale * (double)totals[k] + beta_sum;
    alpha[k] = (float)step->alpha[k];
    normal[k] = lda_exp_digamma((float)(mean + beta_sum)) / lda_exp_digamma((float)total);
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
  double *sums = apps_alloc(step->topics * sizeof *sums), log_sum = 0;
  if (!sums || !have_room(step, batch)) {
    apps_free(sums);
    return PAWL_NO_MEMORY;
  }
  fill_shared(step, rows + batch->rows * step->topics);
  share_out(&job, BETAS, batch->rows, 64);
  share_out(&job, DOCUMENTS, batch->documents, 4);
  share_out(&job, CHANGES, batch->rows, 64);
  add_up(step, batch, changes_out, sums);
  for (size_t d = 0; d < batch->documents; d++) log_sum += step->logs[d];
  apps_free(sums);
  *log_out = log_sum;
  return PAWL_OK;
}
