/* The matrix W and its products, by the threads of a crew. Blocks of work are fixed, so that numbers do not depend on the
 * number of threads. */
#ifndef DML_WEIGHTS_H
#define DML_WEIGHTS_H

#include "apps/common/crew.h"
#include "apps/dml/pairs.h"
#include "apps/dml/points.h"

struct dml_weights {
  size_t rank, features;
  float *at; /* rank x features */
  struct apps_crew *crew;
};

/* Weights of 0. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_weights_init(struct dml_weights *weights, size_t rank, size_t features,
                                           struct apps_crew *crew);
void dml_weights_fini(struct dml_weights *weights);

static inline size_t dml_weights_size(const struct dml_weights *weights) { return weights->rank * weights->features; }

/* Writes W x for `count` vectors of `features` numbers. */
void dml_weights_map(const struct dml_weights *weights, const float *x, size_t count, float *u_out);

/* W becomes keep * W + step * sum of u v'. */
void dml_weights_add(struct dml_weights *weights, const struct dml_pairs *pairs, double keep, double step);

/* A target that changes these weights. */
struct dml_target dml_weights_target(struct dml_weights *weights);

/* W becomes PCA of the points: rows of length 1 at right angles to each other that span, as far as block power iterations
 * find it, the space of the greatest variance. `scratch` has points->count * rank numbers. */
void dml_weights_pca(struct dml_weights *weights, const struct dml_points *points, uint64_t seed, float *scratch);

#endif
