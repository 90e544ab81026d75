/* Files of dictionaries: bytes unchanged, and the same bytes as the header of a file whose first line, arrays and checksum
 * are correct. The arrays are those of two atoms of one feature with the id 1.
 *
 * covers: apps/sparse_coding/model_file.c
 */
#include "apps/sparse_coding/model.h"
#include "model_fuzz.h"

static const char arrays[] = "\1\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\360\77\0\0\0\0\0\0\340\277" /* 1, -1/2 */
                             "\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";       /* 3, 0 */
#define ARRAYS (sizeof arrays - 1)

static char *written(const struct pawl_sparse_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = sparse_model_fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

/* An accepted model is written and read back as the same bytes. */
static void check_again(const struct pawl_sparse_model *model) {
  struct pawl_sparse_model *again = NULL;
  char why[PAWL_SPARSE_TEXT] = "";
  size_t size, other_size;
  char *bytes = written(model, &size);
  pawl_status status = sparse_model_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  char *other = written(again, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  free(other);
  free(bytes);
  pawl_sparse_model_destroy(again);
}

static void decode(const char *bytes, size_t size) {
  struct pawl_sparse_model *model = NULL;
  char why[PAWL_SPARSE_TEXT] = "";
  pawl_status status = sparse_model_decode(bytes, size, &model, why);
  assert((status == PAWL_OK) == (model != NULL) && (status == PAWL_OK || why[0]));
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH);
  if (model) check_again(model);
  pawl_sparse_model_destroy(model);
}

static void check_missing_file(void) {
  struct pawl_sparse_model *model = NULL;
  char error[PAWL_SPARSE_TEXT] = "";
  assert(!pawl_sparse_model_is("no/such/file"));
  pawl_status status = pawl_sparse_model_read("no/such/file", &model, error);
  assert(status != PAWL_OK && !model && error[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char file[MODEL_ROOM(ARRAYS)];
  static bool is_first = true;
  if (is_first) check_missing_file();
  is_first = false;
  fuzz_model(data, size, arrays, ARRAYS, file, decode);
  return 0;
}
