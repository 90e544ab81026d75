#include "apps/bpmf/hyper.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"

bool bpmf_hyper_init(struct bpmf_hyper *hyper, uint32_t rank) {
  size_t width = bpmf_width(rank), square = (size_t)rank * rank;
  *hyper = (struct bpmf_hyper){
      .rank = rank,
      .width = width,
      .prior = {apps_alloc_zero(width * width, sizeof(double)), apps_alloc_zero(width, sizeof(double))},
      .mean = apps_alloc_zero(rank, sizeof(double)),
      .sums = apps_alloc_zero(bpmf_sums_size(width), sizeof(double)),
      .root = apps_alloc_zero(square, sizeof(double)),
      .bartlett = apps_alloc_zero(square, sizeof(double)),
      .product = apps_alloc_zero(square, sizeof(double)),
      .center = apps_alloc_zero(rank, sizeof(double)),
      .noise = apps_alloc_zero(rank, sizeof(double))};
  return hyper->prior.precision && hyper->prior.pull && hyper->mean && hyper->sums && hyper->root && hyper->bartlett &&
         hyper->product && hyper->center && hyper->noise;
}

void bpmf_hyper_fini(struct bpmf_hyper *hyper) {
  apps_free(hyper->prior.precision);
  apps_free(hyper->prior.pull);
  apps_free(hyper->mean);
  apps_free(hyper->sums);
  apps_free(hyper->root);
  apps_free(hyper->bartlett);
  apps_free(hyper->product);
  apps_free(hyper->center);
  apps_free(hyper->noise);
}

void bpmf_sums_of(const struct bpmf_kernel *kernel, const float *rows, size_t count, size_t width, double *panel,
                  double *sums) {
  double *sum = sums + width * width;
  memset(sums, 0, bpmf_sums_size(width) * sizeof *sums);
  for (size_t done = 0; done < count; done += BPMF_TILE) {
    size_t now = count - done < BPMF_TILE ? count - done : BPMF_TILE;
    for (size_t i = 0; i < now; i++) kernel->widen(rows + (done + i) * width, width, panel + i * width);
    kernel->gram(panel, NULL, now, width, 1, sums, NULL);
    for (size_t i = 0; i < now; i++)
      for (size_t k = 0; k < width; k++) sum[k] += panel[i * width + k];
  }
}

/* --- the draw --------------------------------------------------------------------------------------------- */

/* R where M = R'R, in place, for the upper triangle of any matrix. */
static bool take_root(double *matrix, size_t rank) {
  for (size_t j = 0; j < rank; j++) {
    double *row = matrix + j * rank;
    if (!(row[j] > 0 && row[j] < 1e300)) return false;
    double scale = 1 / sqrt(row[j]);
    for (size_t c = j; c < rank; c++) row[c] *= scale;
    for (size_t i = j + 1; i < rank; i++)
      for (size_t c = i; c < rank; c++) matrix[i * rank + c] -= row[i] * row[c];
  }
  return true;
}

/* B, lower triangular, where B B' ~ Wishart(I, freedom). */
static void draw_bartlett(struct bpmf_hyper *hyper, double freedom, struct apps_random *random) {
  size_t rank = hyper->rank;
  memset(hyper->bartlett, 0, rank * rank * sizeof(double));
  for (size_t i = 0; i < rank; i++) {
    for (size_t c = 0; c < i; c++) hyper->bartlett[i * rank + c] = bpmf_normal(random);
    hyper->bartlett[i * rank + i] = sqrt(2 * bpmf_gamma(random, (freedom - (double)i) / 2));
  }
}

/* T = R^-1 B, from the last row. It is a root of R^-1 B B' R'^-1, and need not be triangular. */
static void draw_product(struct bpmf_hyper *hyper) {
  size_t rank = hyper->rank;
  double *product = hyper->product;
  memcpy(product, hyper->bartlett, rank * rank * sizeof(double));
  for (size_t i = rank; i-- > 0;) {
    const double *root = hyper->root + i * rank;
    double scale = 1 / root[i];
    for (size_t j = i + 1; j < rank; j++)
      for (size_t c = 0; c < rank; c++) product[i * rank + c] -= root[j] * product[j * rank + c];
    for (size_t c = 0; c < rank; c++) product[i * rank + c] *= scale;
  }
}

/* Lambda = T T', padded. */
static void set_precision(struct bpmf_hyper *hyper) {
  size_t rank = hyper->rank, width = hyper->width;
  double *to = hyper->prior.precision;
  for (size_t i = 0; i < width; i++)
    for (size_t j = 0; j < width; j++) to[i * width + j] = i == j;
  for (size_t i = 0; i < rank; i++)
    for (size_t j = 0; j <= i; j++) {
      const double *a = hyper->product + i * rank, *b = hyper->product + j * rank;
      double sum = 0;
      for (size_t c = 0; c < rank; c++) sum += a[c] * b[c];
      to[i * width + j] = to[j * width + i] = sum;
    }
}

/* mu = center + R' B'^-1 z / sqrt(beta): T'^-1 = R' B'^-1 is a root of Lambda^-1. */
static void draw_mean(struct bpmf_hyper *hyper, double beta, struct apps_random *random) {
  size_t rank = hyper->rank;
  double *noise = hyper->noise;
  for (size_t i = 0; i < rank; i++) noise[i] = bpmf_normal(random);
  for (size_t i = rank; i-- > 0;) { /* B' is upper triangular */
    for (size_t j = i + 1; j < rank; j++) noise[i] -= hyper->bartlett[j * rank + i] * noise[j];
    noise[i] /= hyper->bartlett[i * rank + i];
  }
  for (size_t i = 0; i < rank; i++) {
    double sum = 0;
    for (size_t j = 0; j <= i; j++) sum += hyper->root[j * rank + i] * noise[j];
    hyper->mean[i] = hyper->center[i] + sum / sqrt(beta);
  }
}

void bpmf_wishart_draw(struct bpmf_hyper *hyper, double freedom, double beta, struct apps_random *random) {
  draw_bartlett(hyper, freedom, random);
  draw_product(hyper);
  set_precision(hyper);
  draw_mean(hyper, beta, random);
  for (size_t i = 0; i < hyper->rank; i++) {
    hyper->prior.pull[i] = 0;
    for (size_t j = 0; j < hyper->rank; j++)
      hyper->prior.pull[i] += hyper->prior.precision[i * hyper->width + j] * hyper->mean[j];
  }
}

static void add_blocks(struct bpmf_hyper *hyper, const double *sums, size_t blocks) {
  size_t size = bpmf_sums_size(hyper->width);
  memset(hyper->sums, 0, size * sizeof(double));
  for (size_t b = 0; b < blocks; b++)
    for (size_t i = 0; i < size; i++) hyper->sums[i] += sums[b * size + i];
}

/* With n rows of mean x and sum of products P:
 *   M = I + (P - n x x') + beta n / (beta + n) x x',  center = n x / (beta + n) */
bool bpmf_hyper_draw(struct bpmf_hyper *hyper, const double *sums, size_t blocks, uint64_t rows,
                     struct apps_random random) {
  size_t rank = hyper->rank, width = hyper->width;
  double n = (double)rows, beta = BPMF_BETA + n;
  add_blocks(hyper, sums, blocks);
  const double *sum = hyper->sums + width * width;
  for (size_t i = 0; i < rank; i++) {
    hyper->center[i] = sum[i] / beta;
    for (size_t j = i; j < rank; j++)
      hyper->root[i * rank + j] = (i == j) + hyper->sums[i * width + j] - sum[i] * sum[j] / beta;
  }
  if (!take_root(hyper->root, rank)) return false;
  bpmf_wishart_draw(hyper, (double)rank + n, beta, &random);
  return true;
}
