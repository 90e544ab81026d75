/* The loops are plain enough for compilers to use vectors: a choice between two values has no branch.
 *
 * Processors and compilers choose different NaN for the sum of two NaN, and for infinity minus infinity. Every member
 * of a small reduction computes the whole result, so a NaN is replaced by one with fixed bits. The choice is made
 * between integers, because a compiler may take any NaN for any other. */
#include "peer/collective/arithmetic.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float f32 __attribute__((may_alias, aligned(1)));
typedef double f64 __attribute__((may_alias, aligned(1)));

static inline uint32_t bits_32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint64_t bits_64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float value_32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

static inline double value_64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

static inline float sum_32(float a, float b) {
  float sum = a + b;
  return value_32(sum == sum ? bits_32(sum) : COLLECTIVE_NAN_32);
}

static inline double sum_64(double a, double b) {
  double sum = a + b;
  return value_64(sum == sum ? bits_64(sum) : COLLECTIVE_NAN_64);
}

/* `b` if it is better, else `a`, unless one of them is NaN. */
static inline float choose_32(bool is_better, float a, float b) {
  uint32_t bits = is_better ? bits_32(b) : bits_32(a);
  return value_32(isunordered(a, b) ? COLLECTIVE_NAN_32 : bits);
}

static inline double choose_64(bool is_better, double a, double b) {
  uint64_t bits = is_better ? bits_64(b) : bits_64(a);
  return value_64(isunordered(a, b) ? COLLECTIVE_NAN_64 : bits);
}

#define LOOP(expression)                                                                                               \
  for (size_t i = 0; i < count; i++) into[i] = (expression)

static void combine_32(enum pawl_collective_operator operator_, f32 *into, const f32 *first, const f32 *second,
                       size_t count) {
  if (operator_ == PAWL_COLLECTIVE_SUM)
    LOOP(sum_32(first[i], second[i]));
  else if (operator_ == PAWL_COLLECTIVE_MIN)
    LOOP(choose_32(isless(second[i], first[i]), first[i], second[i]));
  else
    LOOP(choose_32(isgreater(second[i], first[i]), first[i], second[i]));
}

static void combine_64(enum pawl_collective_operator operator_, f64 *into, const f64 *first, const f64 *second,
                       size_t count) {
  if (operator_ == PAWL_COLLECTIVE_SUM)
    LOOP(sum_64(first[i], second[i]));
  else if (operator_ == PAWL_COLLECTIVE_MIN)
    LOOP(choose_64(isless(second[i], first[i]), first[i], second[i]));
  else
    LOOP(choose_64(isgreater(second[i], first[i]), first[i], second[i]));
}

void pwi_collective_combine(enum pawl_collective_operator operator_, enum pawl_type type, void *into, const void *first,
                            const void *second, size_t count) {
  if (type == PAWL_F32)
    combine_32(operator_, into, first, second, count);
  else
    combine_64(operator_, into, first, second, count);
}
