/* The significantly-modified filter (OSDI'14 3.6) on what a member sends: only values that have changed enough.
 *
 * A sparse payload has, for each tensor, a bit for each value, from the lowest bit of the first byte, padded to a
 * multiple of 8 bytes, and then the values whose bits are set, encoded as the whole tensor would be, padded
 * likewise. A payload that would not be smaller than a dense one is dense.
 *
 *   MIX   The sender remembers the values that it sent last, and the receiver those that it has received. Both begin
 *         anew with each epoch, whose first payload is dense. In NOTIFY-ACK mode a receiver uses every version, so
 *         the two never differ by more than the threshold and the rounding of a narrow type.
 *   MEAN  The sender adds the values that it did not send to the next ones. Values that are not sent count as zero.
 *
 * Runs outside of the actor. */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "peer/reduce/inside.h"

static size_t padded(size_t size) { return (size + 7) & ~(size_t)7; }
static size_t each_of(const struct reduce_piece *piece) { return piece->type == PAWL_F32 ? 4 : 8; }

static double value_at(const struct reduce_piece *piece, const unsigned char *values, size_t i) {
  float narrow;
  double wide;
  memcpy(&narrow, values + i * 4, sizeof narrow);
  if (piece->type == PAWL_F32) return (double)narrow;
  memcpy(&wide, values + i * 8, sizeof wide);
  return wide;
}

static void set_value(const struct reduce_piece *piece, unsigned char *values, size_t i, double value) {
  float narrow = (float)value;
  if (piece->type == PAWL_F32)
    memcpy(values + i * 4, &narrow, sizeof narrow);
  else
    memcpy(values + i * 8, &value, sizeof value);
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* Writes the values to be sent to `chosen`, without gaps, and their bits. Returns their number. For MEAN `last` holds
 * what was not sent, for MIX what was sent. */
static size_t choose(const struct pwi_reduce *engine, const struct reduce_piece *piece, unsigned char *last,
                     unsigned char *bits, unsigned char *chosen, bool all) {
  bool is_mean = engine->config.what == PAWL_REDUCE_MEAN;
  size_t count = 0;
  for (size_t i = 0; i < piece->count; i++) {
    double own = value_at(piece, piece->values, i), old = value_at(piece, last, i);
    double value = is_mean ? own + old : own;
    bool is_sent = all || fabs(is_mean ? value : value - old) > engine->config.significant;
    if (is_sent) {
      set_value(piece, chosen, count++, value);
      bits[i / 8] |= (unsigned char)(1u << i % 8);
    }
    if (is_mean)
      set_value(piece, last, i, is_sent ? 0 : value);
    else if (is_sent)
      set_value(piece, last, i, value);
  }
  return count;
}

static pawl_status encode(struct pwi_reduce *engine, const struct reduce_piece *piece, const unsigned char *chosen,
                          size_t count, unsigned char *to, size_t room, size_t *size_out) {
  enum pwi_value_type type = (enum pwi_value_type)(int)piece->type;
  size_t bound;
  if (pwi_values_bound(engine->layout.codec, type, count, &bound) || bound > room) return PAWL_TOO_LARGE;
  pawl_status status = pwi_values_encode(engine->codec, engine->layout.codec, type, chosen, count, to, room, size_out);
  return status ? PAWL_OVERFLOW : PAWL_OK;
}

/* A payload that does not fit into `capacity` bytes is too large to be worth it: PAWL_TOO_LARGE. */
static pawl_status pack_sparse(struct pwi_reduce *engine, unsigned char *payload, size_t *size_out) {
  size_t at = 0, offset = 0, capacity = engine->layout.capacity;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    size_t bits = padded((piece->count + 7) / 8), size = 0;
    if (bits > capacity - at) return PAWL_TOO_LARGE;
    memset(payload + at, 0, bits);
    size_t count = choose(engine, piece, engine->last_sent + offset, payload + at, engine->sum, false);
    at += bits;
    pawl_status status = encode(engine, piece, engine->sum, count, payload + at, capacity - at, &size);
    if (status) return status;
    if (padded(size) > capacity - at) return PAWL_TOO_LARGE;
    memset(payload + at + size, 0, padded(size) - size);
    at += padded(size);
    offset += padded(piece->size);
  }
  *size_out = at;
  return at < capacity ? PAWL_OK : PAWL_TOO_LARGE;
}

static pawl_status pack_dense(struct pwi_reduce *engine, unsigned char *payload) {
  size_t offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    size_t size = 0;
    memset(engine->scratch, 0, (piece->count + 7) / 8);
    size_t count = choose(engine, piece, engine->last_sent + offset, engine->scratch, engine->sum, true);
    pawl_status status = encode(engine, piece, engine->sum, count, payload + piece->offset, piece->encoded, &size);
    if (status) return status;
    offset += padded(piece->size);
  }
  return PAWL_OK;
}

/* What was chosen for a sparse payload is undone if the payload is dense after all. */
pawl_status pwi_reduce_pack_significant(struct pwi_reduce *engine, unsigned char *payload,
                                        struct reduce_header *header) {
  bool is_first = engine->config.what == PAWL_REDUCE_MIX && header->version == engine->base + 1;
  pawl_status status = PAWL_TOO_LARGE;
  memcpy(engine->saved, engine->last_sent, engine->layout.raw);
  if (!is_first) {
    status = pack_sparse(engine, payload, &header->size);
    header->kind = REDUCE_SPARSE;
  }
  if (status == PAWL_TOO_LARGE) {
    memcpy(engine->last_sent, engine->saved, engine->layout.raw);
    header->size = engine->layout.capacity;
    header->kind = REDUCE_DENSE;
    status = pack_dense(engine, payload);
  }
  if (status) memcpy(engine->last_sent, engine->saved, engine->layout.raw);
  return status;
}

/* --- receiving ------------------------------------------------------------------------------------------ */

/* Spreads `count` decoded values over the places whose bits are set. False if the bits are not as many. */
static bool spread(const struct reduce_piece *piece, const unsigned char *bits, const unsigned char *values,
                   size_t count, unsigned char *into) {
  size_t each = each_of(piece), next = 0;
  for (size_t i = 0; i < piece->count; i++) {
    if (!(bits[i / 8] >> i % 8 & 1)) continue;
    if (next == count) return false;
    memcpy(into + i * each, values + next++ * each, each);
  }
  return next == count;
}

static size_t count_bits(const unsigned char *bits, size_t count) {
  size_t set = 0;
  for (size_t i = 0; i < count; i++) set += bits[i / 8] >> i % 8 & 1;
  return set;
}

static bool take_sparse(struct pwi_reduce *engine, const unsigned char *payload, size_t size, unsigned char *into) {
  size_t at = 0, offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    enum pwi_value_type type = (enum pwi_value_type)(int)piece->type;
    size_t bits = padded((piece->count + 7) / 8), encoded;
    if (bits > size - at) return false;
    size_t count = count_bits(payload + at, piece->count);
    if (pwi_values_bound(engine->layout.codec, type, count, &encoded) || padded(encoded) > size - at - bits)
      return false;
    if (pwi_values_decode(engine->codec, engine->layout.codec, type, payload + at + bits, encoded, engine->saved,
                          count) ||
        !pwi_reduce_is_finite(piece->type, engine->saved, count) ||
        !spread(piece, payload + at, engine->saved, count, into + offset))
      return false;
    at += bits + padded(encoded);
    offset += padded(piece->size);
  }
  return at == size;
}

static bool take_dense(struct pwi_reduce *engine, const unsigned char *payload, unsigned char *into) {
  size_t offset = 0;
  for (size_t i = 0; i < engine->layout.count; i++) {
    const struct reduce_piece *piece = &engine->layout.pieces[i];
    if (pwi_values_decode(engine->codec, engine->layout.codec, (enum pwi_value_type)(int)piece->type,
                          payload + piece->offset, piece->encoded, into + offset, piece->count) ||
        !pwi_reduce_is_finite(piece->type, into + offset, piece->count))
      return false;
    offset += padded(piece->size);
  }
  return true;
}

/* The slot is copied first, because the peer may change it. False if the payload is bad. */
bool pwi_reduce_take_significant(struct pwi_reduce *engine, struct reduce_peer *peer) {
  const unsigned char *memory = pwi_net_region_memory(peer->slot->region);
  struct reduce_header header;
  unsigned char head[REDUCE_HEADER_SIZE];
  memcpy(head, memory, sizeof head);
  pwi_reduce_header_decode(head, &header);
  if (header.size > engine->layout.capacity) return false;
  memcpy(engine->scratch, memory + REDUCE_HEADER_SIZE, header.size);
  if (engine->config.what == PAWL_REDUCE_MEAN) memset(peer->mirror, 0, engine->layout.raw);
  if (header.kind == REDUCE_SPARSE) return take_sparse(engine, engine->scratch, header.size, peer->mirror);
  return header.size == engine->layout.capacity && take_dense(engine, engine->scratch, peer->mirror);
}
