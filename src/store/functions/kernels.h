/* The inner loops of built-in server functions that are more than add, assign, min and max.
 *
 * As with kernels.h, the loops are compiled once for any processor and once for newer ones, with equal results bit for bit;
 * the plain set is the reference. Each works on the rows of a call as <pawl/function.h> describes it, of f32 or f64.
 *
 * Where a function has several values of state, or is pushed several, for each value of a row, these stand side by side:
 * m0 v0 m1 v1 … So a block of rows is one long array whatever its width, and one loop does it.
 */
#ifndef PWI_STORE_FUNCTIONS_KERNELS_H
#define PWI_STORE_FUNCTIONS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/function.h>

/* X(name): the functions that have loops of their own. docs/functions.md has their formulas; the parameters stand in
 * store/functions/list.c, in the order in which the loops read them. */
#define PWI_STEPS(X)                                                                                                   \
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

enum pwi_step {
#define PWI_STEP_NUMBER(name) PWI_STEP_##name,
  PWI_STEPS(PWI_STEP_NUMBER)
#undef PWI_STEP_NUMBER
      PWI_STEP_COUNT
};

struct pwi_step_kernels {
  const char *name;
  void (*apply[PWI_STEP_COUNT][2])(const struct pawl_function_call *call); /* by PAWL_F32 - 1 and PAWL_F64 - 1 */

  /* Whether none of `count` values is NaN or an infinity. They need not be aligned. */
  bool (*finite[2])(const void *values, size_t count);

  /* Whether none of the numbers 1, 3, 5 … of `pairs` pairs is below zero. Aligned. */
  bool (*curved[2])(const void *values, size_t pairs);
};

extern const struct pwi_step_kernels pwi_step_kernels_plain;

/* For x86-64 with AVX2; elsewhere the name is not defined. Where it runs, so does pwi_row_kernels_avx2. */
extern const struct pwi_step_kernels pwi_step_kernels_avx2;

/* The fastest set that runs here. */
const struct pwi_step_kernels *pwi_step_kernels_best(void);

#endif
