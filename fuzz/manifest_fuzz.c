/* Manifests of checkpoints: any text, unchanged and with the correct checksum.
 *
 * covers: src/checkpoint/manifest_text.c
 */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/memory.h"
#include "checkpoint/manifest.h"

#define TEXT_MAX 65536

/* An accepted manifest can be written, and is read back as the same. */
static void check(const char *text, size_t size) {
  struct pwi_manifest manifest = {0}, again = {0};
  char *first, *second;
  size_t first_size, second_size;
  pawl_status status = pwi_manifest_decode(text, size, &manifest);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED);
  if (status != PAWL_OK) return;
  status = pwi_manifest_encode(&manifest, &first, &first_size);
  assert(status == PAWL_OK);
  status = pwi_manifest_decode(first, first_size, &again);
  assert(status == PAWL_OK);
  status = pwi_manifest_encode(&again, &second, &second_size);
  assert(status == PAWL_OK && first_size == second_size && memcmp(first, second, first_size) == 0);
  pwi_free(first);
  pwi_free(second);
  pwi_manifest_fini(&again);
  pwi_manifest_fini(&manifest);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char text[TEXT_MAX + 64];
  if (size == 0 || size > TEXT_MAX) return 0;
  check((const char *)data, size);
  memcpy(text, data, size);
  int tail = snprintf(text + size, 64, ",\n  \"checksum\": \"%016" PRIx64 "\"\n}\n", pwi_hash(text, size, 0));
  check(text, size + (size_t)tail);
  return 0;
}
