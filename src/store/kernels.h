/* The inner loops of tables: moving rows by slot, and applying arrays to arrays.
 *
 * The loops are compiled once for any processor and once for newer ones; `pwi_row_kernels_best` chooses at
 * run time. The portable set is the reference for tests: results are equal bit for bit.
 *
 * Arrays of the caller need not be aligned and never overlap a table. The functions have no side effects
 * besides their output.
 */
#ifndef PWI_STORE_KERNELS_H
#define PWI_STORE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/table.h"

#define PWI_SCALAR_COUNT 5
#define PWI_APPLY_COUNT 4

/* count values: to[i] = to[i] (+) from[i] */
typedef void pwi_apply_array(void *to, const void *from, size_t count);

/* count rows of `width` values: row slots[i] of `to` = itself (+) row i of `from`; row i of `out` is then the
 * same, unless `out` is NULL. No slot may occur twice. */
typedef void pwi_apply_rows(void *to, const uint32_t *slots, size_t count, size_t width, const void *from, void *out);

/* count rows of `bytes`: row i of `to` = row slots[i] of `from` */
typedef void pwi_gather_rows(void *to, const void *from, const uint32_t *slots, size_t count, size_t bytes);

struct pwi_row_kernels {
  const char *name;
  pwi_gather_rows *gather;
  pwi_apply_array *array[PWI_APPLY_COUNT][PWI_SCALAR_COUNT]; /* by enum pwi_apply and enum pwi_scalar - 1 */
  pwi_apply_rows *rows[PWI_APPLY_COUNT][PWI_SCALAR_COUNT];
};

extern const struct pwi_row_kernels pwi_row_kernels_plain;

/* For x86-64 with AVX2; elsewhere the name is not defined and the check returns false. */
extern const struct pwi_row_kernels pwi_row_kernels_avx2;
bool pwi_row_kernels_avx2_runs(void);

/* The fastest set for this processor. */
const struct pwi_row_kernels *pwi_row_kernels_best(void);

/* Assigns an array. A long array bypasses the caches: assigned rows are mostly those of a replica, which are
 * not read before a failover. */
void pwi_assign_array(void *to, const void *from, size_t bytes);

/* Applies an array with the best set and writes the result to `out` too. Another process reads `out`, so a
 * long array bypasses the caches. */
void pwi_apply_array_out(enum pwi_apply apply, enum pwi_scalar type, void *to, const void *from, size_t count,
                         void *out);

#endif
