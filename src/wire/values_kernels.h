/* The inner loops of the value codecs, in one table per kind of processor.
 *
 * The portable table is the reference: every other table gives the same bits, and a test compares them.
 * Arrays need not be aligned; `from` and `to` must not overlap. Elements are little-endian, as in the memory
 * of all supported machines.
 */
#ifndef PWI_WIRE_VALUES_KERNELS_H
#define PWI_WIRE_VALUES_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void pwi_convert(const void *from, size_t count, void *to);

struct pwi_kernels {
  const char *name;

  pwi_convert *f16_from_f32, *f32_from_f16;
  pwi_convert *bf16_from_f32, *f32_from_bf16;
  pwi_convert *f32_odd_from_f64; /* rounded to odd: see half.h */
  pwi_convert *f32_from_f64, *f64_from_f32;

  /* The bits of the largest |x|; 0x7f800000 or above if any x is infinite or NaN. */
  uint32_t (*f32_largest)(const void *from, size_t count);

  /* x * factor rounded to nearest, ties to even. The caller ensures that the result lies within [-127,
   * 127]. */
  void (*i8_from_f32)(const void *from, size_t count, float factor, void *to);
  void (*f32_from_i8)(const void *from, size_t count, float scale, void *to);

  /* The mask of non-zero values for each group of 64 values of 32 or 64 bits. */
  void (*masks_of_32)(const void *from, size_t groups, uint64_t *masks_out);
  void (*masks_of_64)(const void *from, size_t groups, uint64_t *masks_out);
};

extern const struct pwi_kernels pwi_kernels_portable;
#if defined(__x86_64__)
extern const struct pwi_kernels pwi_kernels_avx2; /* call only where pwi_kernels_avx2_runs */
bool pwi_kernels_avx2_runs(void);
#elif defined(__aarch64__)
extern const struct pwi_kernels pwi_kernels_neon; /* every arm64 has it */
#endif

/* The fastest table for this processor. It queries the processor each time, so callers should keep the
 * result. */
const struct pwi_kernels *pwi_kernels_best(void);

#endif
