/* The loops compiled for x86-64 with AVX2 and fused multiply-add. */
#if defined(__x86_64__)

#define BPMF_TARGET __attribute__((target("avx2,fma")))
#include "apps/bpmf/kernel_loops.h"

static const struct bpmf_kernel kernels[] = BPMF_KERNELS("avx2");

const struct bpmf_kernel *bpmf_kernel_avx2(size_t width) {
  bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return runs ? &kernels[bpmf_kernel_place(width)] : NULL;
}

#else

#include "apps/bpmf/kernel.h"

const struct bpmf_kernel *bpmf_kernel_avx2(size_t width) {
  (void)width;
  return NULL;
}

#endif
