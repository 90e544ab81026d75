#include "apps/common/reduce.h"

#include <stdio.h>
#include <string.h>

#include <pawl/peer.h>
#include <pawl/task.h>

#include "apps/common/clock.h"
#include "apps/common/errors.h"

#define LOOK_NS PAWL_SECOND           /* between two checks whether the job has ended */
#define GIVE_UP_NS (60 * PAWL_SECOND) /* for one step */
#define OPEN_NS (60 * PAWL_SECOND)

/* --- the worker ----------------------------------------------------------------------------------------- */

pawl_status apps_reduce_number(struct pawl_worker *worker, uint64_t *number_out) {
  struct pawl_peers *peers = pawl_worker_peers(worker);
  if (!peers) return PAWL_MISMATCH;
  *number_out = pawl_peers_number(peers);
  return PAWL_OK;
}

pawl_status apps_reduce_await(struct pawl_worker *worker, uint64_t number) {
  uint64_t known;
  pawl_status status;
  while (!(status = apps_reduce_number(worker, &known)) && known < number) {
    status = pawl_peers_await(pawl_worker_peers(worker), known, LOOK_NS);
    if (status == PAWL_TIMED_OUT) status = pawl_worker_is_ending(worker) ? PAWL_CANCELLED : PAWL_OK;
    if (status) break;
  }
  return status;
}

pawl_status apps_reduce_open(struct pawl_worker *worker, const char *what, uint64_t serial, struct pawl_tensor tensor,
                             const struct pawl_reduce_options *options, struct pawl_reduce **reduce_out) {
  char name[PAWL_REDUCE_NAME_MAX + 1];
  snprintf(name, sizeof name, "%s.%llu", what, (unsigned long long)serial);
  return pawl_reduce_open(pawl_worker_peers(worker), name, &tensor, 1, options, OPEN_NS, reduce_out);
}

pawl_status apps_reduce_step(struct pawl_worker *worker, struct pawl_reduce *reduce,
                             struct pawl_reduce_report *report) {
  int64_t begun = apps_now();
  pawl_status status;
  do status = pawl_reduce_step(reduce, LOOK_NS, report);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(worker) && apps_now() - begun < GIVE_UP_NS);
  return status;
}

void apps_reduce_close(struct pawl_reduce **reduce) {
  pawl_reduce_close(*reduce);
  *reduce = NULL;
}

/* --- the mean of all workers ------------------------------------------------------------------------------ */

pawl_status apps_reduce_mean(struct pawl_worker *worker, uint64_t number, uint64_t serial, struct pawl_tensor tensor,
                             uint64_t first, struct pawl_reduce **reduce, bool *is_there_out) {
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  options.graph = "complete";
  options.first = first; /* new workers are behind, and take over */
  pawl_status status = apps_reduce_await(worker, number);
  if (!status) status = apps_reduce_open(worker, "mean", serial, tensor, &options, reduce);
  if (!status) status = apps_reduce_step(worker, *reduce, NULL);
  *is_there_out = !status;
  return status == PAWL_TIMED_OUT ? PAWL_OK : status;
}

pawl_status apps_reduce_give(struct pawl_worker *worker, const void *values, size_t count, size_t width, uint64_t begin,
                             uint64_t end) {
  if (begin > end || end > count) return PAWL_CORRUPT;
  if (!values || pawl_worker_rank(worker) > 0) return PAWL_OK;
  return pawl_worker_report(worker, (const char *)values + (size_t)begin * width, (size_t)(end - begin) * width);
}

/* --- the scheduler --------------------------------------------------------------------------------------- */

pawl_status apps_reduce_check_graph(struct apps_run *run, const char *graph, uint32_t least, uint32_t most) {
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  pawl_status status = pawl_reduce_graph_check(graph, options.seed, options.degree, least, most);
  if (status == PAWL_MISMATCH)
    return apps_fail(run, status, "%s; change the number of workers, or the graph", apps_error_text(status));
  return status ? apps_fail_as_said(run, status) : PAWL_OK;
}

struct apps_given {
  void *bytes;
  size_t size;
  bool is_there;
};

static pawl_status add_given(void *context, size_t index, const struct pawl_report *report) {
  struct apps_given *given = context;
  (void)index;
  if (report->size == 0) return PAWL_OK;
  if (report->size != given->size || given->is_there) return PAWL_CORRUPT;
  memcpy(given->bytes, report->bytes, report->size);
  given->is_there = true;
  return PAWL_OK;
}

pawl_status apps_reduce_receive(struct apps_run *run, char *order, void *bytes, size_t size, bool *is_there_out) {
  struct apps_given given = {.bytes = bytes, .size = size};
  struct pawl_round *round = NULL;
  size_t workers;
  pawl_status status = apps_round(run, order, &round);
  if (!status) status = apps_reports(run, round, add_given, &given, &workers);
  pawl_round_destroy(round);
  *is_there_out = given.is_there;
  return status;
}
