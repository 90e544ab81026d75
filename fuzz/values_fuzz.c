/* Value codecs: any bytes for any codec, type and small count, and any values in a round trip.
 *
 * covers: src/wire/values.c src/wire/values_bitmap.c src/wire/values_int8.c
 * covers: src/wire/values_narrow.c src/wire/values_packed.c src/wire/values_fixed.c
 */
#include "fuzz.h"

#include <math.h>

#include "base/memory.h"
#include "wire/half.h"
#include "wire/values.h"

#define COUNT_MAX 4500 /* more than a chunk of the bitmap */
#define ROOM (COUNT_MAX * 8)

static struct pwi_codec *workspace;
static uint8_t values[ROOM], back[ROOM], third[ROOM], encoded[2 * ROOM];

/* The parameters of a run. */
struct shape {
  enum pwi_value_codec codec;
  enum pwi_value_type type;
  size_t count, value_size;
};

/* Also allocates, which is the only thing that can fail here. */
int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count;
  (void)arguments;
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_codec_create(&workspace);
    bool failed = pwi_memory_fail_cancel();
    assert(status == (failed ? PAWL_NO_MEMORY : PAWL_OK));
    if (!failed) break;
  }
  pwi_codec_destroy(workspace);
  assert(pwi_codec_create(&workspace) == PAWL_OK);
  return 0;
}

static double value_at(const struct shape *shape, const uint8_t *from, size_t index) {
  float single;
  double wide;
  if (shape->type == PWI_TYPE_F32) {
    memcpy(&single, from + index * 4, sizeof single);
    return (double)single;
  }
  memcpy(&wide, from + index * 8, sizeof wide);
  return (double)(float)wide; /* as a lossy codec converts it first */
}

/* Each value is off by at most half a scale, a little more for the last bits of an f32. */
UNTRACED static void check_int8(const struct shape *shape, const uint8_t *before, const uint8_t *after) {
  for (size_t start = 0; start < shape->count; start += 256) {
    size_t end = start + 256 < shape->count ? start + 256 : shape->count;
    double largest = 0;
    for (size_t i = start; i < end; i++) largest = fmax(largest, fabs(value_at(shape, before, i)));
    double scale = fmax(largest / 127, 0x1p-126), allowed = scale * (0.5 + 1e-4);
    for (size_t i = start; i < end; i++)
      assert(fabs(value_at(shape, before, i) - value_at(shape, after, i)) <= allowed);
  }
}

UNTRACED static bool int8_can_hold(const struct shape *shape, const uint8_t *from) {
  for (size_t i = 0; i < shape->count; i++)
    if (!isfinite(value_at(shape, from, i))) return false;
  return true;
}

/* Narrowing twice gives the same as narrowing once. */
UNTRACED static bool is_same_narrow(const struct shape *shape, const uint8_t *a, const uint8_t *b) {
  for (size_t i = 0; i < shape->count; i++) {
    double x = value_at(shape, a, i), y = value_at(shape, b, i);
    if (isnan(x) ? !isnan(y) : x != y || signbit(x) != signbit(y)) return false;
  }
  return true;
}

/* Encodes into exactly the bound and decodes from exactly the size. */
static pawl_status there_and_back(const struct shape *shape, const uint8_t *from, uint8_t *to) {
  size_t bound, size = 0;
  pawl_status status = pwi_values_bound(shape->codec, shape->type, shape->count, &bound);
  if (status != PAWL_OK) return status;
  assert(bound <= sizeof encoded);
  uint8_t *bytes = encoded + sizeof encoded - bound;
  status = pwi_values_encode(workspace, shape->codec, shape->type, from, shape->count, bytes, bound, &size);
  if (status != PAWL_OK) return status;
  assert(size <= bound && (size > 0) == (shape->count > 0));
  memmove(encoded + sizeof encoded - size, bytes, size);
  bytes = encoded + sizeof encoded - size;
  status = pwi_values_decode(workspace, shape->codec, shape->type, bytes, size, to, shape->count);
  assert(status == PAWL_OK);
  if (size > 0)
    assert(pwi_values_decode(workspace, shape->codec, shape->type, bytes, size - 1, third, shape->count) != PAWL_OK);
  if (bound > 0)
    assert(pwi_values_encode(workspace, shape->codec, shape->type, from, shape->count, bytes, bound - 1, &size) ==
           PAWL_INVALID);
  return PAWL_OK;
}

/* Arrays of exact size, so that an overrun is detected. */
static uint8_t *exact(uint8_t *room, const struct shape *shape) {
  return room + ROOM - shape->count * shape->value_size;
}

static void check_round_trip(const struct shape *shape, const uint8_t *from, bool narrowed) {
  uint8_t *to = exact(back, shape);
  pawl_status status = there_and_back(shape, from, to);
  if (shape->codec >= PWI_CODEC_COUNT || shape->value_size == 0) {
    assert(status == PAWL_UNSUPPORTED);
  } else if (!pwi_value_codec_is_lossy(shape->codec)) {
    assert(status == PAWL_OK && memcmp(from, to, shape->count * shape->value_size) == 0);
  } else if (!pwi_value_type_is_float(shape->type)) {
    assert(status == PAWL_INVALID);
  } else if (shape->codec == PWI_CODEC_INT8) {
    assert(status == (int8_can_hold(shape, from) ? PAWL_OK : PAWL_INVALID));
    if (status == PAWL_OK) check_int8(shape, from, to);
  } else {
    assert(status == PAWL_OK);
    if (narrowed) assert(is_same_narrow(shape, from, to));
  }
}

static void decode(const struct shape *shape, const uint8_t *data, size_t size) {
  uint8_t *to = exact(values, shape);
  pawl_status status = pwi_values_decode(workspace, shape->codec, shape->type, data, size, to, shape->count);
  assert(status == PAWL_OK || status == PAWL_TRUNCATED || status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
  assert((status == PAWL_UNSUPPORTED) == (shape->codec >= PWI_CODEC_COUNT || shape->value_size == 0));
  if (status == PAWL_OK) check_round_trip(shape, to, true);
}

/* Repeats the input, with a stretch of zeros after each repetition. */
static void fill(const struct shape *shape, struct input *input, uint8_t *to) {
  size_t bytes = shape->count * shape->value_size, zeros = 16 + (size_t)draw_u8(input) * draw_u8(input) % 700;
  memset(to, 0, bytes);
  for (size_t done = 0; done < bytes; done += input->left + zeros) {
    size_t step = input->left < bytes - done ? input->left : bytes - done;
    if (step) memcpy(to + done, input->at, step);
  }
}

UNTRACED static void check_zero_fraction(const struct shape *shape, const uint8_t *from) {
  double fraction = pwi_values_zero_fraction(shape->type, from, shape->count);
  assert(fraction >= 0 && fraction <= 1);
  if (shape->count == 0 || shape->count > 256 || shape->value_size == 0) return;
  static const uint8_t zero[8];
  size_t zeros = 0;
  for (size_t i = 0; i < shape->count; i++) zeros += memcmp(from + i * shape->value_size, zero, shape->value_size) == 0;
  assert(fraction == (double)zeros / (double)shape->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t which = draw_u8(&input);
  struct shape shape = {.codec = (enum pwi_value_codec)(which / 2 % (PWI_CODEC_COUNT + 1)),
                        .type = (enum pwi_value_type)(draw_u8(&input) % 7)};
  uint16_t count = draw_u16(&input); /* the upper bits make most counts small */
  shape.count = (size_t)(count & 0x1fff) % (COUNT_MAX + 1) >> 2 * (count >> 13);
  shape.value_size = pwi_value_size(shape.type);
  assert(strlen(pwi_value_codec_name(shape.codec)) > 0);
  if (which % 2 == 0) {
    decode(&shape, input.at, input.left);
    return 0;
  }
  uint8_t *from = exact(values, &shape);
  fill(&shape, &input, from);
  check_zero_fraction(&shape, from);
  check_round_trip(&shape, from, false);
  return 0;
}
