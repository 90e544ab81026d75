/* The portable loops, the choice between the sets, and functions that write an array to two places. */
#include "store/kernels.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "store/kernels_loops.h"

#define STEP 1024                      /* bytes, so that the computed values are copied from the L1 cache */
#define STREAM_MIN ((size_t)128 << 10) /* a shorter array may still be in a cache when it is read */

PWI_ROW_FUNCTIONS()

const struct pwi_row_kernels pwi_row_kernels_plain = {.name = "plain", PWI_ROW_ENTRIES};

const struct pwi_row_kernels *pwi_row_kernels_best(void) {
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) return &pwi_row_kernels_avx2;
#endif
  return &pwi_row_kernels_plain;
}

/* A normal copy would first read the cache lines that it overwrites, which are in the reader's cache. */
static void copy_past_caches(char *to, const char *from, size_t bytes) {
#if defined(__SSE2__)
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64)
    for (int i = 0; i < 64; i += 16) _mm_stream_si128((void *)(to + i), _mm_loadu_si128((const void *)(from + i)));
#endif
  if (bytes > 0) memcpy(to, from, bytes);
}

void pwi_assign_array(void *to, const void *from, size_t bytes) {
  size_t lead = -(uintptr_t)to & 63; /* to the next whole line */
  if (bytes < STREAM_MIN) {
    memcpy(to, from, bytes);
    return;
  }
  memcpy(to, from, lead);
  copy_past_caches((char *)to + lead, (const char *)from + lead, bytes - lead);
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

void pwi_apply_array_out(enum pwi_apply apply, enum pwi_scalar type, void *to, const void *from, size_t count,
                         void *out) {
  pwi_apply_array *array = pwi_row_kernels_best()->array[apply][type - 1];
  size_t size = pwi_scalar_size(type), bytes = count * size;
  bool streams = bytes >= STREAM_MIN && (uintptr_t)out % 16 == 0;
  for (size_t done = 0, step; done < bytes; done += step) {
    step = bytes - done < STEP ? bytes - done : STEP;
    char *row = (char *)to + done, *place = (char *)out + done;
    array(row, (const char *)from + done, step / size);
    if (streams)
      copy_past_caches(place, row, step);
    else
      memcpy(place, row, step);
  }
#if defined(__SSE2__)
  if (streams) _mm_sfence(); /* makes the array visible before the reader is notified */
#endif
}
