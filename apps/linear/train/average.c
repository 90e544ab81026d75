/* The scheduler of SGD by workers that average (average.c): passes, and the mean of the weights of all workers. */
#include <math.h>

#include "apps/common/reduce.h"
#include "apps/linear/train/inside.h"

#define GIVEN ((size_t)1 << 18) /* weights in the report of one round: 2 MiB */

/* After a change, all workers tell how many steps their rows need, and which number of the peer group they know. */
static pawl_status meet(struct linear_run *run) {
  struct linear_reply sum;
  bool is_whole = false;
  while (!is_whole || run->met_moved != run->moved) {
    run->met_moved = run->moved;
    run->order.what = LINEAR_MEET;
    pawl_status status = linear_round(run, &sum, &is_whole);
    if (status) return status;
    run->order.steps = sum.steps;
    run->order.number = sum.number;
  }
  return PAWL_OK;
}

static pawl_status meet_if_due(struct linear_run *run) {
  return run->met_moved != run->moved || run->order.steps == 0 ? meet(run) : PAWL_OK;
}

/* --- the mean --------------------------------------------------------------------------------------------- */

static pawl_status receive(struct linear_run *run, size_t begin, size_t end, bool *is_there_out) {
  run->order.what = LINEAR_GIVE;
  run->order.begin = begin;
  run->order.end = end;
  return apps_reduce_receive(&run->common, linear_order_write(&run->order), run->mean + begin,
                             (end - begin) * sizeof *run->mean, is_there_out);
}

pawl_status linear_average_collect(struct linear_run *run) {
  size_t size = (size_t)run->order.features + 1;
  struct linear_reply sum;
  bool is_there = false, is_whole;
  if (!run->mean || run->mean_size != size) {
    apps_free(run->mean);
    run->mean = apps_alloc_zero(size, sizeof *run->mean);
    run->mean_size = size;
    if (!run->mean) return PAWL_NO_MEMORY;
  }
  while (!is_there) {
    pawl_status status = meet_if_due(run);
    run->order.what = LINEAR_AGREE;
    run->order.serial++;
    if (!status) status = linear_round(run, &sum, &is_whole);
    is_there = true;
    for (size_t begin = 0; begin < size && is_there && !status; begin += GIVEN)
      status = receive(run, begin, size - begin < GIVEN ? size : begin + GIVEN, &is_there);
    if (status) return status;
  }
  return PAWL_OK;
}

/* --- passes ----------------------------------------------------------------------------------------------- */

static void begin_pass(struct linear_run *run) {
  uint64_t passes = run->options->rounds ? run->options->rounds : 1;
  run->order.what = LINEAR_SWEEP;
  run->order.serial++;
  run->order.total = run->order.iteration + (passes + run->resumed - run->control.rounds) * run->order.steps;
}

pawl_status linear_average_round(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome) {
  bool is_whole = false;
  if (run->control.rounds == 0) run->order.iteration = 0; /* of this point */
  pawl_status status = meet_if_due(run);
  if (status) return status;
  begin_pass(run);
  status = linear_round(run, sum_out, &is_whole);
  if (status) return status;
  if (sum_out->steps < run->order.iteration + run->order.steps)
    return apps_fail(&run->common, PAWL_TIMED_OUT, "no worker could complete step %llu: the workers did not agree",
                     (unsigned long long)(sum_out->steps + 1));
  run->order.iteration += run->order.steps;
  status = linear_average_collect(run);
  if (!status) status = linear_read_penalty(run, &run->progress.penalty, &run->progress.nonzeros);
  if (status) return status;
  outcome->is_whole = is_whole;
  if (is_whole) outcome->objective = sum_out->loss + run->progress.penalty;
  return PAWL_OK;
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

static pawl_status order_files(struct linear_run *run, enum linear_do what, uint32_t turn, struct linear_reply *sum) {
  bool is_whole;
  pawl_status status = meet_if_due(run);
  run->order.what = what;
  run->order.turn = turn;
  run->order.serial++;
  return status ? status : linear_round(run, sum, &is_whole);
}

pawl_status linear_average_save(struct linear_run *run, struct apps_reduce_saved *next_out, bool *is_there_out) {
  struct linear_reply sum;
  *next_out = run->files;
  pawl_status status = order_files(run, LINEAR_SAVE, 1 - run->files.turn, &sum);
  if (!status)
    *is_there_out = apps_reduce_is_saved(&run->common, &sum.part, run->progress.workers, run->order.iteration, next_out,
                                         run->result.unsaved);
  return status;
}

pawl_status linear_average_load_files(struct linear_run *run) {
  struct linear_reply sum;
  run->order.iteration = run->files.part.iteration;
  pawl_status status = order_files(run, LINEAR_LOAD, run->files.turn, &sum);
  return status ? status
                : apps_reduce_is_loaded(&run->common, &sum.part, run->progress.workers, &run->files,
                                        run->options->checkpoints);
}

/* --- weights in place of vectors -------------------------------------------------------------------------- */

pawl_status linear_average_penalty(const struct linear_run *run, double *penalty_out, uint64_t *nonzeros_out) {
  double sum = 0, squares = 0;
  uint64_t count = 0;
  for (size_t j = 0; run->mean && j + 1 < run->mean_size; j++) {
    sum += fabs(run->mean[j]);
    squares += run->mean[j] * run->mean[j];
    count += run->mean[j] != 0;
  }
  *penalty_out = run->order.l1 * sum + run->order.l2 / 2 * squares;
  *nonzeros_out = count;
  return PAWL_OK;
}
