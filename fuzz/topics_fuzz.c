/* Topic models: a file unchanged, and with the correct checksum.
 *
 * covers: apps/lda/model_file.c
 */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <xxhash.h>

#include "apps/lda/model_inside.h"

#define SIZE_MOST 16384

static char *written(const struct pawl_lda_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = lda_model_fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

/* phi of all topics is a distribution, as far as the counts can be added up. */
UNTRACED static void check_numbers(const struct pawl_lda_model *model) {
  struct pawl_lda_about about;
  pawl_lda_model_about(model, &about);
  float *phi = calloc(about.topics, sizeof *phi);
  assert(phi);
  for (uint64_t w = 0; w <= about.words; w++) {
    pawl_lda_model_phi(model, w, phi);
    for (uint32_t k = 0; k < about.topics; k++) assert(phi[k] >= 0 && phi[k] <= 1.001F);
  }
  for (uint32_t k = 0; k < about.topics; k++) assert(pawl_lda_model_totals(model)[k] >= 0);
  free(phi);
}

/* An accepted model is written and read back as the same bytes. */
static void check_again(const struct pawl_lda_model *model) {
  struct pawl_lda_model *again = NULL;
  char why[PAWL_LDA_TEXT] = "";
  size_t size, other_size;
  char *bytes = written(model, &size);
  pawl_status status = lda_model_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  char *other = written(again, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  free(other);
  free(bytes);
  pawl_lda_model_destroy(again);
}

static void decode(const char *bytes, size_t size) {
  struct pawl_lda_model *model = NULL;
  char why[PAWL_LDA_TEXT] = "";
  pawl_status status = lda_model_decode(bytes, size, &model, why);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH);
  assert((status == PAWL_OK) == (model != NULL) && (status == PAWL_OK || why[0]));
  if (!model) return;
  check_numbers(model);
  check_again(model);
  status = pawl_lda_model_write(model, "/dev/null", why);
  assert(status == PAWL_OK);
  pawl_lda_model_destroy(model);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  struct pawl_lda_model *none = NULL;
  char error[PAWL_LDA_TEXT];
  pawl_status status = pawl_lda_model_read("/dev/null", &none, error);
  assert(status == PAWL_TRUNCATED);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > SIZE_MOST) return 0;
  char *bytes = malloc(size + 1); /* one 0 behind it, and then the end */
  assert(bytes);
  memcpy(bytes, data, size);
  bytes[size] = 0;
  decode(bytes, size);
  if (size >= 8) {
    pwi_put_u64((uint8_t *)bytes + size - 8, XXH3_64bits(bytes, size - 8));
    decode(bytes, size);
  }
  free(bytes);
  return 0;
}
