/* The loops compiled for x86-64 with AVX2. Intrinsics are not needed: compilers vectorise the loops, and
 * moving rows by slot is limited by memory. */
#include "store/kernels.h"

#if defined(__x86_64__)

#include "store/kernels_loops.h"

#define AVX2 __attribute__((target("avx2")))

PWI_ROW_FUNCTIONS(AVX2)

const struct pwi_row_kernels pwi_row_kernels_avx2 = {.name = "avx2", PWI_ROW_ENTRIES};

bool pwi_row_kernels_avx2_runs(void) { return __builtin_cpu_supports("avx2"); }

#else

bool pwi_row_kernels_avx2_runs(void) { return false; }

#endif
