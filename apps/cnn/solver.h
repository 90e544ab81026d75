/* The arithmetic of steps, for one process and for the workers of a job: which images belong to a step, and the
 * gradient of a part of them.
 *
 * Steps are counted over all epochs, from 0. All processes put the images of an epoch into the same order, which
 * depends on the seed and the epoch only; so several workers can divide each batch among them.
 */
#ifndef CNN_SOLVER_H
#define CNN_SOLVER_H

#include <pawl/images.h>

#include "apps/cnn/model.h"
#include "apps/cnn/sgd.h"

/* The steps of a training. The batch has at most `images` images. */
struct cnn_plan {
  uint64_t images, batch, epochs, seed;
  double rate, momentum, decay;
  enum pawl_cnn_schedule schedule;
};

static inline uint64_t cnn_plan_epoch(const struct cnn_plan *plan) { /* steps of an epoch */
  return (plan->images + plan->batch - 1) / plan->batch;
}

static inline uint64_t cnn_plan_steps(const struct cnn_plan *plan) { return cnn_plan_epoch(plan) * plan->epochs; }

/* Images of a step: the last batch of an epoch may be smaller. */
static inline size_t cnn_plan_size(const struct cnn_plan *plan, uint64_t step) {
  uint64_t at = step % cnn_plan_epoch(plan) * plan->batch;
  return (size_t)(plan->images - at < plan->batch ? plan->images - at : plan->batch);
}

struct cnn_sgd cnn_plan_sgd(const struct cnn_plan *plan, uint64_t step);

/* Sums over images, measured before the step that they belong to. */
struct cnn_tally {
  double loss;
  uint64_t wrong, done;
};

struct cnn_solver {
  struct cnn_plan plan;
  const struct pawl_images *images;
  struct pawl_cnn_model *model; /* borrowed */
  struct cnn_pass *pass;        /* for batches of the plan */
  float *gradient, *velocity;   /* of all parameters */
  uint32_t *order;              /* of the images of `epoch` */
  uint64_t epoch;               /* from 1; 0: none yet */
  uint8_t *labels;              /* of a batch */
};

/* `images`, which has labels, and `model` must outlive the solver. PAWL_NO_MEMORY, PAWL_TOO_LARGE, with a sentence in
 * `error`. */
PAWL_MUST_USE pawl_status cnn_solver_init(struct cnn_solver *solver, const struct cnn_plan *plan,
                                          const struct pawl_images *images, struct pawl_cnn_model *model, char *error);
void cnn_solver_fini(struct cnn_solver *solver); /* a struct of zeros is fine */

/* Computes `gradient`, that of the mean loss of `count` images of the step from image `first` of its batch on, and adds
 * them to the tally. Returns the sum of their losses. Without images the gradient is 0. */
double cnn_solver_gradient(struct cnn_solver *solver, uint64_t step, size_t first, size_t count,
                           struct cnn_tally *tally);

#endif
