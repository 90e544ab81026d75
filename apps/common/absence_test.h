/* What tests of checkpoints share: a folder that is away for a part of a training, and a file of somebody else. */
#ifndef APPS_COMMON_ABSENCE_TEST_H
#define APPS_COMMON_ABSENCE_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common/model_arrays.h"
#include "apps/common/model_file.h"
#include "base/testing.h"

/* The folder goes away when the training reports its step `from`, and comes back at `back`; 0: never. */
struct absence {
  uint64_t from, back;
  uint64_t unsaved; /* reports that knew of a checkpoint that was not written */
  char here[300], away[310];
};

static inline void begin_absence(struct absence *absence, const char *path) {
  snprintf(absence->here, sizeof absence->here, "%s", path);
  snprintf(absence->away, sizeof absence->away, "%s.away", path);
  assert_int_equal(mkdir(absence->here, 0700), 0);
}

/* A step was reported; `unsaved` says why its checkpoint was not written, or is empty. */
static inline void note_step(struct absence *absence, uint64_t step, const char *unsaved) {
  if (step == absence->from) assert_int_equal(rename(absence->here, absence->away), 0);
  if (step == absence->back) assert_int_equal(rename(absence->away, absence->here), 0);
  absence->unsaved += *unsaved != 0;
}

/* Gives the header of a checkpoint another value, which is taken, and a correct checksum. */
static inline void set_header(const char *path, const char *kind, const char *key, json_t *value) {
  struct apps_arrays arrays = {.at = 0};
  char *bytes, why[APPS_TEXT_MAX] = "";
  json_t *header = NULL;
  assert_int_equal(apps_file_read(path, &bytes, &arrays.size, why), PAWL_OK);
  arrays.bytes = bytes;
  assert_int_equal(apps_arrays_open(&arrays, kind, &header, why), PAWL_OK);
  assert_non_null(json_object_get(header, key));
  json_object_set_new(header, key, value);
  const struct apps_array rest = {bytes + arrays.at, arrays.size - arrays.at - 8, 1};
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(apps_arrays_write(file, header, &rest, 1), PAWL_OK);
  assert_int_equal(fclose(file), 0);
  apps_free(bytes);
}

static inline void write_notes(const char *path) {
  FILE *file = fopen(path, "w");
  assert_true(file && fputs("not ours\n", file) >= 0 && fclose(file) == 0);
}

#endif
