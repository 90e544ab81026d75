/* Measures the Gibbs sampler of factorised ratings: one line of JSON for each rank and way, in training ratings per
 * iteration and second.
 *
 *   bpmf_bench FILE [RANK...]     default: 16 32 128
 *
 * sampler    an iteration as `pawl train bpmf` makes it, with one thread for each processor
 * single     the same with one thread
 * loop       a single loop over all rows of both sides with the same kernel: no hyper-parameters, no blocks, no threads
 * lapack     that loop with dsyrk, dpotrf and dtrsv for each row, in double precision
 * plain      that loop with the textbook's Cholesky
 *
 * Figures are the best of several rounds. `per_s` is by the clock, `per_cpu_s` by the time of the processors used:
 * other programs disturb the former much and the latter little.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "bench.h"
#include "apps/bpmf/sampler.h"
#include "apps/common/memory.h"

#define ROUNDS 5

enum way { SAMPLER, SINGLE, LOOP, LAPACK, PLAIN, WAYS };
static const char *const names[WAYS] = {"sampler", "single", "loop", "lapack", "plain"};

static double cpu_now(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

/* --- one row by other means ------------------------------------------------------------------------------- */

struct other_means {
  double *panel, *matrix, *vector;
  size_t room; /* rows of the panel */
};

static void draw_by_lapack(const struct bpmf_draw *draw, struct bpmf_rated rated, struct apps_random random,
                           struct other_means *is, float *row) {
  int n = (int)draw->rank, count = (int)rated.count;
  for (int k = 0; k < n; k++) {
    is->vector[k] = draw->prior->pull[k];
    memcpy(is->matrix + k * n, draw->prior->precision + (size_t)k * draw->width, (size_t)n * sizeof(double));
  }
  for (int i = 0; i < count; i++) {
    const float *v = draw->others + rated.others[i] * draw->width;
    for (int k = 0; k < n; k++) is->panel[i * n + k] = (double)v[k];
    cblas_daxpy(n, draw->alpha * (double)rated.values[i], is->panel + i * n, 1, is->vector, 1);
  }
  if (count > 0)
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, n, count, draw->alpha, is->panel, n, 1, is->matrix, n);
  LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, is->matrix, n);
  cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, is->matrix, n, is->vector, 1);
  for (int k = 0; k < n; k++) is->vector[k] += bpmf_normal(&random);
  cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, n, is->matrix, n, is->vector, 1);
  for (int k = 0; k < n; k++) row[k] = (float)is->vector[k];
}

static void draw_plainly(const struct bpmf_draw *draw, struct bpmf_rated rated, struct apps_random random,
                         struct other_means *is, float *row) {
  size_t n = draw->rank;
  double *a = is->matrix, *x = is->vector;
  for (size_t k = 0; k < n; k++) {
    x[k] = draw->prior->pull[k];
    for (size_t l = 0; l <= k; l++) a[k * n + l] = draw->prior->precision[k * draw->width + l];
  }
  for (size_t i = 0; i < rated.count; i++) {
    const float *v = draw->others + rated.others[i] * draw->width;
    for (size_t k = 0; k < n; k++) {
      double scaled = draw->alpha * (double)v[k];
      x[k] += scaled * (double)rated.values[i];
      for (size_t l = 0; l <= k; l++) a[k * n + l] += scaled * (double)v[l];
    }
  }
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j <= i; j++) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
    }
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) x[i] -= a[i * n + k] * x[k];
    x[i] /= a[i * n + i];
  }
  for (size_t k = 0; k < n; k++) x[k] += bpmf_normal(&random);
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; k++) x[i] -= a[k * n + i] * x[k];
    x[i] /= a[i * n + i];
  }
  for (size_t k = 0; k < n; k++) row[k] = (float)x[k];
}

/* --- an iteration ----------------------------------------------------------------------------------------- */

static void loop_rows(struct bpmf_sampler *sampler, enum way way, struct other_means *means) {
  for (int number = 0; number < BPMF_SIDES; number++) {
    struct bpmf_side *side = &sampler->sides[number];
    struct bpmf_draw draw = {.kernel = sampler->kernel,
                             .rank = sampler->rank,
                             .width = sampler->width,
                             .alpha = sampler->alpha,
                             .prior = &side->hyper.prior,
                             .others = sampler->sides[1 - number].rows};
    for (uint32_t row = 0; row < side->ratings->rows; row++) {
      struct apps_random random = bpmf_random_of(1, BPMF_FOR_ROWS, (unsigned)number, sampler->iteration, row);
      struct bpmf_rated rated = bpmf_rated_of(side->ratings, row);
      float *to = side->rows + row * sampler->width;
      if (way == LAPACK)
        draw_by_lapack(&draw, rated, random, means, to);
      else if (way == PLAIN)
        draw_plainly(&draw, rated, random, means, to);
      else if (!bpmf_row_draw(&draw, rated, random, &sampler->scratches[0], to))
        abort();
    }
  }
}

static void measure(const struct bpmf_data *data, uint32_t rank, enum way way) {
  struct bpmf_sampler sampler;
  size_t longest = 1;
  double best = INFINITY, best_cpu = INFINITY;
  for (int side = 0; side < BPMF_SIDES; side++)
    for (uint32_t i = 0; i < data->sides[side].rows; i++) {
      size_t count = bpmf_rated_of(&data->sides[side], i).count;
      longest = count > longest ? count : longest;
    }
  struct other_means means = {.panel = apps_alloc_zero(longest * rank, sizeof(double)),
                              .matrix = apps_alloc_zero((size_t)rank * rank, sizeof(double)),
                              .vector = apps_alloc_zero(rank, sizeof(double))};
  uint32_t threads = way == SAMPLER ? apps_crew_processors() : 1;
  check_status(bpmf_sampler_init(&sampler, data, rank, 2, 1, threads, NULL));
  check_status(bpmf_sampler_step(&sampler)); /* sets the hyper-parameters */
  size_t times = rank > 32 ? 1 : 5;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now(), cpu_start = cpu_now();
    for (size_t i = 0; i < times; i++) {
      if (way <= SINGLE)
        check_status(bpmf_sampler_step(&sampler));
      else
        loop_rows(&sampler, way, &means);
    }
    best = fmin(best, (now() - start) / (double)times);
    best_cpu = fmin(best_cpu, (cpu_now() - cpu_start) / (double)times);
  }
  printf("{\"rank\":%u,\"way\":\"%s\",\"kernel\":\"%s\",\"threads\":%u,\"ratings\":%llu,\"per_s\":%.4g,\"per_cpu_s\":%."
         "4g}\n",
         rank, names[way], sampler.kernel->name, threads, (unsigned long long)data->count, (double)data->count / best,
         (double)data->count / best_cpu);
  fflush(stdout);
  bpmf_sampler_fini(&sampler);
  apps_free(means.panel);
  apps_free(means.matrix);
  apps_free(means.vector);
}

int main(int argc, char **argv) {
  const uint32_t usual[] = {16, 32, 128};
  struct pawl_ratings *ratings = NULL;
  struct bpmf_data data;
  char error[PAWL_BPMF_TEXT] = "";
  if (argc < 2) {
    fprintf(stderr, "usage: bpmf_bench FILE [RANK...]\n");
    return 2;
  }
  check_status(pawl_ratings_read((const char *const *)argv + 1, 1, NULL, &ratings));
  check_status(bpmf_data_init(&data, ratings, NULL, 0, 1, error));
  for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++)
    for (int way = 0; way < WAYS; way++)
      measure(&data, argc > 2 ? (uint32_t)strtoul(argv[i + 2], NULL, 10) : usual[i], (enum way)way);
  bpmf_data_fini(&data);
  pawl_ratings_destroy(ratings);
  return 0;
}
