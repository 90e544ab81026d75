/* Derivatives at the weights on the servers, computed plainly and in double precision. Newton steps use them
 * (apps/linear/train/newton.c), and so does the bound on the distance to the optimum (certificate.h).
 *
 *   g_j = sum_i c_i x_ij loss'(z_i)          h_jk = sum_i c_i x_ij x_ik loss''(z_i)
 *
 * g is pushed separately for each class. Of the Hessian the upper triangle is pushed, row after row, the bias
 * last.
 *
 * A worker keeps the scores of its rows, which are valid as long as the weights on the servers stay the same,
 * and its part of the Hessian (hessian.h). Both only save work: a worker that has just joined or has taken
 * over rows computes them anew. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/certificate.h"
#include "apps/linear/losses.h"

/* --- scores --------------------------------------------------------------------------------------------- */

/* out = X w + bias, by columns. */
static void score_columns(const struct linear_share *share, const double *w, double bias, double *out) {
  for (size_t i = 0; i < share->rows; i++) out[i] = bias;
  for (size_t j = 0; j < share->features; j++)
    for (uint64_t k = share->starts[j]; w[j] != 0 && k < share->starts[j + 1]; k++)
      out[share->row_of[k]] += w[j] * (double)share->values[k];
}

/* The score of one row, with several partial sums, so that additions need not wait for one another. */
static double score_row(const struct linear_rows *rows, size_t row, const double *w) {
  uint64_t k = rows->starts[row], end = rows->starts[row + 1];
  double sums[4] = {0};
  for (; k + 4 <= end; k += 4)
    for (size_t i = 0; i < 4; i++) sums[i] += w[rows->feature_of[k + i]] * (double)rows->values[k + i];
  for (; k < end; k++) sums[0] += w[rows->feature_of[k]] * (double)rows->values[k];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

static void find_scores(const struct linear_worker *worker, const double *w, double bias, double *out) {
  if (!worker->rows.starts) {
    score_columns(&worker->share, w, bias, out);
    return;
  }
  for (size_t i = 0; i < worker->share.rows; i++) out[i] = bias + score_row(&worker->rows, i, w);
}

/* Computes the scores at the weights on the servers. */
static pawl_status score_rows(struct linear_worker *worker) {
  size_t features = worker->share.features;
  double bias = 0, *w = apps_alloc((features + 1) * sizeof *w);
  if (!worker->derived) worker->derived = apps_alloc_zero(1, sizeof *worker->derived);
  struct linear_derived *derived = worker->derived;
  if (derived && !derived->z) derived->z = apps_alloc((worker->share.rows + 1) * sizeof *derived->z);
  pawl_status status = w && derived && derived->z ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = linear_pull_weights(worker, worker->share.keys, features, w, &bias);
  if (!status) w[features] = bias;
  if (!status && (!derived->w || memcmp(w, derived->w, (features + 1) * sizeof *w) != 0)) {
    apps_free(derived->w);
    derived->w = w;
    find_scores(worker, w, bias, derived->z);
    return PAWL_OK;
  }
  apps_free(w);
  return status;
}

void linear_derived_forget(struct linear_worker *worker) {
  if (!worker->derived) return;
  linear_hessian_fini(&worker->derived->hessian);
  apps_free(worker->derived->w);
  apps_free(worker->derived->z);
  apps_free(worker->derived);
  worker->derived = NULL;
}

static double y_of(const struct linear_worker *worker, const struct linear_order *order, size_t row) {
  return linear_y(&worker->spec, order, (double)worker->share.labels[row]);
}

static double c_of(const struct linear_worker *worker, double y, size_t row) {
  return linear_c(&worker->spec, y) * (double)worker->share.weights[row];
}

static pawl_status open_vector(struct linear_worker *worker, const struct linear_order *order, enum linear_vector which,
                               struct pawl_vector **vector_out) {
  char name[PAWL_NAME_MAX + 1];
  linear_vector_name(&worker->spec, order, which, name);
  return pawl_vector_open(worker->session, name, LINEAR_TIMEOUT, vector_out);
}

/* --- the gradient --------------------------------------------------------------------------------------- */

/* Adds a row to the sums of certificate.h, and computes its slope and its curvature. */
static void judge(const struct linear_worker *worker, const struct linear_order *order, size_t row, double *slope_out,
                  double *curvature, struct linear_reply *reply) {
  enum pawl_linear_loss loss = worker->spec.loss;
  double y = y_of(worker, order, row), c = c_of(worker, y, row), z = worker->derived->z[row];
  double slope = *slope_out = c * linear_loss_slope(loss, y, z);
  reply->loss += c * linear_loss_value(loss, y, z);
  reply->loss_of_nothing += c * linear_loss_value(loss, y, 0);
  *curvature = c * linear_loss_curvature(loss, y, z);
  if (linear_is_regression(loss)) {
    reply->slopes[0] += slope;
    reply->slopes[1] += c;
    reply->conjugates[0][0] -= slope * y;
    reply->conjugates[0][1] += c > 0 ? slope * slope / c : 0;
    reply->conjugates[0][2] += c * y;
    return;
  }
  size_t class = y > 0;
  reply->correct += (z > 0) == (y > 0);
  reply->slopes[class] += slope;
  for (size_t k = 0; k < LINEAR_SHRINKS; k++)
    reply->conjugates[class][k] += linear_conjugate(loss, c, linear_shrinks[k] * slope);
}

/* The gradient by columns: a pair for each feature, one sum per class. Slopes of the second class are never above 0, and
 * those of the first never below, so the slope tells the class without a look at the label. For regression the second
 * is the sum of c x. */
static void sum_columns(const struct linear_worker *worker, const double *slopes, double *pairs) {
  const struct linear_share *share = &worker->share;
  bool is_regression = linear_is_regression(worker->spec.loss);
  for (size_t j = 0; j < share->features; j++) {
    double all = 0, first = 0, weights = 0;
    for (uint64_t k = share->starts[j]; k < share->starts[j + 1]; k++) {
      double x = (double)share->values[k], slope = slopes[share->row_of[k]];
      all += x * slope;
      first += x * (slope > 0 ? slope : 0);
    }
    for (uint64_t k = share->starts[j]; is_regression && k < share->starts[j + 1]; k++)
      weights += (double)share->values[k] * (double)share->weights[share->row_of[k]];
    pairs[2 * j] = is_regression ? all : first;
    pairs[2 * j + 1] = is_regression ? weights : all - first;
  }
}

/* The gradient by rows. Rows without a slope, beyond the hinge, are skipped. */
static void sum_rows(const struct linear_worker *worker, const double *slopes, double *pairs) {
  const struct linear_rows *rows = &worker->rows;
  bool is_regression = linear_is_regression(worker->spec.loss);
  for (size_t i = 0; i < worker->share.rows; i++) {
    double slope = slopes[i], c = (double)worker->share.weights[i];
    double *sums = pairs + (!is_regression && slope < 0);
    if (slope == 0 && !is_regression) continue;
    for (uint64_t k = rows->starts[i]; k < rows->starts[i + 1]; k++) {
      sums[2 * rows->feature_of[k]] += slope * (double)rows->values[k];
      if (is_regression) sums[2 * rows->feature_of[k] + 1] += c * (double)rows->values[k];
    }
  }
}

static pawl_status push_gradient(struct linear_worker *worker, const struct linear_order *order, const double *slopes) {
  double *pairs = apps_alloc_zero(2 * worker->share.features + 1, sizeof *pairs);
  if (!pairs) return PAWL_NO_MEMORY;
  if (worker->rows.starts)
    sum_rows(worker, slopes, pairs);
  else
    sum_columns(worker, slopes, pairs);
  pawl_status status = linear_push(worker, order, LINEAR_GRADIENT, pairs);
  apps_free(pairs);
  return status;
}

/* --- the Hessian ---------------------------------------------------------------------------------------- */

enum { PUSHED_AT_ONCE = 1 << 20 };

/* The feature of each key of the share, or UINT32_MAX. NULL if it is out of memory. */
static uint32_t *features_at(const struct linear_share *share, uint64_t features) {
  uint32_t *feature_at = apps_alloc((size_t)(features + 1) * sizeof *feature_at);
  for (uint64_t key = 0; feature_at && key < features; key++) feature_at[key] = UINT32_MAX;
  for (size_t j = 0; feature_at && j < share->features; j++) feature_at[share->keys[j]] = (uint32_t)j;
  return feature_at;
}

static pawl_status push_entries(struct pawl_vector *vector, const struct linear_hessian *hessian,
                                const uint32_t *feature_at, uint64_t size) {
  uint64_t count = size * (size + 1) / 2, most = count < PUSHED_AT_ONCE ? count : PUSHED_AT_ONCE;
  double *entries = apps_alloc((size_t)most * sizeof *entries);
  pawl_status status = entries ? PAWL_OK : PAWL_NO_MEMORY;
  for (uint64_t at = 0; at < count && !status; at += PUSHED_AT_ONCE) {
    uint64_t end = at + PUSHED_AT_ONCE < count ? at + PUSHED_AT_ONCE : count;
    struct pawl_task *task = NULL;
    linear_hessian_read(hessian, feature_at, size, at, end, entries);
    status = pawl_vector_push(vector, pawl_at_range(at, end), entries, &task);
    if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  }
  apps_free(entries);
  return status;
}

static pawl_status push_hessian(struct linear_worker *worker, const struct linear_order *order,
                                const double *curvatures) {
  struct linear_hessian *hessian = &worker->derived->hessian;
  struct pawl_vector *vector = NULL;
  pawl_status status = PAWL_OK;
  if (!hessian->sums)
    status = linear_hessian_init(hessian, &worker->share, &worker->rows, worker->spec.bias, LINEAR_BY_COST);
  if (!status) status = linear_hessian_update(hessian, &worker->share, &worker->rows, curvatures, LINEAR_HESSIAN_SLACK);
  if (status) linear_hessian_fini(hessian); /* do not keep an incomplete Hessian */
  uint32_t *feature_at = status ? NULL : features_at(&worker->share, order->features);
  if (!status && !feature_at) status = PAWL_NO_MEMORY;
  if (!status) status = open_vector(worker, order, LINEAR_HESSIAN, &vector);
  if (!status) status = push_entries(vector, hessian, feature_at, order->features + 1);
  pawl_vector_close(vector);
  apps_free(feature_at);
  return status;
}

/* --- orders --------------------------------------------------------------------------------------------- */

pawl_status linear_derive(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  int64_t begun = apps_now();
  double *slopes = apps_alloc((share->rows + 1) * sizeof *slopes);
  double *curvatures = apps_alloc((share->rows + 1) * sizeof *curvatures);
  pawl_status status = slopes && curvatures ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status && order->is_curved && !worker->rows.starts && !linear_rows_init(&worker->rows, share))
    status = PAWL_NO_MEMORY;
  if (!status) status = score_rows(worker);
  for (size_t i = 0; i < share->rows && !status; i++) judge(worker, order, i, &slopes[i], &curvatures[i], reply);
  if (!status) status = push_gradient(worker, order, slopes);
  if (!status && order->is_curved) status = push_hessian(worker, order, curvatures);
  reply->rows = share->rows;
  reply->looked_at = share->features;
  reply->worked_s = apps_seconds_since(begun);
  apps_free(slopes);
  apps_free(curvatures);
  return status;
}

/* Pulls the step for the features of the share, and for the bias. */
static pawl_status pull_step(struct linear_worker *worker, const struct linear_order *order, double *step,
                             double *bias) {
  const struct linear_share *share = &worker->share;
  struct pawl_vector *vector = NULL;
  struct pawl_task *task = NULL, *bias_task = NULL;
  pawl_status status = open_vector(worker, order, LINEAR_STEP, &vector);
  if (!status && share->features)
    status = pawl_vector_pull(vector, pawl_at_keys(share->keys, share->features), step, &task);
  if (!status) status = pawl_vector_pull(vector, pawl_at_range(order->features, order->features + 1), bias, &bias_task);
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER), bias_ended = pawl_task_finish(bias_task, PAWL_FOREVER);
  pawl_vector_close(vector);
  return status ? status : ended ? ended : bias_ended;
}

pawl_status linear_search(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  int64_t begun = apps_now();
  double by_bias = 0, *step = apps_alloc((share->features + 1) * sizeof *step);
  double *by = apps_alloc((share->rows + 1) * sizeof *by);
  pawl_status status = step && by ? score_rows(worker) : PAWL_NO_MEMORY;
  if (!status) status = pull_step(worker, order, step, &by_bias);
  if (!status) find_scores(worker, step, by_bias, by);
  for (size_t i = 0; i < share->rows && !status; i++) {
    double y = y_of(worker, order, i), c = c_of(worker, y, i), z = worker->derived->z[i], length = order->rate;
    for (size_t k = 0; k < LINEAR_TRIALS; k++, length /= 2)
      reply->trials[k] += c * linear_loss_value(worker->spec.loss, y, z + length * by[i]);
  }
  reply->rows = share->rows;
  reply->worked_s = apps_seconds_since(begun);
  apps_free(step);
  apps_free(by);
  return status;
}
