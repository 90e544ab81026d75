/* The own tensors become a payload. Runs outside of the actor. */
#include <string.h>

#include "base/bytes.h"
#include "peer/reduce/inside.h"
#include "wire/half.h"

static bool is_finite_f32(const unsigned char *values, size_t count) {
  unsigned bad = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, values + 4 * i, sizeof bits);
    bad |= (bits & PWI_F32_INFINITY) == PWI_F32_INFINITY;
  }
  return !bad;
}

static bool is_finite_f64(const unsigned char *values, size_t count) {
  const uint64_t infinity = UINT64_C(0x7ff) << 52;
  unsigned bad = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, values + 8 * i, sizeof bits);
    bad |= (bits & infinity) == infinity;
  }
  return !bad;
}

bool pwi_reduce_is_finite(enum pawl_type type, const void *values, size_t count) {
  return type == PAWL_F32 ? is_finite_f32(values, count) : is_finite_f64(values, count);
}

/* Copies block by block, so that a block is checked while it is in the cache. */
static pawl_status copy_piece(const struct reduce_piece *piece, unsigned char *to) {
  size_t each = piece->type == PAWL_F32 ? 4 : 8;
  for (size_t at = 0; at < piece->count; at += REDUCE_BLOCK) {
    size_t count = piece->count - at < REDUCE_BLOCK ? piece->count - at : REDUCE_BLOCK;
    memcpy(to + at * each, (const unsigned char *)piece->values + at * each, count * each);
    if (!pwi_reduce_is_finite(piece->type, to + at * each, count)) return PAWL_DIVERGED;
  }
  return PAWL_OK;
}

/* A finite value may round to an infinity of the narrow type. */
static bool has_infinity(enum pwi_value_codec codec, const unsigned char *encoded, size_t count) {
  uint16_t infinity = codec == PWI_CODEC_F16 ? 0x7c00 : 0x7f80;
  unsigned bad = 0;
  if (codec == PWI_CODEC_INT8) return false;
  for (size_t i = 0; i < count; i++) bad |= (pwi_get_u16(encoded + 2 * i) & infinity) == infinity;
  return bad;
}

static pawl_status narrow_piece(struct pwi_reduce *engine, const struct reduce_piece *piece, unsigned char *to) {
  enum pwi_value_codec codec = engine->layout.codec;
  size_t size;
  if (!pwi_reduce_is_finite(piece->type, piece->values, piece->count)) return PAWL_DIVERGED;
  if (pwi_values_encode(engine->codec, codec, (enum pwi_value_type)(int)piece->type, piece->values, piece->count, to,
                        piece->encoded, &size))
    return PAWL_OVERFLOW;
  return has_infinity(codec, to, piece->count) ? PAWL_OVERFLOW : PAWL_OK;
}

static pawl_status check_finite(const struct reduce_layout *layout) {
  for (size_t i = 0; i < layout->count; i++)
    if (!pwi_reduce_is_finite(layout->pieces[i].type, layout->pieces[i].values, layout->pieces[i].count))
      return PAWL_DIVERGED;
  return PAWL_OK;
}

pawl_status pwi_reduce_pack(struct pwi_reduce *engine) {
  const struct reduce_layout *layout = &engine->layout;
  unsigned buffer = (unsigned)(engine->completed + 1) % 2;
  unsigned char *memory = engine->staging[buffer];
  struct reduce_header header = {engine->completed + 1, layout->capacity, REDUCE_DENSE};
  pawl_status status = PAWL_OK;
  if (engine->is_send_skipped) return check_finite(layout); /* the buffers are in use */
  if (engine->config.significant > 0) {
    status = check_finite(layout);
    if (!status) status = pwi_reduce_pack_significant(engine, memory + REDUCE_HEADER_SIZE, &header);
  }
  for (size_t i = 0; !status && engine->config.significant == 0 && i < layout->count; i++) {
    const struct reduce_piece *piece = &layout->pieces[i];
    unsigned char *to = memory + REDUCE_HEADER_SIZE + piece->offset;
    status = layout->codec == PWI_CODEC_RAW ? copy_piece(piece, to) : narrow_piece(engine, piece, to);
  }
  pwi_reduce_header_encode(&header, memory);
  pwi_put_u64(memory + REDUCE_HEADER_SIZE + layout->capacity, header.version);
  engine->staged_header[buffer] = header;
  return status;
}
