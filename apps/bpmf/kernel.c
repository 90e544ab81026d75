/* The loops for any processor, and the choice between the kernels. */
#define BPMF_TARGET
#include "apps/bpmf/kernel_loops.h"

static const struct bpmf_kernel kernels[] = BPMF_KERNELS("plain");

const struct bpmf_kernel *bpmf_kernel_plain(size_t width) { return &kernels[bpmf_kernel_place(width)]; }

const struct bpmf_kernel *bpmf_kernel_best(size_t width) {
  const struct bpmf_kernel *kernel = bpmf_kernel_avx2(width);
  return kernel ? kernel : bpmf_kernel_plain(width);
}
