/* Files of metrics: bytes unchanged, and the same bytes as the header of a file whose first line, arrays and checksum are
 * correct. The arrays are those of two rows of two classes, of one feature with the id 1, and a rank of 1.
 *
 * covers: apps/dml/model_file.c
 */
#include "apps/dml/model.h"
#include "model_fuzz.h"

static const char arrays[] = "a\0b\0"
                             "\1\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\340\77" /* mean 1/2 */
                             "\0\0\200\77"         /* weight 1 */
                             "\0\0\0\277\0\0\0\77" /* points -1/2, 1/2 */
                             "\0\0\0\0\1\0\0\0";   /* classes */
#define ARRAYS (sizeof arrays - 1)

static char *written(const struct pawl_metric_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = dml_model_fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

/* An accepted model is written and read back as the same bytes. */
static void check_again(const struct pawl_metric_model *model) {
  struct pawl_metric_model *again = NULL;
  char why[PAWL_METRIC_TEXT] = "";
  size_t size, other_size;
  char *bytes = written(model, &size);
  pawl_status status = dml_model_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  char *other = written(again, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  free(other);
  free(bytes);
  pawl_metric_model_destroy(again);
}

static void decode(const char *bytes, size_t size) {
  struct pawl_metric_model *model = NULL;
  char why[PAWL_METRIC_TEXT] = "";
  pawl_status status = dml_model_decode(bytes, size, &model, why);
  assert((status == PAWL_OK) == (model != NULL) && (status == PAWL_OK || why[0]));
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH);
  if (model) check_again(model);
  pawl_metric_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char file[MODEL_ROOM(ARRAYS)];
  fuzz_model(data, size, arrays, ARRAYS, file, decode);
  return 0;
}
