/* Loops over the values of tensors that read and write each byte once: a copy with a check for NaN and
 * infinities, and an average with the same check.
 *
 * Values need not be aligned. The vectors are those of the compiler, of 16 bytes, which every x86-64 and
 * arm64 has. Threads: pure. / */
#ifndef PWI_PEER_REDUCE_ARITHMETIC_H
#define PWI_PEER_REDUCE_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/reduce.h>

/* False if there is NaN or an infinity. */
bool pwi_reduce_is_finite(enum pawl_type type, const void *values, size_t count);

/* Copies values; `to` and `from` do not overlap. False if there is NaN or an infinity; then an unknown part
 * of `to` was written. */
bool pwi_reduce_copy_finite(enum pawl_type type, void *to, const void *from, size_t count);

/* Adds the values of all sources in their order, divides each sum by the number of sources, at least 1, and
 * writes it to `into`, which may be one of the sources. The bits are those of a loop that adds and divides
 * single values. False if a result is NaN or an infinity; then an unknown part of `into` was written. */
bool pwi_reduce_average(enum pawl_type type, void *into, const void *const *sources, size_t source_count, size_t count);

#endif
