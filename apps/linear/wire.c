/* Orders and replies as JSON: see inside.h. Readers check everything, as it comes from another process. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/linear/inside.h"

/* --- order ---------------------------------------------------------------------------------------------- */

char *linear_order_write(const struct linear_order *order) {
  return apps_json_print(json_pack(
      "{s:i, s:o, s:I, s:I, s:f, s:f, s:o, s:o, s:[f, f], s:I, s:o, s:b, s:f, s:f, s:f, s:o, s:b, s:b, s:[o, "
      "o, o, o, o, o, o]}",
      "do", (int)order->what, "round", apps_json_wide(order->round), "point", (json_int_t)order->point, "generation",
      (json_int_t)order->generation, "l1", order->l1, "l2", order->l2, "features", apps_json_wide(order->features),
      "rows", apps_json_wide(order->rows), "labels", order->labels[0], order->labels[1], "blocks",
      (json_int_t)order->blocks, "seed", apps_json_wide(order->seed), "full", order->is_full, "slack", order->slack,
      "damping", order->damping, "rate", order->rate, "serial", apps_json_wide(order->serial), "first", order->is_first,
      "curved", order->is_curved, "average", apps_json_wide(order->iteration), apps_json_wide(order->steps),
      apps_json_wide(order->total), apps_json_wide(order->number), apps_json_wide(order->begin),
      apps_json_wide(order->end), apps_json_wide(order->turn)));
}

bool linear_order_read(const void *bytes, size_t size, struct linear_order *order_out) {
  json_t *object = apps_json_parse(bytes, size), *round, *features, *rows, *seed, *serial, *average[7];
  struct linear_order order = {0};
  int what, full, first, curved;
  json_int_t point, generation, blocks;
  bool is_whole =
      !json_unpack(object,
                   "{s:i, s:o, s:I, s:I, s:F, s:F, s:o, s:o, s:[F, F], s:I, s:o, s:b, s:F, s:F, s:F, s:o, s:b, s:b, "
                   "s:[o, o, o, o, o, o, o]}",
                   "do", &what, "round", &round, "point", &point, "generation", &generation, "l1", &order.l1, "l2",
                   &order.l2, "features", &features, "rows", &rows, "labels", &order.labels[0], &order.labels[1],
                   "blocks", &blocks, "seed", &seed, "full", &full, "slack", &order.slack, "damping", &order.damping,
                   "rate", &order.rate, "serial", &serial, "first", &first, "curved", &curved, "average", &average[0],
                   &average[1], &average[2], &average[3], &average[4], &average[5], &average[6]) &&
      apps_json_wide_of(average[0], &order.iteration) && apps_json_wide_of(average[1], &order.steps) &&
      apps_json_wide_of(average[2], &order.total) && apps_json_wide_of(average[3], &order.number) &&
      apps_json_wide_of(average[4], &order.begin) && apps_json_wide_of(average[5], &order.end) &&
      apps_json_wide_of(average[6], &order.turn) && order.turn <= 1 && order.steps <= UINT32_MAX &&
      order.iteration <= UINT64_MAX - order.steps && apps_json_wide_of(serial, &order.serial) &&
      apps_json_wide_of(round, &order.round) && apps_json_wide_of(features, &order.features) &&
      apps_json_wide_of(rows, &order.rows) && apps_json_wide_of(seed, &order.seed) && what >= LINEAR_DESCRIBE &&
      what <= LINEAR_LOAD && point >= 0 && generation >= 0 && generation <= UINT32_MAX &&
      order.features <= UINT64_C(1) << 63 && blocks >= 0 && blocks < (1 << 24) &&
      (what == LINEAR_DESCRIBE || what == LINEAR_MEET || (order.features > 0 && blocks > 0)) &&
      !(curved && order.features > LINEAR_NEWTON_MOST + 1);
  json_decref(object);
  if (!is_whole) return false;
  order.what = (enum linear_do)what;
  order.point = (size_t)point;
  order.generation = (uint32_t)generation;
  order.blocks = (uint32_t)blocks;
  order.is_full = full;
  order.is_first = first;
  order.is_curved = curved;
  *order_out = order;
  return true;
}

/* --- reply ---------------------------------------------------------------------------------------------- */

char *linear_reply_write(const struct linear_reply *reply) {
  const struct linear_census *census = &reply->census;
  json_t *labels = json_array();
  for (size_t i = 0; i < census->label_count; i++)
    json_array_append_new(labels, json_pack("[f, o]", census->labels[i], apps_json_wide(census->label_rows[i])));
  json_t *described =
      json_pack("{s:f, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "squares", census->squares, "digest",
                apps_digest_write(&census->digest), "has_zero", (int)census->has_zero, "rows",
                apps_json_wide(census->rows), "entries", apps_json_wide(census->entries), "max_id",
                apps_json_wide(census->max_id), "skipped", apps_json_wide(census->skipped), "labels", labels);
  return apps_json_print(json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:[o, o, b, o]}",
      "census", described, "rows", apps_json_wide(reply->rows), "correct", apps_json_wide(reply->correct), "loss",
      apps_json_number(reply->loss), "violation", apps_json_number(reply->violation), "violation_max",
      apps_json_number(reply->violation_max), "looked_at", apps_json_wide(reply->looked_at), "waited_s",
      reply->waited_s, "worked_s", reply->worked_s, "bytes_sent", apps_json_wide(reply->bytes_sent), "bytes_received",
      apps_json_wide(reply->bytes_received), "dual", apps_json_number(reply->dual), "before",
      apps_json_number(reply->loss_before), "nothing", apps_json_number(reply->loss_of_nothing), "slopes",
      apps_json_numbers(reply->slopes, 2), "first", apps_json_numbers(reply->conjugates[0], LINEAR_SHRINKS), "second",
      apps_json_numbers(reply->conjugates[1], LINEAR_SHRINKS), "trials",
      apps_json_numbers(reply->trials, LINEAR_TRIALS), "average", apps_json_wide(reply->steps),
      apps_json_wide(reply->number), reply->lacks, apps_reduce_part_write(&reply->part)));
}

static bool read_census(json_t *object, struct linear_census *census) {
  json_t *rows, *entries, *max_id, *skipped, *labels, *digest;
  int has_zero;
  if (json_unpack(object, "{s:F, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "squares", &census->squares, "digest", &digest,
                  "has_zero", &has_zero, "rows", &rows, "entries", &entries, "max_id", &max_id, "skipped", &skipped,
                  "labels", &labels))
    return false;
  if (!apps_digest_of(digest, &census->digest)) return false;
  census->has_zero = has_zero;
  census->label_count = json_array_size(labels);
  if (census->label_count > sizeof census->labels / sizeof *census->labels) return false;
  for (size_t i = 0; i < census->label_count; i++) {
    json_t *count;
    if (json_unpack(json_array_get(labels, i), "[F, o]", &census->labels[i], &count) ||
        !apps_json_wide_of(count, &census->label_rows[i]))
      return false;
  }
  return apps_json_wide_of(rows, &census->rows) && apps_json_wide_of(entries, &census->entries) &&
         apps_json_wide_of(max_id, &census->max_id) && apps_json_wide_of(skipped, &census->skipped);
}

bool linear_reply_read(const void *bytes, size_t size, struct linear_reply *reply_out) {
  json_t *object = apps_json_parse(bytes, size), *census, *rows, *correct, *looked_at, *sent, *received, *loss, *sum,
         *most, *dual, *before, *nothing, *slopes, *first, *second, *trials, *steps, *number, *part;
  int lacks;
  struct linear_reply reply = {0};
  bool is_whole =
      !json_unpack(
          object,
          "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:F, s:F, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:[o, o, b, o]}",
          "census", &census, "rows", &rows, "correct", &correct, "loss", &loss, "violation", &sum, "violation_max",
          &most, "looked_at", &looked_at, "waited_s", &reply.waited_s, "worked_s", &reply.worked_s, "bytes_sent", &sent,
          "bytes_received", &received, "dual", &dual, "before", &before, "nothing", &nothing, "slopes", &slopes,
          "first", &first, "second", &second, "trials", &trials, "average", &steps, &number, &lacks, &part) &&
      apps_reduce_part_read(part, &reply.part) && apps_json_wide_of(steps, &reply.steps) &&
      apps_json_wide_of(number, &reply.number) && apps_json_numbers_of(slopes, 2, reply.slopes) &&
      apps_json_numbers_of(first, LINEAR_SHRINKS, reply.conjugates[0]) &&
      apps_json_numbers_of(second, LINEAR_SHRINKS, reply.conjugates[1]) &&
      apps_json_numbers_of(trials, LINEAR_TRIALS, reply.trials) && read_census(census, &reply.census) &&
      apps_json_wide_of(rows, &reply.rows) && apps_json_wide_of(correct, &reply.correct) &&
      apps_json_wide_of(looked_at, &reply.looked_at) && apps_json_wide_of(sent, &reply.bytes_sent) &&
      apps_json_wide_of(received, &reply.bytes_received);
  if (is_whole) {
    reply.lacks = lacks;
    reply.loss = apps_json_number_of(loss);
    reply.violation = apps_json_number_of(sum);
    reply.violation_max = apps_json_number_of(most);
    reply.dual = apps_json_number_of(dual);
    reply.loss_before = apps_json_number_of(before);
    reply.loss_of_nothing = apps_json_number_of(nothing);
    *reply_out = reply;
  }
  json_decref(object);
  return is_whole;
}
