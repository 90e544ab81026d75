/* Specs as JSON: see inside.h. The reader checks everything, as it comes from another process. */
#include <jansson.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/linear/inside.h"

void linear_spec_fini(struct linear_spec *spec) {
  apps_json_texts_free(spec->paths, spec->path_count);
  memset(spec, 0, sizeof *spec);
}

char *linear_spec_write(const struct linear_spec *spec) {
  /* NULL if it is out of memory; pawl_linear_check has refused paths that are not UTF-8 */
  json_t *paths = apps_json_texts(spec->paths, spec->path_count);
  json_t *reading = apps_json_reading(&spec->reading, spec->label);
  return apps_json_print(json_pack(
      "{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:b, s:[f, f], s:s, s:I, s:I, s:I, s:f, s:b, s:s, s:i, s:b, s:s}",
      "app", "linear", "job", spec->job, "loss", (int)spec->loss, "method", (int)spec->method->number, "paths", paths,
      "reading", reading, "fingerprint", apps_json_wide(spec->fingerprint), "pieces", apps_json_wide(spec->pieces),
      "bias", spec->bias, "digests", spec->digests, "class_weights", spec->class_weights[0], spec->class_weights[1],
      "scale", pawl_linear_scale_name(spec->scale), "tau", (json_int_t)spec->tau, "threads", (json_int_t)spec->threads,
      "minibatch", (json_int_t)spec->minibatch, "rate", spec->rate, "reduces", spec->reduces, "graph", spec->graph,
      "mode", (int)spec->mode, "falls", spec->falls, "folder", spec->folder));
}

static bool read_spec(json_t *object, struct linear_spec *spec) {
  const char *job, *app, *scale, *graph, *folder;
  int loss, method, bias, digests, reduces, mode, falls;
  json_int_t tau, threads, minibatch;
  json_t *paths, *reading, *fingerprint, *pieces;
  double *class_weights = spec->class_weights;
  if (json_unpack(object,
                  "{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:b, s:[F, F], s:s, s:I, s:I, s:I, s:F, s:b, s:s, "
                  "s:i, s:b, s:s}",
                  "app", &app, "job", &job, "loss", &loss, "method", &method, "paths", &paths, "reading", &reading,
                  "fingerprint", &fingerprint, "pieces", &pieces, "bias", &bias, "digests", &digests, "class_weights",
                  &class_weights[0], &class_weights[1], "scale", &scale, "tau", &tau, "threads", &threads, "minibatch",
                  &minibatch, "rate", &spec->rate, "reduces", &reduces, "graph", &graph, "mode", &mode, "falls", &falls,
                  "folder", &folder))
    return false;
  if (strcmp(app, "linear") || strlen(job) >= sizeof spec->job || tau < 0 || tau > UINT16_MAX || threads < 0 ||
      threads > 4096 || minibatch < 1 || minibatch > UINT32_MAX || !linear_loss_of((enum pawl_linear_loss)loss) ||
      !apps_json_wide_of(fingerprint, &spec->fingerprint) || !apps_json_wide_of(pieces, &spec->pieces) ||
      strlen(graph) >= sizeof spec->graph || strlen(folder) >= sizeof spec->folder || mode < 0 ||
      mode > PAWL_REDUCE_ASYNC || spec->pieces > UINT32_MAX || !linear_scale_find(scale, &spec->scale))
    return false;
  memcpy(spec->job, job, strlen(job) + 1);
  spec->loss = (enum pawl_linear_loss)loss;
  spec->method = reduces && method == PAWL_LINEAR_METHOD_SGD ? &linear_averaged
                                                             : linear_method_of((enum pawl_linear_method)method);
  memcpy(spec->graph, graph, strlen(graph) + 1);
  memcpy(spec->folder, folder, strlen(folder) + 1);
  spec->reduces = reduces;
  spec->mode = (enum pawl_reduce_mode)mode;
  spec->falls = falls;
  spec->bias = bias;
  spec->digests = digests;
  spec->tau = (uint32_t)tau;
  spec->threads = (uint32_t)threads;
  spec->minibatch = (uint32_t)minibatch;
  return spec->method && apps_json_reading_of(reading, &spec->reading, spec->label, sizeof spec->label) &&
         apps_json_texts_of(paths, &spec->paths, &spec->path_count);
}

bool linear_spec_read(const void *bytes, size_t size, struct linear_spec *spec_out) {
  json_t *object = apps_json_parse(bytes, size);
  struct linear_spec spec = {0};
  bool is_whole = read_spec(object, &spec);
  json_decref(object);
  if (!is_whole) {
    linear_spec_fini(&spec);
    return false;
  }
  *spec_out = spec;
  if (spec_out->label[0]) spec_out->reading.label = spec_out->label;
  return true;
}
