/* A part of an epoch with the parameters on servers: synchronous gradient descent with momentum.
 *
 * The sum of the changes of all workers is the change that one process would make. With s the share of this worker in
 * the images of the batch, and g the gradient of the mean loss of these images, worker i keeps
 *
 *   v_i = momentum v_i + s (g + decay w)        and adds -rate v_i to w,
 *
 * and v, the velocity of one process, is the sum of the v_i: both sides obey the same recurrence. So servers only have
 * to add (pawl_group_pushpull: the pushes of a step are added up and applied once), and the learning rate may change
 * from step to step. A worker that is lost takes its v_i with it, and a new one begins with 0.
 *
 * All workers take part in every tick of the group, or the others would wait. A worker that cannot go on adds 1 to
 * the last element of the vector; all see it after the same tick, and stop there.
 *
 * That is PAWL_CNN_PUSH_BSP. With NOTIFY_ACK (ASAP, section 4) a worker does not wait for the parameters of its step, but
 * computes the next gradient with those that it has, which lack that step. When it has computed, it waits until the
 * servers have acknowledged the changes of the step before, that is until they have applied those of all workers, and
 * sends its next ones. So a worker has one version under way, and all workers are in the same tick or in two
 * successive ones. With ASYNC there are no ticks: a worker adds its changes, and gets the parameters with the changes
 * of others that have arrived by then.
 */
#include <math.h>
#include <string.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/memory.h"

void cnn_servers_end(struct cnn_worker *worker) {
  pawl_vector_close(worker->vector);
  pawl_buffer_destroy(worker->session, worker->change);
  pawl_buffer_destroy(worker->session, worker->pulled);
  worker->vector = NULL;
  worker->change = worker->pulled = NULL;
}

static pawl_status begin(struct cnn_worker *worker) {
  char name[PAWL_NAME_MAX + 1];
  size_t bytes = (worker->model->net->parameters + 1) * sizeof(float);
  pawl_status status = PAWL_OK;
  if (!worker->vector) {
    cnn_vector_name(&worker->spec, name);
    status = pawl_vector_open(worker->session, name, CNN_TIMEOUT, &worker->vector);
  }
  if (!status && !worker->change) status = pawl_buffer_create(worker->session, bytes, (void **)&worker->change);
  if (!status && !worker->pulled) status = pawl_buffer_create(worker->session, bytes, (void **)&worker->pulled);
  return status;
}

static pawl_status pull(struct cnn_worker *worker) {
  struct pawl_task *task;
  pawl_status status =
      pawl_vector_pull(worker->vector, pawl_at_range(0, worker->model->net->parameters + 1), worker->pulled, &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

/* Without memory for anything else: asks all workers to stop after this tick. */
static void ask_to_stop(struct cnn_worker *worker) {
  uint64_t key = worker->model->net->parameters;
  float one = 1;
  struct pawl_task *task = NULL;
  struct pawl_where where = pawl_at_keys(&key, 1);
  where.range = (struct pawl_range){0, key + 1};
  if (!worker->vector) return;
  pawl_status status = pawl_group_push(pawl_worker_group(worker->worker), worker->vector, where, &one, &task);
  if (!status) status = pawl_group_clock(pawl_worker_group(worker->worker), NULL);
  if (task) (void)!pawl_task_finish(task, PAWL_FOREVER);
}

/* Adds this worker's change, and gets the parameters: with the changes of all workers in this tick, or, with
 * PAWL_CNN_PUSH_ASYNC, of those that have come so far. */
static pawl_status send(struct cnn_worker *worker) {
  struct pawl_where where = pawl_at_range(0, worker->model->net->parameters + 1);
  if (worker->spec.push == PAWL_CNN_PUSH_ASYNC)
    return pawl_vector_pushpull(worker->vector, where, worker->change, worker->pulled, &worker->task);
  return pawl_group_pushpull(pawl_worker_group(worker->worker), worker->vector, where, worker->change, worker->pulled,
                             &worker->task);
}

/* Waits for what was sent. */
static pawl_status finish(struct cnn_worker *worker) {
  struct pawl_task *task = worker->task;
  worker->task = NULL;
  return pawl_task_finish(task, PAWL_FOREVER);
}

static pawl_status exchange(struct cnn_worker *worker) {
  pawl_status status = send(worker);
  if (status) return status;
  if (worker->spec.push == PAWL_CNN_PUSH_BSP) status = pawl_group_clock(pawl_worker_group(worker->worker), NULL);
  pawl_status finished = finish(worker);
  return status ? status : finished;
}

/* NOTIFY_ACK: the changes of the last step are released when they have been acknowledged. */
static pawl_status await_ack(struct cnn_worker *worker) {
  pawl_status status = pawl_iteration_ready(worker->iterations, PAWL_FOREVER);
  pawl_task_release(worker->task);
  worker->task = NULL;
  return status;
}

static pawl_status notify(struct cnn_worker *worker) {
  pawl_status status = send(worker);
  if (!status) status = pawl_iteration_add(worker->iterations, worker->task);
  return status ? status : pawl_iteration_end(worker->iterations, NAN); /* clocks the group */
}

/* --- steps ------------------------------------------------------------------------------------------------ */

/* This worker's share of one step: its images, and what it adds to the parameters. */
struct cnn_portion {
  uint64_t step;
  size_t images, first, end;
  bool is_finite;
};

static void compute(struct cnn_worker *worker, uint64_t step, struct cnn_portion *portion, struct cnn_reply *reply) {
  uint32_t rank = pawl_worker_rank(worker->worker), count = pawl_worker_count(worker->worker);
  portion->step = step;
  portion->images = cnn_plan_size(&worker->solver.plan, step);
  portion->first = cnn_share_begin(portion->images, rank, count);
  portion->end = cnn_share_begin(portion->images, rank + 1, count);
  portion->is_finite = isfinite(
      cnn_solver_gradient(&worker->solver, step, portion->first, portion->end - portion->first, &reply->tally));
  if (!portion->is_finite && !reply->diverged) reply->diverged = step + 1;
}

static void make_change(struct cnn_worker *worker, const struct cnn_portion *portion) {
  struct cnn_solver *solver = &worker->solver;
  size_t parameters = worker->model->net->parameters;
  struct cnn_sgd sgd = cnn_plan_sgd(&solver->plan, portion->step);
  if (portion->is_finite)
    cnn_sgd_change(worker->model->net, &sgd, (double)(portion->end - portion->first) / (double)portion->images,
                   solver->gradient, solver->velocity, worker->model->parameters, worker->change);
  else
    memset(worker->change, 0, parameters * sizeof *worker->change);
  worker->change[parameters] = portion->is_finite ? 0 : 1;
}

static void take_over(struct cnn_worker *worker) {
  memcpy(worker->model->parameters, worker->pulled, worker->model->net->parameters * sizeof *worker->pulled);
}

static bool is_told_to_stop(const struct cnn_worker *worker) {
  return worker->pulled[worker->model->net->parameters] > 0;
}

/* One step. `*stops_out`: a worker had to stop, perhaps this one. */
static pawl_status take_step(struct cnn_worker *worker, uint64_t step, struct cnn_reply *reply, bool *stops_out) {
  struct cnn_portion portion;
  take_over(worker);
  compute(worker, step, &portion, reply);
  make_change(worker, &portion);
  int64_t before = apps_now();
  pawl_status status = exchange(worker);
  reply->waited_s += apps_seconds_since(before);
  if (!status) *stops_out = is_told_to_stop(worker);
  return status;
}

/* The same with NOTIFY_ACK. The parameters of the last step arrive while this one is computed. */
static pawl_status take_step_ahead(struct cnn_worker *worker, uint64_t step, struct cnn_reply *reply, bool *stops_out) {
  struct cnn_portion portion;
  pawl_status status = pawl_iteration_begin(worker->iterations, PAWL_FOREVER, NULL);
  if (status) return status;
  compute(worker, step, &portion, reply);
  int64_t before = apps_now();
  status = await_ack(worker);
  reply->waited_s += apps_seconds_since(before);
  if (status) return status;
  *stops_out = is_told_to_stop(worker);
  if (*stops_out) return PAWL_OK;
  make_change(worker, &portion);
  take_over(worker);
  return notify(worker);
}

static pawl_status take_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply) {
  bool stops = false, goes_ahead = worker->spec.push == PAWL_CNN_PUSH_NOTIFY_ACK;
  pawl_status status = PAWL_OK;
  if (goes_ahead) take_over(worker);
  for (uint64_t i = 0; i < order->count && !status && !stops; i++) {
    status = (goes_ahead ? take_step_ahead : take_step)(worker, order->step + i, reply, &stops);
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  int64_t before = apps_now();
  pawl_status finished = finish(worker);
  reply->waited_s += apps_seconds_since(before);
  return status ? status : finished;
}

pawl_status cnn_servers_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply) {
  int64_t begun = apps_now();
  pawl_status status = begin(worker);
  if (!status) status = pull(worker);
  if (!status && worker->spec.push == PAWL_CNN_PUSH_NOTIFY_ACK)
    status =
        pawl_iterations_create(worker->session, pawl_worker_group(worker->worker), "notify-ack", &worker->iterations);
  if (status) {
    ask_to_stop(worker);
    return status;
  }
  status = take_steps(worker, order, reply);
  pawl_iterations_destroy(worker->iterations);
  worker->iterations = NULL;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}
