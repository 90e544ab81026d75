/* half: rounds each value to one that sixteen bits can represent, in an array of the original type. The
 * codecs F16 and BF16 then encode it without loss.
 *
 * With round=random a value x between its two neighbours a < b becomes b with probability (x - a) / (b - a).
 * Its expected value is x, so that the errors of many pushes cancel out. With round=nearest it becomes the
 * nearer neighbour, ties to even. */
#include "wire/filters.h"

#include <math.h>

#include "base/bytes.h"
#include "base/random.h"

enum { TYPE, ROUND };
enum { RANDOM, NEAREST };

/* Parameters of a sixteen-bit format relative to binary64. */
struct half_format {
  unsigned dropped; /* excess bits of the fraction */
  double largest;
  double least_normal;
  double unit; /* the distance between neighbours below least_normal */
};

static const struct half_format formats[] = {
    {42, 65504, 0x1p-14, 0x1p-24},        /* binary16 */
    {45, 0x1.fep127, 0x1p-126, 0x1p-133}, /* bfloat16 */
};

struct half_filter {
  const struct half_format *format;
  bool nearest;
  struct pwi_random random;
};

static const struct pawl_filter_parameter parameters[] = {
    [TYPE] = {.name = "type", .words = "f16|bf16"},
    [ROUND] = {.name = "round", .words = "random|nearest", .initial = RANDOM},
};

static pawl_status init(void *state, const struct pawl_filter_setup *setup) {
  struct half_filter *filter = state;
  filter->format = &formats[(size_t)setup->parameters[TYPE]];
  filter->nearest = setup->parameters[ROUND] == NEAREST;
  pwi_random_init(&filter->random, setup->seed, 0);
  return PAWL_OK;
}

/* Adds random bits to the bits that are dropped: a carry selects the upper neighbour, and may extend into the
 * exponent. */
static double round_normal(struct half_filter *filter, double magnitude) {
  unsigned dropped = filter->format->dropped;
  uint64_t bits = pwi_double_bits(magnitude), mask = (UINT64_C(1) << dropped) - 1;
  uint64_t extra = filter->nearest ? (mask >> 1) + (bits >> dropped & 1) : pwi_random_u64(&filter->random) & mask;
  return pwi_double_of_bits((bits + extra) & ~mask);
}

static double round_small(struct half_filter *filter, double magnitude) {
  double steps = magnitude / filter->format->unit;
  if (filter->nearest) return rint(steps) * filter->format->unit;
  double whole = floor(steps);
  return (whole + (pwi_random_unit(&filter->random) < steps - whole)) * filter->format->unit;
}

static double round_value(struct half_filter *filter, double value, struct pawl_filter_pass *pass) {
  double magnitude = fabs(value);
  if (!isfinite(value)) return value;
  if (magnitude > filter->format->largest) {
    pass->clamped++;
    return copysign(filter->format->largest, value);
  }
  bool normal = magnitude >= filter->format->least_normal;
  return copysign(normal ? round_normal(filter, magnitude) : round_small(filter, magnitude), value);
}

static void apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  size_t count = rows->count * rows->width;
  float *floats = rows->values;
  double *doubles = rows->values;
  if (rows->type == PAWL_F32)
    for (size_t i = 0; i < count; i++) floats[i] = (float)round_value(state, (double)floats[i], pass);
  else
    for (size_t i = 0; i < count; i++) doubles[i] = round_value(state, doubles[i], pass);
}

static size_t bytes(const void *state, size_t count) {
  (void)state;
  return count * 2;
}

const struct pawl_filter_type pwi_filter_half = {
    .name = "half",
    .summary = "rounds values to sixteen bits",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_FLOATS | PAWL_FILTER_CHANGES,
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .state_size = sizeof(struct half_filter),
    .init = init,
    .apply = apply,
    .bytes = bytes,
};
