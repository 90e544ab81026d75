#include "apps/dml/weights.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"
#include "apps/common/random.h"

#define BLOCK 64      /* vectors, or rows of W, of a piece of work */
#define ITERATIONS 10 /* of the power method */
#define LITTLE 1e-4F  /* a row that keeps less than this share of its length is of rounding errors */
enum { FOR_PCA = 41 };

pawl_status dml_weights_init(struct dml_weights *weights, size_t rank, size_t features, struct apps_crew *crew) {
  *weights = (struct dml_weights){.rank = rank, .features = features, .crew = crew};
  if (features > SIZE_MAX / sizeof *weights->at) return PAWL_NO_MEMORY;
  weights->at = apps_alloc_zero(rank, features * sizeof *weights->at);
  return weights->at ? PAWL_OK : PAWL_NO_MEMORY;
}

void dml_weights_fini(struct dml_weights *weights) { apps_free(weights->at); }

static size_t blocks_of(size_t count) { return (count + BLOCK - 1) / BLOCK; }

static size_t block_size(size_t count, size_t block) {
  size_t left = count - block * BLOCK;
  return left < BLOCK ? left : BLOCK;
}

/* --- products --------------------------------------------------------------------------------------------- */

struct weights_map {
  const struct dml_weights *weights;
  const float *x;
  float *u;
  size_t count;
};

static void map_block(void *context, uint32_t hand, size_t block) {
  const struct weights_map *is = context;
  int rank = (int)is->weights->rank, features = (int)is->weights->features;
  size_t first = block * BLOCK;
  (void)hand;
  bool is_locked = apps_blas_enter();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)block_size(is->count, block), rank, features, 1,
              is->x + first * is->weights->features, features, is->weights->at, features, 0,
              is->u + first * is->weights->rank, rank);
  apps_blas_leave(is_locked);
}

void dml_weights_map(const struct dml_weights *weights, const float *x, size_t count, float *u_out) {
  struct weights_map is = {weights, x, u_out, count};
  apps_crew_run(weights->crew, blocks_of(count), map_block, &is);
}

struct weights_add {
  struct dml_weights *weights;
  const struct dml_pairs *pairs;
  float keep, step;
};

static void add_block(void *context, uint32_t hand, size_t block) {
  const struct weights_add *is = context;
  const struct dml_pairs *pairs = is->pairs;
  size_t first = block * BLOCK;
  int rank = (int)pairs->rank, features = (int)pairs->features;
  (void)hand;
  bool is_locked = apps_blas_enter();
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)block_size(pairs->rank, block), features, (int)pairs->count,
              is->step, pairs->u + first, rank, pairs->v, features, is->keep, is->weights->at + first * pairs->features,
              features);
  apps_blas_leave(is_locked);
}

void dml_weights_add(struct dml_weights *weights, const struct dml_pairs *pairs, double keep, double step) {
  struct weights_add is = {weights, pairs, (float)keep, (float)step};
  apps_crew_run(weights->crew, blocks_of(weights->rank), add_block, &is);
}

static pawl_status apply(void *context, const struct dml_pairs *pairs, double step) {
  if (pairs->count > 0) dml_weights_add(context, pairs, 1, -step);
  return PAWL_OK;
}

struct dml_target dml_weights_target(struct dml_weights *weights) {
  return (struct dml_target){apply, weights};
}

/* --- PCA -------------------------------------------------------------------------------------------------- */

static void draw(struct apps_random *random, size_t count, float *to) {
  for (size_t i = 0; i < count; i++) to[i] = (float)(apps_random_draw(random) >> 40) * 0x1p-24F - 0.5F;
}

/* Subtracts from a row its parts along the rows before it. Returns its length. */
static float straighten(struct dml_weights *weights, size_t row) {
  int features = (int)weights->features;
  float *it = weights->at + row * weights->features;
  for (size_t i = 0; i < row; i++) {
    const float *other = weights->at + i * weights->features;
    cblas_saxpy(features, -cblas_sdot(features, it, 1, other, 1), other, 1, it, 1);
  }
  return cblas_snrm2(features, it, 1);
}

/* Gram and Schmidt, twice for each row because of rounding. A row that depends on those before it becomes a random one:
 * the points do not vary in more directions. */
static void orthogonalise(struct dml_weights *weights, struct apps_random *random) {
  int features = (int)weights->features;
  bool is_locked = apps_blas_enter();
  for (size_t row = 0; row < weights->rank; row++) {
    float *it = weights->at + row * weights->features;
    float before = cblas_snrm2(features, it, 1), length = straighten(weights, row);
    while (!(length > LITTLE * before) || before < 1e-20F) {
      draw(random, weights->features, it);
      before = cblas_snrm2(features, it, 1);
      length = straighten(weights, row);
    }
    cblas_sscal(features, 1 / length, it, 1);
    cblas_sscal(features, 1 / straighten(weights, row), it, 1);
  }
  apps_blas_leave(is_locked);
}

void dml_weights_pca(struct dml_weights *weights, const struct dml_points *points, uint64_t seed, float *scratch) {
  struct apps_random random = apps_random_of(seed, FOR_PCA, 0, 0);
  const struct dml_pairs pairs = {points->count, weights->rank, weights->features, scratch, points->at};
  draw(&random, dml_weights_size(weights), weights->at);
  orthogonalise(weights, &random);
  for (int i = 0; i < ITERATIONS; i++) {
    dml_weights_map(weights, points->at, points->count, scratch);
    dml_weights_add(weights, &pairs, 0, 1 / (double)points->count);
    orthogonalise(weights, &random);
  }
}
