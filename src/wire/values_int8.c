/* INT8: floats in eight bits and a scale per block. */
#include "wire/values_codecs.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "wire/half.h"

#define BLOCK 256 /* values under one scale */
#define LARGEST_Q 127.0f

/* Below the smallest scale its inverse would overflow; above the largest, 127 times it would. */
#define SMALLEST_SCALE 0x1p-126f
#define LARGEST_SCALE 0x1.020406p121f

static bool int8_bound(const struct pwi_shape *shape, size_t *bound_out) {
  return pwi_add_size(shape->count, pwi_pieces(shape->count, BLOCK) * sizeof(float), bound_out);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static float scale_for(float largest) {
  float scale = largest / LARGEST_Q;
  if (largest == 0) return 0;
  if (scale < SMALLEST_SCALE) return SMALLEST_SCALE;
  return scale < LARGEST_SCALE ? scale : LARGEST_SCALE;
}

static pawl_status encode_block(const struct pwi_kernels *kernels, const void *floats, size_t count, char *out) {
  uint32_t largest = kernels->f32_largest(floats, count);
  if (largest >= PWI_F32_INFINITY) return PAWL_INVALID;
  float scale = scale_for(pwi_float_of_bits(largest));
  pwi_put_u32(out, pwi_float_bits(scale));
  kernels->i8_from_f32(floats, count, scale > 0 ? 1 / scale : 0, out + sizeof scale);
  return PAWL_OK;
}

static pawl_status int8_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                               void *buffer, size_t room, size_t *size_out) {
  (void)room;
  const struct pwi_kernels *kernels = workspace->kernels;
  char *out = buffer;
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    size_t count = smaller(BLOCK, shape->count - done);
    const void *in = (const char *)values + done * shape->value_size;
    float block[BLOCK];
    if (shape->type == PWI_TYPE_F64) {
      kernels->f32_from_f64(in, count, block);
      in = block;
    }
    pawl_status status = encode_block(kernels, in, count, out);
    if (status != PAWL_OK) return status;
    out += sizeof(float) + count;
  }
  *size_out = (size_t)(out - (char *)buffer);
  return PAWL_OK;
}

static pawl_status int8_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                               size_t size, void *values) {
  const struct pwi_kernels *kernels = workspace->kernels;
  size_t needed = shape->count + pwi_pieces(shape->count, BLOCK) * sizeof(float);
  pawl_status status = pwi_size_must_be(size, needed);
  if (status != PAWL_OK) return status;
  const char *in = data;
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    size_t count = smaller(BLOCK, shape->count - done);
    char *out = (char *)values + done * shape->value_size;
    float block[BLOCK];
    float scale = pwi_float_of_bits(pwi_get_u32(in));
    if (!(scale >= 0 && scale <= LARGEST_SCALE)) return PAWL_CORRUPT; /* NaN, too, compares false */
    kernels->f32_from_i8(in + sizeof scale, count, scale, shape->type == PWI_TYPE_F32 ? (void *)out : block);
    if (shape->type == PWI_TYPE_F64) kernels->f64_from_f32(block, count, out);
    in += sizeof scale + count;
  }
  return PAWL_OK;
}

const struct pwi_codec_ops pwi_codec_int8 = {"int8", true, int8_bound, int8_encode, int8_decode};
