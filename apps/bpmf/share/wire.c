/* Specs, orders and replies as JSON, perhaps with numbers behind it, which are little-endian. */
#include <stdio.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/frame.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers of messages are sent as they are in memory"
#endif

/* --- the spec --------------------------------------------------------------------------------------------- */

void bpmf_share_spec_fini(struct bpmf_share_spec *spec) {
  apps_json_texts_free(spec->paths, spec->path_count);
  apps_json_texts_free(spec->test_paths, spec->test_path_count);
  spec->paths = spec->test_paths = NULL;
  spec->path_count = spec->test_path_count = 0;
}

void bpmf_vector_names(const struct bpmf_share_spec *spec, char rows[PAWL_NAME_MAX + 1], char sums[PAWL_NAME_MAX + 1]) {
  snprintf(rows, PAWL_NAME_MAX + 1, "%s/rows", spec->job);
  snprintf(sums, PAWL_NAME_MAX + 1, "%s/sums", spec->job);
}

char *bpmf_share_spec_write(const struct bpmf_share_spec *spec) {
  return apps_json_print(json_pack(
      "{s:s, s:s, s:i, s:o, s:o, s:[i, i, o], s:f, s:o, s:o, s:I, s:I, s:f, s:b, s:o, s:i, s:I}", "app", "bpmf", "job",
      spec->job, "share", (int)spec->share, "paths", apps_json_texts(spec->paths, spec->path_count), "test_paths",
      apps_json_texts(spec->test_paths, spec->test_path_count), "reading", (int)spec->reading.format,
      (int)spec->reading.duplicates, apps_json_wide(spec->reading.skip_bad), "test_share", spec->test_share, "seed",
      apps_json_wide(spec->seed), "burn_in", apps_json_wide(spec->burn_in), "rank", (json_int_t)spec->rank, "threads",
      (json_int_t)spec->threads, "alpha", spec->alpha, "no_train_rmse", (int)spec->no_train_rmse, "digest",
      apps_json_wide(spec->digest), "variant", (int)spec->variant, "slack", (json_int_t)spec->slack));
}

static bool numbers_read(json_t *object, struct bpmf_share_spec *spec) {
  json_t *seed, *burn_in, *digest;
  json_int_t rank, threads, slack;
  int share, variant, no_train_rmse;
  if (json_unpack(object, "{s:i, s:F, s:o, s:o, s:I, s:I, s:F, s:b, s:o, s:i, s:I}", "share", &share, "test_share",
                  &spec->test_share, "seed", &seed, "burn_in", &burn_in, "rank", &rank, "threads", &threads, "alpha",
                  &spec->alpha, "no_train_rmse", &no_train_rmse, "digest", &digest, "variant", &variant, "slack",
                  &slack))
    return false;
  if ((share != PAWL_BPMF_ITEMS && share != PAWL_BPMF_SERVERS) || rank < 1 || rank > PAWL_BPMF_RANK_MAX ||
      threads < 1 || threads > 1024 || slack < 0 || slack > PAWL_BPMF_SLACK_MAX ||
      (variant != PAWL_ITEMS_PUSH && variant != PAWL_ITEMS_PULL) || !(spec->alpha > 0) ||
      !(spec->test_share >= 0 && spec->test_share < 1))
    return false;
  spec->share = (enum pawl_bpmf_share)share;
  spec->rank = (uint32_t)rank;
  spec->threads = (uint32_t)threads;
  spec->slack = (uint32_t)slack;
  spec->variant = (enum pawl_items_variant)variant;
  spec->no_train_rmse = no_train_rmse;
  return apps_json_wide_of(seed, &spec->seed) && apps_json_wide_of(burn_in, &spec->burn_in) &&
         apps_json_wide_of(digest, &spec->digest);
}

static bool reading_read(json_t *object, struct pawl_ratings_options *reading) {
  json_t *skip_bad;
  int format, duplicates;
  pawl_ratings_options_init(reading);
  if (json_unpack(object, "{s:[i, i, o]}", "reading", &format, &duplicates, &skip_bad) || format < 0 ||
      format > PAWL_RATINGS_MTX || duplicates < 0 || duplicates > PAWL_RATINGS_MEAN)
    return false;
  reading->format = (enum pawl_ratings_format)format;
  reading->duplicates = (enum pawl_ratings_duplicates)duplicates;
  return apps_json_wide_of(skip_bad, &reading->skip_bad);
}

static bool spec_read(json_t *object, struct bpmf_share_spec *spec) {
  const char *job;
  json_t *paths, *test_paths;
  if (json_unpack(object, "{s:s, s:o, s:o}", "job", &job, "paths", &paths, "test_paths", &test_paths) ||
      strlen(job) >= sizeof spec->job)
    return false;
  memcpy(spec->job, job, strlen(job) + 1);
  return numbers_read(object, spec) && reading_read(object, &spec->reading) &&
         apps_json_texts_of(paths, &spec->paths, &spec->path_count) &&
         (json_array_size(test_paths) == 0 ||
          apps_json_texts_of(test_paths, &spec->test_paths, &spec->test_path_count));
}

bool bpmf_share_spec_read(const void *bytes, size_t size, struct bpmf_share_spec *spec_out) {
  json_t *object = apps_json_parse(bytes, size);
  struct bpmf_share_spec spec = {.paths = NULL};
  bool good = spec_read(object, &spec);
  json_decref(object);
  if (good)
    *spec_out = spec;
  else
    bpmf_share_spec_fini(&spec);
  return good;
}

/* --- orders ----------------------------------------------------------------------------------------------- */

char *bpmf_order_write(const struct bpmf_order *order, size_t *size_out) {
  return apps_frame_write(json_pack("{s:i, s:o, s:b, s:o, s:o, s:o, s:I, s:i, s:o}", "do", (int)order->what, "era",
                                    apps_json_wide(order->era), "new", (int)order->is_new, "number",
                                    apps_json_wide(order->number), "iteration", apps_json_wide(order->iteration),
                                    "measured", apps_json_wide(order->measured), "count", (json_int_t)order->count,
                                    "section", (int)order->section, "begin", apps_json_wide(order->begin)),
                          order->bytes, order->size, size_out);
}

static bool order_read(json_t *object, struct bpmf_order *order) {
  json_t *era, *number, *iteration, *measured, *begin;
  json_int_t count;
  int what, is_new, section;
  if (json_unpack(object, "{s:i, s:o, s:b, s:o, s:o, s:o, s:I, s:i, s:o}", "do", &what, "era", &era, "new", &is_new,
                  "number", &number, "iteration", &iteration, "measured", &measured, "count", &count, "section",
                  &section, "begin", &begin))
    return false;
  if (what < BPMF_MEET || what > BPMF_GIVE || count < 0 || count > UINT16_MAX || section < 0 ||
      section >= BPMF_SECTIONS)
    return false;
  order->what = (enum bpmf_do)what;
  order->is_new = is_new;
  order->count = (uint32_t)count;
  order->section = (enum bpmf_section)section;
  return apps_json_wide_of(era, &order->era) && apps_json_wide_of(number, &order->number) &&
         apps_json_wide_of(iteration, &order->iteration) && apps_json_wide_of(measured, &order->measured) &&
         apps_json_wide_of(begin, &order->begin) && order->iteration <= PAWL_ITEMS_CLOCK_MAX / 2;
}

bool bpmf_order_read(const void *bytes, size_t size, struct bpmf_order *order_out) {
  struct bpmf_order order = {.bytes = NULL};
  json_t *object = apps_frame_read(bytes, size, &order.bytes, &order.size);
  bool good = order_read(object, &order);
  json_decref(object);
  if (good) *order_out = order;
  return good;
}

/* --- replies ---------------------------------------------------------------------------------------------- */

char *bpmf_reply_write(const struct bpmf_reply *reply, size_t *size_out) {
  return apps_frame_write(json_pack("{s:o, s:I, s:o, s:[I, I], s:o, s:o, s:o, s:o}", "number",
                                    apps_json_wide(reply->number), "done", (json_int_t)reply->done, "diverged",
                                    apps_json_wide(reply->diverged), "blocks", (json_int_t)reply->first,
                                    (json_int_t)reply->end, "waited", apps_json_number(reply->waited_s), "worked",
                                    apps_json_number(reply->worked_s), "sent", apps_json_wide(reply->bytes_sent),
                                    "received", apps_json_wide(reply->bytes_received)),
                          reply->figures, bpmf_reply_figures(reply) * sizeof *reply->figures, size_out);
}

static bool reply_read(json_t *object, struct bpmf_reply *reply) {
  json_t *number, *diverged, *waited, *worked, *sent, *received;
  json_int_t done, first, end;
  if (json_unpack(object, "{s:o, s:I, s:o, s:[I, I], s:o, s:o, s:o, s:o}", "number", &number, "done", &done, "diverged",
                  &diverged, "blocks", &first, &end, "waited", &waited, "worked", &worked, "sent", &sent, "received",
                  &received))
    return false;
  if (done < 0 || done > UINT16_MAX || first < 0 || end < first || end > BPMF_BLOCKS) return false;
  reply->done = (uint32_t)done;
  reply->first = (size_t)first;
  reply->end = (size_t)end;
  reply->waited_s = apps_json_number_of(waited);
  reply->worked_s = apps_json_number_of(worked);
  return apps_json_wide_of(number, &reply->number) && apps_json_wide_of(diverged, &reply->diverged) &&
         apps_json_wide_of(sent, &reply->bytes_sent) && apps_json_wide_of(received, &reply->bytes_received);
}

bool bpmf_reply_read(const void *bytes, size_t size, struct bpmf_reply *reply_out) {
  struct bpmf_reply reply = {.figures = NULL};
  const void *figures = NULL;
  size_t figures_size = 0;
  json_t *object = apps_frame_read(bytes, size, &figures, &figures_size);
  bool good = reply_read(object, &reply) && figures_size == bpmf_reply_figures(&reply) * sizeof *reply.figures;
  json_decref(object);
  if (good) reply.figures = apps_alloc(figures_size + 1); /* aligned, unlike the message */
  if (!reply.figures) return false;
  memcpy(reply.figures, figures, figures_size);
  *reply_out = reply;
  return true;
}
