/* Some rows of a batch, and the features that occur in them, numbered. For methods that pull the weights of a
 * minibatch and push its gradient. */
#ifndef LINEAR_MINIBATCH_H
#define LINEAR_MINIBATCH_H

#include <pawl/pawl.h>

#include "apps/linear/index.h"

/* A struct of zeros is empty. Filling it again reuses its memory. */
struct linear_minibatch {
  const struct pawl_batch *batch;
  size_t begin, rows;
  struct linear_index index;
  size_t features, room;
  uint64_t *keys;    /* ids, ascending */
  double *weights;   /* pulled weights, in the order of `keys` */
  double *gradient;  /* in the order of `keys` */
  uint32_t *numbers; /* by entry: the position of its feature in the arrays above */
  size_t entry_room;
  double bias, bias_gradient;
};

void linear_minibatch_fini(struct linear_minibatch *minibatch);

/* Takes rows [begin, end) of the batch, which must live as long as the minibatch is used. Gradients become 0.
 * PAWL_NO_MEMORY, PAWL_TOO_LARGE. */
pawl_status linear_minibatch_fill(struct linear_minibatch *minibatch, const struct pawl_batch *batch, size_t begin,
                                  size_t end);

/* x . w + b of row `row`, counted from `begin`. */
double linear_minibatch_score(const struct linear_minibatch *minibatch, size_t row);

/* gradient += by * x. */
void linear_minibatch_add(struct linear_minibatch *minibatch, size_t row, double by);

#endif
