/* FIXED: lossless packing of values that need few bits, such as multiples of a step or small counts.
 *
 * A value is sign * magnitude * 2^exponent. In each block the lowest bit of all magnitudes gives the exponent
 * and the highest gives the width. The codec thus recognises values that the filter `fixed` has rounded, even
 * if the message is divided at other places than the blocks of the filter. */
#include "wire/values_codecs.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define BLOCK 256       /* values under one head */
#define WIDTH_RAW 255   /* the block is as in RAW */
#define WIDTH_MAX 25    /* with the sign */
#define PACKED_HEAD 3   /* bytes before the packed numbers: width and exponent */
#define F64_FRACTION 52 /* bits */
#define F64_BIAS 1075   /* of the exponent of a whole significand */

struct float_parts {
  uint64_t magnitude;
  int exponent;
  bool negative;
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool fixed_bound(const struct pwi_shape *shape, size_t *bound_out) {
  return pwi_add_size(shape->bytes, pwi_pieces(shape->count, BLOCK), bound_out);
}

/* --- values and their parts ----------------------------------------------------------------------------- */

/* False for values without such parts: -0.0, infinities and NaN. */
static bool split_double(double value, struct float_parts *parts) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent = (int)(bits >> F64_FRACTION & 2047);
  parts->magnitude = bits & ((UINT64_C(1) << F64_FRACTION) - 1);
  parts->negative = bits >> 63;
  if (exponent > 0) parts->magnitude |= UINT64_C(1) << F64_FRACTION;
  parts->exponent = (exponent > 0 ? exponent : 1) - F64_BIAS;
  return exponent < 2047 && (parts->magnitude > 0 || !parts->negative);
}

static bool split_integer(int64_t value, struct float_parts *parts) {
  parts->negative = value < 0;
  parts->magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  parts->exponent = 0;
  return true;
}

static bool split(const struct pwi_shape *shape, const char *values, size_t at, struct float_parts *parts) {
  const char *from = values + at * shape->value_size;
  uint64_t bits = shape->value_size == 4 ? pwi_get_u32(from) : pwi_get_u64(from);
  uint32_t low = (uint32_t)bits;
  float narrow;
  double wide;
  switch (shape->type) {
  case PWI_TYPE_F32:
    memcpy(&narrow, &low, sizeof narrow);
    return split_double((double)narrow, parts);
  case PWI_TYPE_F64:
    memcpy(&wide, &bits, sizeof wide);
    return split_double(wide, parts);
  case PWI_TYPE_I32:
    return split_integer((int32_t)low, parts);
  case PWI_TYPE_I64:
    return split_integer((int64_t)bits, parts);
  case PWI_TYPE_U64:
    *parts = (struct float_parts){.magnitude = bits};
    return true;
  }
  return false;
}

static void put_float(const struct pwi_shape *shape, double value, char *to) {
  float narrow = (float)value;
  if (shape->type == PWI_TYPE_F32)
    memcpy(to, &narrow, sizeof narrow);
  else
    memcpy(to, &value, sizeof value);
}

static void put_integer(const struct pwi_shape *shape, uint64_t value, char *to) {
  if (shape->value_size == 4)
    pwi_put_u32(to, (uint32_t)value);
  else
    pwi_put_u64(to, value);
}

/* --- encoding ------------------------------------------------------------------------------------------- */

struct fixed_layout {
  unsigned width; /* 0: all zeros; WIDTH_RAW */
  int exponent;
};

static struct fixed_layout plan_block(const struct pwi_shape *shape, const char *values, size_t count) {
  struct fixed_layout raw = {WIDTH_RAW, 0};
  struct float_parts parts;
  int low = INT_MAX, high = INT_MIN;
  for (size_t i = 0; i < count; i++) {
    if (!split(shape, values, i, &parts)) return raw;
    if (parts.magnitude == 0) continue;
    int first = parts.exponent + __builtin_ctzll(parts.magnitude);
    int last = parts.exponent + 63 - __builtin_clzll(parts.magnitude);
    if (first < low) low = first;
    if (last > high) high = last;
    if (high - low + 2 > WIDTH_MAX) return raw;
  }
  if (low == INT_MAX) return (struct fixed_layout){0, 0};
  struct fixed_layout plan = {(unsigned)(high - low + 2), low};
  return PACKED_HEAD + (count * plan.width + 7) / 8 < 1 + count * shape->value_size ? plan : raw;
}

static char *pack(const struct pwi_shape *shape, const char *values, size_t count, struct fixed_layout plan,
                  char *out) {
  uint64_t bits = 0;
  unsigned have = 0;
  for (size_t i = 0; i < count; i++) {
    struct float_parts parts = {0};
    split(shape, values, i, &parts);
    int up = parts.exponent - plan.exponent;
    uint64_t magnitude = parts.magnitude;
    if (magnitude) magnitude = up >= 0 ? magnitude << up : magnitude >> -up;
    bits |= (magnitude << 1 | parts.negative) << have;
    for (have += plan.width; have >= 8; have -= 8, bits >>= 8) *out++ = (char)bits;
  }
  if (have > 0) *out++ = (char)bits;
  return out;
}

static pawl_status fixed_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                                void *buffer, size_t room, size_t *size_out) {
  (void)workspace;
  (void)room;
  char *out = buffer;
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    size_t count = smaller(BLOCK, shape->count - done);
    const char *in = (const char *)values + done * shape->value_size;
    struct fixed_layout plan = plan_block(shape, in, count);
    *out++ = (char)plan.width;
    if (plan.width == WIDTH_RAW) {
      memcpy(out, in, count * shape->value_size);
      out += count * shape->value_size;
    } else if (plan.width > 0) {
      pwi_put_u16(out, (uint16_t)(int16_t)plan.exponent);
      out = pack(shape, in, count, plan, out + 2);
    }
  }
  *size_out = (size_t)(out - (char *)buffer);
  return PAWL_OK;
}

/* --- decoding ------------------------------------------------------------------------------------------- */

/* Every number of that width gives a finite value of the type. */
static bool plan_is_good(const struct pwi_shape *shape, struct fixed_layout plan) {
  int top = plan.exponent + (int)plan.width - 1; /* magnitudes are below 2^top */
  if (plan.width < 2 || plan.width > WIDTH_MAX) return false;
  switch (shape->type) {
  case PWI_TYPE_F32:
    return plan.exponent >= -149 && top <= 128;
  case PWI_TYPE_F64:
    return plan.exponent >= -1074 && top <= 1024;
  case PWI_TYPE_I32:
    return plan.exponent >= 0 && top <= 32;
  case PWI_TYPE_I64:
  case PWI_TYPE_U64:
    return plan.exponent >= 0 && top <= 64;
  }
  return false;
}

static void put_number(const struct pwi_shape *shape, uint64_t number, struct fixed_layout plan, double step,
                       char *to) {
  uint64_t magnitude = number >> 1;
  if (pwi_value_type_is_float(shape->type)) {
    double value = (double)magnitude * step;
    put_float(shape, number & 1 ? -value : value, to);
  } else {
    uint64_t value = magnitude << plan.exponent;
    put_integer(shape, number & 1 ? 0 - value : value, to);
  }
}

static pawl_status unpack(const struct pwi_shape *shape, const unsigned char *in, size_t count,
                          struct fixed_layout plan, char *values) {
  uint64_t bits = 0, mask = (UINT64_C(1) << plan.width) - 1;
  unsigned have = 0;
  double step = pwi_value_type_is_float(shape->type) ? ldexp(1, plan.exponent) : 0;
  for (size_t i = 0; i < count; i++) {
    for (; have < plan.width; have += 8) bits |= (uint64_t)*in++ << have;
    put_number(shape, bits & mask, plan, step, values + i * shape->value_size);
    bits >>= plan.width;
    have -= plan.width;
  }
  return bits == 0 ? PAWL_OK : PAWL_CORRUPT;
}

/* Decodes one block at `*at` and advances `*at` past it. */
static pawl_status decode_block(const struct pwi_shape *shape, const unsigned char **at, const unsigned char *end,
                                size_t count, char *values) {
  const unsigned char *in = *at;
  if (in == end) return PAWL_TRUNCATED;
  struct fixed_layout plan = {*in++, 0};
  size_t left = (size_t)(end - in), bytes = count * shape->value_size;
  if (plan.width == 0 || plan.width == WIDTH_RAW) {
    size_t size = plan.width ? bytes : 0;
    if (left < size) return PAWL_TRUNCATED;
    if (plan.width)
      memcpy(values, in, size);
    else
      memset(values, 0, bytes);
    *at = in + size;
    return PAWL_OK;
  }
  if (left < 2) return PAWL_TRUNCATED;
  plan.exponent = (int16_t)pwi_get_u16(in);
  if (!plan_is_good(shape, plan)) return PAWL_CORRUPT;
  size_t size = (count * plan.width + 7) / 8;
  if (left - 2 < size) return PAWL_TRUNCATED;
  *at = in + 2 + size;
  return unpack(shape, in + 2, count, plan, values);
}

static pawl_status fixed_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                                size_t size, void *values) {
  (void)workspace;
  const unsigned char *at = data, *end = at + size;
  for (size_t done = 0; done < shape->count; done += BLOCK) {
    size_t count = smaller(BLOCK, shape->count - done);
    pawl_status status = decode_block(shape, &at, end, count, (char *)values + done * shape->value_size);
    if (status != PAWL_OK) return status;
  }
  return at == end ? PAWL_OK : PAWL_CORRUPT;
}

const struct pwi_codec_ops pwi_codec_fixed = {"fixed", false, fixed_bound, fixed_encode, fixed_decode};
