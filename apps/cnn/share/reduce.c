/* A part of an epoch in which every worker has its own parameters, and averages with its neighbours (<pawl/reduce.h>).
 *
 * MODELS. A worker makes a step with the gradient of its own images, and then replaces its parameters by the mean of
 * them and its neighbours'. The momentum stays its own.
 *
 * GRADIENTS, on the complete graph. All workers compute the mean of their gradients and make the same step with it, so
 * all have the same parameters and the same momentum. A worker scales the gradient of its share of the images, so that
 * the mean of the gradients of n workers is the gradient of the mean loss of the whole batch.
 *
 * Each round has a reduce of its own, with another name. A worker closes it when the next round begins: then all have
 * made their last step. If a worker is lost while others have finished already, the rest cannot go on, because a change
 * of the members needs the agreement of all. A step that waits for GIVE_UP_NS is therefore left, and the round ends
 * without it. The number of steps that a worker has made tells the others that it is behind: in the next round it takes
 * over the parameters of another worker. So does a new worker, which has made none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/memory.h"

#define LOOK_NS PAWL_SECOND           /* between two checks whether the job has ended */
#define GIVE_UP_NS (60 * PAWL_SECOND) /* for one step */

static void close_reduce(struct cnn_worker *worker) {
  pawl_reduce_close(worker->reduce);
  worker->reduce = NULL;
}

void cnn_reduce_end(struct cnn_worker *worker) {
  close_reduce(worker);
  apps_free(worker->mean);
  worker->mean = NULL;
}

/* Waits until this session knows all members that the scheduler knows of. */
static pawl_status await_peers(struct cnn_worker *worker, uint64_t number) {
  struct pawl_peers *peers = pawl_worker_peers(worker->worker);
  if (!peers) return apps_say(worker->error, PAWL_MISMATCH, "this worker was not started for reduce; use --peers");
  pawl_status status = PAWL_OK;
  for (uint64_t known; !status && (known = pawl_peers_number(peers)) < number;) {
    status = pawl_peers_await(peers, known, LOOK_NS);
    if (status == PAWL_TIMED_OUT) status = pawl_worker_is_ending(worker->worker) ? PAWL_CANCELLED : PAWL_OK;
  }
  return status;
}

/* A step that ends early if the job ends. PAWL_TIMED_OUT. */
static pawl_status step_on(struct cnn_worker *worker, struct pawl_reduce_report *report) {
  int64_t begun = apps_now();
  pawl_status status;
  do status = pawl_reduce_step(worker->reduce, LOOK_NS, report);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(worker->worker) && apps_now() - begun < GIVE_UP_NS);
  return status;
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
  struct pawl_peers *peers = pawl_worker_peers(worker->worker);
  struct pawl_reduce_options options;
  struct pawl_peers_state state;
  char name[PAWL_REDUCE_NAME_MAX + 1];
  bool is_mean = worker->spec.means_gradients;
  struct pawl_tensor model = tensor_of(worker->model->parameters, count), velocity = tensor_of(solver->velocity, count),
                     gradient = tensor_of(solver->gradient, count), carried[2] = {model, velocity};
  pawl_peers_state(peers, &state);
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
  snprintf(name, sizeof name, "steps.%llu", (unsigned long long)order->serial);
  return pawl_reduce_open(peers, name, is_mean ? &gradient : &model, 1, &options, CNN_TIMEOUT, &worker->reduce);
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
  pawl_status status = step_on(worker, &part->last);
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
  close_reduce(worker);
  pawl_status status = await_peers(worker, order->number);
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
  struct pawl_reduce_options options;
  char name[PAWL_REDUCE_NAME_MAX + 1];
  close_reduce(worker);
  if (!worker->mean) worker->mean = apps_alloc_zero(count, sizeof *worker->mean);
  if (!worker->mean) return PAWL_NO_MEMORY;
  memcpy(worker->mean, worker->model->parameters, count * sizeof *worker->mean);
  struct pawl_tensor mean = tensor_of(worker->mean, count);
  pawl_reduce_options_init(&options);
  options.graph = "complete";
  options.first = worker->iteration; /* new workers are behind, and take over */
  snprintf(name, sizeof name, "mean.%llu", (unsigned long long)order->serial);
  pawl_status status = await_peers(worker, order->number);
  if (!status)
    status =
        pawl_reduce_open(pawl_worker_peers(worker->worker), name, &mean, 1, &options, CNN_TIMEOUT, &worker->reduce);
  return status ? status : step_on(worker, NULL);
}
