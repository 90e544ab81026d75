#include "apps/mlr/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <xxhash.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/rows.h"
#include "apps/mlr/labels.h"

static_assert(PAWL_MLR_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

#define PIXEL_MAX 255

double mlr_row_square(struct mlr_row row) {
  double sum = 0;
  for (size_t i = 0; i < row.count; i++) sum += (double)row.values[i] * (double)row.values[i];
  return sum;
}

void pawl_mlr_rows_destroy(struct pawl_mlr_rows *rows) {
  if (!rows) return;
  apps_free(rows->ids);
  apps_free(rows->starts);
  apps_free(rows->at);
  apps_free(rows->values);
  apps_free(rows->dense);
  apps_free(rows->classes);
  apps_names_fini(&rows->labels);
  apps_free(rows);
}

void pawl_mlr_rows_info(const struct pawl_mlr_rows *rows, struct pawl_mlr_rows_info *info_out) {
  *info_out = rows->info;
}

const uint32_t *pawl_mlr_rows_classes(const struct pawl_mlr_rows *rows) { return rows->classes; }

const char *pawl_mlr_rows_label(const struct pawl_mlr_rows *rows, uint32_t number) {
  return apps_names_get(&rows->labels, number);
}

const char *pawl_mlr_rows_first_bad(const struct pawl_mlr_rows *rows) { return rows->first_bad; }

const uint64_t *pawl_mlr_rows_ids(const struct pawl_mlr_rows *rows) { return rows->ids; }

void pawl_mlr_rows_values(const struct pawl_mlr_rows *rows, uint64_t row, float *values_out) {
  size_t features = (size_t)rows->info.features;
  struct mlr_row is = mlr_row_of(rows, NULL, (size_t)row);
  memset(values_out, 0, features * sizeof *values_out);
  for (size_t i = 0; i < is.count; i++) values_out[is.at ? is.at[i] : i] += is.values[i];
}

static uint64_t hash(const void *bytes, size_t size, uint64_t seed) {
  return size ? XXH3_64bits_withSeed(bytes, size, seed) : seed;
}

uint64_t pawl_mlr_rows_digest(const struct pawl_mlr_rows *rows) {
  size_t count = (size_t)rows->info.rows, features = (size_t)rows->info.features;
  uint64_t sum = hash(rows->ids, features * sizeof *rows->ids, count);
  sum = hash(rows->classes, count * sizeof *rows->classes, sum);
  sum = hash(rows->labels.text, rows->labels.size, sum);
  if (rows->dense) return hash(rows->dense, count * features * sizeof *rows->dense, sum + 1);
  sum = hash(rows->starts, (count + 1) * sizeof *rows->starts, sum);
  sum = hash(rows->at, (size_t)rows->info.entries * sizeof *rows->at, sum);
  return hash(rows->values, (size_t)rows->info.entries * sizeof *rows->values, sum);
}

/* --- rows of files ---------------------------------------------------------------------------------------- */

/* The rows take over everything. */
static void adopt(struct apps_rows *from, struct pawl_mlr_rows *rows) {
  rows->info = (struct pawl_mlr_rows_info){.rows = from->rows,
                                           .entries = from->entries,
                                           .features = from->features,
                                           .unlabelled = from->unlabelled,
                                           .skipped = from->skipped,
                                           .binary = from->binary,
                                           .unit_rows = from->unit_rows,
                                           .hash_bits = from->hash_bits,
                                           .columns = from->columns,
                                           .label_column = from->label_column};
  rows->ids = from->ids;
  rows->starts = from->starts;
  rows->at = from->at;
  rows->values = from->values;
  rows->classes = from->labels;
  memcpy(rows->first_bad, from->first_bad, sizeof rows->first_bad);
}

static pawl_status read_rows(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                             uint32_t threads, struct pawl_labels *labels, struct pawl_mlr_rows *rows, char *error) {
  struct apps_rows from;
  pawl_status status = apps_rows_read(paths, count, reading, threads, labels, "multiclass models", &from, error);
  if (status) return status;
  adopt(&from, rows);
  return mlr_labels_sort(labels, rows, error);
}

pawl_status pawl_mlr_rows_read(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                               uint32_t threads, struct pawl_mlr_rows **rows_out, char error[PAWL_MLR_TEXT]) {
  struct pawl_mlr_rows *rows = apps_alloc_zero(1, sizeof *rows);
  struct pawl_labels *labels = NULL;
  pawl_status status = rows ? pawl_labels_create(&labels) : PAWL_NO_MEMORY;
  status = status ? apps_say(error, status, "out of memory")
                  : read_rows(paths, count, reading, threads, labels, rows, error);
  pawl_labels_release(labels);
  if (status)
    pawl_mlr_rows_destroy(rows);
  else
    *rows_out = rows;
  return status;
}

/* --- images ----------------------------------------------------------------------------------------------- */

static bool fill_images(struct pawl_mlr_rows *rows, const struct pawl_images *images) {
  size_t count = (size_t)rows->info.rows, features = (size_t)rows->info.features;
  const uint8_t *pixels = pawl_images_pixels(images), *labels = pawl_images_labels(images);
  rows->ids = apps_alloc_zero(features, sizeof *rows->ids);
  rows->classes = apps_alloc_zero(count, sizeof *rows->classes);
  rows->dense =
      features <= SIZE_MAX / sizeof *rows->dense ? apps_alloc_zero(count, features * sizeof *rows->dense) : NULL;
  if (!rows->ids || !rows->classes || !rows->dense) return false;
  for (size_t i = 0; i < features; i++) rows->ids[i] = i + 1;
  for (size_t i = 0; i < count; i++) rows->classes[i] = labels ? labels[i] : PAWL_MLR_NO_CLASS;
  for (size_t i = 0; i < count * features; i++) rows->dense[i] = (float)pixels[i] / PIXEL_MAX;
  return true;
}

pawl_status pawl_mlr_rows_of_images(const struct pawl_images *images, struct pawl_mlr_rows **rows_out,
                                    char error[PAWL_MLR_TEXT]) {
  struct pawl_images_info info;
  pawl_images_info(images, &info);
  uint64_t pixels = (uint64_t)info.channels * info.height * info.width;
  bool has_labels = pawl_images_labels(images) != NULL;
  struct pawl_mlr_rows *rows = info.count < UINT32_MAX ? apps_alloc_zero(1, sizeof *rows) : NULL;
  if (!rows) return apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu64 " images", info.count);
  rows->info = (struct pawl_mlr_rows_info){.rows = info.count,
                                           .features = pixels,
                                           .entries = info.count * pixels,
                                           .unlabelled = has_labels ? 0 : info.count,
                                           .is_images = true};
  pawl_status status = fill_images(rows, images)
                           ? mlr_labels_number(rows, has_labels ? info.classes : 0, error)
                           : apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu64 " images", info.count);
  if (status)
    pawl_mlr_rows_destroy(rows);
  else
    *rows_out = rows;
  return status;
}
