/* Rows and sums as vectors on the servers, and ticks of the group of workers: two in each iteration, and one before the
 * first.
 *
 * A worker pushes its rows of a side, finishes a tick, and waits until all others have finished it; then it pulls the rows
 * that it needs. With slack it waits for an earlier tick. When a worker is lost, the servers no longer wait for it, so the
 * others make their iterations with rows that are too old; the scheduler notices that a worker is missing, and repeats
 * them.
 */
#include <string.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/errors.h"
#include "apps/common/memory.h"

static struct pawl_group *group_of(const struct bpmf_worker *worker) { return pawl_worker_group(worker->worker); }

/* Keys of rows: users, then items. */
static uint64_t key_of(const struct bpmf_worker *worker, int side, uint64_t row) {
  return side == BPMF_USERS ? row : worker->data.sides[BPMF_USERS].rows + row;
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static void close_link(struct bpmf_worker *worker) {
  struct bpmf_servers_state *state = &worker->servers;
  for (int side = 0; side < BPMF_SIDES; side++) pawl_keys_destroy(state->keys[side]);
  pawl_vector_close(state->rows);
  pawl_vector_close(state->sums);
  apps_free(state->pulled);
  *state = (struct bpmf_servers_state){.rows = NULL};
}

static pawl_status list_keys(struct bpmf_worker *worker, int side) {
  const struct bpmf_needs *needs = &worker->part.needs[side];
  uint64_t *keys = apps_alloc_zero((size_t)needs->rows, sizeof *keys), *next = keys;
  if (!keys) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < needs->count; i++)
    for (uint64_t row = 0; row < needs->ranges[i].count; row++)
      *next++ = key_of(worker, side, needs->ranges[i].start + row);
  pawl_status status =
      needs->rows == 0 ? PAWL_OK
                       : pawl_keys_create(worker->servers.rows, keys, (size_t)needs->rows, &worker->servers.keys[side]);
  apps_free(keys);
  return status;
}

/* Pushes this worker's rows of a side. */
static pawl_status push_rows(struct bpmf_worker *worker, int number, struct pawl_task **task_out) {
  const struct bpmf_side *side = &worker->sampler.sides[number];
  size_t first = bpmf_block_begin(side, worker->part.first[number]),
         end = bpmf_block_begin(side, worker->part.end[number]);
  return pawl_vector_push(worker->servers.rows,
                          pawl_at_range(key_of(worker, number, first), key_of(worker, number, end)),
                          side->rows + first * worker->sampler.width, task_out);
}

static struct pawl_where sums_at(const struct bpmf_worker *worker, int side, size_t first, size_t end, uint64_t clock) {
  uint64_t height = worker->sampler.width + 1;
  return pawl_at_range(bpmf_sums_place(&worker->sampler, side, first, clock) * height,
                       bpmf_sums_place(&worker->sampler, side, end, clock) * height);
}

static double *sums_of(const struct bpmf_worker *worker, int side, size_t block) {
  return worker->sampler.sides[side].sums + block * bpmf_sums_size(worker->sampler.width);
}

/* Finishes a tick, and the tasks of its pushes. */
static pawl_status clock_group(struct bpmf_worker *worker, struct pawl_task *const *tasks, size_t count) {
  pawl_status status = pawl_group_clock(group_of(worker), NULL);
  for (size_t i = 0; i < count; i++) {
    pawl_status finished = pawl_task_finish(tasks[i], PAWL_FOREVER);
    if (!status) status = finished;
  }
  return status;
}

static pawl_status await(struct bpmf_worker *worker, uint64_t tick) {
  pawl_status status;
  do status = pawl_group_await(group_of(worker), tick, BPMF_LOOK);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(worker->worker));
  return status == PAWL_TIMED_OUT ? PAWL_CANCELLED : status;
}

/* Ticks that this worker owes the others in this round, come what may. */
static void plan_ticks(struct bpmf_worker *worker) {
  worker->servers.last_tick = pawl_group_tick(group_of(worker)) + 2 * worker->order.count + worker->order.is_new;
}

static pawl_status open_vectors(struct bpmf_worker *worker) {
  struct bpmf_servers_state *state = &worker->servers;
  char names[2][PAWL_NAME_MAX + 1];
  bpmf_vector_names(&worker->spec, names[0], names[1]);
  uint64_t most = 1;
  for (int side = 0; side < BPMF_SIDES; side++)
    if (worker->part.needs[side].rows > most) most = worker->part.needs[side].rows;
  state->pulled = apps_alloc_zero((size_t)most, worker->sampler.width * sizeof(float));
  if (!state->pulled) return PAWL_NO_MEMORY;
  pawl_status status = pawl_vector_open(worker->session, names[0], BPMF_TIMEOUT, &state->rows);
  if (!status) status = pawl_vector_open(worker->session, names[1], BPMF_TIMEOUT, &state->sums);
  for (int side = 0; side < BPMF_SIDES && !status; side++) status = list_keys(worker, side);
  return status;
}

static pawl_status open_link(struct bpmf_worker *worker) {
  struct bpmf_servers_state *state = &worker->servers;
  struct pawl_task *tasks[BPMF_SIDES];
  size_t count = 0;
  pawl_status status = open_vectors(worker);
  for (int side = 0; side < BPMF_SIDES && !status; side++) {
    status = push_rows(worker, side, &tasks[count]);
    if (!status) count++;
  }
  pawl_status clocked = clock_group(worker, tasks, count);
  state->opened_tick = pawl_group_tick(group_of(worker));
  state->opened = worker->sampler.iteration;
  return status ? status : clocked;
}

/* --- rows and sums ---------------------------------------------------------------------------------------- */

static void put(struct bpmf_worker *worker, int side, size_t block) {
  (void)worker;
  (void)side;
  (void)block;
}

static pawl_status flush(struct bpmf_worker *worker, int side) {
  struct pawl_task *tasks[2];
  size_t count = 0, first = worker->part.first[side], end = worker->part.end[side];
  pawl_status status = push_rows(worker, side, &tasks[count]);
  if (!status) count++;
  if (!status && end > first) {
    status = pawl_vector_push(worker->servers.sums, sums_at(worker, side, first, end, worker->sampler.iteration),
                              sums_of(worker, side, first), &tasks[count]);
    if (!status) count++;
  }
  pawl_status clocked = clock_group(worker, tasks, count);
  return status ? status : clocked;
}

/* The tick after which the rows and sums of an iteration are on the servers. */
static uint64_t tick_of(const struct bpmf_worker *worker, int side, uint64_t iteration) {
  const struct bpmf_servers_state *state = &worker->servers;
  if (iteration <= state->opened) return state->opened_tick;
  return state->opened_tick + 2 * (iteration - state->opened - 1) + 1 + (side == BPMF_ITEMS);
}

static pawl_status rows(struct bpmf_worker *worker, int side) {
  const struct bpmf_needs *needs = &worker->part.needs[side];
  const struct bpmf_sampler *sampler = &worker->sampler;
  const float *from = worker->servers.pulled;
  uint64_t iteration = sampler->iteration, slack = worker->spec.slack;
  struct pawl_task *task;
  pawl_status status = await(worker, tick_of(worker, side, iteration > slack ? iteration - slack : 0));
  if (status || needs->rows == 0) return status;
  status =
      pawl_vector_pull(worker->servers.rows, pawl_at_list(worker->servers.keys[side]), worker->servers.pulled, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  for (size_t i = 0; i < needs->count && !status; i++) {
    size_t numbers = (size_t)needs->ranges[i].count * sampler->width;
    memcpy(sampler->sides[side].rows + needs->ranges[i].start * sampler->width, from, numbers * sizeof *from);
    from += numbers;
  }
  return status;
}

static pawl_status pull_sums(struct bpmf_worker *worker, int side, size_t first, size_t end, uint64_t clock) {
  struct pawl_task *task;
  if (first == end) return PAWL_OK;
  pawl_status status = pawl_vector_pull(worker->servers.sums, sums_at(worker, side, first, end, clock),
                                        sums_of(worker, side, first), &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

static pawl_status sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  pawl_status status = await(worker, tick_of(worker, side, clock));
  if (!status) status = pull_sums(worker, side, 0, worker->part.first[side], clock);
  if (!status) status = pull_sums(worker, side, worker->part.end[side], worker->sampler.sides[side].blocks, clock);
  return status;
}

static void fail(struct bpmf_worker *worker) {
  while (pawl_group_tick(group_of(worker)) < worker->servers.last_tick)
    if (pawl_group_clock(group_of(worker), NULL)) return;
}

const struct bpmf_link bpmf_servers_link = {plan_ticks, open_link, put, flush, rows, sums, fail, close_link};
