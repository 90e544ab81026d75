/* The loops of server functions compiled for x86-64 with AVX2, but without FMA, which rounds once where
 * portable loops round twice. */
#include "store/functions/kernels.h"

#if defined(__x86_64__)

#include "store/functions/loops.h"

#define AVX2 __attribute__((target("avx2")))
#define FOR_AVX2(name) PWI_GRADIENT_FUNCTION(AVX2, name)

PWI_GRADIENT_STEPS(FOR_AVX2)
PWI_GRADIENT_CHECKS(AVX2)

const struct pwi_gradient_kernels pwi_gradient_kernels_avx2 = {.name = "avx2", PWI_GRADIENT_ENTRIES};

#endif
