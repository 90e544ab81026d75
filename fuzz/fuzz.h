/* Shared by the fuzz targets: a failed property ends the run, and small numbers are drawn from the input.
 *
 * A target turns bytes into a case, and asserts its properties. Most cases come in two kinds: bytes that
 * are decoded as they are, and values made from the bytes that are encoded and decoded again. Nothing is
 * allocated for a run; where a buffer's size matters it ends where its array ends, so that the sanitizer
 * detects an overrun.
 */
#ifndef PWI_FUZZ_FUZZ_H
#define PWI_FUZZ_FUZZ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl/status.h>

#include "base/bytes.h"

/* For loops that only check: the fuzzer learns nothing from their branches, and tracing them would take
 * most of its time. */
#define UNTRACED __attribute__((noinline, no_sanitize("coverage")))

/* Called by libFuzzer. */
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, consumed from the front. Zeros follow its end. */
struct input {
  const uint8_t *at;
  size_t left;
};

static inline void draw(struct input *input, void *into, size_t size) {
  size_t step = size < input->left ? size : input->left;
  memset(into, 0, size);
  if (step) memcpy(into, input->at, step);
  input->at += step;
  input->left -= step;
}

static inline uint8_t draw_u8(struct input *input) {
  uint8_t byte;
  draw(input, &byte, sizeof byte);
  return byte;
}

static inline uint16_t draw_u16(struct input *input) {
  uint8_t bytes[2];
  draw(input, bytes, sizeof bytes);
  return pwi_get_u16(bytes);
}

static inline uint64_t draw_u64(struct input *input) {
  uint8_t bytes[8];
  draw(input, bytes, sizeof bytes);
  return pwi_get_u64(bytes);
}

#endif
