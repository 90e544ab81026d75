/* Hyper-parameters of a side: the mean mu and the precision Lambda of its rows, with a normal-Wishart prior
 * (Salakhutdinov and Mnih 2008, equation 14):
 *
 *   Lambda ~ Wishart(W, nu),  mu ~ N(m, (beta Lambda)^-1)
 *   before any row:  W = I,  nu = rank,  m = 0,  beta = 2
 *
 * The rows count by their sum and their sum of products only. Both are added up over fixed blocks of rows, and the
 * blocks in their order, so that the result does not depend on who adds up which block.
 */
#ifndef BPMF_HYPER_H
#define BPMF_HYPER_H

#include "apps/bpmf/row.h"

#define BPMF_BETA 2.0 /* as in the authors' program */

/* Doubles of the sums of a block: the upper triangle of the products, width x width, then the sum. */
static inline size_t bpmf_sums_size(size_t width) { return width * width + width; }

/* Writes the sums of `count` rows. `panel` has room for a tile of rows. */
void bpmf_sums_of(const struct bpmf_kernel *kernel, const float *rows, size_t count, size_t width, double *panel,
                  double *sums_out);

/* Memory of draws of hyper-parameters, and the result. */
struct bpmf_hyper {
  uint32_t rank;
  size_t width;
  struct bpmf_prior prior;           /* of the last draw */
  double *mean;                      /* mu, `rank` of them */
  double *sums;                      /* of all blocks */
  double *root, *bartlett, *product; /* rank x rank each */
  double *center, *noise;            /* rank each */
};

bool bpmf_hyper_init(struct bpmf_hyper *hyper, uint32_t rank); /* false: out of memory; call fini all the same */
void bpmf_hyper_fini(struct bpmf_hyper *hyper);

/* Draws mu and Lambda given the sums of `blocks` blocks, one behind another, of `rows` rows in all. False: a matrix is
 * not positive definite, which means that numbers have become too large. */
bool bpmf_hyper_draw(struct bpmf_hyper *hyper, const double *sums, size_t blocks, uint64_t rows,
                     struct apps_random random);

/* Draws Lambda ~ Wishart(M^-1, freedom), by Bartlett's decomposition, and mu ~ N(center, (beta Lambda)^-1). `root` is
 * the upper R of M = R'R. Writes precision and mean of the hyper-parameters. For bpmf_hyper_draw and tests. */
void bpmf_wishart_draw(struct bpmf_hyper *hyper, double freedom, double beta, struct apps_random *random);

#endif
