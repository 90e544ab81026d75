/* Specs, orders and replies as JSON, perhaps with bytes behind it. Numbers in these are as in memory, little-endian. */
#include <stdio.h>

#include "apps/common/frame.h"
#include "apps/common/shared_matrix/inside.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers of messages are sent as they are in memory"
#endif

/* --- the spec --------------------------------------------------------------------------------------------- */

void matrix_spec_fini(struct matrix_spec *spec) {
  apps_json_texts_free(spec->paths, spec->path_count);
  json_decref(spec->terms);
  spec->paths = NULL;
  spec->path_count = 0;
  spec->terms = NULL;
}

void matrix_vector_name(const struct matrix_spec *spec, char name[PAWL_NAME_MAX + 1]) {
  snprintf(name, PAWL_NAME_MAX + 1, "%s/matrix", spec->job);
}

char *matrix_spec_write(const struct matrix_spec *spec) {
  return apps_json_print(json_pack(
      "{s:s, s:s, s:i, s:I, s:I, s:s, s:b, s:o, s:b, s:i, s:o, s:o, s:[o, o, b, b], s:O}", "app", spec->app, "job",
      spec->job, "way", (int)spec->way, "staleness", (json_int_t)spec->staleness, "threads", (json_int_t)spec->threads,
      "graph", spec->graph, "forward", (int)spec->forward, "paths", apps_json_texts(spec->paths, spec->path_count),
      "images", (int)spec->has_images, "format", (int)spec->image_format, "reading",
      apps_json_reading(&spec->reading, spec->label), "digest", apps_json_wide(spec->digest), "shape",
      apps_json_wide(spec->shape.rows), apps_json_wide(spec->shape.columns), (int)spec->shape.is_double,
      (int)spec->is_sparse, "terms", spec->terms));
}

static bool texts_read(json_t *object, struct matrix_spec *spec) {
  const char *app, *job, *graph;
  if (json_unpack(object, "{s:s, s:s, s:s}", "app", &app, "job", &job, "graph", &graph) ||
      strlen(app) >= sizeof spec->app || strlen(job) >= sizeof spec->job || strlen(graph) >= sizeof spec->graph)
    return false;
  memcpy(spec->app, app, strlen(app) + 1);
  memcpy(spec->job, job, strlen(job) + 1);
  memcpy(spec->graph, graph, strlen(graph) + 1);
  return true;
}

static bool shape_read(json_t *object, struct matrix_spec *spec) {
  json_t *rows, *columns;
  int is_double, is_sparse;
  uint64_t height, width;
  if (json_unpack(object, "{s:[o, o, b, b]}", "shape", &rows, &columns, &is_double, &is_sparse) ||
      !apps_json_wide_of(rows, &height) || !apps_json_wide_of(columns, &width) || height == 0 || width == 0 ||
      height > SIZE_MAX / sizeof(double) / width)
    return false;
  spec->shape = (struct matrix_shape){(size_t)height, (size_t)width, is_double};
  spec->is_sparse = is_sparse;
  return true;
}

static bool spec_read(json_t *object, struct matrix_spec *spec) {
  int way, forward, images, format;
  json_int_t staleness, threads;
  json_t *paths, *reading, *digest, *terms;
  if (json_unpack(object, "{s:i, s:I, s:I, s:b, s:o, s:b, s:i, s:o, s:o, s:o}", "way", &way, "staleness", &staleness,
                  "threads", &threads, "forward", &forward, "paths", &paths, "images", &images, "format", &format,
                  "reading", &reading, "digest", &digest, "terms", &terms))
    return false;
  if (way < PAWL_MATRIX_FACTORS || way > PAWL_MATRIX_SERVERS || staleness < 0 || staleness > UINT32_MAX ||
      threads < 1 || threads > 1024 || format < 0 || format > PAWL_IMAGES_CIFAR || !json_is_object(terms))
    return false;
  spec->way = (enum pawl_matrix_way)way;
  spec->staleness = (uint32_t)staleness;
  spec->threads = (uint32_t)threads;
  spec->forward = forward;
  spec->has_images = images;
  spec->image_format = (enum pawl_images_format)format;
  spec->terms = json_incref(terms);
  return texts_read(object, spec) && shape_read(object, spec) && apps_json_wide_of(digest, &spec->digest) &&
         apps_json_reading_of(reading, &spec->reading, spec->label, sizeof spec->label) &&
         apps_json_texts_of(paths, &spec->paths, &spec->path_count);
}

bool matrix_spec_read(const void *bytes, size_t size, struct matrix_spec *spec_out) {
  json_t *object = apps_json_parse(bytes, size);
  struct matrix_spec spec = {.paths = NULL};
  bool good = spec_read(object, &spec);
  json_decref(object);
  if (good) {
    *spec_out = spec;
    spec_out->reading.label = *spec_out->label ? spec_out->label : NULL;
  } else {
    matrix_spec_fini(&spec);
  }
  return good;
}

/* --- orders ----------------------------------------------------------------------------------------------- */

char *matrix_order_write(const struct matrix_order *order, size_t *size_out) {
  return apps_frame_write(json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "do", (int)order->what,
                                    "serial", apps_json_wide(order->serial), "number", apps_json_wide(order->number),
                                    "step", apps_json_wide(order->step), "count", apps_json_wide(order->count), "phase",
                                    apps_json_wide(order->phase), "factor", apps_json_number(order->factor), "node",
                                    apps_json_wide(order->node), "begin", apps_json_wide(order->begin), "end",
                                    apps_json_wide(order->end)),
                          order->bytes, order->size, size_out);
}

static bool order_read(json_t *object, struct matrix_order *order) {
  json_t *serial, *number, *step, *count, *phase, *factor, *node, *begin, *end;
  int what;
  if (json_unpack(object, "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "do", &what, "serial", &serial,
                  "number", &number, "step", &step, "count", &count, "phase", &phase, "factor", &factor, "node", &node,
                  "begin", &begin, "end", &end))
    return false;
  order->what = (enum matrix_do)what;
  order->factor = apps_json_number_of(factor);
  return what >= MATRIX_MEET && what <= MATRIX_CLEAR && order->factor > 0 &&
         apps_json_wide_of(serial, &order->serial) && apps_json_wide_of(number, &order->number) &&
         apps_json_wide_of(step, &order->step) && apps_json_wide_of(count, &order->count) &&
         apps_json_wide_of(phase, &order->phase) && apps_json_wide_of(node, &order->node) &&
         apps_json_wide_of(begin, &order->begin) && apps_json_wide_of(end, &order->end) && order->count <= UINT32_MAX &&
         order->step <= UINT64_MAX - order->count && order->begin <= order->end;
}

bool matrix_order_read(const void *bytes, size_t size, struct matrix_order *order_out) {
  struct matrix_order order = {.bytes = NULL};
  json_t *object = apps_frame_read(bytes, size, &order.bytes, &order.size);
  bool good =
      order_read(object, &order) && order.size == (order.what == MATRIX_TAKE ? (size_t)(order.end - order.begin) : 0);
  json_decref(object);
  if (good) *order_out = order;
  return good;
}

/* --- replies ---------------------------------------------------------------------------------------------- */

char *matrix_reply_write(const struct matrix_reply *reply) {
  return apps_json_print(
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number", apps_json_wide(reply->number),
                "done", apps_json_wide(reply->done), "diverged", apps_json_wide(reply->diverged), "factor",
                apps_json_number(reply->factor), "report", apps_json_number(reply->report), "hash",
                apps_json_wide(reply->hash), "waited", apps_json_number(reply->waited_s), "worked",
                apps_json_number(reply->worked_s), "updates", apps_json_wide(reply->update_bytes), "sent",
                apps_json_wide(reply->bytes_sent), "received", apps_json_wide(reply->bytes_received)));
}

bool matrix_reply_read(const void *bytes, size_t size, struct matrix_reply *reply_out) {
  json_t *object = apps_json_parse(bytes, size), *number, *done, *diverged, *factor, *report, *hash, *waited, *worked,
         *updates, *sent, *received;
  struct matrix_reply reply = {0};
  bool good = !json_unpack(object, "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number", &number, "done",
                           &done, "diverged", &diverged, "factor", &factor, "report", &report, "hash", &hash, "waited",
                           &waited, "worked", &worked, "updates", &updates, "sent", &sent, "received", &received) &&
              apps_json_wide_of(number, &reply.number) && apps_json_wide_of(done, &reply.done) &&
              apps_json_wide_of(diverged, &reply.diverged) && apps_json_wide_of(hash, &reply.hash) &&
              apps_json_wide_of(updates, &reply.update_bytes) && apps_json_wide_of(sent, &reply.bytes_sent) &&
              apps_json_wide_of(received, &reply.bytes_received);
  if (good) {
    reply.factor = apps_json_number_of(factor);
    reply.report = apps_json_number_of(report);
    reply.waited_s = apps_json_number_of(waited);
    reply.worked_s = apps_json_number_of(worked);
    *reply_out = reply;
  }
  json_decref(object);
  return good;
}
