/* Defaults and checks of the options of linear methods: see <pawl/linear_model.h>. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/common/sized.h"
#include "apps/linear/inside.h"

static void set_defaults(struct pawl_linear_options *options) {
  memset(options, 0, sizeof *options);
  options->loss = PAWL_LINEAR_LOGISTIC;
  pawl_data_options_init(&options->reading);
  options->bias = true;
  options->workers = 1;
  options->seed = 1;
}

void pawl_linear_options_init_sized(struct pawl_linear_options *options, size_t struct_size) {
  struct pawl_linear_options defaults;
  set_defaults(&defaults);
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

bool linear_options_take(const struct pawl_linear_options *options, struct pawl_linear_options *is_out) {
  set_defaults(is_out);
  return apps_sized_read(options, is_out, sizeof *is_out);
}

static bool wrong(char error[PAWL_LINEAR_TEXT], const char *text) {
  snprintf(error, PAWL_LINEAR_TEXT, "%s", text);
  return false;
}

static bool check_points(const struct pawl_linear_options *options, const struct linear_method_descriptor *method,
                         char error[PAWL_LINEAR_TEXT]) {
  if (options->point_count == 0) return wrong(error, "no penalty given; use --l1 or --l2");
  for (size_t i = 0; i < options->point_count; i++) {
    struct pawl_linear_point point = options->points[i];
    if (!isfinite(point.l1) || !isfinite(point.l2) || point.l1 < 0 || point.l2 < 0)
      return wrong(error, "--l1 and --l2 must not be negative");
    const char *why = method->wrong_point ? method->wrong_point(&point) : NULL;
    if (why) return wrong(error, why);
  }
  return true;
}

static bool check_share(const struct pawl_linear_options *options, const struct linear_method_descriptor *method,
                        char error[PAWL_LINEAR_TEXT]) {
  if (options->share == PAWL_LINEAR_SERVERS) {
    if (options->graph || options->mode != 0 || options->falls)
      return wrong(error, "servers use no graph, and their learning rate does not fall; --graph, --mode and --schedule "
                          "need --share reduce");
    return true;
  }
  if (options->share != PAWL_LINEAR_REDUCE) return wrong(error, "unknown way to share; expected servers or reduce");
  if (method != &linear_averaged) return wrong(error, "--share reduce needs --method sgd");
  if (options->mode < 0 || options->mode > PAWL_REDUCE_ASYNC)
    return wrong(error, "unknown mode of reduce; expected notify-ack, bsp or async");
  if (options->checkpoints && strlen(options->checkpoints) >= APPS_FOLDER_MAX)
    return wrong(error, "the name of the folder in --checkpoint is too long");
  if (options->patience)
    return wrong(error, "workers that share by reduce cannot go back to an earlier model; omit --early-stop");
  if (options->graph && strlen(options->graph) > PAWL_REDUCE_GRAPH_MAX)
    return wrong(error, "the name in --graph is too long");
  return true;
}

static bool check_method(const struct pawl_linear_options *options, const struct linear_method_descriptor *method,
                         char error[PAWL_LINEAR_TEXT]) {
  if (!(method->losses & LINEAR_LOSS_BIT(options->loss))) return wrong(error, method->other_loss);
  if (method->no_start && options->start) return wrong(error, method->no_start);
  if (options->scale != PAWL_LINEAR_SCALE_NONE && method->streams)
    return wrong(error, "--scale reads all data first, which sgd, adagrad and ftrl stream only once; use another "
                        "method, or scale the files");
  if (!check_share(options, method, error)) return false;
  if (options->blocks > 1 << 20) return wrong(error, "--blocks must be at most 1048576");
  if (options->tau > 1000) return wrong(error, "--tau must be at most 1000");
  return true;
}

/* Paths are sent to workers as JSON, which is UTF-8. */
static bool check_names(const struct pawl_linear_options *options, char error[PAWL_LINEAR_TEXT]) {
  for (size_t i = 0; i < options->path_count; i++) {
    json_t *name = json_string(options->paths[i]);
    json_decref(name);
    if (name) continue;
    snprintf(error, PAWL_LINEAR_TEXT, "the name of the file %s is not UTF-8; rename it", options->paths[i]);
    return false;
  }
  json_t *folder = options->share == PAWL_LINEAR_REDUCE ? json_string(options->checkpoints) : NULL;
  json_decref(folder);
  if (options->share == PAWL_LINEAR_REDUCE && options->checkpoints && !folder)
    return wrong(error, "the name of the folder in --checkpoint is not UTF-8; rename it");
  const char *label = options->reading.label;
  if (label && strlen(label) >= sizeof((struct linear_spec *)0)->label)
    return wrong(error, "the name in --label has more than 127 bytes; give the number of the column instead");
  return true;
}

static bool check(const struct pawl_linear_options *options, char error[PAWL_LINEAR_TEXT]) {
  const struct linear_method_descriptor *method = linear_method_chosen(options);
  if (!method) return wrong(error, "unknown method");
  if (!linear_loss_of(options->loss)) return wrong(error, "unknown loss");
  if (options->path_count == 0) return wrong(error, "no data given");
  if (!check_names(options, error)) return false;
  if (!check_points(options, method, error) || !check_method(options, method, error)) return false;
  for (size_t i = 0; i < 2; i++)
    if (!isfinite(options->class_weights[i]) || options->class_weights[i] < 0)
      return wrong(error, "class weights must be above 0");
  if (!isfinite(options->tolerance) || options->tolerance < 0) return wrong(error, "--tolerance must be above 0");
  if (!isfinite(options->rate) || options->rate < 0) return wrong(error, "--rate must be above 0");
  if (options->valid_split != 0 && options->valid_count)
    return wrong(error, "--valid and --valid-split exclude each other; give one of the two");
  if (!(options->valid_split >= 0 && options->valid_split < 1))
    return wrong(error, "--valid-split must be above 0 and below 1");
  if (options->patience && options->valid_count == 0 && options->valid_split == 0)
    return wrong(error, "early stopping needs validation data; give --valid or --valid-split");
  if (options->resume && !options->checkpoints) return wrong(error, "--resume needs the directory of checkpoints");
  if (options->workers_most && options->workers_most < options->workers)
    return wrong(error, "in --workers MIN:MAX, MAX is below MIN");
  if (options->job && strlen(options->job) > 48)
    return wrong(error, "the name in --job must have at most 48 characters");
  return true;
}

bool pawl_linear_check(const struct pawl_linear_options *options, char error[PAWL_LINEAR_TEXT]) {
  char room[PAWL_LINEAR_TEXT];
  struct pawl_linear_options is;
  char *text = error ? error : room;
  if (!linear_options_take(options, &is))
    return wrong(text, "the options were not initialised with pawl_linear_options_init");
  return check(&is, text);
}
