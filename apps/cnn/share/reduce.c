/* A part of an epoch in which every worker has its own parameters, and averages with its neighbours (<pawl/reduce.h>).
 *
 * MODELS. A worker makes a step with the gradient of its own images, and then replaces its parameters by the mean of
 * them and its neighbours'. The momentum stays its own.
 *
 * GRADIENTS, on the complete graph. All workers compute the mean of their gradients and make the same step with it, so
 * all have the same parameters and the same momentum. A worker scales the gradient of its share of the images, so that
 * the mean of the gradients of n workers is the gradient of the mean loss of the whole batch.
 *
 * apps/common/reduce.h explains when a reduce is closed, and what happens if workers are lost.
 */
#include <math.h>
#include <string.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"

void cnn_reduce_end(struct cnn_worker *worker) {
  apps_reduce_close(&worker->reduce);
  apps_free(worker->mean);
  worker->mean = NULL;
}

static pawl_status explain(struct cnn_worker *worker, pawl_status status) {
  bool has_no_peers = status == PAWL_MISMATCH && !pawl_worker_peers(worker->worker);
  return has_no_peers ? apps_say(worker->error, status, APPS_REDUCE_NO_PEERS) : status;
}

static struct pawl_tensor tensor_of(float *values, size_t count) {
  return (struct pawl_tensor){.values = values, .count = count, .type = PAWL_F32};
}

/* --- steps ------------------------------------------------------------------------------------------------ */

struct cnn_part {
  struct cnn_worker *worker;
  struct cnn_reply *reply;
  struct pawl_reduce_report last; /* its rank and size divide the batch of the next step */
};

static pawl_status open_part(struct cnn_part *part, const struct cnn_order *order) {
  struct cnn_worker *worker = part->worker;
  struct cnn_solver *solver = &worker->solver;
  size_t count = worker->model->net->parameters;
  struct pawl_reduce_options options;
  struct pawl_peers_state state;
  bool is_mean = worker->spec.means_gradients;
  struct pawl_tensor model = tensor_of(worker->model->parameters, count), velocity = tensor_of(solver->velocity, count),
                     gradient = tensor_of(solver->gradient, count), carried[2] = {model, velocity};
  pawl_peers_state(pawl_worker_peers(worker->worker), &state);
  part->last = (struct pawl_reduce_report){.rank = state.rank, .size = state.size};
  if (state.rank == PAWL_PEERS_NONE) return PAWL_NODE_GONE;
  pawl_reduce_options_init(&options);
  options.mode = worker->spec.mode;
  options.what = is_mean ? PAWL_REDUCE_MEAN : PAWL_REDUCE_MIX;
  options.graph = *worker->spec.graph ? worker->spec.graph : NULL;
  options.carried = is_mean ? carried : &carried[1];
  options.carried_count = is_mean ? 2 : 1;
  if (order->adopts && state.rank > 0) worker->iteration = 0;
  options.first = worker->iteration;
  return apps_reduce_open(worker->worker, "steps", order->serial, is_mean ? gradient : model, &options,
                          &worker->reduce);
}

/* Computes with this worker's images of the step. False: the loss is not finite. */
static bool compute(struct cnn_part *part, uint64_t step) {
  struct cnn_worker *worker = part->worker;
  struct cnn_solver *solver = &worker->solver;
  size_t images = cnn_plan_size(&solver->plan, step), parameters = worker->model->net->parameters;
  uint32_t size = part->last.size > 0 ? part->last.size : 1;
  uint32_t rank = part->last.rank < size ? part->last.rank : 0;
  size_t first = cnn_share_begin(images, rank, size), end = cnn_share_begin(images, rank + 1, size);
  struct cnn_sgd sgd = cnn_plan_sgd(&solver->plan, step);
  if (!isfinite(cnn_solver_gradient(solver, step, first, end - first, &part->reply->tally))) return false;
  if (worker->spec.means_gradients) {
    float scale = (float)((double)(end - first) * size / (double)images);
    for (size_t i = 0; i < parameters; i++) solver->gradient[i] *= scale;
  } else if (end > first) {
    cnn_sgd_step(worker->model->net, &sgd, solver->gradient, solver->velocity, worker->model->parameters);
  }
  return true;
}

/* Averages, and completes the step. */
static pawl_status combine(struct cnn_part *part) {
  struct cnn_worker *worker = part->worker;
  struct cnn_solver *solver = &worker->solver;
  int64_t before = apps_now();
  pawl_status status = apps_reduce_step(worker->worker, worker->reduce, &part->last);
  part->reply->waited_s += apps_seconds_since(before);
  if (status) return status;
  worker->iteration = part->last.iteration;
  if (!worker->spec.means_gradients) return PAWL_OK;
  struct cnn_sgd sgd = cnn_plan_sgd(&solver->plan, worker->iteration - 1);
  cnn_sgd_step(worker->model->net, &sgd, solver->gradient, solver->velocity, worker->model->parameters);
  return PAWL_OK;
}

static pawl_status take_steps(struct cnn_part *part, const struct cnn_order *order) {
  struct cnn_worker *worker = part->worker;
  uint64_t step = order->step, end = order->step + order->count;
  pawl_status status = PAWL_OK;
  while (step < end && !status) {
    bool is_finite = compute(part, step);
    status = is_finite ? combine(part) : PAWL_DIVERGED;
    if (status == PAWL_DIVERGED) { /* the loss, or the parameters after the step */
      part->reply->diverged = step + 1;
      return PAWL_OK;
    }
    if (status == PAWL_TIMED_OUT) return PAWL_OK; /* behind */
    step = worker->iteration;
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  return status;
}

pawl_status cnn_reduce_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply) {
  struct cnn_part part = {.worker = worker, .reply = reply};
  int64_t begun = apps_now();
  apps_reduce_close(&worker->reduce);
  pawl_status status = explain(worker, apps_reduce_await(worker->worker, order->number));
  if (!status) status = open_part(&part, order);
  if (!status) status = take_steps(&part, order);
  reply->number = worker->iteration;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}

/* --- one model -------------------------------------------------------------------------------------------- */

/* The mean of the models of all workers, of which each worker has the same bits then. Training goes on with their own
 * models. */
pawl_status cnn_reduce_agree(struct cnn_worker *worker, const struct cnn_order *order) {
  size_t count = worker->model->net->parameters;
  bool is_there = false;
  apps_reduce_close(&worker->reduce);
  if (!worker->mean) worker->mean = apps_alloc_zero(count, sizeof *worker->mean);
  if (!worker->mean) return PAWL_NO_MEMORY;
  memcpy(worker->mean, worker->model->parameters, count * sizeof *worker->mean);
  pawl_status status = apps_reduce_mean(worker->worker, order->number, order->serial, tensor_of(worker->mean, count),
                                        worker->iteration, &worker->reduce, &is_there);
  if (!is_there) cnn_reduce_end(worker); /* this worker has no mean that it could give */
  return explain(worker, status);
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

/* A worker without a file has made no steps, and takes over another one's. */
pawl_status cnn_reduce_file(struct cnn_worker *worker, const struct cnn_order *order,
                            struct apps_reduce_part *part_out) {
  size_t count = worker->model->net->parameters;
  struct pawl_tensor tensors[2] = {tensor_of(worker->model->parameters, count),
                                   tensor_of(worker->solver.velocity, count)};
  const struct apps_reduce_place place = {.folder = worker->spec.folder,
                                          .job = worker->spec.job,
                                          .turn = (uint32_t)order->turn,
                                          .serial = order->serial,
                                          .iteration = order->step};
  if (!*place.folder) return PAWL_INVALID;
  pawl_status status = explain(worker, apps_reduce_await(worker->worker, order->number));
  if (status) return status;
  if (order->what == CNN_SAVE) return apps_reduce_save(worker->worker, &place, tensors, 2, worker->iteration, part_out);
  status = apps_reduce_load(worker->worker, &place, tensors, 2, part_out);
  worker->has_said = status != PAWL_OK;
  worker->iteration = !status && part_out->files > 0 ? order->step : 0;
  return status;
}
