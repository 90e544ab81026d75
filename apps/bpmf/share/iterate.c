/* An iteration of a worker: draws the rows of its part, and exchanges rows and sums by its link. The scheduler's orders
 * (worker.c) and benchmarks call it. */
#include <math.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/clock.h"

bool bpmf_worker_is_ending(const struct bpmf_worker *worker) {
  return worker->worker && pawl_worker_is_ending(worker->worker);
}

static void put_block(void *context, int side, size_t block) {
  struct bpmf_worker *worker = context;
  worker->link->put(worker, side, block);
}

/* Waits for the sums of a side, unless they are there. */
static pawl_status need_sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  if (worker->summed[side] == clock) return PAWL_OK;
  int64_t before = apps_now();
  pawl_status status = worker->link->sums(worker, side, clock);
  worker->waited_s += apps_seconds_since(before);
  if (!status) worker->summed[side] = clock;
  return status;
}

static pawl_status need_rows(struct bpmf_worker *worker, int side) {
  int64_t before = apps_now();
  pawl_status status = worker->link->flush(worker, side);
  if (!status) status = worker->link->rows(worker, side);
  worker->waited_s += apps_seconds_since(before);
  return status;
}

/* One side of an iteration. Without slack a worker waits for the sums at once: see items.c. With slack it waits for them
 * when it needs them, in the next iteration. */
static pawl_status step_side(struct bpmf_worker *worker, int side) {
  struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_done done = {put_block, worker};
  pawl_status status = need_sums(worker, side, sampler->iteration - 1);
  if (!status) status = bpmf_sampler_hyper(sampler, side);
  if (!status) status = bpmf_sampler_draw(sampler, side, worker->part.first[side], worker->part.end[side], &done);
  if (!status) status = need_rows(worker, side);
  if (!status && worker->spec.slack == 0) status = need_sums(worker, side, sampler->iteration);
  return status;
}

static void add_errors(const struct bpmf_worker *worker, struct bpmf_reply *reply, double seconds) {
  double *to = reply->figures + bpmf_reply_figures(reply);
  *to++ = seconds;
  for (size_t block = reply->first; block < reply->end; block++, to += BPMF_ERRORS) {
    memcpy(to, worker->tests.errors[block], sizeof worker->tests.errors[block]);
    memcpy(to + 2, worker->training.errors[block], sizeof worker->training.errors[block]);
  }
  reply->done++;
}

pawl_status bpmf_worker_iterate(struct bpmf_worker *worker, struct bpmf_reply *reply) {
  struct bpmf_sampler *sampler = &worker->sampler;
  int64_t begun = apps_now();
  sampler->iteration++;
  pawl_status status = step_side(worker, BPMF_USERS);
  if (!status) status = step_side(worker, BPMF_ITEMS);
  if (status == PAWL_DIVERGED) reply->diverged = sampler->iteration;
  if (status) return status;
  double seconds = fmax(apps_seconds_since(begun), 1e-9);
  bool is_sample = sampler->iteration > worker->spec.burn_in;
  bpmf_measure_blocks(&worker->tests, is_sample, reply->first, reply->end);
  bpmf_measure_blocks(&worker->training, is_sample, reply->first, reply->end);
  add_errors(worker, reply, seconds);
  return PAWL_OK;
}

pawl_status bpmf_worker_open(struct bpmf_worker *worker) {
  if (worker->is_open) return PAWL_OK;
  bpmf_sampler_sum(&worker->sampler); /* of all blocks: all workers have the same rows */
  worker->summed[BPMF_USERS] = worker->summed[BPMF_ITEMS] = worker->sampler.iteration;
  atomic_store(&worker->put, PAWL_OK);
  int64_t before = apps_now();
  pawl_status status = worker->link->open(worker);
  worker->waited_s += apps_seconds_since(before);
  worker->is_open = !status;
  return status;
}
