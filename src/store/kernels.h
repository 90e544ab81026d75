/* The inner loops of tables: moving rows by slot, and applying arrays to arrays.
 *
 * Each set of loops is compiled once for any processor and once for newer ones; `pwi_row_kernels_best` chooses when the
 * program runs. The plain set is the reference that tests compare the others with: results are equal bit for bit.
 *
 * Caller's arrays need not be aligned, and never overlap a table. All functions are pure but for what they write.
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

/* count rows of `width` values: row slots[i] of `to` = itself (+) row i of `from`; row i of `out` is then the same, unless
 * `out` is NULL. No slot may occur twice. */
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

/* For x86-64 with AVX2; elsewhere the name is not defined and the check says no. */
extern const struct pwi_row_kernels pwi_row_kernels_avx2;
bool pwi_row_kernels_avx2_runs(void);

/* The fastest set that runs here. */
const struct pwi_row_kernels *pwi_row_kernels_best(void);

/* Assigns an array. A long one goes past the caches: rows that are assigned are mostly those of a replica, which nobody reads
 * until it takes over. */
void pwi_assign_array(void *to, const void *from, size_t bytes);

/* Applies an array, as the best set does, and writes what it has become to `out`, which somebody else will read: a long one
 * goes past the caches. */
void pwi_apply_array_out(enum pwi_apply apply, enum pwi_scalar type, void *to, const void *from, size_t count,
                         void *out);

#endif
