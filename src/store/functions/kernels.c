/* The loops of server functions for any processor, and the choice between the sets. */
#include "store/functions/kernels.h"

#include "store/functions/loops.h"
#include "store/kernels.h"

#define PLAIN(name) PWI_GRADIENT_FUNCTION(, name)

PWI_GRADIENT_STEPS(PLAIN)
PWI_GRADIENT_CHECKS()

const struct pwi_gradient_kernels pwi_gradient_kernels_plain = {.name = "plain", PWI_GRADIENT_ENTRIES};

const struct pwi_gradient_kernels *pwi_gradient_kernels_best(void) {
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) return &pwi_gradient_kernels_avx2;
#endif
  return &pwi_gradient_kernels_plain;
}
