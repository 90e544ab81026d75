/* The own tensors become a payload. Runs outside of the actor. */
#include "base/bytes.h"
#include "base/memory.h"
#include "peer/reduce/inside.h"

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

static pawl_status pack_pieces(struct pwi_reduce *engine, unsigned char *payload) {
  const struct reduce_layout *layout = &engine->layout;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < layout->count; i++) {
    const struct reduce_piece *piece = &layout->pieces[i];
    unsigned char *to = payload + piece->offset;
    if (layout->codec != PWI_CODEC_RAW)
      status = narrow_piece(engine, piece, to);
    else if (!pwi_reduce_copy_finite(piece->type, to, piece->values, piece->count))
      status = PAWL_DIVERGED;
  }
  return status;
}

/* Neighbours may be reading the version. The tensors may have changed since it was packed, because the step
 * failed and was begun again: they are kept elsewhere, to be restored. */
static pawl_status keep(struct pwi_reduce *engine) {
  if (!engine->scratch) engine->scratch = pwi_alloc(engine->layout.capacity + 1);
  return engine->scratch ? pack_pieces(engine, engine->scratch) : PAWL_NO_MEMORY;
}

pawl_status pwi_reduce_pack(struct pwi_reduce *engine) {
  const struct reduce_layout *layout = &engine->layout;
  unsigned buffer = (unsigned)(engine->completed + 1) % 2;
  unsigned char *memory = engine->staging[buffer];
  struct reduce_header header = {engine->completed + 1, layout->capacity, REDUCE_DENSE};
  pawl_status status = PAWL_OK;
  if (engine->is_send_skipped) return check_finite(layout); /* the buffers are in use */
  if (engine->is_kept) return keep(engine);
  pwi_reduce_hide(engine, header.version);
  if (engine->config.significant > 0) {
    status = check_finite(layout);
    if (!status) status = pwi_reduce_pack_significant(engine, memory + REDUCE_HEADER_SIZE, &header);
  } else {
    status = pack_pieces(engine, memory + REDUCE_HEADER_SIZE);
  }
  pwi_reduce_header_encode(&header, memory);
  pwi_put_u64(memory + REDUCE_HEADER_SIZE + layout->capacity, header.version);
  engine->staged_header[buffer] = header;
  return status;
}
