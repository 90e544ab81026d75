/* The table for arm64: the portable loops, which compilers vectorise for NEON, except for conversions that
 * have their own instructions. */
#include "wire/values_kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "wire/values_loops.h"

static void f16_from_f32(const void *from, size_t count, void *to) {
  const char *in = from;
  char *out = to;
  size_t done = 0;
  for (; count - done >= 4; done += 4) {
    float32x4_t floats = vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)(in + done * 4)));
    vst1_u8((uint8_t *)(out + done * 2), vreinterpret_u8_f16(vcvt_f16_f32(floats)));
  }
  loop_f16_from_f32(in + done * 4, count - done, out + done * 2);
}

static void f32_from_f16(const void *from, size_t count, void *to) {
  const char *in = from;
  char *out = to;
  size_t done = 0;
  for (; count - done >= 4; done += 4) {
    float16x4_t halves = vreinterpret_f16_u8(vld1_u8((const uint8_t *)(in + done * 2)));
    vst1q_u8((uint8_t *)(out + done * 4), vreinterpretq_u8_f32(vcvt_f32_f16(halves)));
  }
  loop_f32_from_f16(in + done * 2, count - done, out + done * 4);
}

PWI_LOOP_FUNCTIONS()

static void masks_of_32(const void *from, size_t groups, uint64_t *masks_out) {
  loop_masks_of_32(from, groups, masks_out);
}

static void masks_of_64(const void *from, size_t groups, uint64_t *masks_out) {
  loop_masks_of_64(from, groups, masks_out);
}

const struct pwi_kernels pwi_kernels_neon = {
    .name = "neon",
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .masks_of_32 = masks_of_32,
    .masks_of_64 = masks_of_64,
    PWI_LOOP_ENTRIES,
};

#endif
