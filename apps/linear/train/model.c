/* Reads weights from the servers into a model, and writes them back: see inside.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "apps/linear/model/inside.h"
#include "apps/linear/train/inside.h"

enum { ROWS_AT_ONCE = 1 << 16, NAMED_WEIGHTS = 1 << 20 };

#define NAMED_BYTES (UINT64_C(1) << 30) /* larger data is not read again for names */

/* --- from the servers ----------------------------------------------------------------------------------- */

struct named_weight {
  uint64_t id;
  double weight;
};

static int by_id(const void *a, const void *b) {
  const struct named_weight *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

static pawl_status sort_weights(struct pawl_linear_model *model) {
  struct named_weight *all = apps_alloc((model->about.nonzeros + 1) * sizeof *all);
  if (!all) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < model->about.nonzeros; i++) all[i] = (struct named_weight){model->ids[i], model->weights[i]};
  qsort(all, model->about.nonzeros, sizeof *all, by_id);
  for (size_t i = 0; i < model->about.nonzeros; i++) {
    model->ids[i] = all[i].id;
    model->weights[i] = all[i].weight;
  }
  apps_free(all);
  return PAWL_OK;
}

/* The weights of workers that average. */
static pawl_status copy_weights(const struct linear_run *run, struct pawl_linear_model *model) {
  pawl_status status = run->mean ? PAWL_OK : PAWL_NOT_FOUND;
  size_t room = 0;
  for (size_t j = 0; !status && j + 1 < run->mean_size; j++)
    if (run->mean[j] != 0) status = linear_model_append(model, &room, j, run->mean[j]);
  if (!status && run->spec.bias) model->about.bias = run->mean[run->mean_size - 1];
  return status;
}

static pawl_status scan_weights(struct linear_run *run, struct pawl_linear_model *model) {
  struct pawl_vector_info info;
  struct linear_scatter scatter;
  bool streams = run->spec.method->streams;
  size_t room = 0, count = 0;
  pawl_vector_info(run->weights, &info);
  linear_scatter_init(&scatter, run->order.features);
  uint64_t *keys = apps_alloc(ROWS_AT_ONCE * sizeof *keys), next = 0;
  double *rows = apps_alloc(ROWS_AT_ONCE * info.pulled_width * sizeof *rows);
  double *scales = apps_alloc(ROWS_AT_ONCE * sizeof *scales);
  pawl_status status = keys && rows && scales ? PAWL_OK : PAWL_NO_MEMORY;
  while (!status && next < info.options.size) {
    struct pawl_range rest = {next, info.options.size};
    status = pawl_vector_scan(run->weights, rest, ROWS_AT_ONCE, keys, rows, PAWL_FOREVER, &count, &next);
    if (!status) status = linear_scale_pull(run, keys, count, scales);
    for (size_t i = 0; i < count && !status; i++) {
      double weight = rows[i * info.pulled_width] / scales[i];
      status = linear_model_append(model, &room, streams ? keys[i] : linear_id(&scatter, keys[i]), weight);
    }
  }
  apps_free(keys);
  apps_free(rows);
  apps_free(scales);
  return status ? status : sort_weights(model);
}

pawl_status linear_read_bias(struct linear_run *run, double *bias_out) {
  double row[2];
  struct pawl_task *task;
  pawl_status status = pawl_vector_pull(run->bias, pawl_at_range(0, 1), row, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  if (!status) *bias_out = row[0];
  return status;
}

/* The name of the label column is dropped if it is too long or not UTF-8. */
static void name_label(const struct pawl_data *data, struct pawl_linear_model *model) {
  size_t room = sizeof model->about.label_name;
  if (model->about.label_column &&
      pawl_data_column_name(data, model->about.label_column, model->about.label_name, room) >= room)
    model->about.label_name[0] = 0;
  json_t *text = json_string(model->about.label_name);
  if (!text) model->about.label_name[0] = 0;
  json_decref(text);
}

/* Reads the data once more for names, unless it is too large. The model is complete without names. */
void linear_name_features(struct linear_run *run, struct pawl_linear_model *model) {
  struct pawl_data_info info;
  struct pawl_names *names;
  pawl_data_info(run->data, &info);
  bool has_names = info.format == PAWL_DATA_VW || info.format == PAWL_DATA_CRITEO || info.format == PAWL_DATA_CSV;
  if (!has_names || info.bytes > NAMED_BYTES || model->about.nonzeros == 0 || model->about.nonzeros > NAMED_WEIGHTS)
    return;
  if (pawl_data_names(run->data, model->ids, model->about.nonzeros, run->options->threads, &names)) return;
  model->names = apps_alloc_zero(model->about.nonzeros, sizeof *model->names);
  for (size_t i = 0; model->names && i < model->about.nonzeros; i++)
    if (pawl_names_at(names, i)) model->names[i] = apps_copy_text(pawl_names_at(names, i));
  pawl_names_destroy(names);
}

pawl_status linear_read_model(struct linear_run *run, struct pawl_linear_model *model_out) {
  const struct pawl_linear_options *options = run->options;
  struct pawl_linear_model model = {
      .about.loss = run->spec.loss,
      .about.is_regression = linear_is_regression(run->spec.loss),
      .about.labels = {run->order.labels[0], run->order.labels[1]},
      .about.l1 = run->order.l1,
      .about.l2 = run->order.l2,
      .about.class_weights = {run->spec.class_weights[0], run->spec.class_weights[1]},
      .about.has_bias = run->spec.bias,
      .about.binary = options->reading.binary,
      .about.unit_rows = options->reading.unit_rows,
      .about.scale = run->spec.scale,
      .about.penalty = NAN,
      .about.objective = NAN,
  };
  struct pawl_data_info info;
  pawl_data_info(run->data, &info);
  bool hashes = info.format == PAWL_DATA_VW || info.format == PAWL_DATA_CRITEO || info.format == PAWL_DATA_CSV;
  if (hashes) model.about.hash_bits = options->reading.hash_bits;
  model.about.columns = info.columns;
  model.about.label_column = info.label_column;
  name_label(run->data, &model);
  pawl_status status = run->spec.reduces ? copy_weights(run, &model) : scan_weights(run, &model);
  if (!status && run->bias) status = linear_read_bias(run, &model.about.bias);
  model.about.zero_based =
      run->zero_based || (model.about.nonzeros && model.ids[0] == 0); /* a stream may meet id 0 late */
  if (run->spec.method->streams)
    model.about.features = model.about.nonzeros ? model.ids[model.about.nonzeros - 1] : 0;
  else
    model.about.features = run->order.features - 1;
  if (status)
    linear_model_fini(&model);
  else
    *model_out = model;
  return status;
}

/* --- to the servers ------------------------------------------------------------------------------------- */

/* A push to the vector would go through its rule. So the weights are pushed to a plain vector of the same
 * shape, which the servers copy. */
pawl_status linear_write_vector(struct linear_run *run, struct pawl_vector *vector, const uint64_t *keys,
                                const double *values, size_t count) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_info info;
  struct pawl_vector_options options;
  struct pawl_vector *plain;
  pawl_vector_info(vector, &info);
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.width = info.pulled_width;
  options.size = info.options.size;
  options.placement = info.options.placement;
  options.layout = info.options.layout;
  options.function = PAWL_ASSIGN;
  snprintf(name, sizeof name, "%s/start", run->spec.job);
  pawl_status status = pawl_vector_create(run->common.session, name, &options, LINEAR_TIMEOUT, &plain);
  if (status) return status;
  double *rows = apps_alloc_zero(count * info.pulled_width + 1, sizeof *rows);
  for (size_t i = 0; rows && i < count; i++) rows[i * info.pulled_width] = values[i];
  struct pawl_task *task = NULL;
  status = rows ? pawl_vector_push(plain, pawl_at_keys(keys, count), rows, &task) : PAWL_NO_MEMORY;
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  if (!status) status = pawl_vector_copy(vector, plain, PAWL_ALL, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  apps_free(rows);
  pawl_vector_close(plain);
  pawl_vector_delete(run->common.session, name, LINEAR_TIMEOUT);
  return status;
}

pawl_status linear_write_start(struct linear_run *run, const struct pawl_linear_model *model) {
  bool streams = run->spec.method->streams;
  if (!streams && model->about.nonzeros && model->ids[model->about.nonzeros - 1] >= run->order.features)
    return apps_fail(
        &run->common, PAWL_MISMATCH,
        "the model to start from has features up to %llu, but the data up to %llu; was it trained on other data?",
        (unsigned long long)model->ids[model->about.nonzeros - 1], (unsigned long long)run->order.features - 1);
  /* Labels of a run ascend; those of a model that LIBLINEAR wrote may descend. */
  double sign = !model->about.is_regression && model->about.labels[0] > model->about.labels[1] ? -1 : 1,
         bias = sign * model->about.bias;
  struct linear_scatter scatter;
  linear_scatter_init(&scatter, run->order.features);
  struct pawl_linear_model moved = {.about.nonzeros = model->about.nonzeros,
                                    .ids = apps_alloc((model->about.nonzeros + 1) * sizeof *moved.ids),
                                    .weights = apps_alloc((model->about.nonzeros + 1) * sizeof *moved.weights)};
  pawl_status status = moved.ids && moved.weights ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < model->about.nonzeros && !status; i++) {
    moved.ids[i] = streams ? model->ids[i] : linear_key(&scatter, model->ids[i]);
    moved.weights[i] = sign * model->weights[i];
  }
  double *scales = apps_alloc((model->about.nonzeros + 1) * sizeof *scales);
  if (!scales) status = PAWL_NO_MEMORY;
  if (!status) status = sort_weights(&moved);
  if (!status) status = linear_scale_pull(run, moved.ids, moved.about.nonzeros, scales);
  for (size_t i = 0; i < moved.about.nonzeros && !status; i++) moved.weights[i] *= scales[i];
  if (!status) status = linear_write_vector(run, run->weights, moved.ids, moved.weights, moved.about.nonzeros);
  const uint64_t zero = 0;
  if (!status && run->bias && model->about.has_bias) status = linear_write_vector(run, run->bias, &zero, &bias, 1);
  apps_free(scales);
  linear_model_fini(&moved);
  return status;
}
