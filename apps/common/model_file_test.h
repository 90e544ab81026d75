/* What tests of model files share: damage of every byte, headers that contradict the file, and memory that ends. A test file
 * describes its kind of model by a struct model_kind. */
#ifndef APPS_COMMON_MODEL_FILE_TEST_H
#define APPS_COMMON_MODEL_FILE_TEST_H

#include <stdlib.h>
#include <string.h>

#include "apps/common/model_arrays.h"
#include "base/memory.h"
#include "base/testing.h"

#define MODEL_TEXT 512 /* bytes of an error */

struct model_kind {
  const char *name; /* the "kind" of the header */
  pawl_status (*fill)(FILE *file, const void *model);
  pawl_status (*decode)(const char *bytes, size_t size, void **model_out, char *why);
  void (*destroy)(void *model);
};

/* The contents of the model's file, to be freed. */
static inline char *model_bytes(const struct model_kind *kind, const void *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(kind->fill(file, model), PAWL_OK);
  fclose(file);
  return bytes;
}

static inline void check_bad(const struct model_kind *kind, const char *bytes, size_t size) {
  void *again = NULL;
  char why[MODEL_TEXT] = "";
  assert_int_not_equal(kind->decode(bytes, size, &again, why), PAWL_OK);
  assert_true(!again && why[0]);
}

/* Every byte is changed, and the file is cut before every byte; behind the first 1,200 at every `step`th. */
static inline void check_damage(const struct model_kind *kind, const void *model, size_t step) {
  size_t size;
  char *bytes = model_bytes(kind, model, &size);
  for (size_t at = 0; at < size; at += at < 1200 ? 1 : step) {
    bytes[at] ^= 4;
    check_bad(kind, bytes, size);
    bytes[at] ^= 4;
    char *cut = malloc(at + 1);
    memcpy(cut, bytes, at);
    cut[at] = 0;
    check_bad(kind, cut, at);
    free(cut);
  }
  free(bytes);
}

/* Decodes the file with another value in its header, which is taken, and a correct checksum. */
static inline pawl_status decode_with(const struct model_kind *kind, const void *model, const char *key, json_t *value,
                                      char *why) {
  void *again = NULL;
  size_t size, begin;
  char *bytes = model_bytes(kind, model, &size), *changed = NULL;
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  assert_int_equal(apps_arrays_open(&arrays, kind->name, &header, why), PAWL_OK);
  begin = arrays.at;
  json_object_set_new(header, key, value);
  struct apps_array array = {bytes + begin, size - begin - 8, 1};
  FILE *file = open_memstream(&changed, &size);
  assert_int_equal(apps_arrays_write(file, header, &array, 1), PAWL_OK);
  fclose(file);
  pawl_status status = kind->decode(changed, size, &again, why);
  kind->destroy(again);
  free(bytes);
  free(changed);
  return status;
}

/* Counts of the header that cannot be. */
static inline void check_count(const struct model_kind *kind, const void *model, const char *key) {
  static const json_int_t values[] = {0, 1, 900, 1048576, 4294967293, INT64_MAX, -1};
  char why[MODEL_TEXT];
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    pawl_status status = decode_with(kind, model, key, json_integer(values[i]), why);
    assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
  }
  assert_int_equal(decode_with(kind, model, key, json_string("3"), why), PAWL_CORRUPT);
}

/* The n-th allocation of reading fails, for every n, of which there are more than `least`. */
static inline void check_memory(const struct model_kind *kind, const void *model, uint64_t least) {
  size_t size;
  char *bytes = model_bytes(kind, model, &size), why[MODEL_TEXT];
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (pawl_status status = PAWL_NO_MEMORY; status; n++) {
    void *again = NULL;
    pwi_memory_fail_after(n);
    status = kind->decode(bytes, size, &again, why);
    assert_true(pwi_memory_fail_cancel() || status == PAWL_OK);
    kind->destroy(again);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > least);
  free(bytes);
}

#endif
