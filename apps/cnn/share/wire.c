/* Specs, orders and replies as JSON. */
#include <stdio.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/json.h"

/* --- the spec --------------------------------------------------------------------------------------------- */

void cnn_share_spec_fini(struct cnn_share_spec *spec) {
  apps_json_texts_free(spec->paths, spec->path_count);
  spec->paths = NULL;
  spec->path_count = 0;
}

void cnn_vector_name(const struct cnn_share_spec *spec, char name[PAWL_NAME_MAX + 1]) {
  snprintf(name, PAWL_NAME_MAX + 1, "%s/parameters", spec->job);
}

static json_t *plan_write(const struct cnn_plan *plan) {
  return json_pack("{s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:i}", "images", apps_json_wide(plan->images), "batch",
                   apps_json_wide(plan->batch), "epochs", apps_json_wide(plan->epochs), "seed",
                   apps_json_wide(plan->seed), "rate", plan->rate, "momentum", plan->momentum, "decay", plan->decay,
                   "schedule", (int)plan->schedule);
}

static bool plan_read(json_t *object, struct cnn_plan *plan) {
  json_t *images, *batch, *epochs, *seed;
  int schedule;
  if (json_unpack(object, "{s:o, s:o, s:o, s:o, s:F, s:F, s:F, s:i}", "images", &images, "batch", &batch, "epochs",
                  &epochs, "seed", &seed, "rate", &plan->rate, "momentum", &plan->momentum, "decay", &plan->decay,
                  "schedule", &schedule))
    return false;
  plan->schedule = (enum pawl_cnn_schedule)schedule;
  return apps_json_wide_of(images, &plan->images) && apps_json_wide_of(batch, &plan->batch) &&
         apps_json_wide_of(epochs, &plan->epochs) && apps_json_wide_of(seed, &plan->seed) && plan->batch > 0 &&
         plan->batch <= plan->images && plan->images <= UINT32_MAX && plan->epochs > 0 &&
         plan->epochs <= UINT64_MAX / plan->images && (schedule == PAWL_CNN_COSINE || schedule == PAWL_CNN_CONSTANT);
}

char *cnn_share_spec_write(const struct cnn_share_spec *spec) {
  const struct pawl_cnn_about *about = &spec->about;
  return apps_json_print(json_pack(
      "{s:s, s:s, s:i, s:o, s:i, s:s, s:[I, I, I, I], s:o, s:o, s:o, s:I, s:s, s:i, s:i, s:b, s:s, s:o}", "app", "cnn",
      "job", spec->job, "share", (int)spec->share, "paths", apps_json_texts(spec->paths, spec->path_count), "format",
      (int)spec->format, "net", about->net, "shape", (json_int_t)about->channels, (json_int_t)about->height,
      (json_int_t)about->width, (json_int_t)about->classes, "mean", apps_json_numbers(about->mean, about->channels),
      "deviation", apps_json_numbers(about->deviation, about->channels), "plan", plan_write(&spec->plan), "threads",
      (json_int_t)spec->threads, "graph", spec->graph, "mode", (int)spec->mode, "push", (int)spec->push, "gradients",
      spec->means_gradients, "folder", spec->folder, "as_factors", apps_json_wide(spec->as_factors)));
}

static bool about_read(json_t *object, struct pawl_cnn_about *about) {
  const char *net;
  json_int_t shape[4];
  json_t *mean, *deviation;
  if (json_unpack(object, "{s:s, s:[I, I, I, I], s:o, s:o}", "net", &net, "shape", &shape[0], &shape[1], &shape[2],
                  &shape[3], "mean", &mean, "deviation", &deviation))
    return false;
  for (size_t i = 0; i < 4; i++)
    if (shape[i] < 1 || shape[i] > UINT32_MAX) return false;
  if (shape[0] > PAWL_CNN_CHANNELS_MAX || strlen(net) >= sizeof about->net) return false;
  memcpy(about->net, net, strlen(net) + 1);
  about->channels = (uint32_t)shape[0];
  about->height = (uint32_t)shape[1];
  about->width = (uint32_t)shape[2];
  about->classes = (uint32_t)shape[3];
  return apps_json_numbers_of(mean, about->channels, about->mean) &&
         apps_json_numbers_of(deviation, about->channels, about->deviation);
}

static bool spec_read(json_t *object, struct cnn_share_spec *spec) {
  const char *job, *graph, *folder;
  int share, format, mode, push, gradients;
  json_int_t threads;
  json_t *paths, *plan, *as_factors;
  if (json_unpack(object, "{s:s, s:i, s:o, s:i, s:o, s:I, s:s, s:i, s:i, s:b, s:s, s:o}", "job", &job, "share", &share,
                  "paths", &paths, "format", &format, "plan", &plan, "threads", &threads, "graph", &graph, "mode",
                  &mode, "push", &push, "gradients", &gradients, "folder", &folder, "as_factors", &as_factors))
    return false;
  if (strlen(job) >= sizeof spec->job || strlen(graph) >= sizeof spec->graph || strlen(folder) >= sizeof spec->folder ||
      threads < 1 || threads > 1024 || share < PAWL_CNN_SERVERS || share > PAWL_CNN_FACTORS || format < 0 ||
      format > PAWL_IMAGES_CIFAR || mode < 0 || mode > PAWL_REDUCE_ASYNC || push < 0 || push > PAWL_CNN_PUSH_ASYNC)
    return false;
  memcpy(spec->job, job, strlen(job) + 1);
  memcpy(spec->graph, graph, strlen(graph) + 1);
  memcpy(spec->folder, folder, strlen(folder) + 1);
  spec->share = (enum pawl_cnn_share)share;
  spec->format = (enum pawl_images_format)format;
  spec->mode = (enum pawl_reduce_mode)mode;
  spec->push = (enum pawl_cnn_push)push;
  spec->means_gradients = gradients;
  spec->threads = (uint32_t)threads;
  return apps_json_wide_of(as_factors, &spec->as_factors) && about_read(object, &spec->about) &&
         plan_read(plan, &spec->plan) && apps_json_texts_of(paths, &spec->paths, &spec->path_count);
}

bool cnn_share_spec_read(const void *bytes, size_t size, struct cnn_share_spec *spec_out) {
  json_t *object = apps_json_parse(bytes, size);
  struct cnn_share_spec spec = {0};
  bool good = spec_read(object, &spec);
  json_decref(object);
  if (good)
    *spec_out = spec;
  else
    cnn_share_spec_fini(&spec);
  return good;
}

/* --- orders and replies ----------------------------------------------------------------------------------- */

char *cnn_order_write(const struct cnn_order *order) {
  return apps_json_print(json_pack("{s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "do", (int)order->what, "step",
                                   apps_json_wide(order->step), "count", apps_json_wide(order->count), "number",
                                   apps_json_wide(order->number), "serial", apps_json_wide(order->serial), "adopts",
                                   order->adopts, "begin", apps_json_wide(order->begin), "end",
                                   apps_json_wide(order->end), "turn", apps_json_wide(order->turn)));
}

bool cnn_order_read(const void *bytes, size_t size, struct cnn_order *order_out) {
  json_t *object = apps_json_parse(bytes, size), *step, *count, *number, *serial, *begin, *end, *turn;
  struct cnn_order order = {0};
  int what, adopts;
  bool good = !json_unpack(object, "{s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o}", "do", &what, "step", &step, "count",
                           &count, "number", &number, "serial", &serial, "adopts", &adopts, "begin", &begin, "end",
                           &end, "turn", &turn) &&
              apps_json_wide_of(turn, &order.turn) && order.turn <= 1 && apps_json_wide_of(step, &order.step) &&
              apps_json_wide_of(count, &order.count) && apps_json_wide_of(number, &order.number) &&
              apps_json_wide_of(serial, &order.serial) && apps_json_wide_of(begin, &order.begin) &&
              apps_json_wide_of(end, &order.end) && what >= CNN_MEET && what <= CNN_LOAD && order.count <= UINT32_MAX &&
              order.step <= UINT64_MAX - order.count;
  json_decref(object);
  if (!good) return false;
  order.what = (enum cnn_do)what;
  order.adopts = adopts;
  *order_out = order;
  return true;
}

char *cnn_reply_write(const struct cnn_reply *reply) {
  return apps_json_print(
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "loss",
                apps_json_number(reply->tally.loss), "wrong", apps_json_wide(reply->tally.wrong), "done",
                apps_json_wide(reply->tally.done), "diverged", apps_json_wide(reply->diverged), "number",
                apps_json_wide(reply->number), "waited", apps_json_number(reply->waited_s), "worked",
                apps_json_number(reply->worked_s), "sent", apps_json_wide(reply->bytes_sent), "received",
                apps_json_wide(reply->bytes_received), "part", apps_reduce_part_write(&reply->part), "updates",
                apps_json_wide(reply->update_bytes), "hash", apps_json_wide(reply->hash)));
}

bool cnn_reply_read(const void *bytes, size_t size, struct cnn_reply *reply_out) {
  json_t *object = apps_json_parse(bytes, size), *loss, *wrong, *done, *diverged, *number, *waited, *worked, *sent,
         *received, *part, *updates, *hash;
  struct cnn_reply reply = {0};
  bool good =
      !json_unpack(object, "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "loss", &loss, "wrong",
                   &wrong, "done", &done, "diverged", &diverged, "number", &number, "waited", &waited, "worked",
                   &worked, "sent", &sent, "received", &received, "part", &part, "updates", &updates, "hash", &hash) &&
      apps_reduce_part_read(part, &reply.part) && apps_json_wide_of(wrong, &reply.tally.wrong) &&
      apps_json_wide_of(done, &reply.tally.done) && apps_json_wide_of(diverged, &reply.diverged) &&
      apps_json_wide_of(number, &reply.number) && apps_json_wide_of(sent, &reply.bytes_sent) &&
      apps_json_wide_of(received, &reply.bytes_received) && apps_json_wide_of(updates, &reply.update_bytes) &&
      apps_json_wide_of(hash, &reply.hash);
  if (good) {
    reply.tally.loss = apps_json_number_of(loss);
    reply.waited_s = apps_json_number_of(waited);
    reply.worked_s = apps_json_number_of(worked);
    *reply_out = reply;
  }
  json_decref(object);
  return good;
}
