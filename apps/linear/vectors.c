/* Names and options of the vectors of linear jobs; pulling weights, and pushing rows: see inside.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/inside.h"

void linear_vector_name(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                        char name[PAWL_NAME_MAX + 1]) {
  static const char letters[] = {
      [LINEAR_WEIGHTS] = 'w', [LINEAR_BIAS] = 'b',  [LINEAR_ALPHA] = 'a', [LINEAR_GRADIENT] = 'g',
      [LINEAR_HESSIAN] = 'h', [LINEAR_STEP] = 's',  [LINEAR_MOST] = 'm',  [LINEAR_SUMS] = 'q',
      [LINEAR_SCALES] = 'x',  [LINEAR_SLOPES] = 'd'};
  if (which == LINEAR_WEIGHTS || which == LINEAR_BIAS)
    snprintf(name, PAWL_NAME_MAX + 1, "%s/%c%zu.%u", spec->job, letters[which], order->point, order->generation);
  else if (which == LINEAR_SCALES)
    snprintf(name, PAWL_NAME_MAX + 1, "%s/%c", spec->job, letters[which]);
  else if (which == LINEAR_GRADIENT || which == LINEAR_HESSIAN || which == LINEAR_MOST || which == LINEAR_SUMS ||
           which == LINEAR_SLOPES)
    snprintf(name, PAWL_NAME_MAX + 1, "%s/%c%zu.%" PRIu64, spec->job, letters[which], order->point, order->serial);
  else /* the same in all generations */
    snprintf(name, PAWL_NAME_MAX + 1, "%s/%c%zu", spec->job, letters[which], order->point);
}

/* Options of vectors that are the same for all methods. */
static void plain_options(const struct linear_order *order, enum linear_vector which,
                          struct pawl_vector_options *options) {
  uint64_t all = order->features + 1;
  if (which == LINEAR_STEP || which == LINEAR_SCALES) options->function = PAWL_ASSIGN;
  if (which == LINEAR_MOST) snprintf(options->rule, sizeof options->rule, "max");
  if (which == LINEAR_GRADIENT || which == LINEAR_SUMS) options->width = 2;
  options->size = which == LINEAR_HESSIAN ? all * (all + 1) / 2 : which == LINEAR_STEP ? all : order->features;
}

bool linear_vector_options(const struct linear_spec *spec, const struct linear_order *order, enum linear_vector which,
                           struct pawl_vector_options *options_out) {
  struct pawl_vector_options options;
  double l1 = which == LINEAR_WEIGHTS ? order->l1 : 0, l2 = which == LINEAR_WEIGHTS ? order->l2 : 0;
  if (which == LINEAR_SCALES && spec->scale == PAWL_LINEAR_SCALE_NONE) return false;
  if (which == LINEAR_BIAS && !spec->bias) return false;
  if (which == LINEAR_ALPHA && !spec->method->multipliers) return false;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  if (which >= LINEAR_GRADIENT) {
    plain_options(order, which, &options);
    *options_out = options;
    return true;
  }
  if (which == LINEAR_BIAS)
    options.size = 1;
  else if (which == LINEAR_WEIGHTS && !spec->method->streams)
    options.size = order->features;
  if (which == LINEAR_ALPHA)
    spec->method->multipliers(spec, &options);
  else if (spec->method->rule)
    spec->method->rule(spec, order, l1, l2, &options);
  *options_out = options;
  return true;
}

static pawl_status pull_first(struct pawl_vector *vector, struct pawl_where where, size_t count, double *first) {
  struct pawl_vector_info info;
  struct pawl_task *task;
  pawl_vector_info(vector, &info);
  double *rows = info.pulled_width == 1 ? first : apps_alloc((count * info.pulled_width + 1) * sizeof *rows);
  if (!rows) return PAWL_NO_MEMORY;
  pawl_status status = pawl_vector_pull(vector, where, rows, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  for (size_t i = 0; i < count && !status && rows != first; i++) first[i] = rows[i * info.pulled_width];
  if (rows != first) apps_free(rows);
  return status;
}

pawl_status linear_pull_weights(struct linear_worker *worker, const uint64_t *keys, size_t count, double *weights,
                                double *bias) {
  if (worker->dense) {
    for (size_t i = 0; i < count; i++) weights[i] = keys[i] + 1 < worker->dense_size ? worker->dense[keys[i]] : 0;
    *bias = worker->dense[worker->dense_size - 1];
    return PAWL_OK;
  }
  pawl_status status = count ? pull_first(worker->weights, pawl_at_keys(keys, count), count, weights) : PAWL_OK;
  *bias = 0;
  if (!status && worker->bias) status = pull_first(worker->bias, pawl_at_range(0, 1), 1, bias);
  return status;
}

pawl_status linear_push(struct linear_worker *worker, const struct linear_order *order, enum linear_vector which,
                        const double *rows) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector *vector;
  struct pawl_task *task = NULL;
  if (worker->share.features == 0) return PAWL_OK;
  linear_vector_name(&worker->spec, order, which, name);
  pawl_status status = pawl_vector_open(worker->session, name, LINEAR_TIMEOUT, &vector);
  if (status) return status;
  status = pawl_vector_push(vector, pawl_at_keys(worker->share.keys, worker->share.features), rows, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  pawl_vector_close(vector);
  return status;
}
