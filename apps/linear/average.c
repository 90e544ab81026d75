/* SGD by workers that average: each worker has a copy of all weights, makes steps with its own rows, and after each
 * step replaces its weights by the mean of them and its neighbours' (<pawl/reduce.h>; ASAP, section 3). There are no
 * servers.
 *
 * A step is that of stream.c: w - rate / b times the gradient of a minibatch of b rows, and then the proximal operator
 * of b / N of the penalty. The mean of n workers would make each of these steps n times as short as servers do, which
 * add them up; so a worker's own step is n times as long, and the same --rate means the same. Unlike servers, which see
 * only the features of a minibatch, a worker applies the penalty to all weights: it has them at hand.
 *
 * The first pass takes the minibatches in the order of the data, as servers do, and every further pass in another order.
 * If all passes have the same order, the weights stay away from the optimum by the trace of the last minibatches.
 *
 * All workers make the same number of steps in a pass. A worker whose rows are used up only averages. Rows are kept in
 * memory, because their number must be known before the first step. apps/common/reduce.h explains when a reduce is
 * closed, and what happens if workers are lost.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/reduce.h"
#include "apps/linear/inside.h"
#include "apps/linear/minibatch.h"

struct held_piece {
  size_t number;
  struct pawl_batch *batch;
};

/* Some rows of one piece. */
struct cut {
  size_t piece, begin, end;
};

struct linear_average {
  struct held_piece *pieces; /* by number, once all are loaded */
  size_t piece_count;
  struct cut *cuts; /* minibatches */
  uint32_t *turns;  /* the cuts of a pass, in its order */
  uint32_t cut_count;
  bool is_loaded;

  size_t point;               /* of the weights */
  double *w;                  /* by id, the bias last; NULL: none yet */
  size_t size;                /* of `w` */
  uint64_t iteration;         /* steps that these weights have made */
  double *mean;               /* of the weights of all workers */
  struct pawl_reduce *reduce; /* of the last round; NULL: none */
  struct linear_minibatch minibatch;
};

static struct linear_average *average_of(struct linear_worker *worker) {
  if (!worker->average) worker->average = apps_alloc_zero(1, sizeof *worker->average);
  return worker->average;
}

/* --- rows ------------------------------------------------------------------------------------------------- */

void linear_average_forget(struct linear_worker *worker) {
  struct linear_average *average = worker->average;
  if (!average) return;
  for (size_t i = 0; i < average->piece_count; i++) pawl_batch_destroy(average->pieces[i].batch);
  apps_free(average->pieces);
  apps_free(average->cuts);
  apps_free(average->turns);
  average->pieces = NULL;
  average->cuts = NULL;
  average->turns = NULL;
  average->piece_count = average->cut_count = 0;
  average->is_loaded = false;
}

void linear_average_fini(struct linear_worker *worker) {
  struct linear_average *average = worker->average;
  if (!average) return;
  apps_reduce_close(&average->reduce); /* before its tensors go */
  linear_average_forget(worker);
  linear_minibatch_fini(&average->minibatch);
  apps_free(average->w);
  apps_free(average->mean);
  apps_free(average);
  worker->average = NULL;
  worker->dense = NULL;
}

static pawl_status hold_piece(void *context, size_t number, struct pawl_batch *batch) {
  struct linear_average *average = context;
  struct held_piece *pieces = apps_resize(average->pieces, (average->piece_count + 1) * sizeof *pieces);
  if (!pieces) {
    pawl_batch_destroy(batch);
    return PAWL_NO_MEMORY;
  }
  average->pieces = pieces;
  pieces[average->piece_count++] = (struct held_piece){number, batch};
  return PAWL_OK;
}

static int by_number(const void *a, const void *b) {
  const struct held_piece *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Cuts the rows of each piece into minibatches, as stream.c does. */
static pawl_status cut_rows(struct linear_average *average, size_t minibatch) {
  size_t count = 0;
  for (size_t i = 0; i < average->piece_count; i++)
    count += (average->pieces[i].batch->rows + minibatch - 1) / minibatch;
  if (count >= UINT32_MAX) return PAWL_TOO_LARGE;
  average->cuts = apps_alloc_zero(count + 1, sizeof *average->cuts);
  average->turns = apps_alloc_zero(count + 1, sizeof *average->turns);
  if (!average->cuts || !average->turns) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < average->piece_count; i++) {
    size_t rows = average->pieces[i].batch->rows;
    for (size_t at = 0; at < rows; at += minibatch)
      average->cuts[average->cut_count++] = (struct cut){i, at, rows - at < minibatch ? rows : at + minibatch};
  }
  return PAWL_OK;
}

/* Drawn anew in each pass, so that it does not depend on the passes that this worker has made. */
static void choose_turns(struct linear_average *average, const struct linear_order *order) {
  uint64_t state = order->seed + order->iteration;
  linear_shuffle(&state, average->turns, average->cut_count);
  for (uint32_t i = 0; order->iteration == 0 && i < average->cut_count; i++) average->turns[i] = i;
}

static pawl_status load(struct linear_worker *worker) {
  struct linear_average *average = average_of(worker);
  pawl_status status = average ? PAWL_OK : PAWL_NO_MEMORY;
  if (status || average->is_loaded) return status;
  linear_average_forget(worker);
  for (size_t i = 0; i < worker->piece_count && !status; i++)
    status = pawl_data_read_all(worker->data, (size_t)worker->pieces[i].begin, (size_t)worker->pieces[i].end,
                                worker->spec.threads, hold_piece, average);
  if (average->piece_count > 0) qsort(average->pieces, average->piece_count, sizeof *average->pieces, by_number);
  if (!status) status = cut_rows(average, worker->spec.minibatch);
  if (!status) average->is_loaded = true;
  return status;
}

pawl_status linear_average_load(struct linear_worker *worker, struct linear_census *census) {
  pawl_status status = load(worker);
  for (size_t i = 0; !status && i < worker->average->piece_count; i++) {
    const struct held_piece *piece = &worker->average->pieces[i];
    linear_census_add(census, piece->batch);
    if (worker->spec.digests) apps_digest_add(&census->digest, piece->number, piece->batch);
  }
  return status;
}

pawl_status linear_average_meet(struct linear_worker *worker, struct linear_reply *reply) {
  pawl_status status = apps_reduce_number(worker->worker, &reply->number);
  if (status == PAWL_MISMATCH) {
    pawl_worker_say(worker->worker, APPS_REDUCE_NO_PEERS);
    worker->has_said = true;
  }
  if (!status) status = load(worker);
  if (!status) reply->steps = worker->average->cut_count;
  return status;
}

/* --- weights ---------------------------------------------------------------------------------------------- */

/* Weights of zero for a new point. The data of a new worker may have no row with the highest id, so the scheduler names
 * the number of features. */
static pawl_status prepare(struct linear_worker *worker, const struct linear_order *order) {
  pawl_status status = load(worker);
  if (status) return status;
  struct linear_average *average = worker->average;
  if (order->features == 0 || order->features > SIZE_MAX / sizeof(double) - 1) return PAWL_TOO_LARGE;
  for (size_t i = 0; i < average->piece_count; i++) {
    const struct pawl_batch *batch = average->pieces[i].batch;
    for (size_t k = 0; k < batch->starts[batch->rows]; k++)
      if (batch->ids[k] >= order->features) return PAWL_CORRUPT;
  }
  if (average->w && average->point == order->point && average->size == order->features + 1) return PAWL_OK;
  apps_reduce_close(&average->reduce);
  apps_free(average->w);
  apps_free(average->mean);
  worker->dense = NULL;
  average->size = (size_t)order->features + 1;
  average->w = apps_alloc_zero(average->size, sizeof *average->w);
  average->mean = apps_alloc_zero(average->size, sizeof *average->mean);
  average->point = order->point;
  average->iteration = 0;
  return average->w && average->mean ? PAWL_OK : PAWL_NO_MEMORY;
}

static double shrink(double x, double by) { return x > by ? x - by : x < -by ? x + by : 0; }

/* One step with some rows. `rate` is n times that of the user. */
static void learn(struct linear_worker *worker, const struct linear_order *order, double rate,
                  struct linear_reply *reply) {
  struct linear_average *average = worker->average;
  struct linear_minibatch *minibatch = &average->minibatch;
  double *w = average->w, by = rate / worker->spec.minibatch, rows = order->rows > 0 ? (double)order->rows : 1;
  double l1 = rate * order->l1 / rows, keep = 1 / (1 + rate * order->l2 / rows);
  for (size_t k = 0; k < minibatch->features; k++) minibatch->weights[k] = w[minibatch->keys[k]];
  minibatch->bias = worker->spec.bias ? w[average->size - 1] : 0;
  linear_stream_learn(worker, order, minibatch, reply);
  for (size_t k = 0; k < minibatch->features; k++) w[minibatch->keys[k]] -= by * minibatch->gradient[k];
  if (l1 > 0)
    for (size_t j = 0; j + 1 < average->size; j++) w[j] = shrink(w[j], l1) * keep;
  else if (keep < 1)
    for (size_t j = 0; j + 1 < average->size; j++) w[j] *= keep;
  if (worker->spec.bias) w[average->size - 1] -= by * minibatch->bias_gradient;
}

/* --- a pass ----------------------------------------------------------------------------------------------- */

static pawl_status explain(struct linear_worker *worker, pawl_status status) {
  if (status != PAWL_DIVERGED) return status;
  pawl_worker_say(worker->worker, "the training diverged: a weight is not finite; use a lower --rate");
  worker->has_said = true;
  return status;
}

static pawl_status open_reduce(struct linear_worker *worker, const struct linear_order *order) {
  struct linear_average *average = worker->average;
  struct pawl_tensor tensor = {.values = average->w, .count = average->size, .type = PAWL_F64};
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  options.graph = *worker->spec.graph ? worker->spec.graph : NULL;
  options.mode = worker->spec.mode;
  options.first = average->iteration; /* a new worker has made none, and takes over the weights of another one */
  return apps_reduce_open(worker->worker, "steps", order->serial, tensor, &options, &average->reduce);
}

static double rate_at(const struct linear_spec *spec, const struct linear_order *order, uint64_t step) {
  const double pi = 3.14159265358979323846;
  if (!spec->falls || order->total == 0) return spec->rate;
  return spec->rate * (1 + cos(pi * (double)step / (double)order->total)) / 2;
}

static pawl_status take_steps(struct linear_worker *worker, const struct linear_order *order,
                              struct linear_reply *reply) {
  struct linear_average *average = worker->average;
  struct pawl_reduce_report report = {.size = pawl_peers_size(pawl_worker_peers(worker->worker))};
  pawl_status status = PAWL_OK;
  for (uint64_t step = 0; step < order->steps && !status; step = average->iteration - order->iteration) {
    double rate = (report.size > 0 ? report.size : 1) * rate_at(&worker->spec, order, order->iteration + step);
    if (step < average->cut_count) {
      const struct cut *cut = &average->cuts[average->turns[step]];
      status = linear_minibatch_fill(&average->minibatch, average->pieces[cut->piece].batch, cut->begin, cut->end);
      if (status) return status;
      learn(worker, order, rate, reply);
    }
    int64_t before = apps_now();
    status = explain(worker, apps_reduce_step(worker->worker, average->reduce, &report));
    reply->waited_s += apps_seconds_since(before);
    if (status) return status == PAWL_TIMED_OUT ? PAWL_OK : status; /* behind */
    average->iteration = report.iteration;
    if (pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  return status;
}

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  int64_t begun = apps_now();
  pawl_status status = prepare(worker, order);
  if (status) return status;
  struct linear_average *average = worker->average;
  apps_reduce_close(&average->reduce);
  status = apps_reduce_await(worker->worker, order->number);
  if (!status) status = open_reduce(worker, order);
  choose_turns(average, order);
  if (!status) status = take_steps(worker, order, reply);
  reply->steps = average->iteration;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}

pawl_status linear_average_agree(struct linear_worker *worker, const struct linear_order *order) {
  bool is_there = false;
  if (worker->average) apps_reduce_close(&worker->average->reduce);
  worker->dense = NULL;
  pawl_status status = prepare(worker, order);
  if (status) return status;
  struct linear_average *average = worker->average;
  struct pawl_tensor tensor = {.values = average->mean, .count = average->size, .type = PAWL_F64};
  memcpy(average->mean, average->w, average->size * sizeof *average->mean);
  status = explain(worker, apps_reduce_mean(worker->worker, order->number, order->serial, tensor, average->iteration,
                                            &average->reduce, &is_there));
  if (!is_there) return status; /* it has no mean, and says so: linear_average_give, linear_evaluate */
  worker->dense = average->mean;
  worker->dense_size = average->size;
  return PAWL_OK;
}

pawl_status linear_average_give(struct linear_worker *worker, const struct linear_order *order) {
  size_t size = worker->dense ? worker->dense_size : SIZE_MAX;
  return apps_reduce_give(worker->worker, worker->dense, size, sizeof *worker->dense, order->begin, order->end);
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

/* Tensors that were loaded in vain are zero again, as those of a new worker. */
static pawl_status load_file(struct linear_worker *worker, const struct linear_order *order,
                             const struct apps_reduce_place *place, struct pawl_tensor tensor,
                             struct apps_reduce_part *part) {
  struct linear_average *average = worker->average;
  pawl_status status = apps_reduce_load(worker->worker, place, &tensor, 1, part);
  worker->has_said = status != PAWL_OK;
  average->iteration = !status && part->files > 0 ? order->iteration : 0;
  if (average->iteration == 0) memset(average->w, 0, average->size * sizeof *average->w);
  return status;
}

pawl_status linear_average_file(struct linear_worker *worker, const struct linear_order *order,
                                struct linear_reply *reply) {
  const struct apps_reduce_place place = {.folder = worker->spec.folder,
                                          .job = worker->spec.job,
                                          .turn = (uint32_t)order->turn,
                                          .serial = order->serial,
                                          .iteration = order->iteration};
  pawl_status status = *place.folder ? apps_reduce_await(worker->worker, order->number) : PAWL_INVALID;
  if (!status) status = prepare(worker, order);
  if (status) return status;
  struct linear_average *average = worker->average;
  struct pawl_tensor tensor = {.values = average->w, .count = average->size, .type = PAWL_F64};
  if (order->what == LINEAR_LOAD) return load_file(worker, order, &place, tensor, &reply->part);
  return apps_reduce_save(worker->worker, &place, &tensor, 1, average->iteration, &reply->part);
}

/* --- the method ------------------------------------------------------------------------------------------- */

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  return prepare(worker, order);
}

/* Weights stay when pieces move. linear_average_fini frees everything. */
static void end(struct linear_worker *worker) { (void)worker; }

const struct linear_method_descriptor linear_averaged = {
    .name = "sgd",
    .number = PAWL_LINEAR_METHOD_SGD,
    .losses = LINEAR_ALL_LOSSES,
    .no_start = "workers that share by reduce begin with weights of zero; use --share servers to start from a model",
    .streams = true,
    .begin = begin,
    .sweep = sweep,
    .end = end,
    .rate = 0.5,
    .round = linear_average_round,
};
