/* A part of an epoch in which every worker has its own parameters, and sends its gradient to all others (<pawl/factor.h>; SFB, Xie
 * et al. 2016, applied to full layers as in Zhang et al., "Poseidon", 2017). The gradient of the weights of a full layer is a
 * sum of products u v' over images: u is the slope of the layer's output, v its input. Where two vectors of each image are
 * shorter than the weights, a worker sends these. All other parameters are one more matrix, of one row: its pair is the number
 * 1 and the gradient.
 *
 * The matrices of the factors are always 0 between commits: what a commit has added is moved to the gradient. The commits of
 * all workers are added in the same order everywhere, so all make the same step, bit by bit, and keep the same momentum.
 *
 * Each round opens factors anew. It begins with a matrix of parameters and momentum: if those of workers differ, because one
 * has come or was left behind, all take over those of the worker with the lowest node id, which has been there longest.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/factors.h"
#include "apps/common/memory.h"
#include "apps/common/reduce.h"

struct cnn_piece {
  struct pawl_factor *factor;
  size_t rows, columns;
  float *matrix; /* 0 between commits */
  float *sum;    /* of the commits of this step */
};

struct cnn_factors {
  struct cnn_worker *worker;
  struct cnn_piece *pieces; /* the first: parameters that are not sent as factors */
  size_t count;
  size_t layers[64];      /* the piece of a layer */
  float *rest, *rest_sum; /* gradients of the first piece: own, and of all workers */
  size_t rest_size;
  float *u, *v; /* pairs of the images of a layer */
  struct cnn_sink sink;
  pawl_status status; /* of the pairs of this step */
  uint32_t rank, size;
  struct pawl_factor *adoption;
  float *state; /* parameters and momentum, taken over */
};

/* --- memory ----------------------------------------------------------------------------------------------- */

static void close_pieces(struct cnn_factors *is) {
  for (size_t i = 0; i < is->count; i++) {
    pawl_factor_close(is->pieces[i].factor);
    is->pieces[i].factor = NULL;
  }
  pawl_factor_close(is->adoption);
  apps_free(is->state);
  is->adoption = NULL;
  is->state = NULL;
}

void cnn_factors_end(struct cnn_worker *worker) {
  struct cnn_factors *is = worker->factors;
  if (!is) return;
  close_pieces(is);
  for (size_t i = 0; i < is->count; i++) apps_free(is->pieces[i].matrix);
  apps_free(is->pieces);
  apps_free(is->rest);
  apps_free(is->rest_sum);
  apps_free(is->u);
  apps_free(is->v);
  apps_free(is);
  worker->factors = NULL;
}

/* The vectors of some images, one after the other. */
static void turn(struct cnn_matrix from, size_t length, size_t images, float *to) {
  for (size_t i = 0; i < images; i++)
    for (size_t k = 0; k < length; k++) to[i * length + k] = from.at[k * from.step + i];
}

/* Takes the gradient of a full layer: struct cnn_sink. */
static void take_pairs(void *context, const struct cnn_layer *layer, size_t count, struct cnn_matrix slopes,
                       struct cnn_matrix inputs) {
  struct cnn_factors *is = context;
  const struct cnn_piece *piece = &is->pieces[is->layers[layer - is->worker->model->net->layers]];
  turn(slopes, piece->rows, count, is->u);
  turn(inputs, piece->columns, count, is->v);
  if (!is->status) is->status = pawl_factor_add_rank(piece->factor, count, is->u, is->v);
}

static bool make_piece(struct cnn_factors *is, size_t rows, size_t columns, float *sum) {
  struct cnn_piece *piece = &is->pieces[is->count++];
  *piece = (struct cnn_piece){.rows = rows, .columns = columns, .sum = sum};
  piece->matrix = apps_alloc_zero(rows, columns * sizeof *piece->matrix);
  return piece->matrix != NULL;
}

static bool make_pieces(struct cnn_factors *is) {
  struct cnn_worker *worker = is->worker;
  const struct cnn_net *net = worker->model->net;
  size_t longest_u = 1, longest_v = 1;
  is->rest_size = cnn_rest_size(net, worker->spec.as_factors);
  is->pieces = apps_alloc_zero(net->count + 1, sizeof *is->pieces);
  is->rest = apps_alloc_zero(is->rest_size, sizeof *is->rest);
  is->rest_sum = apps_alloc_zero(is->rest_size, sizeof *is->rest_sum);
  bool is_fine = is->pieces && is->rest && is->rest_sum && make_piece(is, 1, is->rest_size, is->rest_sum);
  for (size_t i = 0; i < net->count && i < 64 && is_fine; i++) {
    const struct cnn_layer *layer = &net->layers[i];
    size_t inputs = cnn_layer_inputs(layer);
    if (!(worker->spec.as_factors >> i & 1) || layer->kind != CNN_FULL) continue;
    is->layers[i] = is->count;
    is_fine = make_piece(is, layer->out.channels, inputs, worker->solver.gradient + layer->weights);
    if (layer->out.channels > longest_u) longest_u = layer->out.channels;
    if (inputs > longest_v) longest_v = inputs;
  }
  size_t images = (size_t)worker->spec.plan.batch;
  is->u = apps_alloc_zero(images, longest_u * sizeof *is->u);
  is->v = apps_alloc_zero(images, longest_v * sizeof *is->v);
  return is_fine && is->u && is->v;
}

static pawl_status prepare(struct cnn_worker *worker) {
  struct cnn_factors *is = worker->factors;
  if (is) return PAWL_OK;
  worker->factors = is = apps_alloc_zero(1, sizeof *is);
  if (!is) return PAWL_NO_MEMORY;
  is->worker = worker;
  is->sink = (struct cnn_sink){worker->spec.as_factors, take_pairs, is};
  if (!make_pieces(is)) {
    cnn_factors_end(worker);
    return apps_say(worker->error, PAWL_NO_MEMORY, "no memory for factors of batches of %" PRIu64 " images",
                    worker->spec.plan.batch);
  }
  cnn_pass_divert(worker->solver.pass, &is->sink);
  return PAWL_OK;
}

/* --- a round begins --------------------------------------------------------------------------------------- */

/* What a commit has added to the matrix goes to the gradient. */
static pawl_status move(void *context, void *matrix, size_t rows, size_t columns, double step) {
  struct cnn_piece *piece = context;
  float *from = matrix;
  (void)step;
  for (size_t i = 0; i < rows * columns; i++) {
    piece->sum[i] += from[i];
    from[i] = 0;
  }
  return PAWL_OK;
}

static pawl_status open_factor(struct cnn_factors *is, const char *what, uint64_t serial, float *matrix, size_t rows,
                               size_t columns, struct cnn_piece *piece, struct pawl_factor **factor_out) {
  struct pawl_factor_options options;
  char name[PAWL_FACTOR_NAME_MAX + 1];
  pawl_factor_options_init(&options);
  if (piece) {
    options.prox = PAWL_FACTOR_CALL;
    options.prox_call = move;
    options.context = piece;
  }
  snprintf(name, sizeof name, "%s.%" PRIu64, what, serial);
  return pawl_factor_open(pawl_worker_peers(is->worker->worker), name, matrix, rows, columns, PAWL_F32, &options,
                          CNN_TIMEOUT, factor_out);
}

/* The factors stay open until the next round: others may need longer to take over. */
static pawl_status adopt(struct cnn_factors *is, const struct cnn_order *order) {
  struct cnn_worker *worker = is->worker;
  size_t count = worker->model->net->parameters, bytes = count * sizeof(float);
  is->state = apps_alloc_zero(2, bytes);
  if (!is->state) return apps_say(worker->error, PAWL_NO_MEMORY, "no memory to take over the parameters");
  memcpy(is->state, worker->model->parameters, bytes);
  memcpy(is->state + count, worker->solver.velocity, bytes);
  pawl_status status = open_factor(is, "state", order->serial, is->state, 2, count, NULL, &is->adoption);
  if (status) return status;
  memcpy(worker->model->parameters, is->state, bytes);
  memcpy(worker->solver.velocity, is->state + count, bytes);
  return PAWL_OK;
}

/* `*is_late_out`: the others have begun before this worker came. */
static pawl_status open_pieces(struct cnn_factors *is, const struct cnn_order *order, bool *is_late_out) {
  struct pawl_factor_state state;
  char what[32];
  pawl_status status = adopt(is, order);
  for (size_t i = 0; i < is->count && !status && !*is_late_out; i++) {
    struct cnn_piece *piece = &is->pieces[i];
    snprintf(what, sizeof what, "gradient%zu", i);
    status = open_factor(is, what, order->serial, piece->matrix, piece->rows, piece->columns, piece, &piece->factor);
    if (status) return status;
    pawl_factor_state(piece->factor, &state);
    *is_late_out = state.clock > 0;
  }
  if (!status && !*is_late_out) apps_factor_place(is->pieces[0].factor, &is->rank, &is->size);
  return status;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

/* The gradient without the weights that go as factors, to `rest` or back. */
static void copy_rest(const struct cnn_factors *is, float *rest, bool is_back) {
  const struct cnn_net *net = is->worker->model->net;
  float *gradient = is->worker->solver.gradient;
  size_t at = 0;
  for (size_t i = 0; i <= net->count; i++) {
    bool is_end = i == net->count, is_piece = !is_end && i < 64 && is->layers[i] > 0;
    if (!is_end && !is_piece) continue;
    size_t end = is_end ? net->parameters : net->layers[i].weights;
    memcpy(is_back ? gradient + at : rest, is_back ? rest : gradient + at, (end - at) * sizeof *rest);
    rest += end - at;
    if (is_piece) at = end + is->pieces[is->layers[i]].rows * is->pieces[is->layers[i]].columns;
  }
}

/* Computes this worker's part of the step, and adds its pairs. `*images_out` are those of the part. PAWL_DIVERGED. */
static pawl_status compute(struct cnn_factors *is, uint64_t step, size_t *images_out, struct cnn_reply *reply) {
  struct cnn_solver *solver = &is->worker->solver;
  size_t images = cnn_plan_size(&solver->plan, step);
  size_t first = cnn_share_begin(images, is->rank, is->size), end = cnn_share_begin(images, is->rank + 1, is->size);
  const float one = 1;
  is->status = PAWL_OK;
  *images_out = end - first;
  if (!isfinite(cnn_solver_gradient(solver, step, first, end - first, &reply->tally))) return PAWL_DIVERGED;
  copy_rest(is, is->rest, false);
  if (end > first && !is->status) is->status = pawl_factor_add_rank(is->pieces[0].factor, 1, &one, is->rest);
  return is->status;
}

/* The gradients of all workers are added up, and all make the step. */
static pawl_status combine(struct cnn_factors *is, uint64_t step, double share, struct cnn_reply *reply) {
  struct cnn_worker *worker = is->worker;
  struct cnn_solver *solver = &worker->solver;
  struct cnn_sgd sgd = cnn_plan_sgd(&solver->plan, step);
  pawl_status status = PAWL_OK;
  memset(solver->gradient, 0, worker->model->net->parameters * sizeof *solver->gradient);
  memset(is->rest_sum, 0, is->rest_size * sizeof *is->rest_sum);
  for (size_t i = 0; i < is->count && !status; i++)
    status = apps_factor_commit(worker->worker, is->pieces[i].factor, share, &reply->waited_s);
  if (status) return status;
  copy_rest(is, is->rest_sum, true);
  cnn_sgd_step(worker->model->net, &sgd, solver->gradient, solver->velocity, worker->model->parameters);
  apps_factor_place(is->pieces[0].factor, &is->rank, &is->size);
  return PAWL_OK;
}

static pawl_status take_steps(struct cnn_factors *is, const struct cnn_order *order, struct cnn_reply *reply) {
  struct cnn_worker *worker = is->worker;
  pawl_status status = PAWL_OK;
  for (uint64_t i = 0; i < order->count && !status; i++) {
    uint64_t step = order->step + i;
    size_t images = 0;
    status = compute(is, step, &images, reply);
    double share = (double)images / (double)cnn_plan_size(&worker->solver.plan, step);
    if (!status) status = combine(is, step, share, reply);
    if (!status) worker->iteration = step + 1;
    if (status == PAWL_DIVERGED) reply->diverged = step + 1;
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  for (size_t i = 0; i < is->count; i++) reply->update_bytes += apps_factor_bytes(is->pieces[i].factor);
  reply->hash = XXH3_64bits(worker->model->parameters, worker->model->net->parameters * sizeof(float));
  if (status) close_pieces(is); /* the others go on without it */
  return status == PAWL_DIVERGED || status == PAWL_TIMED_OUT ? PAWL_OK : status;
}

pawl_status cnn_factors_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply) {
  int64_t begun = apps_now();
  bool is_late = false;
  pawl_status status = prepare(worker);
  if (status) return status;
  struct cnn_factors *is = worker->factors;
  close_pieces(is);
  status = apps_reduce_await(worker->worker, order->number);
  if (status == PAWL_MISMATCH && !pawl_worker_peers(worker->worker))
    return apps_say(worker->error, status, "this worker was not started for factors; start it with --peers");
  worker->iteration = order->step;
  if (!status) status = open_pieces(is, order, &is_late);
  if (is_late) {
    close_pieces(is);
    worker->iteration = 0;
  } else if (!status) {
    status = take_steps(is, order, reply);
  }
  reply->number = worker->iteration;
  reply->worked_s = apps_seconds_since(begun) - reply->waited_s;
  return status;
}
