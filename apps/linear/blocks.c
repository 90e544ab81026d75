/* Delayed block proximal gradient with diagonal second order: OSDI'14 Algorithm 3, the worker's side.
 *
 * Features are divided into blocks. All workers visit the blocks in the same random order. For each feature j
 * of a block a worker computes, over its own rows i,
 *
 *   g_j = sum_i c_i x_ij loss'(z_i)          u_j = sum_i c_i x_ij^2 loss''(z_i)
 *
 * and pushes both. When the parts of all workers are in, the servers apply the step once (`block_newton`,
 * which docs/functions.md derives):
 *
 *   w_j <- argmin_v  g_j (v - w_j) + u_j/2 (v - w_j)^2 + l1 |v| + l2/2 v^2
 *
 * The answer contains w_j and the summed g_j. The worker then corrects z = X w of the rows concerned.
 *
 * BOUNDED DELAY. A step is an iteration under the policy "bounded tau" (<pawl/policy.h>): up to tau earlier
 * steps may be unfinished, and the next step is computed without their results. Features of the same block,
 * and of blocks in progress at the same time, do not know of one another's steps. So the number of blocks is
 * chosen such that a row has few of these features (train/describe.c).
 *
 * KKT FILTER (OSDI'14 5.1). A feature with w_j = 0 and |g_j| < l1 keeps its weight. The answer contains the
 * summed gradient, so all workers know this alike, and leave the feature out until the next full round. The
 * filter `kkt` of <pawl/filter.h> would not do: it runs on a worker's own part of the gradient, after the
 * worker has computed it, and computing it is most of the work.
 *
 * z belongs to the worker's own copy of w. Whatever was lost, delayed or left out, a later answer brings the
 * present weight, and the worker corrects z by the difference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/control.h"
#include "apps/linear/inside.h"
#include "apps/linear/losses.h"

/* A step in progress. */
struct step {
  size_t count;       /* number of features */
  uint32_t *features; /* their numbers in the share */
  uint64_t *keys;
  double *pushed, *pulled; /* pairs: g u, and w g */
  struct pawl_task *task;
  bool is_bias;
};

struct blocks {
  uint32_t count;  /* number of blocks */
  size_t *begins;  /* count + 1: the first feature of each */
  double *w;       /* as last pulled */
  bool *is_active; /* the KKT filter lets it through */
  double bias;
  float *y, *c;
  double *z;
  float *pairs;                       /* slope and curvature at z, both times c */
  struct pawl_iterations *iterations; /* each step is one; the policy lets tau of them be unfinished */
  struct step *steps;                 /* a ring of tau + 1 */
  size_t first, under_way;
  uint32_t *order;
};

/* --- rows ----------------------------------------------------------------------------------------------- */

/* Computes slopes and curvatures of all rows from z. */
static void refresh(struct blocks *blocks, enum pawl_linear_loss loss, size_t rows) {
  float z[LINEAR_SLOPES_ROWS];
  for (size_t begin = 0; begin < rows; begin += LINEAR_SLOPES_ROWS) {
    size_t count = rows - begin < LINEAR_SLOPES_ROWS ? rows - begin : LINEAR_SLOPES_ROWS;
    for (size_t i = 0; i < count; i++) z[i] = (float)blocks->z[begin + i];
    linear_slopes(loss, count, blocks->y + begin, z, blocks->c + begin, blocks->pairs + 2 * begin);
  }
}

/* Updates z of the rows that have the feature, after its weight has changed by `change`. Until the next
 * refresh, several of which happen in a sweep, slopes are updated with their curvatures only: computing exp
 * for every row that a step affects would take most of the time. */
static void move_feature(const struct linear_share *share, struct blocks *blocks, size_t feature, double change) {
  for (uint64_t k = share->starts[feature]; k < share->starts[feature + 1]; k++) {
    size_t row = share->row_of[k];
    double by = change * (double)share->values[k];
    blocks->z[row] += by;
    blocks->pairs[2 * row] += (float)by * blocks->pairs[2 * row + 1];
  }
}

static void move_bias(struct blocks *blocks, size_t rows, double change) {
  for (size_t i = 0; i < rows; i++) {
    blocks->z[i] += change;
    blocks->pairs[2 * i] += (float)change * blocks->pairs[2 * i + 1];
  }
}

/* --- computing a step ----------------------------------------------------------------------------------- */

/* Four partial sums, so that additions need not wait for one another. */
static void sum_feature(const struct linear_share *share, const float *pairs, size_t feature, double out[2]) {
  double g[4] = {0}, u[4] = {0};
  uint64_t k = share->starts[feature], end = share->starts[feature + 1];
  for (; k + 4 <= end; k += 4)
    for (size_t lane = 0; lane < 4; lane++) {
      const float *pair = pairs + 2 * (size_t)share->row_of[k + lane];
      double x = (double)share->values[k + lane], slope = (double)pair[0], curvature = (double)pair[1];
      g[lane] += x * slope;
      u[lane] += x * x * curvature;
    }
  for (; k < end; k++) {
    const float *pair = pairs + 2 * (size_t)share->row_of[k];
    double x = (double)share->values[k];
    g[0] += x * (double)pair[0];
    u[0] += x * x * (double)pair[1];
  }
  out[0] = g[0] + g[1] + (g[2] + g[3]);
  out[1] = u[0] + u[1] + (u[2] + u[3]);
}

static void sum_bias(const float *pairs, size_t rows, double out[2]) {
  out[0] = out[1] = 0;
  for (size_t i = 0; i < rows; i++) {
    out[0] += (double)pairs[2 * i];
    out[1] += (double)pairs[2 * i + 1];
  }
}

static void compute_block(const struct linear_worker *worker, const struct linear_order *order, uint32_t block,
                          struct step *step) {
  const struct blocks *blocks = worker->state;
  step->count = 0;
  for (size_t j = blocks->begins[block]; j < blocks->begins[block + 1]; j++) {
    if (!blocks->is_active[j]) continue;
    double *pair = step->pushed + 2 * step->count;
    sum_feature(&worker->share, blocks->pairs, j, pair);
    pair[1] *= order->damping;
    step->features[step->count] = (uint32_t)j;
    step->keys[step->count++] = worker->share.keys[j];
  }
}

/* The range of keys of a block. */
static struct pawl_range block_range(uint64_t span, uint32_t block, uint32_t count) {
  __extension__ unsigned __int128 wide = span;
  return (struct pawl_range){(uint64_t)(wide * block / count), (uint64_t)(wide * (block + 1) / count)};
}

/* Once it is pushed, the step is in progress, even if its tick cannot be sent: the arrays belong to the task
 * until it has finished. */
static pawl_status send_step(struct linear_worker *worker, const struct linear_order *order, uint32_t block,
                             struct step *step) {
  struct blocks *blocks = worker->state;
  struct pawl_group *group = pawl_worker_group(worker->worker);
  struct pawl_where where = pawl_at_keys(step->keys, step->count);
  where.range = step->is_bias ? (struct pawl_range){0, 1} : block_range(order->features, block, order->blocks);
  struct pawl_vector *vector = step->is_bias ? worker->bias : worker->weights;
  pawl_status status = pawl_group_pushpull(group, vector, where, step->pushed, step->pulled, &step->task);
  if (status) return status;
  blocks->under_way++;
  status = pawl_iteration_add(blocks->iterations, step->task);
  return status ? status : pawl_iteration_end(blocks->iterations, NAN); /* clocks the group */
}

/* --- applying a step ------------------------------------------------------------------------------------ */

static double violation_of(const struct linear_order *order, double w, double g) {
  if (w != 0) return fabs(g + order->l2 * w + (w > 0 ? order->l1 : -order->l1));
  return fabs(g) > order->l1 ? fabs(g) - order->l1 : 0;
}

static void count_violation(struct linear_reply *reply, double violation) {
  reply->violation += violation;
  if (violation > reply->violation_max) reply->violation_max = violation;
}

static void apply_step(struct linear_worker *worker, const struct linear_order *order, const struct step *step,
                       struct linear_reply *reply) {
  struct blocks *blocks = worker->state;
  if (step->is_bias) {
    move_bias(blocks, worker->share.rows, step->pulled[0] - blocks->bias);
    blocks->bias = step->pulled[0];
    count_violation(reply, fabs(step->pulled[1]));
  }
  for (size_t i = 0; i < step->count && !step->is_bias; i++) {
    size_t j = step->features[i];
    double w = step->pulled[2 * i], g = step->pulled[2 * i + 1];
    count_violation(reply, violation_of(order, blocks->w[j], g));
    if (w != blocks->w[j]) move_feature(&worker->share, blocks, j, w - blocks->w[j]);
    blocks->w[j] = w;
    blocks->is_active[j] = w != 0 || fabs(g) >= order->l1 - order->slack;
  }
  reply->looked_at += step->count;
}

/* Waits for the oldest step in progress, and applies it. */
static pawl_status finish_step(struct linear_worker *worker, const struct linear_order *order,
                               struct linear_reply *reply) {
  struct blocks *blocks = worker->state;
  struct step *step = &blocks->steps[blocks->first];
  int64_t before = apps_now();
  pawl_status status = pawl_task_finish(step->task, PAWL_FOREVER);
  reply->waited_s += apps_seconds_since(before);
  step->task = NULL;
  blocks->first = (blocks->first + 1) % (worker->spec.tau + 1);
  blocks->under_way--;
  if (!status) apply_step(worker, order, step, reply);
  return status;
}

/* --- a sweep -------------------------------------------------------------------------------------------- */

static pawl_status begin_step(struct linear_worker *worker, const struct linear_order *order, uint32_t block,
                              bool is_bias, struct linear_reply *reply) {
  struct blocks *blocks = worker->state;
  int64_t before = apps_now();
  pawl_status status = pawl_iteration_begin(blocks->iterations, PAWL_FOREVER, NULL);
  reply->waited_s += apps_seconds_since(before);
  while (!status && blocks->under_way > 0 && pawl_task_is_done(blocks->steps[blocks->first].task))
    status = finish_step(worker, order, reply);
  if (status) return status;
  struct step *step = &blocks->steps[(blocks->first + blocks->under_way) % (worker->spec.tau + 1)];
  step->is_bias = is_bias;
  if (is_bias) {
    step->count = 1;
    step->keys[0] = 0;
    sum_bias(blocks->pairs, worker->share.rows, step->pushed);
    step->pushed[1] *= order->damping;
  } else {
    compute_block(worker, order, block, step);
  }
  return send_step(worker, order, block, step);
}

static pawl_status drain(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  struct blocks *blocks = worker->state;
  pawl_status status = PAWL_OK;
  while (blocks->under_way > 0 && !status) status = finish_step(worker, order, reply);
  return status;
}

/* In a sweep the bias, which acts on every row, is visited four times, and slopes are refreshed sixteen
 * times. */
static bool is_due(uint32_t step, uint32_t count, uint32_t times) { return step % ((count + times - 1) / times) == 0; }

static pawl_status sweep(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  struct blocks *blocks = worker->state;
  int64_t begun = apps_now();
  pawl_status status = PAWL_OK;
  uint64_t random = order->seed << 32 ^ order->round;
  linear_shuffle(&random, blocks->order, blocks->count);
  if (order->is_first)
    reply->loss_before = linear_losses(worker->spec.loss, worker->share.rows, blocks->y, blocks->z, blocks->c);
  if (order->is_full || order->l1 == 0)
    for (size_t j = 0; j < worker->share.features; j++) blocks->is_active[j] = true;
  for (uint32_t s = 0; s < blocks->count && !status; s++) {
    if (is_due(s, blocks->count, 16)) refresh(blocks, worker->spec.loss, worker->share.rows);
    if (worker->spec.bias && is_due(s, blocks->count, 4)) status = begin_step(worker, order, 0, true, reply);
    if (!status) status = begin_step(worker, order, blocks->order[s], false, reply);
  }
  if (!status) /* workers that join between rounds take no part in earlier steps */
    status = drain(worker, order, reply);
  reply->loss = linear_losses(worker->spec.loss, worker->share.rows, blocks->y, blocks->z, blocks->c);
  reply->rows = worker->share.rows;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static void end(struct linear_worker *worker) {
  struct blocks *blocks = worker->state;
  if (!blocks) return;
  while (blocks->under_way > 0) { /* the arrays belong to the tasks until they have finished */
    pawl_status status = pawl_task_finish(blocks->steps[blocks->first].task, PAWL_FOREVER);
    (void)status; /* a failure no longer matters: the work is over */
    blocks->first = (blocks->first + 1) % (worker->spec.tau + 1);
    blocks->under_way--;
  }
  pawl_iterations_destroy(blocks->iterations);
  for (uint32_t i = 0; blocks->steps && i <= worker->spec.tau; i++) {
    apps_free(blocks->steps[i].features);
    apps_free(blocks->steps[i].keys);
    apps_free(blocks->steps[i].pushed);
    apps_free(blocks->steps[i].pulled);
  }
  apps_free(blocks->steps);
  apps_free(blocks->begins);
  apps_free(blocks->w);
  apps_free(blocks->is_active);
  apps_free(blocks->y);
  apps_free(blocks->c);
  apps_free(blocks->z);
  apps_free(blocks->pairs);
  apps_free(blocks->order);
  apps_free(blocks);
  worker->state = NULL;
}

static void *array(size_t count, size_t size) { return apps_alloc_zero(count + 1, size); }

static bool allocate_steps(struct blocks *blocks, uint32_t tau, size_t most) {
  blocks->steps = array(tau, sizeof *blocks->steps);
  for (uint32_t i = 0; blocks->steps && i <= tau; i++) {
    struct step *step = &blocks->steps[i];
    step->features = array(most, sizeof *step->features);
    step->keys = array(most, sizeof *step->keys);
    step->pushed = array(2 * most + 1, sizeof *step->pushed);
    step->pulled = array(2 * most + 1, sizeof *step->pulled);
    if (!step->features || !step->keys || !step->pushed || !step->pulled) return false;
  }
  return blocks->steps != NULL;
}

static bool allocate(struct blocks *blocks, const struct linear_share *share, uint32_t count) {
  size_t rows = share->rows, features = share->features;
  blocks->count = count;
  blocks->begins = array(count + (size_t)1, sizeof *blocks->begins);
  blocks->order = array(count, sizeof *blocks->order);
  blocks->w = array(features, sizeof *blocks->w);
  blocks->is_active = array(features, sizeof *blocks->is_active);
  blocks->y = array(rows, sizeof *blocks->y);
  blocks->c = array(rows, sizeof *blocks->c);
  blocks->z = array(rows, sizeof *blocks->z);
  blocks->pairs = array(2 * rows, sizeof *blocks->pairs);
  return blocks->begins && blocks->order && blocks->w && blocks->is_active && blocks->y && blocks->c && blocks->z &&
         blocks->pairs;
}

/* Finds where the features of each block begin. Returns the highest number of features of a block. */
static size_t divide(struct blocks *blocks, const struct linear_share *share, uint64_t span) {
  size_t at = 0, most = 0;
  for (uint32_t b = 0; b < blocks->count; b++) {
    struct pawl_range range = block_range(span, b, blocks->count);
    blocks->begins[b] = at;
    while (at < share->features && share->keys[at] < range.end) at++;
    if (at - blocks->begins[b] > most) most = at - blocks->begins[b];
  }
  blocks->begins[blocks->count] = at;
  return most;
}

/* Pulls the weights from the servers, and computes z = X w + b anew. */
static pawl_status read_weights(struct linear_worker *worker, struct blocks *blocks) {
  const struct linear_share *share = &worker->share;
  double *pairs = array(2 * share->features + 2, sizeof *pairs);
  if (!pairs) return PAWL_NO_MEMORY;
  struct pawl_task *task = NULL;
  pawl_status status = PAWL_OK;
  if (share->features)
    status = pawl_vector_pull(worker->weights, pawl_at_keys(share->keys, share->features), pairs, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  for (size_t j = 0; j < share->features && !status; j++) blocks->w[j] = pairs[2 * j];
  if (!status && worker->spec.bias) {
    status = pawl_vector_pull(worker->bias, pawl_at_range(0, 1), pairs, &task);
    if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
    if (!status) blocks->bias = pairs[0];
  }
  apps_free(pairs);
  if (status) return status;
  for (size_t j = 0; j < share->features; j++)
    if (blocks->w[j] != 0) move_feature(share, blocks, j, blocks->w[j]);
  move_bias(blocks, share->rows, blocks->bias);
  return PAWL_OK;
}

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  const struct linear_share *share = &worker->share;
  end(worker);
  struct blocks *blocks = array(1, sizeof *blocks);
  if (!blocks) return PAWL_NO_MEMORY;
  worker->state = blocks;
  if (!allocate(blocks, share, order->blocks)) return PAWL_NO_MEMORY;
  if (!allocate_steps(blocks, worker->spec.tau, divide(blocks, share, order->features) + 1)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&worker->spec, order, (double)share->labels[i]);
    blocks->y[i] = (float)y;
    blocks->c[i] = (float)linear_c(&worker->spec, y) * share->weights[i];
  }
  for (size_t j = 0; j < share->features; j++) blocks->is_active[j] = true;
  char policy[32];
  snprintf(policy, sizeof policy, "bounded %u", (unsigned)worker->spec.tau);
  struct pawl_group *group = pawl_worker_group(worker->worker);
  pawl_status status = pawl_iterations_create(worker->session, group, policy, &blocks->iterations);
  return status ? status : read_weights(worker, blocks);
}

/* --- the method ----------------------------------------------------------------------------------------- */

static void rule(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
                 struct pawl_vector_options *options) {
  (void)spec, (void)order;
  snprintf(options->rule, sizeof options->rule, "block_newton l1=%.17g l2=%.17g", l1, l2);
}

const struct linear_method_descriptor linear_blocks = {
    .name = "blocks",
    .number = PAWL_LINEAR_METHOD_BLOCKS,
    .losses = LINEAR_CURVED_LOSSES,
    .other_loss = LINEAR_NEEDS_CURVATURE,
    .rule = rule,
    .begin = begin,
    .sweep = sweep,
    .end = end,
    .keeps_best = true,
    .begin_control = linear_control_begin_blocks,
    .hear = linear_control_hear_blocks,
    .left = linear_control_left_blocks,
};
