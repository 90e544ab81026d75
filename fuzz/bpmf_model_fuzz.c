/* Files of factorised ratings: bytes unchanged, and the same bytes as the header of a file whose first line, arrays and
 * checksum are correct. The arrays are those of one sample of rank 1, of one user "u" and one item "i".
 *
 * covers: apps/common/model_arrays.c apps/common/names.c
 *
 * (A fifth of apps/bpmf/model_file.c opens files, and is not reached from here.)
 */
#include "apps/bpmf/model.h"
#include "model_fuzz.h"

static const char arrays[] = "\0\0\200\77\0\0\200\77u\0i\0\1\0\0\0\0\0\0\0"; /* 1.0, 1.0, ids, one rated item: 0 */
#define ARRAYS (sizeof arrays - 1)

static char *written(const struct pawl_bpmf_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert(file);
  pawl_status status = bpmf_model_fill(file, model);
  assert(status == PAWL_OK);
  fclose(file);
  return bytes;
}

static void check_names(const struct apps_names *names) {
  uint32_t number;
  for (uint32_t i = 0; i < names->count; i++) {
    assert(apps_names_find(names, apps_names_get(names, i), &number) && number == i);
    assert(i == 0 || strcmp(apps_names_get(names, names->sorted[i - 1]), apps_names_get(names, names->sorted[i])) < 0);
  }
  assert(!apps_names_find(names, "", &number));
}

/* An accepted model is written and read back as the same bytes, and predicts. */
static void check_again(const struct pawl_bpmf_model *model) {
  struct pawl_bpmf_model *again = NULL;
  struct pawl_bpmf_prediction prediction;
  char why[PAWL_BPMF_TEXT] = "";
  size_t size, other_size;
  char *bytes = written(model, &size);
  pawl_status status = bpmf_model_decode(bytes, size, &again, why);
  assert(status == PAWL_OK);
  char *other = written(again, &other_size);
  assert(size == other_size && memcmp(bytes, other, size) == 0);
  check_names(&model->names[BPMF_USERS]);
  check_names(&model->names[BPMF_ITEMS]);
  pawl_bpmf_predict(model, model->about.users - 1, model->about.items - 1, &prediction);
  free(other);
  free(bytes);
  pawl_bpmf_model_destroy(again);
}

static void decode(const char *bytes, size_t size) {
  struct pawl_bpmf_model *model = NULL;
  char why[PAWL_BPMF_TEXT] = "";
  pawl_status status = bpmf_model_decode(bytes, size, &model, why);
  assert((status == PAWL_OK) == (model != NULL) && (status == PAWL_OK || why[0]));
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED ||
         status == PAWL_MISMATCH);
  if (model) check_again(model);
  pawl_bpmf_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char file[MODEL_ROOM(ARRAYS)];
  fuzz_model(data, size, arrays, ARRAYS, file, decode);
  return 0;
}
