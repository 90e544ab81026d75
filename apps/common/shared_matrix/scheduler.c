#include "apps/common/shared_matrix/scheduler.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"

#define PART_S 1.0    /* seconds of a round */
#define FIRST_STEPS 4 /* of the first round, before the speed is known */
#define GROWTH 4      /* a round has at most so many times the steps of the one before */
#define LEAST 1e-100  /* a smaller factor is multiplied into the matrix */
#define FAILURES_MAX 3

static bool has_factors(const struct matrix_scheduler *scheduler) { return scheduler->spec.way == PAWL_MATRIX_FACTORS; }

static uint64_t state_size(const struct matrix_scheduler *scheduler) {
  return matrix_bytes(&scheduler->spec.shape) + scheduler->place.extra_size;
}

/* --- rounds ----------------------------------------------------------------------------------------------- */

/* Sums over the workers of a round. */
struct matrix_tally {
  struct matrix_scheduler *scheduler;
  uint64_t wanted; /* steps */
  uint64_t number, most_done, diverged;
  uint64_t bytes_sent, bytes_received;
  uint64_t hash;
  double factor;
  bool is_whole, differs;
};

static struct pawl_matrix_worker *figures_of(struct pawl_matrix_shared *shared, const struct pawl_report *report) {
  for (size_t i = 0; i < shared->each_count; i++)
    if (shared->each[i].node == report->node.id) return &shared->each[i];
  struct pawl_matrix_worker *each = apps_resize(shared->each, (shared->each_count + 1) * sizeof *each);
  if (!each) return NULL;
  shared->each = each;
  each += shared->each_count++;
  *each = (struct pawl_matrix_worker){.node = report->node.id, .pid = report->pid};
  snprintf(each->host, sizeof each->host, "%s", report->host);
  return each;
}

static pawl_status count_worker(struct matrix_tally *tally, const struct pawl_report *report,
                                const struct matrix_reply *reply) {
  struct pawl_matrix_shared *shared = tally->scheduler->shared;
  struct pawl_matrix_worker *figures = figures_of(shared, report);
  if (!figures) return PAWL_NO_MEMORY;
  figures->is_lost = false;
  figures->update_bytes += reply->update_bytes;
  if (reply->worked_s > 0) figures->work_s += reply->worked_s;
  if (reply->waited_s > 0) figures->wait_s += reply->waited_s;
  if (reply->hash) figures->hash = reply->hash;
  shared->update_bytes += reply->update_bytes;
  if (reply->worked_s > 0) shared->work_s += reply->worked_s;
  if (reply->waited_s > 0) shared->wait_s += reply->waited_s;
  return PAWL_OK;
}

static pawl_status add_reply(void *context, size_t index, const struct pawl_report *report) {
  struct matrix_tally *tally = context;
  struct matrix_scheduler *scheduler = tally->scheduler;
  struct matrix_reply reply;
  (void)index;
  if (!matrix_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  if (reply.number > tally->number) tally->number = reply.number;
  if (reply.done > tally->most_done) tally->most_done = reply.done;
  if (reply.diverged && (!tally->diverged || reply.diverged < tally->diverged)) tally->diverged = reply.diverged;
  tally->bytes_sent += reply.bytes_sent;
  tally->bytes_received += reply.bytes_received;
  if (tally->wanted == 0) return PAWL_OK;
  if (reply.done == tally->wanted && reply.factor > 0) {
    tally->differs |= scheduler->node_count > 0 && reply.hash != tally->hash;
    tally->hash = reply.hash;
    tally->factor = reply.factor;
    scheduler->nodes[scheduler->node_count++] = report->node.id;
  } else {
    tally->is_whole = false;
  }
  scheduler->reports += reply.report;
  return count_worker(tally, report, &reply);
}

static pawl_status do_round(struct matrix_scheduler *scheduler, struct matrix_order *order,
                            pawl_status (*add)(void *context, size_t index, const struct pawl_report *report),
                            void *context, struct pawl_round **round_out, size_t *workers_out) {
  struct pawl_round *round = NULL;
  size_t size = 0;
  order->serial = scheduler->serial;
  order->number = scheduler->number;
  order->factor = scheduler->factor;
  char *bytes = matrix_order_write(order, &size);
  if (!bytes) return PAWL_NO_MEMORY;
  pawl_status status = apps_round_bytes(&scheduler->common, bytes, size, &round);
  apps_free(bytes);
  if (!status && round_out) {
    *round_out = round;
    return PAWL_OK;
  }
  if (!status) status = apps_reports(&scheduler->common, round, add, context, workers_out);
  pawl_round_destroy(round);
  return status;
}

/* A round in which workers reply, but make no steps. */
static pawl_status do_plain(struct matrix_scheduler *scheduler, struct matrix_order *order,
                            struct matrix_tally *tally) {
  size_t workers;
  *tally = (struct matrix_tally){.scheduler = scheduler};
  return do_round(scheduler, order, add_reply, tally, NULL, &workers);
}

/* --- the matrix on servers -------------------------------------------------------------------------------- */

static pawl_status finish(struct matrix_scheduler *scheduler, pawl_status status, struct pawl_task *task,
                          const char *what) {
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  return status ? apps_fail(&scheduler->common, status, "cannot %s the matrix: %s", what, apps_error_text(status))
                : PAWL_OK;
}

static pawl_status pull(struct matrix_scheduler *scheduler, void *values) {
  struct pawl_task *task = NULL;
  pawl_status status = pawl_vector_pull(scheduler->vector, pawl_at_range(0, scheduler->spec.shape.rows), values, &task);
  return finish(scheduler, status, task, "read");
}

static pawl_status push(struct matrix_scheduler *scheduler, const void *values) {
  struct pawl_task *task = NULL;
  pawl_status status = pawl_vector_push(scheduler->vector, pawl_at_range(0, scheduler->spec.shape.rows), values, &task);
  return finish(scheduler, status, task, "store");
}

/* Servers add. They forget first: nothing would be left of a difference to much larger numbers, or to infinite ones. */
static pawl_status replace(struct matrix_scheduler *scheduler, const void *wanted) {
  struct pawl_task *task = NULL;
  const struct pawl_range all = {0, scheduler->spec.shape.rows};
  pawl_status status = pawl_vector_fill(scheduler->vector, all, 0, &task);
  status = finish(scheduler, status, task, "clear");
  if (!status && wanted) status = push(scheduler, wanted);
  scheduler->factor = 1;
  return status;
}

static pawl_status create_vector(struct matrix_scheduler *scheduler) {
  struct pawl_session *session = scheduler->common.session;
  const struct matrix_shape *shape = &scheduler->spec.shape;
  struct pawl_vector_options options;
  char name[PAWL_NAME_MAX + 1];
  if (shape->columns > PAWL_WIDTH_MAX)
    return apps_fail(&scheduler->common, PAWL_TOO_LARGE,
                     "a row of the matrix has %zu values, but servers keep rows of "
                     "at most %u; use --share factors",
                     shape->columns, PAWL_WIDTH_MAX);
  matrix_vector_name(&scheduler->spec, name);
  pawl_vector_options_init(&options);
  options.type = shape->is_double ? PAWL_F64 : PAWL_F32;
  options.size = shape->rows;
  options.width = (uint32_t)shape->columns;
  if (scheduler->spec.way == PAWL_MATRIX_SERVERS) snprintf(options.filters, sizeof options.filters, "zeros(on=push)");
  pawl_status status = pawl_vector_delete(session, name, MATRIX_TIMEOUT); /* that of an earlier job that was killed */
  if (!status || status == PAWL_NOT_FOUND)
    status = pawl_vector_create(session, name, &options, MATRIX_TIMEOUT, &scheduler->vector);
  return status
             ? apps_fail(&scheduler->common, status, "cannot create the vector %s: %s", name, apps_error_text(status))
             : PAWL_OK;
}

/* The end of the piece that begins here: one of the matrix, or of its extra values. */
static uint64_t piece_end(uint64_t matrix, uint64_t all, uint64_t begin) {
  uint64_t part = begin < matrix ? matrix : all;
  return part - begin < MATRIX_GIVEN ? part : begin + MATRIX_GIVEN;
}

static char *place_at(const struct matrix_scheduler *scheduler, uint64_t begin) {
  uint64_t matrix = matrix_bytes(&scheduler->spec.shape);
  return begin < matrix ? (char *)scheduler->place.values + begin : (char *)scheduler->place.extra + (begin - matrix);
}

/* --- before steps ----------------------------------------------------------------------------------------- */

static pawl_status hand_out(struct matrix_scheduler *scheduler) {
  uint64_t matrix = matrix_bytes(&scheduler->spec.shape), all = state_size(scheduler);
  struct matrix_tally tally;
  pawl_status status = PAWL_OK;
  if (!has_factors(scheduler)) status = replace(scheduler, scheduler->place.values);
  for (uint64_t begin = has_factors(scheduler) ? 0 : matrix; begin < all && !status;) {
    uint64_t end = piece_end(matrix, all, begin);
    struct matrix_order order = {.what = MATRIX_TAKE, .begin = begin, .end = end, .size = (size_t)(end - begin)};
    order.bytes = place_at(scheduler, begin);
    status = do_plain(scheduler, &order, &tally);
    begin = end;
  }
  return status;
}

static pawl_status clear(struct matrix_scheduler *scheduler) {
  struct matrix_order order = {.what = MATRIX_CLEAR};
  struct matrix_tally tally;
  return has_factors(scheduler) ? do_plain(scheduler, &order, &tally) : replace(scheduler, NULL);
}

/* All workers should begin a serial with the same members. Each tells which number of the group it knows, and waits for the
 * highest of them before it opens factors. The matrix is handed out again if a worker has come since. */
static pawl_status meet(struct matrix_scheduler *scheduler) {
  struct matrix_tally tally;
  pawl_status status = PAWL_OK;
  bool must_clear = scheduler->must_clear, must_hand_out = scheduler->must_hand_out;
  if (must_clear || must_hand_out) scheduler->has_changed = true;
  while (!status && scheduler->has_changed) {
    struct matrix_order order = {.what = MATRIX_MEET};
    scheduler->has_changed = false;
    scheduler->serial++;
    status = do_plain(scheduler, &order, &tally);
    if (!status) scheduler->number = tally.number;
    if (!status && must_hand_out) status = hand_out(scheduler);
    if (!status && must_clear) status = clear(scheduler);
  }
  if (!status) scheduler->must_clear = scheduler->must_hand_out = false;
  return status;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

/* The next round should take PART_S. */
static void plan_part(struct matrix_scheduler *scheduler, uint64_t made, double seconds) {
  double wanted = (double)made * PART_S / fmax(seconds, 1e-6);
  scheduler->count = (uint64_t)fmax(1, fmin(wanted, GROWTH * (double)made));
}

static void note(struct matrix_scheduler *scheduler, const struct matrix_tally *tally, size_t workers) {
  struct pawl_matrix_shared *shared = scheduler->shared;
  shared->workers = (uint32_t)workers;
  shared->steps += tally->most_done;
  if (tally->bytes_sent > shared->bytes_sent) shared->bytes_sent = tally->bytes_sent;
  if (tally->bytes_received > shared->bytes_received) shared->bytes_received = tally->bytes_received;
  if (tally->differs) shared->is_identical = false;
  if (scheduler->node_count == 0) return;
  scheduler->factor = tally->factor;
  if (has_factors(scheduler) && tally->factor < LEAST) scheduler->has_changed = true; /* a new serial settles */
}

/* A worker that was late takes part in the next serial. */
static pawl_status run_part(struct matrix_scheduler *scheduler, struct matrix_order *order, uint64_t *made_out) {
  struct matrix_tally tally = {.scheduler = scheduler, .wanted = order->count, .is_whole = true};
  struct pawl_round *round = NULL;
  size_t workers = 0;
  *made_out = 0;
  scheduler->node_count = 0;
  scheduler->reports = 0;
  for (size_t i = 0; i < scheduler->shared->each_count; i++) scheduler->shared->each[i].is_lost = true;
  scheduler->has_stepped = true;
  int64_t begun = apps_now();
  pawl_status status = do_round(scheduler, order, NULL, NULL, &round, NULL);
  if (status) return status;
  apps_free(scheduler->nodes);
  scheduler->nodes = apps_alloc_zero(pawl_round_count(round) + 1, sizeof *scheduler->nodes);
  status = scheduler->nodes ? apps_reports(&scheduler->common, round, add_reply, &tally, &workers) : PAWL_NO_MEMORY;
  scheduler->is_whole = pawl_round_is_whole(round) && tally.is_whole;
  pawl_round_destroy(round);
  if (status) return status;
  note(scheduler, &tally, workers);
  if (tally.diverged) {
    *made_out = tally.diverged - 1 - order->step;
    return PAWL_DIVERGED;
  }
  if (!scheduler->is_whole) scheduler->has_changed = true;
  scheduler->changes += !scheduler->is_whole;
  if (scheduler->node_count == 0) return PAWL_OK;
  *made_out = order->count;
  plan_part(scheduler, order->count, apps_seconds_since(begun));
  return PAWL_OK;
}

static pawl_status run_parts(struct matrix_scheduler *scheduler, uint64_t first, uint64_t count, uint64_t most,
                             uint64_t phase, uint64_t *made_out) {
  uint32_t failures = 0;
  pawl_status status = PAWL_OK;
  while (!status && *made_out < count && !apps_is_stopping(&scheduler->common)) {
    uint64_t left = count - *made_out, made = 0;
    struct matrix_order order = {.what = MATRIX_STEPS, .step = first + *made_out, .phase = phase};
    bool is_small = !has_factors(scheduler) && scheduler->factor < LEAST;
    if (is_small || (scheduler->has_changed && scheduler->place.extra_size > 0)) scheduler->must_hand_out = true;
    if (scheduler->must_hand_out && *made_out > 0) status = matrix_scheduler_fetch(scheduler);
    if (!status) status = meet(scheduler);
    order.count = scheduler->count < left ? scheduler->count : left;
    if (order.count > most) order.count = most;
    if (!status) status = run_part(scheduler, &order, &made);
    *made_out += made;
    failures = made > 0 ? 0 : failures + 1;
    if (!status && failures == FAILURES_MAX)
      return apps_fail(&scheduler->common, PAWL_NODE_GONE,
                       "no worker could complete step %" PRIu64 ": all were lost, or they do not reach one another",
                       first + *made_out + 1);
  }
  return status;
}

/* --- fetching --------------------------------------------------------------------------------------------- */

/* A piece from one worker. `*is_there_out` false: it was lost. */
static pawl_status receive(struct matrix_scheduler *scheduler, uint64_t node, uint64_t begin, uint64_t end,
                           bool *is_there_out) {
  struct matrix_order order = {.what = MATRIX_GIVE, .node = node, .begin = begin, .end = end};
  struct pawl_round *round = NULL;
  struct pawl_report report;
  pawl_status status = do_round(scheduler, &order, NULL, NULL, &round, NULL);
  char *to = place_at(scheduler, begin);
  for (size_t i = 0; !status && i < pawl_round_count(round); i++) {
    if (pawl_round_get(round, i, &report) || report.node.id != node || report.status) continue;
    if (report.size != end - begin) status = PAWL_CORRUPT;
    if (!status) memcpy(to, report.bytes, report.size);
    *is_there_out = !status;
  }
  pawl_round_destroy(round);
  return status;
}

static pawl_status fetch_state(struct matrix_scheduler *scheduler, uint64_t node, bool *is_there_out) {
  uint64_t matrix = matrix_bytes(&scheduler->spec.shape);
  uint64_t all = scheduler->place.extra_is_fixed ? matrix : state_size(scheduler);
  pawl_status status = PAWL_OK;
  *is_there_out = true;
  for (uint64_t begin = has_factors(scheduler) ? 0 : matrix; begin < all && *is_there_out && !status;) {
    uint64_t end = piece_end(matrix, all, begin);
    *is_there_out = false;
    status = receive(scheduler, node, begin, end, is_there_out);
    begin = end;
  }
  return status;
}

static void multiply(struct matrix_scheduler *scheduler, double factor) {
  const struct matrix_shape *shape = &scheduler->spec.shape;
  size_t count = shape->rows * shape->columns;
  for (size_t i = 0; i < count && shape->is_double; i++) ((double *)scheduler->place.values)[i] *= factor;
  for (size_t i = 0; i < count && !shape->is_double; i++) ((float *)scheduler->place.values)[i] *= (float)factor;
}

pawl_status matrix_scheduler_fetch(struct matrix_scheduler *scheduler) {
  bool has_extra = scheduler->place.extra_size > 0 && !scheduler->place.extra_is_fixed;
  bool is_there = !has_extra && !has_factors(scheduler);
  pawl_status status = has_factors(scheduler) ? PAWL_OK : pull(scheduler, scheduler->place.values);
  for (size_t i = 0; !status && !is_there && i < scheduler->node_count; i++)
    status = fetch_state(scheduler, scheduler->nodes[i], &is_there);
  if (!status && !is_there)
    return apps_fail(&scheduler->common, PAWL_NODE_GONE, "all workers that had the matrix were lost");
  if (!status && scheduler->factor != 1) multiply(scheduler, scheduler->factor);
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

/* --- the job ---------------------------------------------------------------------------------------------- */

static bool hear(void *application, const struct pawl_job_event *event) {
  struct matrix_scheduler *scheduler = application;
  bool is_change = event->what == PAWL_JOB_JOINED || event->what == PAWL_JOB_LOST || event->what == PAWL_JOB_DROPPED;
  scheduler->has_changed |= is_change;
  scheduler->changes += is_change && scheduler->has_stepped;
  scheduler->shared->workers_lost += event->what == PAWL_JOB_LOST;
  return event->what != PAWL_JOB_MOVED; /* there are no pieces of data: see create_job */
}

/* A round takes about a second, and is finished even if the caller wants to stop; but not before a step was made. */
static bool tick(void *application) {
  struct matrix_scheduler *scheduler = application;
  return apps_is_stopping(&scheduler->common) && scheduler->shared->steps == 0;
}

static pawl_status check_graph(struct matrix_scheduler *scheduler, uint32_t least, uint32_t most) {
  const char *graph = scheduler->sharing.graph;
  if (!graph || strcmp(graph, "complete") == 0) return PAWL_OK;
  return apps_reduce_check_graph(&scheduler->common, graph, least, most);
}

/* Every worker has a piece, which stands for its share of every batch. A worker with pieces that is lost is fenced
 * before the next round: nothing that it sends late has an effect. */
static pawl_status begin(struct matrix_scheduler *scheduler) {
  const struct pawl_matrix_sharing *sharing = &scheduler->sharing;
  struct pawl_job_options job;
  pawl_job_options_init(&job);
  job.name = scheduler->spec.job;
  job.least = sharing->workers ? sharing->workers : 1;
  job.most = sharing->workers_most > job.least ? sharing->workers_most : job.least;
  job.pieces = job.most;
  job.on_loss = sharing->on_loss;
  job.drop_slowest = sharing->drop_slowest;
  pawl_status status = check_graph(scheduler, job.least, job.most);
  if (!status && !has_factors(scheduler)) status = create_vector(scheduler);
  if (!status) status = apps_job_create(&scheduler->common, &job, matrix_spec_write(&scheduler->spec), MATRIX_TIMEOUT);
  scheduler->is_begun = !status;
  return status;
}

pawl_status matrix_scheduler_steps(struct matrix_scheduler *scheduler, uint64_t first, uint64_t count, uint64_t most,
                                   uint64_t phase, uint64_t *made_out) {
  pawl_status status = scheduler->is_begun ? PAWL_OK : begin(scheduler);
  *made_out = 0;
  if (!status) status = run_parts(scheduler, first, count, most, phase, made_out);
  if (status == PAWL_DIVERGED) return status;
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

/* --- the life of a scheduler ------------------------------------------------------------------------------ */

static pawl_status fill_spec(struct matrix_scheduler *scheduler) {
  const struct pawl_matrix_sharing *sharing = &scheduler->sharing;
  struct matrix_spec *spec = &scheduler->spec;
  snprintf(spec->job, sizeof spec->job, "%s", sharing->job ? sharing->job : spec->app);
  spec->way = sharing->way;
  spec->staleness = sharing->staleness;
  if (sharing->graph && strcmp(sharing->graph, "complete") != 0)
    snprintf(spec->graph, sizeof spec->graph, "%s", sharing->graph);
  spec->forward = sharing->forward;
  spec->has_images = !sharing->reading;
  spec->image_format = sharing->image_format;
  pawl_data_options_init(&spec->reading);
  if (sharing->reading) spec->reading = *sharing->reading;
  if (spec->reading.label) snprintf(spec->label, sizeof spec->label, "%s", spec->reading.label);
  if (spec->reading.label && strlen(spec->reading.label) >= sizeof spec->label)
    return apps_fail(&scheduler->common, PAWL_INVALID, "the name of the column of labels is too long for workers");
  return apps_texts_copy(sharing->paths, sharing->path_count, &spec->paths, &spec->path_count) ? PAWL_OK
                                                                                               : PAWL_NO_MEMORY;
}

pawl_status matrix_scheduler_init(struct matrix_scheduler *scheduler, struct pawl_session *session,
                                  const struct pawl_matrix_sharing *sharing, json_t *terms,
                                  struct pawl_matrix_shared *shared) {
  scheduler->sharing = *sharing;
  scheduler->shared = shared;
  scheduler->serial = 1;
  scheduler->factor = 1;
  scheduler->count = FIRST_STEPS;
  scheduler->has_changed = true;
  scheduler->common.session = session;
  scheduler->common.tell = sharing->tell;
  scheduler->common.start_worker = sharing->start_worker;
  scheduler->common.hear = hear;
  scheduler->common.tick = tick;
  scheduler->common.application = scheduler;
  scheduler->spec.terms = terms;
  *shared = (struct pawl_matrix_shared){.way = sharing->way, .is_identical = sharing->way == PAWL_MATRIX_FACTORS};
  pawl_status status = terms ? fill_spec(scheduler) : PAWL_NO_MEMORY;
  return status ? apps_fail_as_said(&scheduler->common, status) : PAWL_OK;
}

void matrix_scheduler_fini(struct matrix_scheduler *scheduler) {
  char name[PAWL_NAME_MAX + 1];
  pawl_job_end(scheduler->common.job);
  if (scheduler->vector) {
    pawl_vector_close(scheduler->vector);
    matrix_vector_name(&scheduler->spec, name);
    pawl_vector_delete(scheduler->common.session, name, MATRIX_TIMEOUT);
  }
  apps_free(scheduler->nodes);
  matrix_spec_fini(&scheduler->spec);
}
