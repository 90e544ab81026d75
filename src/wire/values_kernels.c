/* The portable table, and the choice between tables. */
#include "wire/values_kernels.h"

#include "wire/values_loops.h"

PWI_LOOP_CONVERT(, f16_from_f32)
PWI_LOOP_CONVERT(, f32_from_f16)
PWI_LOOP_FUNCTIONS()

static void masks_of_32(const void *from, size_t groups, uint64_t *masks_out) {
  loop_masks_of_32(from, groups, masks_out);
}

static void masks_of_64(const void *from, size_t groups, uint64_t *masks_out) {
  loop_masks_of_64(from, groups, masks_out);
}

const struct pwi_kernels pwi_kernels_portable = {
    .name = "portable",
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .masks_of_32 = masks_of_32,
    .masks_of_64 = masks_of_64,
    PWI_LOOP_ENTRIES,
};

const struct pwi_kernels *pwi_kernels_best(void) {
#if defined(__x86_64__)
  if (pwi_kernels_avx2_runs()) return &pwi_kernels_avx2;
#elif defined(__aarch64__)
  return &pwi_kernels_neon;
#endif
  return &pwi_kernels_portable;
}
