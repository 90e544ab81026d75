/* Distributed subgradient descent, OSDI'14 Algorithm 1: the worker's side.
 *
 * In each round the servers take one step, w <- prox(w - rate * g), along the gradient of the round before
 * (train/gradient.c). Then every worker pulls the new weights of its features, computes the loss of its rows
 * and its gradient, and pushes the gradient. The servers add the parts up. The proximal operator applies the
 * penalty. This is the subgradient step of the paper, except that weights reach zero exactly. It is the
 * simplest of the methods, and the best to read first. */
#include <math.h>
#include <stdlib.h>

#include <pawl/matrix.h>

#include "apps/linear/control.h"
#include "apps/linear/inside.h"
#include "apps/linear/losses.h"

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  (void)worker, (void)order;
  return PAWL_OK; /* nothing is kept from one round to the next */
}

static void end(struct linear_worker *worker) { (void)worker; }

/* Replaces z = X w by c loss'(z + b). */
static double slopes(const struct linear_worker *worker, const struct linear_order *order, double bias, double *z,
                     struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  double sum = 0;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&worker->spec, order, (double)share->labels[i]), score = z[i] + bias;
    double c = linear_c(&worker->spec, y) * (double)share->weights[i];
    reply->loss += c * linear_loss_value(worker->spec.loss, y, score);
    z[i] = c * linear_loss_slope(worker->spec.loss, y, score);
    sum += z[i];
  }
  return sum;
}

/* A share is stored by features: it is X^T. */
static pawl_status open_share(const struct linear_share *share, struct pawl_matrix **matrix_out) {
  struct pawl_matrix_data data = {.rows = share->features,
                                  .columns = share->rows,
                                  .values = share->values,
                                  .starts = share->starts,
                                  .at = share->row_of};
  return pawl_matrix_create(&data, 1, matrix_out);
}

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  int64_t begun = apps_now();
  double bias = 0;
  double *w = apps_alloc_zero(share->features + 1, sizeof *w), *z = apps_alloc_zero(share->rows + 1, sizeof *z);
  double *gradient = apps_alloc_zero(share->features + 1, sizeof *gradient);
  struct pawl_range all = pawl_range_of(0, share->features);
  struct pawl_matrix *matrix = NULL;
  pawl_status status = w && z && gradient ? open_share(share, &matrix) : PAWL_NO_MEMORY;
  if (!status) status = linear_pull_weights(worker, share->keys, share->features, w, &bias);
  int64_t pulled = apps_now(), computed = pulled;
  if (!status) status = pawl_matrix_transposed_times(matrix, all, w, 1, z); /* X w */
  if (!status) {
    reply->slopes[0] = slopes(worker, order, bias, z, reply); /* the gradient of the bias */
    status = pawl_matrix_times(matrix, all, z, 1, gradient);  /* X^T z */
  }
  if (!status) {
    computed = apps_now();
    status = linear_push(worker, order, LINEAR_SLOPES, gradient);
  }
  reply->rows = share->rows;
  reply->looked_at = share->features;
  reply->worked_s = (double)(computed - pulled) * 1e-9;
  reply->waited_s = apps_seconds_since(begun) - reply->worked_s;
  pawl_matrix_destroy(matrix);
  apps_free(w);
  apps_free(z);
  apps_free(gradient);
  return status;
}

/* --- the method ----------------------------------------------------------------------------------------- */

/* The best rate is one over the highest curvature of any direction. This uses the sum of the curvatures of
 * all directions, which is several times as high. */
static double settle_rate(const struct linear_spec *spec, uint64_t rows, double squares) {
  return linear_loss_of(spec->loss)->rate / fmax(squares + (double)rows, 1);
}

const struct linear_method_descriptor linear_subgradient = {
    .name = "subgradient",
    .number = PAWL_LINEAR_METHOD_SUBGRADIENT,
    .losses = LINEAR_ALL_LOSSES,
    .begin = begin,
    .sweep = sweep,
    .end = end,
    .keeps_best = true,
    .settle_rate = settle_rate,
    .hear = linear_control_hear_gradient,
    .round = linear_gradient_round,
};
