/* Specs, orders and replies as JSON: see inside.h. What is read comes from another process, and is looked at. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/linear/inside.h"

int64_t linear_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * PAWL_SECOND + now.tv_nsec;
}

static char *print(json_t *object) {
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(object);
  return text;
}

static json_t *parse(const void *bytes, size_t size) { return json_loadb(bytes, size, JSON_ALLOW_NUL, NULL); }

/* JSON has no infinities: what is not finite travels as null. */
static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static double number_of(const json_t *value) { return json_is_number(value) ? json_number_value(value) : NAN; }

/* 64 bits do not fit JSON's signed numbers. */
static json_t *wide(uint64_t value) { return json_sprintf("%" PRIx64, value); }

static bool wide_of(const json_t *value, uint64_t *number_out) {
  const char *text = json_string_value(value);
  size_t length = json_string_length(value);
  if (!text || length < 1 || length > 16 || strspn(text, "0123456789abcdef") != length) return false;
  *number_out = strtoull(text, NULL, 16);
  return true;
}

/* --- spec --------------------------------------------------------------------------------------------------------------------- */

void linear_spec_fini(struct linear_spec *spec) {
  for (size_t i = 0; i < spec->path_count; i++) free(spec->paths[i]);
  free(spec->paths);
  memset(spec, 0, sizeof *spec);
}

char *linear_spec_write(const struct linear_spec *spec) {
  json_t *paths = json_array();
  for (size_t i = 0; i < spec->path_count; i++)
    if (json_array_append_new(paths, json_string(spec->paths[i]))) { /* no memory, or no UTF-8: linear_check looks */
      json_decref(paths);
      return NULL;
    }
  const struct pawl_data_options *is = &spec->reading;
  json_t *reading = json_pack("{s:i, s:i, s:s, s:b, s:b, s:o, s:o}", "format", (int)is->format, "hash_bits",
                              (int)is->hash_bits, "label", spec->label, "binary", is->binary, "unit_rows",
                              is->unit_rows, "piece_bytes", wide(is->piece_bytes), "skip_bad", wide(is->skip_bad));
  return print(json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:[f, f], s:I, s:I, s:I, s:f}", "app", "linear",
                         "job", spec->job, "loss", (int)spec->loss, "method", (int)spec->method, "paths", paths,
                         "reading", reading, "fingerprint", wide(spec->fingerprint), "pieces", wide(spec->pieces),
                         "bias", spec->bias, "class_weights", spec->class_weights[0], spec->class_weights[1], "tau",
                         (json_int_t)spec->tau, "threads", (json_int_t)spec->threads, "minibatch",
                         (json_int_t)spec->minibatch, "rate", spec->rate));
}

static bool read_paths(const json_t *paths, struct linear_spec *spec) {
  size_t count = json_array_size(paths);
  spec->paths = calloc(count + 1, sizeof *spec->paths);
  for (size_t i = 0; spec->paths && i < count; i++) {
    const char *path = json_string_value(json_array_get(paths, i));
    spec->paths[i] = path ? strdup(path) : NULL;
    if (!spec->paths[i]) return false;
    spec->path_count = i + 1;
  }
  return spec->paths && count > 0;
}

static bool read_reading(json_t *object, struct linear_spec *spec) {
  int format, hash_bits, binary, unit_rows;
  const char *label;
  json_t *piece_bytes, *skip_bad;
  struct pawl_data_options *is = &spec->reading;
  if (json_unpack(object, "{s:i, s:i, s:s, s:b, s:b, s:o, s:o}", "format", &format, "hash_bits", &hash_bits, "label",
                  &label, "binary", &binary, "unit_rows", &unit_rows, "piece_bytes", &piece_bytes, "skip_bad",
                  &skip_bad))
    return false;
  if (format < 0 || hash_bits < 0 || strlen(label) >= sizeof spec->label) return false;
  pawl_data_options_init(is);
  is->format = (enum pawl_data_format)format;
  is->hash_bits = (uint32_t)hash_bits;
  is->binary = binary;
  is->unit_rows = unit_rows;
  memcpy(spec->label, label, strlen(label) + 1);
  return wide_of(piece_bytes, &is->piece_bytes) && wide_of(skip_bad, &is->skip_bad);
}

static bool read_spec(json_t *object, struct linear_spec *spec) {
  const char *job, *app;
  int loss, method, bias;
  json_int_t tau, threads, minibatch;
  json_t *paths, *reading, *fingerprint, *pieces;
  double *class_weights = spec->class_weights;
  if (json_unpack(object, "{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:[F, F], s:I, s:I, s:I, s:F}", "app", &app,
                  "job", &job, "loss", &loss, "method", &method, "paths", &paths, "reading", &reading, "fingerprint",
                  &fingerprint, "pieces", &pieces, "bias", &bias, "class_weights", &class_weights[0], &class_weights[1],
                  "tau", &tau, "threads", &threads, "minibatch", &minibatch, "rate", &spec->rate))
    return false;
  if (strcmp(app, "linear") || strlen(job) >= sizeof spec->job || tau < 0 || tau > UINT16_MAX || threads < 0 ||
      threads > 4096 || minibatch < 1 || minibatch > UINT32_MAX || loss < LINEAR_LOGISTIC || loss > LINEAR_SQUARED ||
      !wide_of(fingerprint, &spec->fingerprint) || !wide_of(pieces, &spec->pieces) || spec->pieces > UINT32_MAX)
    return false;
  memcpy(spec->job, job, strlen(job) + 1);
  spec->loss = (enum linear_loss)loss;
  spec->method = (enum linear_method)method;
  spec->bias = bias;
  spec->tau = (uint32_t)tau;
  spec->threads = (uint32_t)threads;
  spec->minibatch = (uint32_t)minibatch;
  return linear_calls_of(spec->method) && read_reading(reading, spec) && read_paths(paths, spec);
}

bool linear_spec_read(const void *bytes, size_t size, struct linear_spec *spec_out) {
  json_t *object = parse(bytes, size);
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

/* --- order --------------------------------------------------------------------------------------------------------------------- */

char *linear_order_write(const struct linear_order *order) {
  return print(json_pack("{s:i, s:o, s:I, s:I, s:f, s:f, s:o, s:o, s:[f, f], s:I, s:o, s:b, s:f, s:f, s:f}", "do",
                         (int)order->what, "round", wide(order->round), "point", (json_int_t)order->point, "generation",
                         (json_int_t)order->generation, "l1", order->l1, "l2", order->l2, "features",
                         wide(order->features), "rows", wide(order->rows), "labels", order->labels[0], order->labels[1],
                         "blocks", (json_int_t)order->blocks, "seed", wide(order->seed), "full", order->is_full,
                         "slack", order->slack, "damping", order->damping, "rate", order->rate));
}

bool linear_order_read(const void *bytes, size_t size, struct linear_order *order_out) {
  json_t *object = parse(bytes, size), *round, *features, *rows, *seed;
  struct linear_order order = {0};
  int what, full;
  json_int_t point, generation, blocks;
  bool is_whole =
      !json_unpack(object, "{s:i, s:o, s:I, s:I, s:F, s:F, s:o, s:o, s:[F, F], s:I, s:o, s:b, s:F, s:F, s:F}", "do",
                   &what, "round", &round, "point", &point, "generation", &generation, "l1", &order.l1, "l2", &order.l2,
                   "features", &features, "rows", &rows, "labels", &order.labels[0], &order.labels[1], "blocks",
                   &blocks, "seed", &seed, "full", &full, "slack", &order.slack, "damping", &order.damping, "rate",
                   &order.rate) &&
      wide_of(round, &order.round) && wide_of(features, &order.features) && wide_of(rows, &order.rows) &&
      wide_of(seed, &order.seed) && what >= LINEAR_DESCRIBE && what <= LINEAR_GATHER && point >= 0 && generation >= 0 &&
      generation <= UINT32_MAX && order.features <= UINT64_C(1) << 63 && blocks >= 0 && blocks < (1 << 24) &&
      (what == LINEAR_DESCRIBE || (order.features > 0 && blocks > 0));
  json_decref(object);
  if (!is_whole) return false;
  order.what = (enum linear_do)what;
  order.point = (size_t)point;
  order.generation = (uint32_t)generation;
  order.blocks = (uint32_t)blocks;
  order.is_full = full;
  *order_out = order;
  return true;
}

/* --- reply --------------------------------------------------------------------------------------------------------------------- */

char *linear_reply_write(const struct linear_reply *reply) {
  const struct linear_census *census = &reply->census;
  json_t *labels = json_array();
  for (size_t i = 0; i < census->label_count; i++)
    json_array_append_new(labels, json_pack("[f, o]", census->labels[i], wide(census->label_rows[i])));
  json_t *described = json_pack("{s:f, s:o, s:o, s:o, s:o, s:o}", "squares", census->squares, "rows",
                                wide(census->rows), "entries", wide(census->entries), "max_id", wide(census->max_id),
                                "skipped", wide(census->skipped), "labels", labels);
  return print(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o}", "census", described, "rows",
                         wide(reply->rows), "correct", wide(reply->correct), "loss", number(reply->loss), "violation",
                         number(reply->violation), "violation_max", number(reply->violation_max), "looked_at",
                         wide(reply->looked_at), "waited_s", reply->waited_s, "worked_s", reply->worked_s, "bytes_sent",
                         wide(reply->bytes_sent), "bytes_received", wide(reply->bytes_received), "dual",
                         number(reply->dual)));
}

static bool read_census(json_t *object, struct linear_census *census) {
  json_t *rows, *entries, *max_id, *skipped, *labels;
  if (json_unpack(object, "{s:F, s:o, s:o, s:o, s:o, s:o}", "squares", &census->squares, "rows", &rows, "entries",
                  &entries, "max_id", &max_id, "skipped", &skipped, "labels", &labels))
    return false;
  census->label_count = json_array_size(labels);
  if (census->label_count > sizeof census->labels / sizeof *census->labels) return false;
  for (size_t i = 0; i < census->label_count; i++) {
    json_t *count;
    if (json_unpack(json_array_get(labels, i), "[F, o]", &census->labels[i], &count) ||
        !wide_of(count, &census->label_rows[i]))
      return false;
  }
  return wide_of(rows, &census->rows) && wide_of(entries, &census->entries) && wide_of(max_id, &census->max_id) &&
         wide_of(skipped, &census->skipped);
}

bool linear_reply_read(const void *bytes, size_t size, struct linear_reply *reply_out) {
  json_t *object = parse(bytes, size), *census, *rows, *correct, *looked_at, *sent, *received, *loss, *sum, *most,
         *dual;
  struct linear_reply reply = {0};
  bool is_whole = !json_unpack(object, "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:F, s:F, s:o, s:o, s:o}", "census",
                               &census, "rows", &rows, "correct", &correct, "loss", &loss, "violation", &sum,
                               "violation_max", &most, "looked_at", &looked_at, "waited_s", &reply.waited_s, "worked_s",
                               &reply.worked_s, "bytes_sent", &sent, "bytes_received", &received, "dual", &dual) &&
                  read_census(census, &reply.census) && wide_of(rows, &reply.rows) &&
                  wide_of(correct, &reply.correct) && wide_of(looked_at, &reply.looked_at) &&
                  wide_of(sent, &reply.bytes_sent) && wide_of(received, &reply.bytes_received);
  if (is_whole) {
    reply.loss = number_of(loss);
    reply.violation = number_of(sum);
    reply.violation_max = number_of(most);
    reply.dual = number_of(dual);
    *reply_out = reply;
  }
  json_decref(object);
  return is_whole;
}
