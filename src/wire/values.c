#include "wire/values.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "wire/values_codecs.h"

/* Values have the same representation in memory and on the wire. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the value codecs are written for little-endian machines");
static_assert(sizeof(float) == 4 && sizeof(double) == 8, "binary32 and binary64");

static bool raw_bound(const struct pwi_shape *shape, size_t *bound_out) {
  *bound_out = shape->bytes;
  return true;
}

static pawl_status raw_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                              void *buffer, size_t room, size_t *size_out) {
  (void)workspace;
  (void)room;
  memcpy(buffer, values, shape->bytes);
  *size_out = shape->bytes;
  return PAWL_OK;
}

static pawl_status raw_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                              size_t size, void *values) {
  (void)workspace;
  pawl_status status = pwi_size_must_be(size, shape->bytes);
  if (status == PAWL_OK) memcpy(values, data, size);
  return status;
}

static const struct pwi_codec_ops raw = {"raw", false, raw_bound, raw_encode, raw_decode};

/* NULL for an unknown codec. */
static const struct pwi_codec_ops *find(enum pwi_value_codec codec) {
  static const struct pwi_codec_ops *const codecs[PWI_CODEC_COUNT] = {
      [PWI_CODEC_RAW] = &raw,
      [PWI_CODEC_BITMAP] = &pwi_codec_bitmap,
      [PWI_CODEC_F16] = &pwi_codec_f16,
      [PWI_CODEC_BF16] = &pwi_codec_bf16,
      [PWI_CODEC_INT8] = &pwi_codec_int8,
      [PWI_CODEC_LZ4] = &pwi_codec_lz4,
      [PWI_CODEC_ZSTD] = &pwi_codec_zstd,
      [PWI_CODEC_FIXED] = &pwi_codec_fixed,
  };
  size_t number = (size_t)codec;
  return number < PWI_CODEC_COUNT ? codecs[number] : NULL;
}

size_t pwi_value_size(enum pwi_value_type type) {
  switch (type) {
  case PWI_TYPE_F32:
  case PWI_TYPE_I32:
    return 4;
  case PWI_TYPE_F64:
  case PWI_TYPE_I64:
  case PWI_TYPE_U64:
    return 8;
  }
  return 0;
}

bool pwi_value_type_is_float(enum pwi_value_type type) { return type == PWI_TYPE_F32 || type == PWI_TYPE_F64; }

bool pwi_value_codec_is_lossy(enum pwi_value_codec codec) {
  const struct pwi_codec_ops *ops = find(codec);
  return ops && ops->is_lossy;
}

const char *pwi_value_codec_name(enum pwi_value_codec codec) {
  const struct pwi_codec_ops *ops = find(codec);
  return ops ? ops->name : "unknown";
}

pawl_status pwi_codec_create(struct pwi_codec **codec_out) {
  struct pwi_codec *workspace = pwi_alloc_zero(1, sizeof *workspace);
  if (!workspace) return PAWL_NO_MEMORY;
  pawl_status status = pwi_packed_init(workspace);
  if (status != PAWL_OK) {
    pwi_free(workspace);
    return status;
  }
  workspace->kernels = pwi_kernels_best();
  *codec_out = workspace;
  return PAWL_OK;
}

void pwi_codec_destroy(struct pwi_codec *workspace) {
  if (!workspace) return;
  pwi_packed_fini(workspace);
  pwi_free(workspace);
}

/* Checks codec, type and count, without looking at the values. */
static pawl_status measure(enum pwi_value_codec codec, enum pwi_value_type type, size_t count,
                           struct pwi_shape *shape_out, size_t *bound_out) {
  const struct pwi_codec_ops *ops = find(codec);
  struct pwi_shape shape = {type, count, pwi_value_size(type), 0};
  if (!ops || shape.value_size == 0) return PAWL_UNSUPPORTED;
  if (ops->is_lossy && !pwi_value_type_is_float(type)) return PAWL_INVALID;
  if (!pwi_mul_size(count, shape.value_size, &shape.bytes)) return PAWL_OVERFLOW;
  size_t bound = 0;
  if (count > 0 && !ops->bound(&shape, &bound)) return PAWL_OVERFLOW;
  *shape_out = shape;
  *bound_out = bound;
  return PAWL_OK;
}

pawl_status pwi_values_bound(enum pwi_value_codec codec, enum pwi_value_type type, size_t count, size_t *bound_out) {
  struct pwi_shape shape;
  return measure(codec, type, count, &shape, bound_out);
}

pawl_status pwi_values_encode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *values, size_t count, void *buffer, size_t capacity, size_t *size_out) {
  struct pwi_shape shape;
  size_t bound;
  pawl_status status = measure(codec, type, count, &shape, &bound);
  if (status != PAWL_OK) return status;
  if (capacity < bound) return PAWL_INVALID;
  if (count == 0) {
    *size_out = 0;
    return PAWL_OK;
  }
  return find(codec)->encode(workspace, &shape, values, buffer, capacity, size_out);
}

pawl_status pwi_values_decode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *data, size_t size, void *values, size_t count) {
  struct pwi_shape shape;
  size_t bound;
  pawl_status status = measure(codec, type, count, &shape, &bound);
  if (status == PAWL_UNSUPPORTED) return status;
  if (status != PAWL_OK) return PAWL_CORRUPT;
  if (count == 0) return pwi_size_must_be(size, 0);
  if (size == 0) return PAWL_TRUNCATED;
  return find(codec)->decode(workspace, &shape, data, size, values);
}

static bool is_zero(const void *values, size_t value_size, size_t at) {
  static const char zeros[8];
  return memcmp((const char *)values + at * value_size, zeros, value_size) == 0;
}

/* Looks at one value in each of 256 equal sections, at a scrambled position. A constant step would give wrong
 * estimates for arrays with zeros at regular distances, as in rows of a matrix. */
double pwi_values_zero_fraction(enum pwi_value_type type, const void *values, size_t count) {
  size_t value_size = pwi_value_size(type);
  size_t looks = count < 256 ? count : 256;
  if (looks == 0 || value_size == 0) return 0;
  size_t stretch = count / looks;
  size_t zeros = 0;
  for (size_t i = 0; i < looks; i++) {
    size_t at = i * stretch + (size_t)(pwi_mix64(i + 1) % stretch);
    zeros += is_zero(values, value_size, at);
  }
  return (double)zeros / (double)looks;
}
