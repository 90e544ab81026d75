/* The loops for any processor, and the choice between the sets. */
#include "store/kernels.h"

#include "store/kernels_loops.h"

PWI_ROW_FUNCTIONS()

const struct pwi_row_kernels pwi_row_kernels_plain = {.name = "plain", PWI_ROW_ENTRIES};

const struct pwi_row_kernels *pwi_row_kernels_best(void) {
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) return &pwi_row_kernels_avx2;
#endif
  return &pwi_row_kernels_plain;
}
