/* F16 and BF16: floats in sixteen bits. f64 values are first rounded to odd into a block of f32 on the stack,
 * so that the final result is rounded only once. */
#include "wire/values_codecs.h"

#define BLOCK 256 /* values on the stack at a time */

static bool narrow_bound(const struct pwi_shape *shape, size_t *bound_out) {
  *bound_out = shape->count * 2; /* cannot overflow: less than the values themselves */
  return true;
}

static void narrow(const struct pwi_kernels *kernels, pwi_convert *from_f32, const struct pwi_shape *shape,
                   const void *values, void *buffer) {
  if (shape->type == PWI_TYPE_F32) {
    from_f32(values, shape->count, buffer);
    return;
  }
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    float block[BLOCK];
    size_t count = shape->count - done < BLOCK ? shape->count - done : BLOCK;
    kernels->f32_odd_from_f64((const char *)values + done * 8, count, block);
    from_f32(block, count, (char *)buffer + done * 2);
  }
}

static void widen(const struct pwi_kernels *kernels, pwi_convert *to_f32, const struct pwi_shape *shape,
                  const void *data, void *values) {
  if (shape->type == PWI_TYPE_F32) {
    to_f32(data, shape->count, values);
    return;
  }
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    float block[BLOCK];
    size_t count = shape->count - done < BLOCK ? shape->count - done : BLOCK;
    to_f32((const char *)data + done * 2, count, block);
    kernels->f64_from_f32(block, count, (char *)values + done * 8);
  }
}

static pawl_status f16_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                              void *buffer, size_t room, size_t *size_out) {
  (void)room;
  narrow(workspace->kernels, workspace->kernels->f16_from_f32, shape, values, buffer);
  *size_out = shape->count * 2;
  return PAWL_OK;
}

static pawl_status f16_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                              size_t size, void *values) {
  pawl_status status = pwi_size_must_be(size, shape->count * 2);
  if (status == PAWL_OK) widen(workspace->kernels, workspace->kernels->f32_from_f16, shape, data, values);
  return status;
}

static pawl_status bf16_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                               void *buffer, size_t room, size_t *size_out) {
  (void)room;
  narrow(workspace->kernels, workspace->kernels->bf16_from_f32, shape, values, buffer);
  *size_out = shape->count * 2;
  return PAWL_OK;
}

static pawl_status bf16_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                               size_t size, void *values) {
  pawl_status status = pwi_size_must_be(size, shape->count * 2);
  if (status == PAWL_OK) widen(workspace->kernels, workspace->kernels->f32_from_bf16, shape, data, values);
  return status;
}

const struct pwi_codec_ops pwi_codec_f16 = {"f16", true, narrow_bound, f16_encode, f16_decode};
const struct pwi_codec_ops pwi_codec_bf16 = {"bf16", true, narrow_bound, bf16_encode, bf16_decode};
