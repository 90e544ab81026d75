/* The loss of pairs of points, and its slope:
 *
 *   similar       max(0, |u|^2 - near)           slope by W: 2 u v' if |u|^2 > near, else 0
 *   dissimilar    weight * max(0, 1 - |u|^2)     slope by W: -2 weight u v' if |u|^2 < 1, else 0
 *
 * with u = W v, v the difference of the points. The objective is the mean over all pairs. */
#ifndef DML_LOSS_H
#define DML_LOSS_H

#include "apps/dml/pairs.h"
#include "apps/dml/weights.h"

struct dml_loss {
  double near, weight; /* near: 1 - margin */
};

struct dml_pair {
  uint32_t one, other; /* numbers of points */
};

struct dml_pair_list {
  struct dml_pair *at;   /* similar ones first */
  size_t similar, count; /* count: with dissimilar ones; below 2^32 */
};

double dml_loss_of(const struct dml_loss *loss, bool is_similar, double square);

/* The number by which u v' is the slope. */
double dml_loss_slope(const struct dml_loss *loss, bool is_similar, double square);

/* The objective from W x of all points; NAN: it is not finite. */
double dml_objective(const struct dml_loss *loss, const struct dml_pair_list *pairs, const struct dml_points *mapped);

/* The mean of |u|^2 over the pairs from `first` to `end`. */
double dml_mean_square(const struct dml_pair_list *pairs, size_t first, size_t end, const struct dml_points *mapped);

/* Memory for batches. */
struct dml_batch {
  size_t room;
  float *u, *v;
};

PAWL_MUST_USE pawl_status dml_batch_init(struct dml_batch *batch, size_t room, const struct dml_weights *weights);
void dml_batch_fini(struct dml_batch *batch);

/* Computes the pairs of vectors for `count` pairs of points, whose numbers in the list are `numbers`. Pairs without a slope
 * are left out. The vectors are valid until the next call. */
struct dml_pairs dml_batch_fill(struct dml_batch *batch, const struct dml_loss *loss, const struct dml_pair_list *pairs,
                                const uint32_t *numbers, size_t count, const struct dml_points *points,
                                const struct dml_weights *weights);

#endif
