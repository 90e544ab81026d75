/* The matrix on servers, the baseline of the SFB paper ("full matrix synchronisation"): a worker sends the sum of its pairs and
 * gets the matrix. A key of the vector is a row of the matrix.
 *
 * With rows of data that are dense, all keys go both ways. Otherwise a step reads only the rows of the matrix that its data
 * name, and changes the same ones: only these go both ways.
 *
 * A worker may also send its pairs, and leave the sum to the servers: see pairs.c.
 *
 * Without staleness the pushes of a step are added up and applied as one (pawl_group_push), and the next step begins behind
 * it. With staleness s the policy "ssp s" lets a worker begin; asynchronous workers do not wait.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/clock.h"
#include "apps/common/errors.h"
#include "apps/common/memory.h"
#include "apps/common/shared_matrix/inside.h"

static struct pawl_group *group_of(const struct matrix_share *share) { return pawl_worker_group(share->worker); }
static bool is_bsp(const struct matrix_share *share) { return share->spec->staleness == 0; }
static bool is_async(const struct matrix_share *share) { return share->spec->staleness == PAWL_MATRIX_ASYNC; }

static size_t row_bytes(const struct matrix_share *share) {
  return share->spec->shape.columns * matrix_value_size(&share->spec->shape);
}

static void close_vector(struct matrix_share *share) {
  struct matrix_whole_state *state = &share->whole;
  pawl_iterations_destroy(state->iterations);
  pawl_vector_close(state->vector);
  pawl_buffer_destroy(share->session, state->change);
  pawl_buffer_destroy(share->session, state->pulled);
  apps_free(state->u);
  apps_free(state->v);
  apps_free(state->values);
  *state = (struct matrix_whole_state){.vector = NULL};
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static pawl_status open_policy(struct matrix_share *share) {
  char policy[32];
  if (is_bsp(share) || is_async(share)) return PAWL_OK;
  snprintf(policy, sizeof policy, "ssp %" PRIu32, share->spec->staleness);
  return pawl_iterations_create(share->session, group_of(share), policy, &share->whole.iterations);
}

static pawl_status open(struct matrix_share *share, const struct matrix_order *order, bool *is_late_out) {
  struct matrix_whole_state *state = &share->whole;
  struct pawl_session_figures figures;
  char name[PAWL_NAME_MAX + 1];
  pawl_status status = PAWL_OK;
  state->sends_pairs = share->spec->way == PAWL_MATRIX_SERVERS;
  matrix_vector_name(share->spec, name);
  if (!group_of(share)) return apps_say(share->error, PAWL_MISMATCH, "this worker has no servers; omit --peers");
  if (!state->vector) status = pawl_vector_open(share->session, name, MATRIX_TIMEOUT, &state->vector);
  if (!status) status = open_policy(share);
  if (share->place.factor) *share->place.factor = order->factor;
  share->rank = pawl_worker_rank(share->worker);
  share->size = pawl_worker_count(share->worker);
  state->is_fresh = false;
  pawl_session_figures(share->session, &figures);
  state->sent_before = figures.bytes_sent;
  state->received_before = figures.bytes_received;
  *is_late_out = false;
  return status;
}

/* --- rows ------------------------------------------------------------------------------------------------- */

static pawl_status reserve(struct matrix_share *share, size_t rows) {
  struct matrix_whole_state *state = &share->whole;
  if (state->pulled && rows <= state->room) return PAWL_OK;
  size_t room = rows + (share->spec->is_sparse ? rows / 4 + 1 : 0);
  pawl_buffer_destroy(share->session, state->change);
  pawl_buffer_destroy(share->session, state->pulled);
  state->change = state->pulled = NULL;
  pawl_status status = PAWL_OK;
  if (!state->sends_pairs) status = pawl_buffer_create(share->session, room * row_bytes(share), &state->change);
  if (!status) status = pawl_buffer_create(share->session, room * row_bytes(share), &state->pulled);
  state->room = room;
  return status;
}

static struct pawl_where place_of(const struct matrix_share *share) {
  const struct matrix_whole_state *state = &share->whole;
  if (!share->spec->is_sparse) return pawl_at_range(0, share->spec->shape.rows);
  return pawl_at_keys(state->rows, state->count);
}

/* The rows that were pulled become those of the matrix. */
static void take_over(struct matrix_share *share) {
  const struct matrix_whole_state *state = &share->whole;
  size_t width = row_bytes(share);
  char *values = share->place.values;
  const char *from = state->pulled;
  if (!share->spec->is_sparse) memcpy(values, from, share->spec->shape.rows * width);
  for (size_t i = 0; share->spec->is_sparse && i < state->count; i++)
    memcpy(values + state->rows[i] * width, from + i * width, width);
}

static pawl_status pull(struct matrix_share *share) {
  struct pawl_task *task;
  pawl_status status = PAWL_OK;
  if (share->whole.count > 0) {
    status = pawl_vector_pull(share->whole.vector, place_of(share), share->whole.pulled, &task);
    if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  }
  if (!status) take_over(share);
  return status;
}

/* SSP: waits until this step may begin. */
static pawl_status await_turn(struct matrix_share *share) {
  pawl_status status = PAWL_OK;
  if (!share->whole.iterations) return PAWL_OK;
  do status = pawl_iteration_begin(share->whole.iterations, MATRIX_LOOK, NULL);
  while (status == PAWL_TIMED_OUT && !pawl_worker_is_ending(share->worker));
  return status;
}

static pawl_status need(struct matrix_share *share, const uint64_t *rows, size_t count) {
  struct matrix_whole_state *state = &share->whole;
  int64_t before = apps_now();
  state->rows = rows;
  state->count = share->spec->is_sparse ? count : share->spec->shape.rows;
  state->pairs = 0;
  pawl_status status = reserve(share, state->count);
  if (!status && state->change) memset(state->change, 0, state->count * row_bytes(share));
  if (!status) status = await_turn(share);
  state->is_begun = !status;
  if (!status && !state->is_fresh) status = pull(share);
  share->waited_s += apps_seconds_since(before);
  return status;
}

/* --- pairs ------------------------------------------------------------------------------------------------ */

static double value_at(const struct matrix_share *share, const void *values, size_t i) {
  return share->spec->shape.is_double ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static bool is_finite(const struct matrix_share *share, const struct pawl_factor_vector *vector) {
  bool is_so = true;
  for (size_t i = 0; i < vector->count; i++) is_so &= isfinite(value_at(share, vector->values, i)) != 0;
  return is_so;
}

/* Adds one row of a product, times a number. */
static void add_row(const struct matrix_share *share, double times, const struct pawl_factor_vector *v, void *to) {
  double *wide = to;
  float *narrow = to;
  for (size_t i = 0; i < v->count; i++) {
    size_t at = v->indices ? v->indices[i] : i;
    if (share->spec->shape.is_double)
      wide[at] += times * ((const double *)v->values)[i];
    else
      narrow[at] += (float)times * ((const float *)v->values)[i];
  }
}

/* Both the rows of the step and the indices of u rise. False: a row was not announced. */
static bool add_sparse(struct matrix_share *share, const struct pawl_factor_vector *u,
                       const struct pawl_factor_vector *v) {
  const struct matrix_whole_state *state = &share->whole;
  size_t at = 0;
  for (size_t i = 0; i < u->count; i++) {
    uint64_t row = u->indices ? u->indices[i] : i;
    size_t end = state->count;
    while (at < end) { /* the first row that is not before it */
      size_t middle = at + (end - at) / 2;
      if (state->rows[middle] < row)
        at = middle + 1;
      else
        end = middle;
    }
    if (at == state->count || state->rows[at] != row) return false;
    add_row(share, value_at(share, u->values, i), v, (char *)state->change + at * row_bytes(share));
  }
  return true;
}

static bool grow(unsigned char **bytes, size_t *room, size_t size) {
  if (size <= *room) return true;
  unsigned char *larger = apps_resize(*bytes, size + size / 2);
  if (!larger) return false;
  *bytes = larger;
  *room = size + size / 2;
  return true;
}

static void put_dense(const struct matrix_share *share, const struct pawl_factor_vector *vector, size_t length,
                      unsigned char *to) {
  size_t each = matrix_value_size(&share->spec->shape);
  if (!vector->indices) {
    memcpy(to, vector->values, length * each);
    return;
  }
  memset(to, 0, length * each);
  for (size_t i = 0; i < vector->count; i++)
    memcpy(to + vector->indices[i] * each, (const unsigned char *)vector->values + i * each, each);
}

static pawl_status add(struct matrix_share *share, const struct pawl_factor_vector *u,
                       const struct pawl_factor_vector *v) {
  struct matrix_whole_state *state = &share->whole;
  const struct matrix_shape *shape = &share->spec->shape;
  size_t each = matrix_value_size(shape), u_size = shape->rows * each, v_size = shape->columns * each;
  if (!is_finite(share, u) || !is_finite(share, v)) return PAWL_DIVERGED;
  if (state->sends_pairs) return matrix_pairs_add(share, u, v);
  if (share->spec->is_sparse) return add_sparse(share, u, v) ? PAWL_OK : PAWL_INVALID;
  if (!grow(&state->u, &state->u_room, (state->pairs + 1) * u_size) ||
      !grow(&state->v, &state->v_room, (state->pairs + 1) * v_size))
    return PAWL_NO_MEMORY;
  put_dense(share, u, shape->rows, state->u + state->pairs * u_size);
  put_dense(share, v, shape->columns, state->v + state->pairs * v_size);
  state->pairs++;
  return PAWL_OK;
}

/* The sum of all pairs of dense rows, times a number. */
static void multiply(struct matrix_share *share, double scale) {
  struct matrix_whole_state *state = &share->whole;
  const struct matrix_shape *shape = &share->spec->shape;
  blasint rows = (blasint)shape->rows, columns = (blasint)shape->columns, pairs = (blasint)state->pairs;
  bool is_locked = apps_blas_enter();
  if (shape->is_double)
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, pairs, scale, (const double *)(void *)state->u,
                rows, (const double *)(void *)state->v, columns, 0, state->change, columns);
  else
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, pairs, (float)scale,
                (const float *)(void *)state->u, rows, (const float *)(void *)state->v, columns, 0, state->change,
                columns);
  apps_blas_leave(is_locked);
}

static void scale_change(struct matrix_share *share, double scale) {
  size_t count = share->whole.count * share->spec->shape.columns;
  double *wide = share->whole.change;
  float *narrow = share->whole.change;
  for (size_t i = 0; i < count && share->spec->shape.is_double; i++) wide[i] *= scale;
  for (size_t i = 0; i < count && !share->spec->shape.is_double; i++) narrow[i] *= (float)scale;
}

/* --- commits ---------------------------------------------------------------------------------------------- */

/* All workers together. The answer brings the rows: of dense data, they are those of the next step. */
static pawl_status commit_together(struct matrix_share *share, struct pawl_where where, const void *values) {
  struct matrix_whole_state *state = &share->whole;
  struct pawl_task *task = NULL;
  bool brings = !share->spec->is_sparse;
  pawl_status status = brings ? pawl_group_pushpull(group_of(share), state->vector, where, values, state->pulled, &task)
                              : pawl_group_push(group_of(share), state->vector, where, values, &task);
  if (status) return status;
  status = pawl_group_clock(group_of(share), NULL);
  pawl_status finished = pawl_task_finish(task, PAWL_FOREVER);
  if (!status) status = finished;
  if (!status && brings) take_over(share);
  state->is_fresh = brings;
  return status;
}

/* The next pull comes behind this push, which has not finished. */
static pawl_status commit_alone(struct matrix_share *share, struct pawl_where where, const void *values) {
  struct matrix_whole_state *state = &share->whole;
  struct pawl_task *task = NULL;
  pawl_status status = PAWL_OK;
  if (state->count > 0) status = pawl_vector_push(state->vector, where, values, &task);
  if (!status && task && state->iterations) status = pawl_iteration_add(state->iterations, task);
  if (!status && state->iterations) status = pawl_iteration_end(state->iterations, (double)NAN);
  pawl_status finished = task ? pawl_task_finish(task, PAWL_FOREVER) : PAWL_OK;
  return status ? status : finished;
}

static pawl_status commit(struct matrix_share *share, double scale) {
  struct matrix_whole_state *state = &share->whole;
  struct pawl_where where = place_of(share);
  pawl_status status = PAWL_OK;
  if (state->sends_pairs)
    status = matrix_pairs_ready(share, scale, &where);
  else if (share->spec->is_sparse)
    scale_change(share, scale);
  else if (state->pairs > 0)
    multiply(share, scale);
  const void *values = state->sends_pairs ? state->values : state->change;
  int64_t before = apps_now();
  if (!status) status = is_bsp(share) ? commit_together(share, where, values) : commit_alone(share, where, values);
  state->is_begun = false;
  share->waited_s += apps_seconds_since(before);
  return status;
}

static pawl_status finish(struct matrix_share *share) {
  struct matrix_whole_state *state = &share->whole;
  struct pawl_session_figures figures;
  pawl_iterations_destroy(state->iterations);
  state->iterations = NULL;
  pawl_session_figures(share->session, &figures);
  share->update_bytes = figures.bytes_sent - state->sent_before + figures.bytes_received - state->received_before;
  return PAWL_OK;
}

/* It pushes nothing, or zeros, in the steps that are left. */
static void quit(struct matrix_share *share, uint64_t left) {
  struct matrix_whole_state *state = &share->whole;
  for (; left > 0 && state->vector && !pawl_worker_is_ending(share->worker); left--) {
    if (!state->is_begun && need(share, NULL, 0)) break;
    state->pairs = 0;
    if (state->change) memset(state->change, 0, state->count * row_bytes(share));
    if (commit(share, 0)) break;
  }
  (void)!finish(share);
}

const struct matrix_way matrix_whole = {open, need, add, commit, finish, quit, close_vector};
