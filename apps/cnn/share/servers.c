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

/* Adds this worker's change, and gets the parameters with the changes of all. */
static pawl_status exchange(struct cnn_worker *worker) {
  struct pawl_group *group = pawl_worker_group(worker->worker);
  struct pawl_task *task;
  pawl_status status = pawl_group_pushpull(group, worker->vector, pawl_at_range(0, worker->model->net->parameters + 1),
                                           worker->change, worker->pulled, &task);
  if (status) return status;
  status = pawl_group_clock(group, NULL);
  pawl_status finished = pawl_task_finish(task, PAWL_FOREVER);
  return status ? status : finished;
}

/* One step. `*stops_out`: a worker had to stop, perhaps this one. */
static pawl_status take_step(struct cnn_worker *worker, uint64_t step, struct cnn_reply *reply, bool *stops_out) {
  struct cnn_solver *solver = &worker->solver;
  size_t parameters = worker->model->net->parameters, images = cnn_plan_size(&solver->plan, step);
  uint32_t rank = pawl_worker_rank(worker->worker), count = pawl_worker_count(worker->worker);
  size_t first = cnn_share_begin(images, rank, count), end = cnn_share_begin(images, rank + 1, count);
  struct cnn_sgd sgd = cnn_plan_sgd(&solver->plan, step);
  memcpy(worker->model->parameters, worker->pulled, parameters * sizeof *worker->pulled);
  bool is_finite = isfinite(cnn_solver_gradient(solver, step, first, end - first, &reply->tally));
  if (is_finite)
    cnn_sgd_change(worker->model->net, &sgd, (double)(end - first) / (double)images, solver->gradient, solver->velocity,
                   worker->model->parameters, worker->change);
  else
    memset(worker->change, 0, parameters * sizeof *worker->change);
  worker->change[parameters] = is_finite ? 0 : 1;
  int64_t before = apps_now();
  pawl_status status = exchange(worker);
  reply->waited_s += apps_seconds_since(before);
  if (status) return status;
  *stops_out = worker->pulled[parameters] > 0;
  if (!is_finite) reply->diverged = step + 1;
  return PAWL_OK;
}

pawl_status cnn_servers_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply) {
  int64_t begun = apps_now();
  bool stops = false;
  pawl_status status = begin(worker);
  if (!status) status = pull(worker);
  if (status) {
    ask_to_stop(worker);
    return status;
  }
  for (uint64_t i = 0; i < order->count && !status && !stops; i++) {
    status = take_step(worker, order->step + i, reply, &stops);
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}
