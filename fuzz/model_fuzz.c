/* Linear models in all three formats.
 *
 * The first byte selects the format: `l` for LIBLINEAR's text; `p` for pawl's format, with the given and
 * with the correct checksum; `n`, the length of the JSON in 16 bits, the JSON, and the array.
 *
 * covers: apps/linear/model/pawl.c apps/linear/model/liblinear.c
 * covers: apps/linear/model/npy.c apps/linear/model/about.c
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include <xxhash.h>

#include "apps/linear/model/inside.h"

#define SIZE_MOST 16384
#define DENSE_MOST 2000 /* most features of a model that is written with its zeros */

/* The output of a format, followed by a 0. */
static char *written(const struct pawl_linear_model *model, pawl_status (*fill)(FILE *, const void *),
                     size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

/* `again` results from `model`: both are written as the same bytes, except for names, which only pawl's
 * format has. Frees `again`. */
static void check_same(const struct pawl_linear_model *model, struct pawl_linear_model *again) {
  struct pawl_linear_model unnamed = *model;
  if (!again->names) unnamed.names = NULL;
  model = &unnamed;
  size_t size, other_size;
  char *bytes = written(model, linear_pawl_fill, &size), *other = written(again, linear_pawl_fill, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  free(bytes);
  free(other);
  linear_model_fini(again);
}

static void check_pawl(const struct pawl_linear_model *model, char *why) {
  struct pawl_linear_model again = {0};
  size_t size;
  char *bytes = written(model, linear_pawl_fill, &size);
  pawl_status status = linear_pawl_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  free(bytes);
  check_same(model, &again);
}

static void check_liblinear(const struct pawl_linear_model *model, char *why) {
  struct pawl_linear_model again = {0};
  size_t size;
  if (linear_liblinear_check(model, why) != PAWL_OK || model->about.features > DENSE_MOST) return;
  char *bytes = written(model, linear_liblinear_fill, &size);
  pawl_status status = linear_liblinear_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  free(bytes);
  check_same(model, &again);
}

static void check_npy(const struct pawl_linear_model *model, char *why) {
  struct pawl_linear_model again = {0};
  size_t size, about_size;
  if (linear_npy_check(model, why) != PAWL_OK || model->about.features > DENSE_MOST) return;
  char *bytes = written(model, linear_npy_fill, &size), *about = written(model, linear_npy_fill_about, &about_size);
  pawl_status status = linear_npy_decode(bytes, size, about, about_size, &again, why);
  assert(status == PAWL_OK);
  free(bytes);
  free(about);
  check_same(model, &again);
}

/* An accepted model is valid and survives every format; a refused one has a reason. */
static void check(pawl_status status, struct pawl_linear_model *model, char *why) {
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH);
  assert(status == PAWL_OK || why[0]);
  if (status == PAWL_OK) {
    assert(linear_model_is_sound(model, why));
    check_pawl(model, why);
    check_liblinear(model, why);
    check_npy(model, why);
  }
  linear_model_fini(model);
}

static void decode_npy(const char *bytes, size_t size) {
  struct pawl_linear_model model = {0};
  char why[APPS_TEXT_MAX] = "";
  if (size < 2) return;
  size_t about_size = (size_t)(uint8_t)bytes[0] | (size_t)(uint8_t)bytes[1] << 8;
  if (about_size > size - 2) about_size = size - 2;
  const char *array = bytes + 2 + about_size;
  if (!linear_npy_is(array, size - 2 - about_size)) return;
  check(linear_npy_decode(array, size - 2 - about_size, bytes + 2, about_size, &model, why), &model, why);
}

static void decode_pawl(char *bytes, size_t size) {
  struct pawl_linear_model model = {0};
  char why[APPS_TEXT_MAX] = "";
  if (!linear_pawl_is(bytes, size)) return;
  check(linear_pawl_decode(bytes, size, &model, why), &model, why);
  if (size < 8) return;
  pwi_put_u64((uint8_t *)bytes + size - 8, XXH3_64bits(bytes, size - 8));
  why[0] = 0;
  check(linear_pawl_decode(bytes, size, &model, why), &model, why);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pawl_linear_model model = {0};
  char why[APPS_TEXT_MAX] = "";
  if (size < 1 || size > SIZE_MOST) return 0;
  char *bytes = malloc(size); /* one 0 behind the bytes after the first, and then the end */
  assert(bytes);
  memcpy(bytes, data + 1, size - 1);
  bytes[size - 1] = 0;
  if (data[0] == 'p') decode_pawl(bytes, size - 1);
  if (data[0] == 'n') decode_npy(bytes, size - 1);
  if (data[0] == 'l' && linear_liblinear_is(bytes, size - 1))
    check(linear_liblinear_decode(bytes, size - 1, &model, why), &model, why);
  free(bytes);
  return 0;
}
