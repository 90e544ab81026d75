/* How fast dense pairs are multiplied, beside OpenBLAS on the same sizes in the same run, in processor time. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "bench/command/bench.h"
#include "peer/factor/multiply.h"
#include "sfb.h"

#define REPEATS_MAX 99
#define SLICE 4e7 /* operations between two readings of the clock, at least */

enum { BLAS, OWN, PLAINER, WAYS };

struct scene {
  size_t rows, columns, pairs;
  float *u, *v, *matrix;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void multiply(const struct scene *is, int way) {
  if (way == BLAS)
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)is->rows, (int)is->columns, (int)is->pairs, 1, is->u,
                (int)is->rows, is->v, (int)is->columns, 1, is->matrix, (int)is->columns);
  else if (way == OWN)
    pwi_factor_multiply_f32(is->rows, is->columns, is->pairs, is->u, is->v, is->matrix);
  else
    pwi_factor_multiply_by_f32(pwi_factor_set() == PWI_FACTOR_PLAIN ? PWI_FACTOR_PLAIN : PWI_FACTOR_FMA, is->rows,
                               is->columns, is->pairs, is->u, is->v, is->matrix);
}

static int by_value(const void *a, const void *b) {
  double one = *(const double *)a, other = *(const double *)b;
  return (one > other) - (one < other);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, by_value);
  return values[count / 2];
}

static void measure(const struct scene *is, size_t repeats, double rates[WAYS]) {
  double seconds[WAYS][REPEATS_MAX], flops = 2.0 * (double)is->rows * (double)is->columns * (double)is->pairs;
  size_t times = (size_t)fmax(1, SLICE / flops);
  for (size_t i = 0; i < repeats; i++)
    for (int way = 0; way < WAYS; way++) {
      double before = now();
      for (size_t k = 0; k < times; k++) multiply(is, way);
      seconds[way][i] = now() - before;
    }
  for (int way = 0; way < WAYS; way++) rates[way] = 1e-9 * flops * (double)times / median(seconds[way], repeats);
}

static bool open_scene(size_t rows, size_t columns, size_t pairs, uint64_t seed, struct scene *is) {
  struct pwi_random random;
  *is = (struct scene){.rows = rows, .columns = columns, .pairs = pairs};
  is->u = pwi_alloc_zero(rows * pairs, sizeof *is->u);
  is->v = pwi_alloc_zero(columns * pairs, sizeof *is->v);
  is->matrix = pwi_alloc_zero(rows * columns, sizeof *is->matrix);
  if (!is->u || !is->v || !is->matrix) return false;
  pwi_random_init(&random, seed, 1);
  for (size_t i = 0; i < rows * pairs; i++) is->u[i] = (float)pwi_random_unit(&random) - 0.5F;
  for (size_t i = 0; i < columns * pairs; i++) is->v[i] = (float)pwi_random_unit(&random) - 0.5F;
  return true;
}

static void close_scene(struct scene *is) {
  pwi_free(is->u);
  pwi_free(is->v);
  pwi_free(is->matrix);
}

static void print(const struct pwi_sfb_plan *plan, const struct scene *is, const double rates[WAYS]) {
  if (plan->json)
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "bench", "sfb", "figure",
                                 "rate", "openblas", openblas_get_corename(), "rows", (json_int_t)is->rows, "columns",
                                 (json_int_t)is->columns, "pairs", (json_int_t)is->pairs, "gflops", rates[OWN],
                                 "gflops_avx2", rates[PLAINER], "gflops_openblas", rates[BLAS], "of_openblas",
                                 rates[OWN] / rates[BLAS], "of_openblas_avx2", rates[PLAINER] / rates[BLAS]));
  else
    printf("%6zu %8zu %6zu %10.1f %10.1f %10.2f %13.1f %10.2f\n", is->rows, is->columns, is->pairs, rates[BLAS],
           rates[OWN], rates[OWN] / rates[BLAS], rates[PLAINER], rates[PLAINER] / rates[BLAS]);
  fflush(stdout);
}

int pwi_sfb_rate(const struct pwi_sfb_plan *plan) {
  static const size_t shapes[][3] = {{1000, 4000, 32}, {1000, 4000, 100}, {1024, 4096, 32}, {300, 784, 32},
                                     {10, 784, 32},    {100, 20000, 32},  {2000, 2000, 100}};
  static const char *const sets[PWI_FACTOR_SETS] = {"none", "AVX2 and FMA", "AVX-512"};
  if (!plan->json) {
    pwi_bench_print_machine();
    printf(
        "vector instructions: %s; OpenBLAS has taken its loops for %s; floats, GFlop/s of processor time, medians of "
        "%u\n\n",
        sets[pwi_factor_set()], openblas_get_corename(), plan->repeats);
    printf("  rows  columns  pairs   OpenBLAS   factors  to OpenBLAS  without AVX-512  to OpenBLAS\n");
  }
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct scene is;
    double rates[WAYS];
    bool is_full = open_scene(shapes[i][0], shapes[i][1], shapes[i][2], plan->setup.seed, &is);
    if (is_full) {
      measure(&is, plan->repeats, rates);
      print(plan, &is, rates);
    }
    close_scene(&is);
    if (!is_full) return pwi_cli_failure(plan->command, "not enough memory");
  }
  return PWI_EXIT_OK;
}
