/* Arithmetic on sizes that came from a network, a file or a user.
 *
 * Each returns true and writes its result, or returns false and writes nothing when the result does not fit.
 */
#ifndef PWI_BASE_CHECKED_H
#define PWI_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool pwi_add_size(size_t a, size_t b, size_t *sum_out) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *sum_out = sum;
  return true;
}

static inline bool pwi_mul_size(size_t a, size_t b, size_t *product_out) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *product_out = product;
  return true;
}

static inline bool pwi_add_u64(uint64_t a, uint64_t b, uint64_t *sum_out) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *sum_out = sum;
  return true;
}

static inline bool pwi_mul_u64(uint64_t a, uint64_t b, uint64_t *product_out) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *product_out = product;
  return true;
}

/* The smallest multiple of `step`, a power of two, that is not less than `size`. */
static inline bool pwi_round_up(size_t size, size_t step, size_t *rounded_out) {
  size_t sum;
  if (!pwi_add_size(size, step - 1, &sum)) return false;
  *rounded_out = sum & ~(step - 1);
  return true;
}

static inline bool pwi_u64_to_size(uint64_t value, size_t *size_out) {
  if (value > SIZE_MAX) return false;
  *size_out = (size_t)value;
  return true;
}

/* True if [offset, offset + length) lies inside [0, size). */
static inline bool pwi_span_fits(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

#endif
