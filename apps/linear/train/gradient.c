/* Distributed gradients, the scheduler's side: OSDI'14 Algorithm 1. subgradient.c has the worker's.
 *
 * Workers add up their gradients in a vector of their own. The scheduler then has the servers take the step, with
 * the row function `proximal` (docs/row-functions.md): weights and gradient stay where they are, and the norms
 * that the penalty needs come back.
 *
 *   w <- shrink(w - rate g, rate l1) / (1 + rate l2)
 *
 * The sweep after the step gives the loss at the new weights, and the gradient for the next step. The gradient of
 * a round that a worker has left is discarded, with whatever that worker may still push. */
#include <stdio.h>

#include "apps/common/errors.h"
#include "apps/linear/train/inside.h"

void linear_gradient_end(struct linear_run *run) {
  struct pawl_vector_info info;
  if (!run->gradient) return;
  pawl_vector_info(run->gradient, &info);
  pawl_vector_close(run->gradient);
  run->gradient = NULL;
  run->has_gradient = false;
  pawl_vector_delete(run->common.session, info.name, LINEAR_TIMEOUT); /* it may be gone already */
}

/* A run that was lost and is resumed may have left a vector of this name, which is not zeros. */
static pawl_status make(struct linear_run *run) {
  run->gradient_serial = ++run->order.serial;
  linear_delete_vector(run, &run->order, LINEAR_SLOPES);
  return linear_make_vector(run, LINEAR_SLOPES, &run->gradient);
}

/* Rounds of other kinds may have taken serial numbers since the vector was made. */
static pawl_status sweep_once(struct linear_run *run, struct linear_reply *sum) {
  pawl_status status = run->gradient ? PAWL_OK : make(run);
  uint64_t serial = run->order.serial;
  if (status) return status;
  run->order.what = LINEAR_SWEEP;
  run->order.serial = run->gradient_serial;
  status = linear_round(run, sum, &run->has_gradient);
  run->order.serial = serial;
  if (!run->has_gradient) linear_gradient_end(run);
  return status;
}

/* The loss at the weights on the servers, and its gradient. The vector has zeros before. */
static pawl_status sweep(struct linear_run *run, struct linear_reply *sum) {
  pawl_status status = PAWL_OK;
  while (!run->has_gradient && !status) status = sweep_once(run, sum);
  run->bias_slope = sum->slopes[0];
  return status;
}

static pawl_status finish(pawl_status status, struct pawl_task *task) {
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER);
  return status ? status : ended;
}

/* The new weights' figures come back with the step. The gradient is used up. */
static pawl_status step(struct linear_run *run) {
  enum { NONZERO, NORM_1, MOVED, SQUARES, RESULTS };
  double rate = run->control.rate, change = -rate * run->bias_slope, results[RESULTS] = {0};
  struct pawl_task *stepped = NULL, *cleared = NULL, *biased = NULL;
  char function[PAWL_RULE_MAX + 1];
  snprintf(function, sizeof function, "proximal rate=%.17g l1=%.17g l2=%.17g", rate, run->order.l1, run->order.l2);
  run->has_gradient = false;
  pawl_status status = pawl_vector_run(run->weights, run->gradient, PAWL_ALL, function, &stepped);
  if (!status) status = pawl_vector_scale(run->gradient, PAWL_ALL, 0, &cleared);
  if (!status && run->bias) status = pawl_vector_push(run->bias, pawl_at_range(0, 1), &change, &biased);
  status = finish(finish(status, cleared), biased);
  if (!status) status = pawl_task_wait(stepped, PAWL_FOREVER);
  if (status) apps_fail(&run->common, status, "cannot step along the gradient: %s", apps_error_text(status));
  if (!status && pawl_task_results(stepped, results, RESULTS) < RESULTS)
    status = apps_fail(&run->common, PAWL_MISMATCH, "the servers are of an earlier version; start them anew");
  run->progress.penalty = run->order.l1 * results[NORM_1] + run->order.l2 / 2 * results[SQUARES];
  run->progress.nonzeros = (uint64_t)results[NONZERO];
  return finish(status, stepped);
}

pawl_status linear_gradient_round(struct linear_run *run, struct linear_reply *sum_out,
                                  struct linear_outcome *outcome) {
  pawl_status status = PAWL_OK;
  if (!run->has_gradient) {
    status = sweep(run, sum_out);
    if (!status) status = linear_read_penalty(run, &run->progress.penalty, &run->progress.nonzeros);
    outcome->before = sum_out->loss + run->progress.penalty;
  }
  if (!status) status = step(run);
  if (!status) status = sweep(run, sum_out);
  outcome->is_whole = outcome->was_full = true;
  outcome->objective = sum_out->loss + run->progress.penalty;
  return status;
}
