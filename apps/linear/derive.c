/* Derivatives at the weights that the servers hold, written plainly and in double precision: what Newton steps are made of
 * (train_newton.c), and what says how far the weights are from the optimum (certificate.h).
 *
 *   g_j = sum_i c_i x_ij loss'(z_i)          h_jk = sum_i c_i x_ij x_ik loss''(z_i)
 *
 * g is pushed apart for each class. Nothing is kept from one round to the next: whoever has just come, or has taken over rows, does as well as
 * anybody. Of the Hessian the upper triangle is pushed, row after row, the bias last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/certificate.h"
#include "apps/linear/losses.h"

/* --- scores ----------------------------------------------------------------------------------------------------------------------- */

/* out += X w + bias. */
static void add_scores(const struct linear_share *share, const double *w, double bias, double *out) {
  for (size_t j = 0; j < share->features; j++)
    for (uint64_t k = share->starts[j]; w[j] != 0 && k < share->starts[j + 1]; k++)
      out[share->row_of[k]] += w[j] * (double)share->values[k];
  for (size_t i = 0; bias != 0 && i < share->rows; i++) out[i] += bias;
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

/* --- the gradient ------------------------------------------------------------------------------------------------------------------ */

/* The sums of a row: see certificate.h. Its slope stays in place of its score, and its curvature beside it. */
static void judge(const struct linear_worker *worker, const struct linear_order *order, size_t row, double *score,
                  double *curvature, struct linear_reply *reply) {
  enum linear_loss loss = worker->spec.loss;
  double y = y_of(worker, order, row), c = c_of(worker, y, row), z = *score;
  double slope = c * linear_loss_slope(loss, y, z);
  reply->loss += c * linear_loss_value(loss, y, z);
  reply->loss_of_nothing += c * linear_loss_value(loss, y, 0);
  *curvature = c * linear_loss_curvature(loss, y, z);
  *score = slope;
  if (loss == LINEAR_SQUARED) {
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

/* Pairs, of both classes; for regression the second is the sum of c x. */
static void sum_columns(const struct linear_worker *worker, const struct linear_order *order, const double *slopes,
                        double *pairs) {
  const struct linear_share *share = &worker->share;
  bool is_regression = worker->spec.loss == LINEAR_SQUARED;
  for (size_t j = 0; j < share->features; j++)
    for (uint64_t k = share->starts[j]; k < share->starts[j + 1]; k++) {
      size_t row = share->row_of[k];
      double x = (double)share->values[k];
      if (is_regression) {
        pairs[2 * j] += x * slopes[row];
        pairs[2 * j + 1] += x * (double)share->weights[row];
      } else {
        pairs[2 * j + (y_of(worker, order, row) > 0)] += x * slopes[row];
      }
    }
}

static pawl_status push_gradient(struct linear_worker *worker, const struct linear_order *order, const double *slopes) {
  const struct linear_share *share = &worker->share;
  struct pawl_vector *vector = NULL;
  struct pawl_task *task = NULL;
  if (share->features == 0) return PAWL_OK;
  double *pairs = calloc(2 * share->features, sizeof *pairs);
  pawl_status status = pairs ? open_vector(worker, order, LINEAR_GRADIENT, &vector) : PAWL_NO_MEMORY;
  if (!status) {
    sum_columns(worker, order, slopes, pairs);
    status = pawl_vector_push(vector, pawl_at_keys(share->keys, share->features), pairs, &task);
  }
  pawl_status ended = pawl_task_finish(task, PAWL_FOREVER);
  pawl_vector_close(vector);
  free(pairs);
  return status ? status : ended;
}

/* --- the Hessian -------------------------------------------------------------------------------------------------------------------- */

enum { PANEL_ENTRIES = 1 << 16, PUSHED_AT_ONCE = 1 << 20 };

/* Some rows, so few that the processor's cache holds them, and their entries by feature. */
struct panel {
  const struct linear_rows *rows;
  const uint32_t *keys; /* of features */
  uint64_t size;        /* of a row of the Hessian: features, and the bias */
  double *hessian;
  const double *curvatures; /* of rows */
  uint32_t *begins;         /* features + 1: entries of the panel that each has, */
  struct place {
    uint32_t row, at; /* the row, and the entry's number, counted from the first of the panel */
  } * places;
};

/* Where the row of a key begins, less the key: what lies before the diagonal is left out. */
static double *row_of(const struct panel *panel, uint64_t key) {
  return panel->hessian + key * panel->size - key * (key + 1) / 2;
}

/* Rows without curvature, beyond the hinge, are left out. */
static void sort_panel(struct panel *panel, size_t features, size_t first, size_t last) {
  const struct linear_rows *rows = panel->rows;
  uint64_t base = rows->starts[first];
  memset(panel->begins, 0, (features + 2) * sizeof *panel->begins);
  for (size_t i = first; i < last; i++)
    for (uint64_t k = rows->starts[i]; panel->curvatures[i] != 0 && k < rows->starts[i + 1]; k++)
      panel->begins[rows->feature_of[k] + 2]++;
  for (size_t j = 0; j <= features; j++) panel->begins[j + 1] += panel->begins[j];
  for (size_t i = first; i < last; i++)
    for (uint64_t k = rows->starts[i]; panel->curvatures[i] != 0 && k < rows->starts[i + 1]; k++)
      panel->places[panel->begins[rows->feature_of[k] + 1]++] = (struct place){(uint32_t)i, (uint32_t)(k - base)};
}

static void add_panel(const struct panel *panel, size_t features, size_t first) {
  const struct linear_rows *rows = panel->rows;
  uint64_t base = rows->starts[first];
  for (size_t j = 0; j < features; j++) {
    double *row = row_of(panel, panel->keys[j]);
    for (uint32_t p = panel->begins[j]; p < panel->begins[j + 1]; p++) {
      struct place place = panel->places[p];
      uint64_t k = base + place.at, end = rows->starts[place.row + 1];
      double by = panel->curvatures[place.row] * (double)rows->values[k];
      for (; k < end; k++) row[panel->keys[rows->feature_of[k]]] += by * (double)rows->values[k];
      row[panel->size - 1] += by; /* the bias is 1 in every row */
    }
  }
}

static pawl_status add_rows(struct linear_worker *worker, const double *curvatures, uint64_t size, double *hessian) {
  const struct linear_share *share = &worker->share;
  size_t features = share->features;
  struct panel panel = {.rows = &worker->rows, .size = size, .hessian = hessian, .curvatures = curvatures};
  uint64_t longest = 0;
  for (size_t i = 0; i < share->rows; i++) {
    uint64_t entries = worker->rows.starts[i + 1] - worker->rows.starts[i];
    longest = entries > longest ? entries : longest;
    hessian[size * (size + 1) / 2 - 1] += curvatures[i];
  }
  uint32_t *keys = malloc((features + 1) * sizeof *keys);
  panel.begins = malloc((features + 3) * sizeof *panel.begins);
  panel.places = malloc((size_t)(longest + PANEL_ENTRIES + 1) * sizeof *panel.places);
  pawl_status status = keys && panel.begins && panel.places ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t j = 0; j < features && keys; j++) keys[j] = (uint32_t)share->keys[j];
  panel.keys = keys;
  for (size_t first = 0, last = 0; first < share->rows && !status; first = last) {
    while (last < share->rows &&
           (last == first || worker->rows.starts[last] - worker->rows.starts[first] < PANEL_ENTRIES))
      last++;
    sort_panel(&panel, features, first, last);
    add_panel(&panel, features, first);
  }
  free(keys);
  free(panel.begins);
  free(panel.places);
  return status;
}

static pawl_status push_hessian(struct linear_worker *worker, const struct linear_order *order,
                                const double *curvatures) {
  uint64_t size = order->features + 1, count = size * (size + 1) / 2;
  struct pawl_vector *vector = NULL;
  if (!worker->rows.starts && !linear_rows_init(&worker->rows, &worker->share)) return PAWL_NO_MEMORY;
  double *hessian = calloc((size_t)count, sizeof *hessian);
  pawl_status status = hessian ? open_vector(worker, order, LINEAR_HESSIAN, &vector) : PAWL_NO_MEMORY;
  if (!status) status = add_rows(worker, curvatures, size, hessian);
  for (uint64_t at = 0; at < count && !status; at += PUSHED_AT_ONCE) {
    uint64_t end = at + PUSHED_AT_ONCE < count ? at + PUSHED_AT_ONCE : count;
    struct pawl_task *task = NULL;
    status = pawl_vector_push(vector, pawl_at_range(at, end), hessian + at, &task);
    if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  }
  pawl_vector_close(vector);
  free(hessian);
  return status;
}

/* --- orders -------------------------------------------------------------------------------------------------------------------------- */

pawl_status linear_derive(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  int64_t begun = linear_now();
  double bias = 0, *w = calloc(share->features + 1, sizeof *w), *z = calloc(share->rows + 1, sizeof *z);
  double *curvatures = calloc(share->rows + 1, sizeof *curvatures);
  pawl_status status =
      w && z && curvatures ? linear_pull_weights(worker, share->keys, share->features, w, &bias) : PAWL_NO_MEMORY;
  if (!status) add_scores(share, w, bias, z);
  for (size_t i = 0; i < share->rows && !status; i++) judge(worker, order, i, &z[i], &curvatures[i], reply);
  if (!status) status = push_gradient(worker, order, z);
  if (!status && order->is_curved) status = push_hessian(worker, order, curvatures);
  reply->rows = share->rows;
  reply->looked_at = share->features;
  reply->worked_s = (double)(linear_now() - begun) * 1e-9;
  free(w);
  free(z);
  free(curvatures);
  return status;
}

/* The step of our features, and of the bias. */
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
  int64_t begun = linear_now();
  double bias = 0, by_bias = 0, *w = calloc(share->features + 1, sizeof *w), *z = calloc(share->rows + 1, sizeof *z);
  double *by = calloc(share->rows + 1, sizeof *by);
  pawl_status status =
      w && z && by ? linear_pull_weights(worker, share->keys, share->features, w, &bias) : PAWL_NO_MEMORY;
  if (!status) add_scores(share, w, bias, z);
  if (!status) status = pull_step(worker, order, w, &by_bias);
  if (!status) add_scores(share, w, by_bias, by);
  for (size_t i = 0; i < share->rows && !status; i++) {
    double y = y_of(worker, order, i), c = c_of(worker, y, i), length = order->rate;
    for (size_t k = 0; k < LINEAR_TRIALS; k++, length /= 2)
      reply->trials[k] += c * linear_loss_value(worker->spec.loss, y, z[i] + length * by[i]);
  }
  reply->rows = share->rows;
  reply->worked_s = (double)(linear_now() - begun) * 1e-9;
  free(w);
  free(z);
  free(by);
  return status;
}

/* --- a method that the scheduler steps for -------------------------------------------------------------------------------------------- */

static pawl_status begin(struct linear_worker *worker, const struct linear_order *order) {
  (void)worker, (void)order;
  return PAWL_OK;
}

static void end(struct linear_worker *worker) { (void)worker; }

const struct linear_method_calls linear_newton = {.begin = begin, .sweep = linear_derive, .end = end};
