/* Asynchronous SGD, AdaGrad and FTRL-proximal on streamed data: a worker keeps only some minibatches.
 *
 * For each minibatch a worker pulls the weights of its features, computes the gradient of its losses, and
 * pushes it. The servers step by the rule of the vector. Up to tau pushes of a worker may be unfinished when
 * it pulls the next minibatch, and workers do not wait for one another (OSDI'14 3.4: eventual between
 * workers, bounded by tau for each).
 *
 * The reported loss is that of each row before the model has seen the row: progressive validation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/inside.h"
#include "apps/linear/losses.h"
#include "apps/linear/minibatch.h"

/* A minibatch whose pushes are in progress. Its arrays belong to the tasks until these have finished. */
struct slot {
  struct linear_minibatch minibatch;
  struct pawl_task *task, *bias_task;
};

struct stream {
  struct slot *slots; /* a ring of tau + 1 */
  size_t next;
};

static pawl_status settle(struct slot *slot) {
  pawl_status status = pawl_task_finish(slot->task, PAWL_FOREVER);
  pawl_status bias_status = pawl_task_finish(slot->bias_task, PAWL_FOREVER);
  slot->task = slot->bias_task = NULL;
  return status ? status : bias_status;
}

static void end(struct linear_worker *worker) {
  struct stream *stream = worker->state;
  for (uint32_t i = 0; stream && stream->slots && i <= worker->spec.tau; i++) {
    settle(&stream->slots[i]);
    linear_minibatch_fini(&stream->slots[i].minibatch);
  }
  if (stream) apps_free(stream->slots);
  apps_free(stream);
  worker->state = NULL;
}

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  (void)order;
  end(worker);
  struct stream *stream = apps_alloc_zero(1, sizeof *stream);
  if (stream) stream->slots = apps_alloc_zero(worker->spec.tau + 1, sizeof *stream->slots);
  worker->state = stream;
  return stream && stream->slots ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- a minibatch ---------------------------------------------------------------------------------------- */

void linear_stream_learn(const struct linear_worker *worker, const struct linear_order *order,
                         struct linear_minibatch *minibatch, struct linear_reply *reply) {
  const struct pawl_batch *batch = minibatch->batch;
  for (size_t i = 0; i < minibatch->rows; i++) {
    size_t row = minibatch->begin + i;
    double y = linear_y(&worker->spec, order, (double)batch->labels[row]), z = linear_minibatch_score(minibatch, i);
    double c = linear_c(&worker->spec, y) * (batch->weights ? (double)batch->weights[row] : 1);
    reply->loss += c * linear_loss_value(worker->spec.loss, y, z);
    double slope = c * linear_loss_slope(worker->spec.loss, y, z);
    if (slope != 0) linear_minibatch_add(minibatch, i, slope);
  }
  reply->rows += minibatch->rows;
  reply->looked_at += minibatch->features;
}

static pawl_status push(struct linear_worker *worker, struct slot *slot) {
  struct linear_minibatch *minibatch = &slot->minibatch;
  pawl_status status = PAWL_OK;
  if (minibatch->features)
    status = pawl_vector_push(worker->weights, pawl_at_keys(minibatch->keys, minibatch->features), minibatch->gradient,
                              &slot->task);
  if (!status && worker->bias)
    status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &minibatch->bias_gradient, &slot->bias_task);
  return status;
}

/* The first piece determined the two classes. Later rows may have other labels, which are refused. */
static pawl_status check_labels(struct linear_worker *worker, const struct linear_order *order,
                                const struct pawl_batch *batch) {
  if (linear_is_regression(worker->spec.loss)) return PAWL_OK;
  for (size_t i = 0; i < batch->rows; i++) {
    double label = (double)batch->labels[i];
    if (label == order->labels[0] || label == order->labels[1]) continue;
    pawl_worker_say(worker->worker, "a row has the label %g, but the classes are %g and %g", label, order->labels[0],
                    order->labels[1]);
    worker->has_said = true;
    return PAWL_INVALID;
  }
  return PAWL_OK;
}

static pawl_status learn_batch(struct linear_worker *worker, const struct linear_order *order,
                               const struct pawl_batch *batch, struct linear_reply *reply) {
  struct stream *stream = worker->state;
  pawl_status status = check_labels(worker, order, batch);
  for (size_t row = 0; row < batch->rows && !status; row += worker->spec.minibatch) {
    struct slot *slot = &stream->slots[stream->next++ % (worker->spec.tau + 1)];
    size_t last = row + worker->spec.minibatch < batch->rows ? row + worker->spec.minibatch : batch->rows;
    int64_t before = apps_now();
    status = settle(slot);
    int64_t waited = apps_now() - before;
    if (!status) status = linear_minibatch_fill(&slot->minibatch, batch, row, last);
    if (status) break;
    before = apps_now();
    status = linear_pull_weights(worker, slot->minibatch.keys, slot->minibatch.features, slot->minibatch.weights,
                                 &slot->minibatch.bias);
    reply->waited_s += (double)(waited + apps_now() - before) * 1e-9;
    if (status) break;
    linear_stream_learn(worker, order, &slot->minibatch, reply);
    status = push(worker, slot);
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  return status;
}

/* --- pieces --------------------------------------------------------------------------------------------- */

/* So many at a time that the threads read ahead, and so few that some are left for a worker that joins during
 * the pass, unless workers average: then none does. */
static uint64_t count_at_once(const struct linear_worker *worker) {
  uint64_t eighth = linear_piece_count(worker) / 8, threads = worker->spec.threads ? worker->spec.threads : 8;
  if (worker->spec.reduces) return UINT64_MAX;
  return eighth > 2 * threads ? eighth : 2 * threads;
}

pawl_status linear_read_pieces(struct linear_worker *worker,
                               pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch),
                               void *context) {
  struct pawl_range run;
  for (;;) {
    pawl_status status = pawl_worker_next(worker->worker, count_at_once(worker), &run);
    if (status || pawl_range_is_empty(run)) return status;
    status = pawl_data_read_all(worker->data, (size_t)run.begin, (size_t)run.end, worker->spec.threads, take, context);
    if (status) return status;
  }
}

/* --- a pass --------------------------------------------------------------------------------------------- */

struct pass {
  struct linear_worker *worker;
  const struct linear_order *order;
  struct linear_reply *reply;
};

static pawl_status learn_piece(void *context, size_t piece, struct pawl_batch *batch) {
  struct pass *pass = context;
  if (pass->worker->spec.digests) apps_digest_add(&pass->reply->census.digest, piece, batch);
  pawl_status status = learn_batch(pass->worker, pass->order, batch, pass->reply);
  pawl_batch_destroy(batch); /* the minibatch has copied what it pushes */
  return status;
}

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  struct pass pass = {worker, order, reply};
  struct stream *stream = worker->state;
  int64_t begun = apps_now();
  pawl_status status = linear_read_pieces(worker, learn_piece, &pass);
  for (uint32_t i = 0; i <= worker->spec.tau; i++) {
    pawl_status ended = settle(&stream->slots[i]);
    if (!status) status = ended;
  }
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}

/* --- the methods ---------------------------------------------------------------------------------------- */

/* A minibatch of b of N rows has b / N of the penalty. FTRL keeps sums over all rows so far, and has all of
 * it. */
static double share_of(const struct linear_spec *spec, const struct linear_order *order) {
  return (double)spec->minibatch / (double)(order->rows ? order->rows : 1);
}

static void sgd_rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                     struct pawl_vector_options *options) {
  double share = share_of(spec, order);
  snprintf(options->rule, sizeof options->rule, "prox_elastic rate=%.17g l1=%.17g l2=%.17g",
           spec->rate / spec->minibatch, l1 * share, l2 * share);
}

static void adagrad_rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                         struct pawl_vector_options *options) {
  (void)l1;
  snprintf(options->rule, sizeof options->rule, "adagrad rate=%.17g eps=1e-8 decay=%.17g", spec->rate,
           l2 * share_of(spec, order));
}

static void ftrl_rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                      struct pawl_vector_options *options) {
  (void)order;
  snprintf(options->rule, sizeof options->rule, "ftrl rate=%.17g beta=1 l1=%.17g l2=%.17g", spec->rate, l1, l2);
}

static const char *wrong_adagrad_point(const struct pawl_linear_point *point) {
  return point->l1 == 0 ? NULL : "adagrad does not support --l1; use --method ftrl or --method sgd";
}

#define STREAM .losses = LINEAR_ALL_LOSSES, .streams = true, .begin = begin, .sweep = sweep, .end = end

const struct linear_method_descriptor linear_sgd = {STREAM, .name = "sgd", .number = PAWL_LINEAR_METHOD_SGD,
                                                    .rule = sgd_rule, .rate = 0.5};

const struct linear_method_descriptor linear_adagrad = {STREAM,
                                                        .name = "adagrad",
                                                        .number = PAWL_LINEAR_METHOD_ADAGRAD,
                                                        .wrong_point = wrong_adagrad_point,
                                                        .rule = adagrad_rule,
                                                        .rate = 0.1};

const struct linear_method_descriptor linear_ftrl = {
    STREAM,
    .name = "ftrl",
    .number = PAWL_LINEAR_METHOD_FTRL,
    .no_start = "ftrl cannot start from a model, which does not have the sums that its weights are computed from; use "
                "--method sgd or adagrad",
    .rule = ftrl_rule,
    .rate = 0.1};
