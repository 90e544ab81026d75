/* Inputs are combined into the own tensors: each value becomes the average of the own value and those of all
 * inputs, added by ascending id of their members. Runs outside of the actor.
 *
 * A peer may change its slot at any time. In NOTIFY-ACK mode each byte of a slot is read once, block by
 * block, and the tensors change in place; the packed tensors are the copy from which they are restored if an
 * input turns out to be bad. In the other modes a put may land while a slot is read, so a slot is copied, and
 * the copy is used if the version before and after it is the same. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/reduce/inside.h"

static size_t value_size(enum pawl_type type) { return type == PAWL_F32 ? 4 : 8; }

/* --- arithmetic ----------------------------------------------------------------------------------------- */

static void add_f32(float *restrict sum, const float *restrict values, size_t count) {
  for (size_t i = 0; i < count; i++) sum[i] += values[i];
}

static void add_f64(double *restrict sum, const double *restrict values, size_t count) {
  for (size_t i = 0; i < count; i++) sum[i] += values[i];
}

static void add(enum pawl_type type, void *sum, const void *values, size_t count) {
  if (type == PAWL_F32)
    add_f32(sum, values, count);
  else
    add_f64(sum, values, count);
}

static void divide(enum pawl_type type, void *sum, size_t count, size_t parts) {
  float *narrow = sum, by = (float)parts;
  double *wide = sum;
  if (parts == 1) return;
  if (type == PAWL_F32)
    for (size_t i = 0; i < count; i++) narrow[i] /= by;
  else
    for (size_t i = 0; i < count; i++) wide[i] /= (double)parts;
}

/* The bytes before value `at` of an encoded tensor; `at` is a multiple of REDUCE_BLOCK, or the count. */
static size_t encoded_before(const struct reduce_layout *layout, enum pawl_type type, size_t at) {
  size_t size = 0;
  (void)!pwi_values_bound(layout->codec, (enum pwi_value_type)(int)type, at, &size);
  return size;
}

/* Decodes values [at, at + count) of a tensor. */
static pawl_status decode(struct pwi_reduce *engine, const struct reduce_piece *piece, const unsigned char *payload,
                          size_t at, size_t count, void *values) {
  const struct reduce_layout *layout = &engine->layout;
  size_t from = encoded_before(layout, piece->type, at), to = encoded_before(layout, piece->type, at + count);
  const unsigned char *bytes = payload + piece->offset + from;
  if (layout->codec == PWI_CODEC_RAW) {
    memcpy(values, bytes, to - from);
    return PAWL_OK;
  }
  return pwi_values_decode(engine->codec, layout->codec, (enum pwi_value_type)(int)piece->type, bytes, to - from,
                           values, count);
}

/* --- sources -------------------------------------------------------------------------------------------- */

/* The inputs by ascending id, with the member itself among them: `peer` is NULL for it. */
struct sources {
  const struct pwi_reduce *engine;
  size_t next;
  bool is_self_done;
};

static bool next_source(struct sources *sources, const struct reduce_peer **peer_out) {
  const struct pwi_reduce *engine = sources->engine;
  const struct reduce_peer *peer = sources->next < engine->input_count ? engine->inputs_used[sources->next] : NULL;
  if (!sources->is_self_done && (!peer || peer->sender.id > engine->own_id)) {
    sources->is_self_done = true;
    *peer_out = NULL;
    return true;
  }
  if (!peer) return false;
  sources->next++;
  *peer_out = peer;
  return true;
}

/* --- notify-ack ----------------------------------------------------------------------------------------- */

static pawl_status sum_block(struct pwi_reduce *engine, const struct reduce_piece *piece, size_t at, size_t count,
                             double *sum, double *values) {
  struct sources sources = {.engine = engine};
  const struct reduce_peer *peer;
  size_t each = value_size(piece->type);
  bool is_first = true;
  while (next_source(&sources, &peer)) {
    double *into = is_first ? sum : values;
    pawl_status status = PAWL_OK;
    if (peer)
      status = decode(engine, piece, pwi_reduce_payload(engine, peer), at, count, into);
    else
      memcpy(into, (const unsigned char *)piece->values + at * each, count * each);
    if (status) return PAWL_CORRUPT;
    if (!is_first) add(piece->type, sum, values, count);
    is_first = false;
  }
  divide(piece->type, sum, count, engine->input_count + 1);
  return pwi_reduce_is_finite(piece->type, sum, count) ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status combine_piece(struct pwi_reduce *engine, const struct reduce_piece *piece) {
  double sum[REDUCE_BLOCK], values[REDUCE_BLOCK];
  size_t each = value_size(piece->type);
  for (size_t at = 0; at < piece->count; at += REDUCE_BLOCK) {
    size_t count = piece->count - at < REDUCE_BLOCK ? piece->count - at : REDUCE_BLOCK;
    pawl_status status = sum_block(engine, piece, at, count, sum, values);
    if (status) return status;
    memcpy((unsigned char *)piece->values + at * each, sum, count * each);
  }
  return PAWL_OK;
}

/* Where the values of each source lie: without narrowing they are averaged where they are. */
static pawl_status combine_raw(struct pwi_reduce *engine) {
  const struct reduce_layout *layout = &engine->layout;
  const struct reduce_peer *peer;
  if (!PWI_GROW(engine->sources, engine->source_room, engine->input_count + 1)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < layout->count; i++) {
    const struct reduce_piece *piece = &layout->pieces[i];
    struct sources sources = {.engine = engine};
    size_t count = 0;
    while (next_source(&sources, &peer))
      engine->sources[count++] = peer ? pwi_reduce_payload(engine, peer) + piece->offset : piece->values;
    if (!pwi_reduce_average(piece->type, piece->values, engine->sources, count, piece->count)) return PAWL_CORRUPT;
  }
  return PAWL_OK;
}

static bool is_good_payload(struct pwi_reduce *engine, const unsigned char *payload) {
  double values[REDUCE_BLOCK];
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    for (size_t at = 0; at < piece->count; at += REDUCE_BLOCK) {
      size_t count = piece->count - at < REDUCE_BLOCK ? piece->count - at : REDUCE_BLOCK;
      if (decode(engine, piece, payload, at, count, values) || !pwi_reduce_is_finite(piece->type, values, count))
        return false;
    }
  }
  return true;
}

/* The sum was not finite, or an input could not be decoded: finds out whose fault it is. */
static pawl_status blame(struct pwi_reduce *engine) {
  for (size_t i = 0; i < engine->input_count; i++) {
    if (is_good_payload(engine, pwi_reduce_payload(engine, engine->inputs_used[i]))) continue;
    snprintf(engine->problem, sizeof engine->problem, "the input of node %" PRIu64 " contains NaN or an infinity",
             engine->inputs_used[i]->sender.id);
    return PAWL_CORRUPT;
  }
  snprintf(engine->problem, sizeof engine->problem, "the sum of all inputs is not finite");
  return PAWL_DIVERGED;
}

static void restore(struct pwi_reduce *engine) {
  const unsigned char *staged = engine->staging[(engine->completed + 1) % 2] + REDUCE_HEADER_SIZE;
  const unsigned char *payload = engine->is_kept ? engine->scratch : staged;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    if (piece->size > 0) memcpy(piece->values, payload + piece->offset, piece->size);
  }
}

/* Packed tensors that were narrowed cannot restore anything, so inputs are examined first. An input that has
 * changed while it was read: the members have gone on without this one, which finds out next. */
static pawl_status combine_in_place(struct pwi_reduce *engine) {
  bool is_raw = engine->layout.codec == PWI_CODEC_RAW;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !is_raw && i < engine->input_count; i++)
    if (!is_good_payload(engine, pwi_reduce_payload(engine, engine->inputs_used[i]))) return blame(engine);
  if (is_raw) status = combine_raw(engine);
  for (size_t i = 0; !is_raw && !status && i < engine->layout.count; i++)
    status = combine_piece(engine, &engine->layout.pieces[i]);
  bool are_kept = pwi_reduce_are_inputs_kept(engine);
  if (!status && are_kept) return PAWL_OK;
  if (is_raw) restore(engine);
  return !are_kept ? PAWL_CANCELLED : status == PAWL_CORRUPT ? blame(engine) : status;
}

/* --- the other modes ------------------------------------------------------------------------------------ */

/* Copies a slot; false if it is empty, torn or, in BSP mode, of another version. */
static bool copy_slot(struct pwi_reduce *engine, const struct reduce_slot *slot, struct reduce_header *header) {
  const unsigned char *memory = pwi_net_region_memory(slot->region);
  unsigned char head[REDUCE_HEADER_SIZE], tail[REDUCE_FOOTER_SIZE], again[8];
  pwi_shared_read(tail, memory + REDUCE_HEADER_SIZE + engine->layout.capacity, sizeof tail);
  pwi_shared_acquire();
  pwi_shared_read(head, memory, sizeof head);
  pwi_shared_read(engine->scratch, memory + REDUCE_HEADER_SIZE, engine->layout.capacity);
  pwi_shared_acquire();
  pwi_shared_read(again, memory, sizeof again);
  pwi_reduce_header_decode(head, header);
  if (header->version == 0 || pwi_get_u64(tail) != header->version || pwi_get_u64(again) != header->version)
    return false;
  if (header->size != engine->layout.capacity || header->kind != REDUCE_DENSE) return false;
  return engine->config.mode == PAWL_REDUCE_ASYNC || header->version == engine->completed + 1;
}

static void add_own(struct pwi_reduce *engine, bool is_first) {
  size_t offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    if (is_first && piece->size > 0)
      memcpy(engine->sum + offset, piece->values, piece->size);
    else
      add(piece->type, engine->sum + offset, piece->values, piece->count);
    offset += (piece->size + 7) & ~(size_t)7;
  }
}

static void add_copy(struct pwi_reduce *engine, bool is_first) {
  double values[REDUCE_BLOCK];
  size_t offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    size_t each = value_size(piece->type);
    for (size_t at = 0; at < piece->count; at += REDUCE_BLOCK) {
      size_t count = piece->count - at < REDUCE_BLOCK ? piece->count - at : REDUCE_BLOCK;
      void *sum = engine->sum + offset + at * each;
      (void)!decode(engine, piece, engine->scratch, at, count, is_first ? sum : values); /* was tried before */
      if (!is_first) add(piece->type, sum, values, count);
    }
    offset += (piece->size + 7) & ~(size_t)7;
  }
}

static pawl_status store_sum(struct pwi_reduce *engine, size_t parts) {
  size_t offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    divide(piece->type, engine->sum + offset, piece->count, parts);
    if (!pwi_reduce_is_finite(piece->type, engine->sum + offset, piece->count)) return PAWL_DIVERGED;
    offset += (piece->size + 7) & ~(size_t)7;
  }
  offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    if (piece->size > 0) memcpy(piece->values, engine->sum + offset, piece->size);
    offset += (piece->size + 7) & ~(size_t)7;
  }
  return PAWL_OK;
}

static pawl_status combine_copies(struct pwi_reduce *engine) {
  struct sources sources = {.engine = engine};
  const struct reduce_peer *peer;
  struct reduce_header header;
  size_t parts = 0;
  while (next_source(&sources, &peer)) {
    if (!peer) {
      add_own(engine, parts++ == 0);
      continue;
    }
    if (engine->config.enter) engine->config.enter(engine->config.context);
    bool is_whole = copy_slot(engine, peer->slot, &header);
    if (engine->config.leave) engine->config.leave(engine->config.context);
    if (!is_whole) continue;
    if (!is_good_payload(engine, engine->scratch)) {
      snprintf(engine->problem, sizeof engine->problem, "the input of node %" PRIu64 " contains NaN or an infinity",
               peer->sender.id);
      return PAWL_CORRUPT;
    }
    add_copy(engine, parts++ == 0);
    engine->report.used++;
    if (header.version == engine->completed + 1) engine->report.current++;
  }
  return store_sum(engine, parts);
}

/* Values that were received now or earlier. */
static pawl_status combine_significant(struct pwi_reduce *engine) {
  struct sources sources = {.engine = engine};
  const struct reduce_peer *peer;
  size_t parts = 0;
  for (size_t i = 0; i < engine->input_count; i++) {
    if (pwi_reduce_take_significant(engine, engine->inputs_used[i])) continue;
    snprintf(engine->problem, sizeof engine->problem,
             "the input of node %" PRIu64 " is malformed, or contains NaN or an infinity",
             engine->inputs_used[i]->sender.id);
    return PAWL_CORRUPT;
  }
  while (next_source(&sources, &peer)) {
    size_t offset = 0;
    for (size_t i = 0; peer && i < engine->layout.count; i++) {
      const struct reduce_piece *piece = &engine->layout.pieces[i];
      if (parts == 0)
        memcpy(engine->sum + offset, peer->mirror + offset, piece->size);
      else
        add(piece->type, engine->sum + offset, peer->mirror + offset, piece->count);
      offset += (piece->size + 7) & ~(size_t)7;
    }
    if (!peer) add_own(engine, parts == 0);
    parts++;
  }
  return store_sum(engine, parts);
}

pawl_status pwi_reduce_combine(struct pwi_reduce *engine) {
  engine->report.used = engine->report.current = 0;
  if (engine->config.mode != PAWL_REDUCE_NOTIFY_ACK) return combine_copies(engine);
  engine->report.used = engine->report.current = (uint32_t)engine->input_count;
  return engine->config.significant > 0 ? combine_significant(engine) : combine_in_place(engine);
}

void pwi_reduce_take_model(struct pwi_reduce *engine) {
  const unsigned char *model = pwi_net_region_memory(engine->model);
  for (size_t i = 0; i < engine->layout.all; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    if (piece->size > 0) memcpy(piece->values, model + piece->model_offset, piece->size);
  }
}
