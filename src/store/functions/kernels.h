/* The inner loops of built-in server functions other than add, assign, min and max.
 *
 * As with store/kernels.h, the loops are compiled once for any processor and once for newer ones, with equal
 * results bit for bit; the portable set is the reference. Each works on the rows of a call, as in
 * <pawl/function.h>, of f32 or f64.
 *
 * If a function has several values of state, or receives several, per value of a row, these are interleaved:
 * m0 v0 m1 v1 … A block of rows is thus one long array of any width, which one loop processes.
 */
#ifndef PWI_STORE_FUNCTIONS_KERNELS_H
#define PWI_STORE_FUNCTIONS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/function.h>

/* X(name): the functions with their own loops. docs/functions.md has their formulas; store/functions/list.c
 * lists the parameters in the order in which the loops read them. */
#define PWI_GRADIENT_STEPS(X)                                                                                          \
  X(sgd)                                                                                                               \
  X(momentum)                                                                                                          \
  X(adagrad)                                                                                                           \
  X(adam)                                                                                                              \
  X(ftrl)                                                                                                              \
  X(block_proximal)                                                                                                    \
  X(block_newton)                                                                                                      \
  X(prox_l1)                                                                                                           \
  X(prox_l2)                                                                                                           \
  X(prox_elastic)                                                                                                      \
  X(prox_box)                                                                                                          \
  X(prox_ball)                                                                                                         \
  X(prox_nonnegative)

enum pwi_gradient_step {
#define PWI_GRADIENT_NUMBER(name) PWI_GRADIENT_##name,
  PWI_GRADIENT_STEPS(PWI_GRADIENT_NUMBER)
#undef PWI_GRADIENT_NUMBER
      PWI_GRADIENT_COUNT
};

struct pwi_gradient_kernels {
  const char *name;
  /* By PAWL_F32 - 1 and PAWL_F64 - 1. */
  void (*apply[PWI_GRADIENT_COUNT][2])(const struct pawl_function_call *call);

  /* True if all `count` values are finite. They need not be aligned. */
  bool (*finite[2])(const void *values, size_t count);

  /* A sum of products, as <pawl/function.h> says under OPERANDS: each product and each sum is rounded, in the order of
   * the operand's rows. Values of 0 are skipped. */
  void (*expand[2])(const struct pawl_function_call *call);

  /* True if the second number of every pair is not negative. The pairs are aligned. */
  bool (*curved[2])(const void *values, size_t pairs);
};

extern const struct pwi_gradient_kernels pwi_gradient_kernels_plain;

/* For x86-64 with AVX2; elsewhere the name is not defined. Where it runs, so does pwi_row_kernels_avx2. */
extern const struct pwi_gradient_kernels pwi_gradient_kernels_avx2;

/* The fastest set for this processor. */
const struct pwi_gradient_kernels *pwi_gradient_kernels_best(void);

#endif
