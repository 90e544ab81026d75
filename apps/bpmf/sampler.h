/* The Gibbs sampler: both sides' rows, and an iteration over them (Salakhutdinov and Mnih 2008, 3.3).
 *
 * Iteration t draws, in this order,
 *
 *   hyper-parameters of users given U(t-1),   U(t) given them and V(t-1),
 *   hyper-parameters of items given V(t-1),   V(t) given them and U(t).
 *
 * The rows of a side are cut into at most BPMF_BLOCKS blocks, which depend on their number alone. A block is the unit of
 * work of a thread. When its rows are drawn, their sums are written down for the hyper-parameters of the next
 * iteration. Blocks never see the rows of another block of their side, so the order of blocks does not matter.
 */
#ifndef BPMF_SAMPLER_H
#define BPMF_SAMPLER_H

#include "apps/common/crew.h"
#include "apps/bpmf/data.h"
#include "apps/bpmf/hyper.h"

#define BPMF_BLOCKS 64 /* of a side */

/* Rows of a side and the sums of its blocks. */
struct bpmf_side {
  const struct bpmf_ratings *ratings;
  size_t block_rows, blocks; /* the last block may be shorter */
  float *rows;               /* `width` floats each */
  double *sums;              /* bpmf_sums_size doubles for each block */
  struct bpmf_hyper hyper;
};

struct bpmf_sampler {
  const struct bpmf_data *data;
  const struct bpmf_kernel *kernel;
  struct apps_crew *crew;
  struct bpmf_scratch *scratches; /* one for each thread */
  uint32_t rank, threads;
  size_t width;
  double alpha;
  uint64_t seed;
  uint64_t iteration; /* the last one */
  struct bpmf_side sides[BPMF_SIDES];
};

/* Draws first rows. `kernel` NULL: the best one. PAWL_NO_MEMORY. Call fini also after a failure. */
PAWL_MUST_USE pawl_status bpmf_sampler_init(struct bpmf_sampler *sampler, const struct bpmf_data *data, uint32_t rank,
                                            double alpha, uint64_t seed, uint32_t threads,
                                            const struct bpmf_kernel *kernel);
void bpmf_sampler_fini(struct bpmf_sampler *sampler);

/* Makes one iteration. PAWL_DIVERGED. */
PAWL_MUST_USE pawl_status bpmf_sampler_step(struct bpmf_sampler *sampler);

/* The parts of an iteration, for workers that draw some of the blocks: the caller raises `iteration`, and then calls both
 * for each side. */

/* Draws the hyper-parameters of a side from the sums of all blocks. PAWL_DIVERGED. */
PAWL_MUST_USE pawl_status bpmf_sampler_hyper(struct bpmf_sampler *sampler, int side);

/* Hears of blocks as soon as they are drawn and added up, from the threads that draw them. */
struct bpmf_done {
  void (*block)(void *context, int side, size_t block);
  void *context;
};

/* Draws the rows of blocks [first, end) of a side. `done` may be NULL. PAWL_DIVERGED. */
PAWL_MUST_USE pawl_status bpmf_sampler_draw(struct bpmf_sampler *sampler, int side, size_t first, size_t end,
                                            const struct bpmf_done *done);

/* The first row of a block; for the number of blocks, the number of rows. */
static inline size_t bpmf_block_begin(const struct bpmf_side *side, size_t block) {
  size_t row = block * side->block_rows;
  return row < side->ratings->rows ? row : side->ratings->rows;
}

/* Replaces all rows, `rank` floats each, of users and then of items, as they were after `iteration`. */
void bpmf_sampler_set(struct bpmf_sampler *sampler, const float *rows, uint64_t iteration);

/* Draws first rows, as bpmf_sampler_init does. */
void bpmf_sampler_first(struct bpmf_sampler *sampler);

/* Adds up the rows of all blocks, after rows were replaced. */
void bpmf_sampler_sum(struct bpmf_sampler *sampler);

/* Copies all rows, as bpmf_sampler_set takes them. */
void bpmf_sampler_get(const struct bpmf_sampler *sampler, float *rows_out);

/* The predicted rating of a pair by the present rows, not limited to the range of ratings. */
static inline double bpmf_sampler_predict(const struct bpmf_sampler *sampler, uint32_t user, uint32_t item) {
  const float *u = sampler->sides[BPMF_USERS].rows + user * sampler->width;
  const float *v = sampler->sides[BPMF_ITEMS].rows + item * sampler->width;
  return bpmf_rating_of(sampler->data, (double)sampler->kernel->dot(u, v, sampler->width));
}

#endif
