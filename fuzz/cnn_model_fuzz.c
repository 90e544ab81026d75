/* Files of convolutional nets: bytes unchanged, and the same bytes as the header of a file whose first line, parameters
 * and checksum are correct. The parameters are as many as the smallest lenet has.
 *
 * covers: apps/cnn/model_code.c
 */
#include "apps/cnn/model.h"
#include "model_fuzz.h"

#define PARAMETERS 52072 /* of lenet for images of 1 x 16 x 16 in 2 classes */

static char *written(const struct pawl_cnn_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = cnn_model_fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

/* An accepted model is written as a file of its kind, and read back as the same bytes. */
static void check_again(const struct pawl_cnn_model *model) {
  struct pawl_cnn_model *again = NULL;
  char why[PAWL_CNN_TEXT] = "";
  size_t size, other_size;
  char *bytes = written(model, &size);
  pawl_status status = cnn_model_decode(bytes, size, &again, why);
  assert(status == PAWL_OK && cnn_model_begins(bytes, size));
  char *other = written(again, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  free(other);
  free(bytes);
  pawl_cnn_model_destroy(again);
}

static void decode(const char *bytes, size_t size) {
  struct pawl_cnn_model *model = NULL;
  char why[PAWL_CNN_TEXT] = "";
  pawl_status status = cnn_model_decode(bytes, size, &model, why);
  assert((status == PAWL_OK) == (model != NULL) && (status == PAWL_OK || why[0]));
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH || status == PAWL_TOO_LARGE || status == PAWL_INVALID);
  if (model) check_again(model);
  pawl_cnn_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char zeros[PARAMETERS * 4];
  static char file[MODEL_ROOM(PARAMETERS * 4)];
  fuzz_model(data, size, zeros, PARAMETERS * 4, file, decode);
  return 0;
}
