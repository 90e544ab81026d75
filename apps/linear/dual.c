/* The hinge loss by its dual, with coordinate ascent at each worker.
 *
 *   maximise over 0 <= a_i <= c_i    sum_i a_i - l2/2 |w(a)|^2          where  w(a) = 1/l2 sum_i a_i y_i x_i
 *
 * A worker has the multipliers a_i of its rows. It goes through them in a random order and sets each to what is best while the others
 * stay (Hsieh et al. 2008); the weights that this adds up to are on the servers. It works on some rows at a time, a *chunk*: it
 * pulls the weights of their features, goes through the rows, and pushes by how much they have changed the weights.
 *
 * Other workers do the same meanwhile. That their changes add up is taken into account by making each row's step as if the
 * row's own change were made by all K workers at once: in a chunk the weights move by K times what is pushed in the end. Then the sum of all
 * steps cannot overshoot (CoCoA+, Ma et al. 2015, with sigma' = K, gamma = 1). Under delay it may, all the same; if the dual objective
 * falls, the scheduler makes K larger (the order's damping).
 *
 * DELAY. The pull for a chunk is sent tau chunks ahead. What this worker itself has pushed since is added to what it brings.
 *
 * LOSSES. After each round a worker stores its multipliers on the servers. Whoever takes over rows takes over their multipliers, and
 * when pieces have moved the weights are made anew from the multipliers that are stored (the order's generation).
 *
 * The bias is the weight of a feature that is 1 in each row, and penalised like the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/inside.h"
#include "apps/linear/losses.h"

struct chunk {
  size_t first,
      rows;     /* every so many rows from the first on: neighbours are often alike, and better in different chunks */
  size_t count; /* of features */
  uint32_t *features;
  struct pawl_keys *list;
  double *pulled, *start, *pushed; /* weights; our own share of them when they were asked for; changes */
  double bias_pulled, bias_start, bias_pushed;
  struct pawl_task *pull, *bias_pull, *push, *bias_push;
};

struct dual {
  uint64_t *starts; /* rows + 1: the share by rows */
  uint32_t *feature_of;
  float *values;
  double *squares; /* |x_i|^2, with the bias */
  float *y, *c;
  double *a;
  double *v;    /* weights while a chunk is worked on */
  double *ours; /* all that we have pushed, by feature */
  double bias, our_bias;
  struct chunk *chunks;
  size_t chunk_count;
  uint32_t *mixed; /* rows in a random order: neighbours in files are often alike, and are better in different chunks */
  uint32_t *order; /* of chunks, and of rows in one */
  uint64_t random;
};

/* --- the share by rows ------------------------------------------------------------------------------------------------------------ */

static void *array(size_t count, size_t size) { return calloc(count + 1, size); }

static bool turn(const struct linear_share *share, struct dual *dual) {
  uint64_t entries = share->features ? share->starts[share->features] : 0;
  dual->starts = array(share->rows + 1, sizeof *dual->starts);
  dual->feature_of = array((size_t)entries, sizeof *dual->feature_of);
  dual->values = array((size_t)entries, sizeof *dual->values);
  dual->squares = array(share->rows, sizeof *dual->squares);
  if (!dual->starts || !dual->feature_of || !dual->values || !dual->squares) return false;
  for (uint64_t k = 0; k < entries; k++) dual->starts[share->row_of[k] + 1]++;
  for (size_t i = 0; i < share->rows; i++) dual->starts[i + 1] += dual->starts[i];
  uint64_t *at = malloc((share->rows + 1) * sizeof *at);
  if (!at) return false;
  memcpy(at, dual->starts, (share->rows + 1) * sizeof *at);
  for (size_t j = 0; j < share->features; j++)
    for (uint64_t k = share->starts[j]; k < share->starts[j + 1]; k++) {
      uint64_t place = at[share->row_of[k]]++;
      dual->feature_of[place] = (uint32_t)j;
      dual->values[place] = share->values[k];
      dual->squares[share->row_of[k]] += (double)share->values[k] * (double)share->values[k];
    }
  free(at);
  return true;
}

/* Multipliers are stored by row: the piece in the upper half of the key, the row's number in it in the lower. That is the same for
 * whoever has the piece. */
static pawl_status move_multipliers(struct linear_worker *worker, double *a, bool stores) {
  const struct linear_share *share = &worker->share;
  struct pawl_task **tasks = calloc(share->piece_count + 1, sizeof(struct pawl_task *));
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
  free(tasks);
  return status;
}

/* --- chunks ----------------------------------------------------------------------------------------------------------------------- */

static size_t row_of(const struct dual *dual, const struct chunk *chunk, size_t number) {
  return dual->mixed[chunk->first + number];
}

/* The features that occur in the rows of the chunk: marks them, and returns how many there are. */
static size_t mark(const struct dual *dual, const struct chunk *chunk, uint32_t *seen, uint32_t sign) {
  size_t count = 0;
  for (size_t i = 0; i < chunk->rows; i++) {
    size_t row = row_of(dual, chunk, i);
    for (uint64_t k = dual->starts[row]; k < dual->starts[row + 1]; k++) {
      count += seen[dual->feature_of[k]] != sign;
      seen[dual->feature_of[k]] = sign;
    }
  }
  return count;
}

static pawl_status make_chunk(struct linear_worker *worker, struct chunk *chunk, uint32_t *seen, uint32_t sign) {
  const struct dual *dual = worker->method;
  size_t count = mark(dual, chunk, seen, sign), at = 0;
  uint64_t *keys = array(count, sizeof *keys);
  chunk->count = count;
  chunk->features = array(count, sizeof *chunk->features);
  chunk->pulled = array(count, sizeof *chunk->pulled);
  chunk->start = array(count, sizeof *chunk->start);
  chunk->pushed = array(count, sizeof *chunk->pushed);
  pawl_status status = PAWL_NO_MEMORY;
  if (keys && chunk->features && chunk->pulled && chunk->start && chunk->pushed) {
    for (uint32_t j = 0; j < worker->share.features; j++) /* in the order of keys */
      if (seen[j] == sign) {
        chunk->features[at] = j;
        keys[at++] = worker->share.keys[j];
      }
    status = count ? pawl_keys_create(worker->weights, keys, count, &chunk->list) : PAWL_OK;
  }
  free(keys);
  return status;
}

static pawl_status make_chunks(struct linear_worker *worker) {
  struct dual *dual = worker->method;
  size_t rows = worker->share.rows, wanted = 8 * ((size_t)worker->spec.tau + 1), most = rows / 16 + 1;
  size_t count = wanted < most ? wanted : most;
  dual->chunks = array(count, sizeof *dual->chunks);
  dual->mixed = array(rows, sizeof *dual->mixed);
  dual->order = array(rows + count, sizeof *dual->order);
  dual->chunk_count = dual->chunks ? count : 0;
  uint32_t *seen = array(worker->share.features, sizeof *seen);
  pawl_status status = dual->chunks && dual->mixed && dual->order && seen ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) linear_shuffle(&dual->random, dual->mixed, (uint32_t)rows);
  for (size_t i = 0; i < count && !status; i++) {
    dual->chunks[i].first = rows * i / count;
    dual->chunks[i].rows = rows * (i + 1) / count - dual->chunks[i].first;
    status = make_chunk(worker, &dual->chunks[i], seen, (uint32_t)i + 1);
  }
  free(seen);
  return status;
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

/* --- a chunk is worked on ------------------------------------------------------------------------------------------------------------ */

static pawl_status ask(struct linear_worker *worker, struct chunk *chunk) {
  const struct dual *dual = worker->method;
  pawl_status status = settle_pushes(chunk); /* of the round before: the arrays are about to be used again */
  for (size_t i = 0; i < chunk->count; i++) chunk->start[i] = dual->ours[chunk->features[i]];
  chunk->bias_start = dual->our_bias;
  if (!status && chunk->count)
    status = pawl_vector_pull(worker->weights, pawl_at_list(chunk->list), chunk->pulled, &chunk->pull);
  if (!status && worker->bias)
    status = pawl_vector_pull(worker->bias, pawl_at_range(0, 1), &chunk->bias_pulled, &chunk->bias_pull);
  return status;
}

/* The best multiplier of a row, and the weights moved by it, `crowd` times. */
static void ascend(struct dual *dual, size_t row, double l2, double crowd, bool has_bias) {
  double y = (double)dual->y[row], z = has_bias ? dual->bias : 0, square = dual->squares[row] + (has_bias ? 1 : 0);
  if (square == 0) {
    dual->a[row] = (double)dual->c[row]; /* no weight can help it: it costs its whole loss */
    return;
  }
  for (uint64_t k = dual->starts[row]; k < dual->starts[row + 1]; k++)
    z += (double)dual->values[k] * dual->v[dual->feature_of[k]];
  double a = dual->a[row] + (1 - y * z) * l2 / (crowd * square);
  a = fmin(fmax(a, 0), (double)dual->c[row]);
  double by = crowd * (a - dual->a[row]) * y / l2;
  if (by == 0) return;
  dual->a[row] = a;
  for (uint64_t k = dual->starts[row]; k < dual->starts[row + 1]; k++)
    dual->v[dual->feature_of[k]] += by * (double)dual->values[k];
  dual->bias += by;
}

static pawl_status push(struct linear_worker *worker, struct chunk *chunk, double crowd, double bias_before) {
  struct dual *dual = worker->method;
  for (size_t i = 0; i < chunk->count; i++) {
    uint32_t j = chunk->features[i];
    chunk->pushed[i] = (dual->v[j] - chunk->pulled[i]) / crowd;
    dual->ours[j] += chunk->pushed[i];
  }
  chunk->bias_pushed = (dual->bias - bias_before) / crowd;
  dual->our_bias += chunk->bias_pushed;
  pawl_status status = PAWL_OK;
  if (chunk->count) status = pawl_vector_push(worker->weights, pawl_at_list(chunk->list), chunk->pushed, &chunk->push);
  if (!status && worker->bias)
    status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &chunk->bias_pushed, &chunk->bias_push);
  return status;
}

static pawl_status work(struct linear_worker *worker, const struct linear_order *order, struct chunk *chunk,
                        struct linear_reply *reply) {
  struct dual *dual = worker->method;
  uint32_t rows = (uint32_t)chunk->rows, *turns = dual->order + dual->chunk_count;
  double crowd = pawl_worker_count(worker->worker) * order->damping;
  int64_t before = linear_now();
  pawl_status status = settle(&chunk->pull), bias_status = settle(&chunk->bias_pull);
  reply->waited_s += (double)(linear_now() - before) * 1e-9;
  if (status || bias_status) return status ? status : bias_status;
  for (size_t i = 0; i < chunk->count; i++) { /* with what we have pushed since we asked */
    uint32_t j = chunk->features[i];
    dual->v[j] = chunk->pulled[i] = chunk->pulled[i] + dual->ours[j] - chunk->start[i];
  }
  double bias_before = worker->bias ? chunk->bias_pulled + dual->our_bias - chunk->bias_start : 0;
  dual->bias = bias_before;
  linear_shuffle(&dual->random, turns, rows);
  for (uint32_t i = 0; i < rows; i++)
    ascend(dual, row_of(dual, chunk, turns[i]), order->l2, crowd, worker->bias != NULL);
  return push(worker, chunk, crowd, bias_before);
}

/* --- a round -------------------------------------------------------------------------------------------------------------------------- */

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  struct dual *dual = worker->method;
  size_t count = dual->chunk_count, ahead = worker->spec.tau;
  int64_t begun = linear_now();
  pawl_status status = PAWL_OK;
  dual->random = order->seed << 32 ^ order->round;
  linear_shuffle(&dual->random, dual->order, (uint32_t)count);
  for (size_t i = 0; i < count && i < ahead && !status; i++) status = ask(worker, &dual->chunks[dual->order[i]]);
  for (size_t i = 0; i < count && !status; i++) {
    if (i + ahead < count) status = ask(worker, &dual->chunks[dual->order[i + ahead]]);
    if (!status) status = work(worker, order, &dual->chunks[dual->order[i]], reply);
  }
  int64_t before = linear_now();
  for (size_t i = 0; i < count; i++) {
    pawl_status ended = settle_pushes(&dual->chunks[i]);
    if (!status) status = ended;
  }
  if (!status) status = move_multipliers(worker, dual->a, true);
  reply->waited_s += (double)(linear_now() - before) * 1e-9;
  for (size_t i = 0; i < worker->share.rows; i++) reply->dual += dual->a[i];
  reply->rows = worker->share.rows;
  reply->looked_at = worker->share.features;
  reply->worked_s = (double)(linear_now() - begun) * 1e-9 - reply->waited_s;
  return status;
}

/* --- beginning -------------------------------------------------------------------------------------------------------------------------- */

static void end(struct linear_worker *worker) {
  struct dual *dual = worker->method;
  if (!dual) return;
  for (size_t i = 0; i < dual->chunk_count; i++) {
    struct chunk *chunk = &dual->chunks[i];
    settle(&chunk->pull);
    settle(&chunk->bias_pull);
    settle_pushes(chunk);
    pawl_keys_destroy(chunk->list);
    free(chunk->features);
    free(chunk->pulled);
    free(chunk->start);
    free(chunk->pushed);
  }
  free(dual->chunks);
  free(dual->starts);
  free(dual->feature_of);
  free(dual->values);
  free(dual->squares);
  free(dual->y);
  free(dual->c);
  free(dual->a);
  free(dual->v);
  free(dual->ours);
  free(dual->mixed);
  free(dual->order);
  free(dual);
  worker->method = NULL;
}

static bool allocate(struct dual *dual, const struct linear_share *share) {
  dual->y = array(share->rows, sizeof *dual->y);
  dual->c = array(share->rows, sizeof *dual->c);
  dual->a = array(share->rows, sizeof *dual->a);
  dual->v = array(share->features, sizeof *dual->v);
  dual->ours = array(share->features, sizeof *dual->ours);
  return dual->y && dual->c && dual->a && dual->v && dual->ours && turn(share, dual);
}

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  const struct linear_share *share = &worker->share;
  end(worker);
  struct dual *dual = array(1, sizeof *dual);
  if (!dual) return PAWL_NO_MEMORY;
  worker->method = dual;
  if (!allocate(dual, share)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&worker->spec, order, (double)share->labels[i]);
    dual->y[i] = (float)y;
    dual->c[i] = (float)linear_c(&worker->spec, y) * share->weights[i];
  }
  pawl_status status = make_chunks(worker);
  return status ? status : move_multipliers(worker, dual->a, false);
}

/* Our part of w(a). */
static pawl_status gather(struct linear_worker *worker, const struct linear_order *order) {
  struct dual *dual = worker->method;
  const struct linear_share *share = &worker->share;
  struct pawl_task *task = NULL, *bias_task = NULL;
  double bias = 0;
  memset(dual->v, 0, (share->features + 1) * sizeof *dual->v);
  for (size_t i = 0; i < share->rows; i++) {
    double by = dual->a[i] * (double)dual->y[i] / order->l2;
    for (uint64_t k = dual->starts[i]; by != 0 && k < dual->starts[i + 1]; k++)
      dual->v[dual->feature_of[k]] += by * (double)dual->values[k];
    bias += by;
  }
  pawl_status status = PAWL_OK;
  if (share->features)
    status = pawl_vector_push(worker->weights, pawl_at_keys(share->keys, share->features), dual->v, &task);
  if (!status && worker->bias) status = pawl_vector_push(worker->bias, pawl_at_range(0, 1), &bias, &bias_task);
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER), bias_ended = pawl_task_finish(bias_task, PAWL_FOREVER);
  return status ? status : ended ? ended : bias_ended;
}

const struct linear_method_calls linear_dual = {
    .gathers = true, .begin = begin, .sweep = sweep, .gather = gather, .end = end};
