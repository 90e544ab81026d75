/* The loops are plain enough for compilers to use vectors: a choice between two values has no branch. */
#include "peer/collective/arithmetic.h"

typedef float f32 __attribute__((may_alias, aligned(1)));
typedef double f64 __attribute__((may_alias, aligned(1)));

/* The second one only if it is strictly better, or if it is NaN and the first one is not. */
#define LEAST(a, b) ((b) < (a) ? (b) : (b) == (b) ? (a) : (a) == (a) ? (b) : (a))
#define MOST(a, b) ((b) > (a) ? (b) : (b) == (b) ? (a) : (a) == (a) ? (b) : (a))

#define LOOP(expression)                                                                                               \
  for (size_t i = 0; i < count; i++) into[i] = (expression)

static void combine_32(enum pawl_collective_operator operator_, f32 *into, const f32 *first, const f32 *second,
                       size_t count) {
  if (operator_ == PAWL_COLLECTIVE_SUM)
    LOOP(first[i] + second[i]);
  else if (operator_ == PAWL_COLLECTIVE_MIN)
    LOOP(LEAST(first[i], second[i]));
  else
    LOOP(MOST(first[i], second[i]));
}

static void combine_64(enum pawl_collective_operator operator_, f64 *into, const f64 *first, const f64 *second,
                       size_t count) {
  if (operator_ == PAWL_COLLECTIVE_SUM)
    LOOP(first[i] + second[i]);
  else if (operator_ == PAWL_COLLECTIVE_MIN)
    LOOP(LEAST(first[i], second[i]));
  else
    LOOP(MOST(first[i], second[i]));
}

void pwi_collective_combine(enum pawl_collective_operator operator_, enum pawl_type type, void *into, const void *first,
                            const void *second, size_t count) {
  if (type == PAWL_F32)
    combine_32(operator_, into, first, second, count);
  else
    combine_64(operator_, into, first, second, count);
}
