/* The hinge loss by its dual, with coordinate ascent at each worker.
 *
 *   maximise over 0 <= a_i <= c_i    sum_i a_i - l2/2 |w(a)|^2          where  w(a) = 1/l2 sum_i a_i y_i x_i
 *
 * A worker has the multipliers a_i of its rows. It visits its rows in a random order and sets each multiplier
 * to its best value while the others stay (Hsieh et al. 2008). The servers hold the weights w(a). A worker
 * processes a small set of rows at a time, a *chunk*: it pulls the weights of their features, visits the
 * rows, and pushes the change of the weights. Chunks are drawn anew in each round. With the same rows
 * together in every round, training took ten times as many rounds.
 *
 * If one worker has all rows, as with small data (train.c), no other worker changes the weights. Then the
 * worker makes several passes in a round, and leaves out rows whose multipliers stay at a bound (ascent.h).
 *
 * Otherwise several workers do this at the same time, each on its own rows. Where rows have many features in
 * common, as texts have common words, visiting the rows in two parts, one after the other, converges ten
 * times as slowly as visiting them in one random order (Lee and Wright 2019 show why). The same holds for two
 * workers that exchange their steps once in a round. So chunks are small, and the steps of all workers are
 * mixed. The error from the few rows that are processed at the same time is usually small (PASSCoDe, Hsieh et
 * al. 2015). If it is not, the dual objective falls. Then the scheduler has each row step as if its change
 * were made `damping` times. Such steps cannot overshoot once `damping` is the number of workers (CoCoA+, Ma
 * et al. 2015).
 *
 * DELAY. A worker sends the pull for a chunk tau chunks ahead. When the answer arrives, it adds the changes
 * that it has pushed since.
 *
 * LOSSES. After each round a worker stores its multipliers on the servers. A worker that takes over rows
 * loads their multipliers. When pieces have moved, the weights are computed anew from the stored multipliers
 * (the order's generation).
 *
 * The bias is the weight of a feature that is 1 in each row. It is penalised like the other weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/ascent.h"
#include "apps/linear/control.h"
#include "apps/linear/inside.h"
#include "apps/linear/losses.h"

enum { PASSES_MOST = 50 }; /* the highest number of passes in a round */

/* Rows that are processed together. Its arrays belong to tasks in progress. */
struct chunk {
  size_t first, rows; /* part of the random order of this round */
  size_t count, room; /* number of features, and room for them */
  uint32_t *features;
  uint64_t *keys;
  double *pulled, *start, *pushed; /* weights; `ours` of these features when they were pulled; changes */
  double bias_pulled, bias_start, bias_pushed;
  struct pawl_task *pull, *bias_pull, *push, *bias_push;
};

struct dual {
  struct linear_rows rows;
  double *squares; /* |x_i|^2 */
  float *y, *c;
  double *a;
  double *v;    /* weights, while a chunk is processed */
  double *ours; /* sum of all changes that this worker has pushed, by feature */
  double bias, our_bias;
  struct chunk *ring; /* 2 (tau + 1) chunks: pulls sent ahead, and pushes in progress */
  size_t ring_size;
  uint32_t *order;             /* random order of the rows */
  struct linear_ascent ascent; /* of a worker that has all rows */
  uint64_t passes;             /* passes of `ascent` so far */
  uint32_t *seen;              /* by feature: the last chunk that contained it */
  uint32_t sign;               /* number of the chunk that is being made */
  uint32_t *found;             /* features of that chunk, and as much scratch memory for sorting */
};

/* --- the share by rows ---------------------------------------------------------------------------------- */

static void *array(size_t count, size_t size) { return apps_alloc_zero(count + 1, size); }

static bool turn(const struct linear_share *share, struct dual *dual) {
  dual->squares = array(share->rows, sizeof *dual->squares);
  if (!dual->squares || !linear_rows_init(&dual->rows, share)) return false;
  for (uint64_t k = 0; share->features && k < share->starts[share->features]; k++)
    dual->squares[share->row_of[k]] += (double)share->values[k] * (double)share->values[k];
  return true;
}

/* Multipliers are stored by row: the upper half of the key is the piece, the lower half the row's number in
 * the piece. These keys do not depend on the worker that has the piece. */
static pawl_status move_multipliers(struct linear_worker *worker, double *a, bool stores) {
  const struct linear_share *share = &worker->share;
  struct pawl_task **tasks = apps_alloc_zero(share->piece_count + 1, sizeof(struct pawl_task *));
  size_t row = 0;
  pawl_status status = tasks ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < share->piece_count && !status; i++) {
    uint64_t first = share->pieces[i].number << 32;
    struct pawl_where where = pawl_at_range(first, first + share->pieces[i].rows);
    if (share->pieces[i].rows > 0)
      status = stores ? pawl_vector_push(worker->alpha, where, a + row, &tasks[i])
                      : pawl_vector_pull(worker->alpha, where, a + row, &tasks[i]);
    row += share->pieces[i].rows;
  }
  for (size_t i = 0; tasks && i < share->piece_count; i++) {
    pawl_status ended = pawl_task_finish(tasks[i], PAWL_FOREVER);
    if (!status) status = ended;
  }
  apps_free(tasks);
  return status;
}

/* --- chunks --------------------------------------------------------------------------------------------- */

static pawl_status make_room(struct chunk *chunk, size_t count) {
  if (count <= chunk->room) return PAWL_OK;
  apps_free(chunk->features);
  apps_free(chunk->keys);
  apps_free(chunk->pulled);
  apps_free(chunk->start);
  apps_free(chunk->pushed);
  chunk->room = count + count / 4;
  chunk->features = array(chunk->room, sizeof *chunk->features);
  chunk->keys = array(chunk->room, sizeof *chunk->keys);
  chunk->pulled = array(chunk->room, sizeof *chunk->pulled);
  chunk->start = array(chunk->room, sizeof *chunk->start);
  chunk->pushed = array(chunk->room, sizeof *chunk->pushed);
  bool is_there = chunk->features && chunk->keys && chunk->pulled && chunk->start && chunk->pushed;
  if (!is_there) chunk->room = 0;
  return is_there ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Sorts numbers below `limit`, byte by byte, from the lowest byte. `other` is scratch memory of the same
 * size; the result is in one of the two arrays. */
static uint32_t *sort(uint32_t *numbers, uint32_t *other, size_t count, size_t limit) {
  for (unsigned shift = 0; shift < 32 && (limit - 1) >> shift > 0; shift += 8) {
    size_t begins[257] = {0};
    for (size_t i = 0; i < count; i++) begins[(numbers[i] >> shift & 255) + 1]++;
    for (size_t i = 0; i < 256; i++) begins[i + 1] += begins[i];
    for (size_t i = 0; i < count; i++) other[begins[numbers[i] >> shift & 255]++] = numbers[i];
    uint32_t *swapped = numbers;
    numbers = other;
    other = swapped;
  }
  return numbers;
}

/* Finds the features that occur in the rows of the chunk, by ascending key. */
static pawl_status find_features(const struct linear_worker *worker, struct chunk *chunk) {
  struct dual *dual = worker->state;
  size_t count = 0;
  dual->sign++;
  for (size_t i = 0; i < chunk->rows; i++) {
    size_t row = dual->order[chunk->first + i];
    for (uint64_t k = dual->rows.starts[row]; k < dual->rows.starts[row + 1]; k++) {
      uint32_t j = dual->rows.feature_of[k];
      if (dual->seen[j] == dual->sign) continue;
      dual->seen[j] = dual->sign;
      dual->found[count++] = j;
    }
  }
  pawl_status status = make_room(chunk, count);
  if (status) return status;
  const uint32_t *sorted = sort(dual->found, dual->found + worker->share.features, count, worker->share.features + 1);
  chunk->count = count;
  for (size_t i = 0; i < count; i++) {
    chunk->features[i] = sorted[i];
    chunk->keys[i] = worker->share.keys[sorted[i]];
  }
  return PAWL_OK;
}

static pawl_status settle(struct pawl_task **task) {
  pawl_status status = pawl_task_finish(*task, PAWL_FOREVER);
  *task = NULL;
  return status;
}

static pawl_status settle_pushes(struct chunk *chunk) {
  pawl_status status = settle(&chunk->push), bias_status = settle(&chunk->bias_push);
  return status ? status : bias_status;
}

/* --- processing a chunk --------------------------------------------------------------------------------- */

static pawl_status ask(struct linear_worker *worker, struct chunk *chunk, size_t first, size_t rows) {
  const struct dual *dual = worker->state;
  pawl_status status = settle_pushes(chunk); /* its arrays are about to be reused */
  chunk->first = first;
  chunk->rows = rows;
  if (!status) status = find_features(worker, chunk);
  if (status) return status;
  for (size_t i = 0; i < chunk->count; i++) chunk->start[i] = dual->ours[chunk->features[i]];
  chunk->bias_start = dual->our_bias;
  if (chunk->count)
    status = pawl_vector_pull(worker->weights, pawl_at_keys(chunk->keys, chunk->count), chunk->pulled, &chunk->pull);
  if (!status && worker->bias)
    status = pawl_vector_pull(worker->bias, pawl_at_range(0, 1), &chunk->bias_pulled, &chunk->bias_pull);
  return status;
}

/* Sets the multiplier of a row to its best value, and moves the weights by the change, as if it were made
 * `crowd` times. */
static void ascend(struct dual *dual, size_t row, double l2, double crowd, bool has_bias) {
  double y = (double)dual->y[row], z = has_bias ? dual->bias : 0, square = dual->squares[row] + (has_bias ? 1 : 0);
  if (square == 0) {
    dual->a[row] = (double)dual->c[row]; /* no weight affects this row: it costs its whole loss */
    return;
  }
  for (uint64_t k = dual->rows.starts[row]; k < dual->rows.starts[row + 1]; k++)
    z += (double)dual->rows.values[k] * dual->v[dual->rows.feature_of[k]];
  double a = dual->a[row] + (1 - y * z) * l2 / (crowd * square);
  a = fmin(fmax(a, 0), (double)dual->c[row]);
  double by = crowd * (a - dual->a[row]) * y / l2;
  if (by == 0) return;
  dual->a[row] = a;
  for (uint64_t k = dual->rows.starts[row]; k < dual->rows.starts[row + 1]; k++)
    dual->v[dual->rows.feature_of[k]] += by * (double)dual->rows.values[k];
  dual->bias += by;
}

static pawl_status push(struct linear_worker *worker, struct chunk *chunk, double crowd, double bias_before) {
  struct dual *dual = worker->state;
  for (size_t i = 0; i < chunk->count; i++) {
    uint32_t j = chunk->features[i];
    chunk->pushed[i] = (dual->v[j] - chunk->pulled[i]) / crowd;
    dual->ours[j] += chunk->pushed[i];
  }
  chunk->bias_pushed = (dual->bias - bias_before) / crowd;
  dual->our_bias += chunk->bias_pushed;
  pawl_status status = PAWL_OK;
  if (chunk->count)
    status = pawl_vector_push(worker->weights, pawl_at_keys(chunk->keys, chunk->count), chunk->pushed, &chunk->push);
  if (!status && worker->bias)
    status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &chunk->bias_pushed, &chunk->bias_push);
  return status;
}

static pawl_status work(struct linear_worker *worker, const struct linear_order *order, struct chunk *chunk,
                        struct linear_reply *reply) {
  struct dual *dual = worker->state;
  double crowd = order->damping;
  int64_t before = apps_now();
  pawl_status status = settle(&chunk->pull), bias_status = settle(&chunk->bias_pull);
  reply->waited_s += apps_seconds_since(before);
  if (status || bias_status) return status ? status : bias_status;
  for (size_t i = 0; i < chunk->count; i++) { /* add the changes pushed since this pull */
    uint32_t j = chunk->features[i];
    dual->v[j] = chunk->pulled[i] = chunk->pulled[i] + dual->ours[j] - chunk->start[i];
  }
  double bias_before = worker->bias ? chunk->bias_pulled + dual->our_bias - chunk->bias_start : 0;
  dual->bias = bias_before;
  for (size_t i = 0; i < chunk->rows; i++)
    ascend(dual, dual->order[chunk->first + i], order->l2, crowd, worker->bias != NULL);
  return push(worker, chunk, crowd, bias_before);
}

/* --- a round -------------------------------------------------------------------------------------------- */

/* True if this worker has all rows. Then there is nothing to exchange in the middle of a round. So a round
 * has several passes, a tenth of the passes so far, and leaves out rows whose multipliers stay at a bound. */
static bool is_alone(const struct linear_worker *worker) {
  return pawl_worker_count(worker->worker) == 1 && worker->spec.tau == 0;
}

static pawl_status push_all(struct linear_worker *worker, double bias) {
  const struct linear_share *share = &worker->share;
  struct dual *dual = worker->state;
  struct pawl_task *task = NULL, *bias_task = NULL;
  double by_bias = dual->ascent.bias - bias;
  for (size_t j = 0; j < share->features; j++) dual->ours[j] = dual->v[j] - dual->ours[j];
  pawl_status status = PAWL_OK;
  if (share->features)
    status = pawl_vector_push(worker->weights, pawl_at_keys(share->keys, share->features), dual->ours, &task);
  if (!status && worker->bias) status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &by_bias, &bias_task);
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER), bias_ended = pawl_task_finish(bias_task, PAWL_FOREVER);
  return status ? status : ended ? ended : bias_ended;
}

static pawl_status go_alone(struct linear_worker *worker, const struct linear_order *order, uint64_t *random,
                            struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  struct dual *dual = worker->state;
  struct linear_ascent *ascent = &dual->ascent;
  int64_t before = apps_now();
  double bias = 0;
  pawl_status status = linear_pull_weights(worker, share->keys, share->features, dual->v, &bias);
  reply->waited_s += apps_seconds_since(before);
  if (status) return status;
  memcpy(dual->ours, dual->v, share->features * sizeof *dual->ours);
  if (dual->passes == 0) linear_ascent_begin(ascent);
  ascent->l2 = order->l2;
  ascent->bias = bias;
  uint64_t passes = 1 + dual->passes / 10;
  passes = passes < PASSES_MOST ? passes : PASSES_MOST;
  linear_ascent_widen(ascent);
  for (uint64_t i = 0; i < passes; i++) linear_ascent_pass(ascent, random);
  dual->passes += passes;
  return push_all(worker, bias);
}

static size_t count_chunks(const struct linear_worker *worker) {
  size_t count = worker->spec.tau + (size_t)1, most = worker->share.rows / 8 + 1;
  if (pawl_worker_count(worker->worker) > 1) count = count > 8 ? 64 * count : 512;
  return count < most ? count : most;
}

static pawl_status go_through(struct linear_worker *worker, const struct linear_order *order,
                              struct linear_reply *reply) {
  struct dual *dual = worker->state;
  size_t count = count_chunks(worker), ahead = worker->spec.tau, rows = worker->share.rows;
  pawl_status status = PAWL_OK;
  for (size_t asked = 0, i = 0; i < count && !status; i++) {
    for (; asked < count && asked <= i + ahead && !status; asked++) {
      size_t first = rows * asked / count;
      status = ask(worker, &dual->ring[asked % dual->ring_size], first, rows * (asked + 1) / count - first);
    }
    if (!status) status = work(worker, order, &dual->ring[i % dual->ring_size], reply);
  }
  return status;
}

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  struct dual *dual = worker->state;
  int64_t begun = apps_now();
  uint64_t random = order->seed << 32 ^ order->round;
  bool alone = is_alone(worker);
  if (!alone) {
    linear_shuffle(&random, dual->order, (uint32_t)worker->share.rows);
    dual->passes = 0; /* the shuffle has replaced the order of `ascent` */
  }
  pawl_status status = alone ? go_alone(worker, order, &random, reply) : go_through(worker, order, reply);
  int64_t before = apps_now();
  for (size_t i = 0; i < dual->ring_size; i++) {
    pawl_status ended = settle_pushes(&dual->ring[i]);
    if (!status) status = ended;
  }
  if (!status) status = move_multipliers(worker, dual->a, true);
  reply->waited_s += apps_seconds_since(before);
  for (size_t i = 0; i < worker->share.rows; i++) reply->dual += dual->a[i];
  reply->rows = worker->share.rows;
  reply->looked_at = worker->share.features;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static void end(struct linear_worker *worker) {
  struct dual *dual = worker->state;
  if (!dual) return;
  for (size_t i = 0; i < dual->ring_size; i++) {
    struct chunk *chunk = &dual->ring[i];
    settle(&chunk->pull);
    settle(&chunk->bias_pull);
    settle_pushes(chunk);
    apps_free(chunk->features);
    apps_free(chunk->keys);
    apps_free(chunk->pulled);
    apps_free(chunk->start);
    apps_free(chunk->pushed);
  }
  apps_free(dual->ring);
  linear_rows_fini(&dual->rows);
  apps_free(dual->squares);
  apps_free(dual->y);
  apps_free(dual->c);
  apps_free(dual->a);
  apps_free(dual->v);
  apps_free(dual->ours);
  apps_free(dual->order);
  apps_free(dual->seen);
  apps_free(dual->found);
  apps_free(dual);
  worker->state = NULL;
}

static bool allocate(struct dual *dual, const struct linear_share *share, uint32_t tau) {
  dual->ring_size = 2 * ((size_t)tau + 1);
  dual->ring = array(dual->ring_size, sizeof *dual->ring);
  if (!dual->ring) dual->ring_size = 0;
  dual->order = array(share->rows, sizeof *dual->order);
  dual->seen = array(share->features, sizeof *dual->seen);
  dual->found = array(2 * share->features, sizeof *dual->found);
  dual->y = array(share->rows, sizeof *dual->y);
  dual->c = array(share->rows, sizeof *dual->c);
  dual->a = array(share->rows, sizeof *dual->a);
  dual->v = array(share->features, sizeof *dual->v);
  dual->ours = array(share->features, sizeof *dual->ours);
  return dual->ring && dual->order && dual->seen && dual->found && dual->y && dual->c && dual->a && dual->v &&
         dual->ours && turn(share, dual);
}

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  const struct linear_share *share = &worker->share;
  end(worker);
  struct dual *dual = array(1, sizeof *dual);
  if (!dual) return PAWL_NO_MEMORY;
  worker->state = dual;
  if (!allocate(dual, share, worker->spec.tau)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&worker->spec, order, (double)share->labels[i]);
    dual->y[i] = (float)y;
    dual->c[i] = (float)linear_c(&worker->spec, y) * share->weights[i];
  }
  dual->ascent = (struct linear_ascent){.rows = &dual->rows,
                                        .count = share->rows,
                                        .y = dual->y,
                                        .c = dual->c,
                                        .squares = dual->squares,
                                        .has_bias = worker->bias != NULL,
                                        .a = dual->a,
                                        .w = dual->v,
                                        .order = dual->order};
  return move_multipliers(worker, dual->a, false);
}

/* Pushes this worker's part of w(a). */
static pawl_status gather(struct linear_worker *worker, const struct linear_order *order) {
  struct dual *dual = worker->state;
  const struct linear_share *share = &worker->share;
  struct pawl_task *task = NULL, *bias_task = NULL;
  double bias = 0;
  memset(dual->v, 0, (share->features + 1) * sizeof *dual->v);
  for (size_t i = 0; i < share->rows; i++) {
    double by = dual->a[i] * (double)dual->y[i] / order->l2;
    for (uint64_t k = dual->rows.starts[i]; by != 0 && k < dual->rows.starts[i + 1]; k++)
      dual->v[dual->rows.feature_of[k]] += by * (double)dual->rows.values[k];
    bias += by;
  }
  pawl_status status = PAWL_OK;
  if (share->features)
    status = pawl_vector_push(worker->weights, pawl_at_keys(share->keys, share->features), dual->v, &task);
  if (!status && worker->bias) status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &bias, &bias_task);
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER), bias_ended = pawl_task_finish(bias_task, PAWL_FOREVER);
  return status ? status : ended ? ended : bias_ended;
}

/* --- the method ----------------------------------------------------------------------------------------- */

static const char *wrong_point(const struct pawl_linear_point *point) {
  if (point->l1 == 0 && point->l2 != 0) return NULL;
  return "the hinge loss is trained by its dual, which needs --l2 above 0 and no --l1; for sparse weights, use --loss "
         "squared-hinge";
}

/* One element per row; move_multipliers computes the keys. */
static void multipliers(const struct linear_spec *spec, struct pawl_vector_options *options) {
  options->function = PAWL_ASSIGN;
  options->size = (spec->pieces + 1) << 32;
  options->placement = PAWL_PLACE_ORDERED;
  options->layout = PAWL_LAYOUT_SPARSE;
}

const struct linear_method_descriptor linear_dual = {
    .name = "dual",
    .number = PAWL_LINEAR_METHOD_DUAL,
    .losses = LINEAR_LOSS_BIT(PAWL_LINEAR_HINGE),
    .other_loss = "--method dual needs the hinge loss; use 'pawl train svm --loss hinge'",
    .no_start = "the dual method cannot start from a model, which does not have the multipliers of the rows",
    .wrong_point = wrong_point,
    .multipliers = multipliers,
    .gathers = true,
    .begin = begin,
    .sweep = sweep,
    .gather = gather,
    .end = end,
    .keeps_best = true,
    .begin_control = linear_control_begin_dual,
    .hear = linear_control_hear_dual,
    .left = linear_control_left_dual,
};
