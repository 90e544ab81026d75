/* The loops of server functions for any processor, and the choice between the sets. */
#include "store/functions/kernels.h"

#include "store/functions/loops.h"
#include "store/kernels.h"

#define PLAIN(name) PWI_STEP_FUNCTION(, name)

PWI_STEPS(PLAIN)
PWI_STEP_CHECKS()

const struct pwi_step_kernels pwi_step_kernels_plain = {.name = "plain", PWI_STEP_ENTRIES};

const struct pwi_step_kernels *pwi_step_kernels_best(void) {
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) return &pwi_step_kernels_avx2;
#endif
  return &pwi_step_kernels_plain;
}
