/* fixed: rounds values to integer multiples of a step, with `bits` bits each including the sign. The codec
 * FIXED then encodes them without loss.
 *
 * The values are divided into blocks in the order in which they are sent. The step of a block is the smallest
 * power of two 2^e with max|x| <= (2^(bits-1) - 1) * 2^e. Multiples of a power of two are exact, so that
 * nothing is lost when a message is divided differently and sent again. Rounding is random or to nearest, as
 * in filter_half.c.
 *
 * Values that are not finite stay unchanged and do not affect the step. */
#include "wire/filters.h"

#include <math.h>

#include "base/random.h"

enum { BITS, BLOCK, ROUND };
enum { RANDOM, NEAREST };

#define BLOCK_HEAD 3 /* bytes of the codec's block header */

struct fixed {
  int bits;
  int least, most; /* limits of e, such that steps and multiples are finite numbers of the value type */
  size_t block;
  bool nearest;
  struct pwi_random random;
};

static const struct pawl_filter_parameter parameters[] = {
    [BITS] = {.name = "bits", .least = 2, .most = 16, .initial = 8, .whole = true},
    [BLOCK] = {.name = "block", .least = 16, .most = 65536, .initial = 256, .whole = true},
    [ROUND] = {.name = "round", .words = "random|nearest", .initial = RANDOM},
};

static pawl_status init(void *state, const struct pawl_filter_setup *setup) {
  struct fixed *filter = state;
  bool narrow = setup->type == PAWL_F32;
  filter->bits = (int)setup->parameters[BITS];
  filter->block = (size_t)setup->parameters[BLOCK];
  filter->nearest = setup->parameters[ROUND] == NEAREST;
  filter->least = narrow ? -149 : -1022;
  filter->most = (narrow ? 129 : 1025) - filter->bits;
  pwi_random_init(&filter->random, setup->seed, 0);
  return PAWL_OK;
}

static double get(const struct pawl_rows *rows, size_t at) {
  return rows->type == PAWL_F32 ? (double)((const float *)rows->values)[at] : ((const double *)rows->values)[at];
}

static void set(struct pawl_rows *rows, size_t at, double value) {
  if (rows->type == PAWL_F32)
    ((float *)rows->values)[at] = (float)value;
  else
    ((double *)rows->values)[at] = value;
}

static double largest_of(const struct pawl_rows *rows, size_t begin, size_t end) {
  double largest = 0;
  for (size_t i = begin; i < end; i++) {
    double magnitude = fabs(get(rows, i));
    if (magnitude > largest && magnitude < INFINITY) largest = magnitude;
  }
  return largest;
}

static int exponent_for(const struct fixed *filter, double largest, double multiple_max) {
  int exponent;
  frexp(largest, &exponent);
  exponent -= filter->bits - 1;
  if (exponent < filter->least) exponent = filter->least;
  if (exponent < filter->most && largest > ldexp(multiple_max, exponent)) exponent++;
  return exponent < filter->most ? exponent : filter->most;
}

static double round_multiple(struct fixed *filter, double multiple) {
  if (filter->nearest) return rint(multiple);
  double whole = floor(multiple);
  return whole + (pwi_random_unit(&filter->random) < multiple - whole);
}

static void round_block(struct fixed *filter, struct pawl_rows *rows, size_t begin, size_t end,
                        struct pawl_filter_pass *pass) {
  double multiple_max = (double)((1 << (filter->bits - 1)) - 1), largest = largest_of(rows, begin, end);
  if (largest == 0) largest = 1; /* zeros lose their sign in any case */
  int exponent = exponent_for(filter, largest, multiple_max);
  double step = ldexp(1, exponent), inverse = ldexp(1, -exponent);
  for (size_t i = begin; i < end; i++) {
    double value = get(rows, i), multiple = fabs(value) * inverse;
    if (!isfinite(value)) continue;
    if (multiple > multiple_max) {
      pass->clamped++;
      multiple = multiple_max;
    }
    multiple = round_multiple(filter, multiple) * step;
    set(rows, i, multiple > 0 ? copysign(multiple, value) : 0); /* the codec has no -0.0 */
  }
}

static void apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  struct fixed *filter = state;
  size_t count = rows->count * rows->width;
  for (size_t begin = 0; begin < count; begin += filter->block) {
    size_t end = count - begin < filter->block ? count : begin + filter->block;
    round_block(filter, rows, begin, end, pass);
  }
}

static size_t bytes(const void *state, size_t count) {
  const struct fixed *filter = state;
  size_t blocks = count / filter->block + (count % filter->block != 0);
  return (count * (size_t)filter->bits + 7) / 8 + blocks * BLOCK_HEAD;
}

const struct pawl_filter_type pwi_filter_fixed = {
    .name = "fixed",
    .summary = "rounds values to multiples of a step, a few bits each",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_FLOATS | PAWL_FILTER_CHANGES,
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .state_size = sizeof(struct fixed),
    .init = init,
    .apply = apply,
    .bytes = bytes,
};
