#include "apps/mlr/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "apps/common/errors.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"
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

static uint64_t hash(const void *bytes, size_t size, uint64_t seed) {
  return size ? XXH3_64bits_withSeed(bytes, size, seed) : seed;
}

uint64_t mlr_rows_digest(const struct pawl_mlr_rows *rows) {
  size_t count = (size_t)rows->info.rows, features = (size_t)rows->info.features;
  uint64_t sum = hash(rows->ids, features * sizeof *rows->ids, count);
  sum = hash(rows->classes, count * sizeof *rows->classes, sum);
  sum = hash(rows->labels.text, rows->labels.size, sum);
  if (rows->dense) return hash(rows->dense, count * features * sizeof *rows->dense, sum + 1);
  sum = hash(rows->starts, (count + 1) * sizeof *rows->starts, sum);
  sum = hash(rows->at, (size_t)rows->info.entries * sizeof *rows->at, sum);
  return hash(rows->values, (size_t)rows->info.entries * sizeof *rows->values, sum);
}

/* --- features --------------------------------------------------------------------------------------------- */

/* Sorted ids without duplicates. */
struct id_set {
  uint64_t *ids;
  size_t count;
};

static int by_id(const void *a, const void *b) {
  uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
  return one < other ? -1 : one > other;
}

/* The ids of a piece, into memory for all its entries. */
static size_t list_ids(const struct pawl_batch *batch, uint64_t *ids) {
  size_t count = 0;
  if (batch->entries > 0) memcpy(ids, batch->ids, batch->entries * sizeof *ids);
  qsort(ids, batch->entries, sizeof *ids, by_id);
  for (size_t i = 0; i < batch->entries; i++)
    if (count == 0 || ids[count - 1] != ids[i]) ids[count++] = ids[i];
  return count;
}

/* Takes over nothing; the union is new memory. False: out of memory. */
static bool unite(struct id_set *set, const uint64_t *ids, size_t count) {
  uint64_t *both = apps_alloc_zero(set->count + count + 1, sizeof *both);
  size_t n = 0, i = 0, j = 0;
  if (!both) return false;
  while (i < set->count || j < count) {
    bool is_mine = j == count || (i < set->count && set->ids[i] <= ids[j]);
    uint64_t id = is_mine ? set->ids[i] : ids[j];
    i += i < set->count && set->ids[i] == id;
    j += j < count && ids[j] == id;
    both[n++] = id;
  }
  apps_free(set->ids);
  *set = (struct id_set){both, n};
  return true;
}

static uint32_t find_id(const struct id_set *set, uint64_t id) {
  const uint64_t *found = bsearch(&id, set->ids, set->count, sizeof id, by_id);
  return (uint32_t)(found - set->ids);
}

/* --- rows of files ---------------------------------------------------------------------------------------- */

struct row_reader {
  struct pawl_data *data;
  struct pawl_data_options reading;
  struct pawl_labels *labels;
  struct pawl_batch **batches; /* by piece */
  size_t pieces;
  struct id_set features;
  struct pawl_mlr_rows *rows;
  bool has_weights;
};

static pawl_status take(void *context, size_t piece, struct pawl_batch *batch) {
  struct row_reader *reader = context;
  reader->batches[piece] = batch;
  reader->has_weights |= batch->weights != NULL;
  uint64_t *ids = apps_alloc_zero(batch->entries + 1, sizeof *ids);
  bool is_fine = ids && unite(&reader->features, ids, list_ids(batch, ids));
  apps_free(ids);
  return is_fine ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status count_all(struct row_reader *reader, char *error) {
  struct pawl_mlr_rows_info *info = &reader->rows->info;
  for (size_t i = 0; i < reader->pieces; i++) {
    info->rows += reader->batches[i]->rows;
    info->entries += reader->batches[i]->entries;
    info->unlabelled += reader->batches[i]->unlabelled;
  }
  info->features = reader->features.count;
  if (info->rows >= UINT32_MAX || info->features >= UINT32_MAX - 1)
    return apps_say(error, PAWL_TOO_LARGE, "%" PRIu64 " rows of %" PRIu64 " features; fewer than 2^32 are possible",
                    info->rows, info->features);
  return PAWL_OK;
}

static void copy_batch(struct row_reader *reader, const struct pawl_batch *batch, size_t row, size_t entry) {
  struct pawl_mlr_rows *rows = reader->rows;
  for (size_t i = 0; i < batch->rows; i++) {
    rows->starts[row + i + 1] = entry + batch->starts[i + 1];
    rows->classes[row + i] = isnan(batch->labels[i]) ? PAWL_MLR_NO_CLASS : (uint32_t)batch->labels[i];
  }
  for (size_t i = 0; i < batch->entries; i++) {
    rows->at[entry + i] = find_id(&reader->features, batch->ids[i]);
    rows->values[entry + i] = batch->values ? batch->values[i] : 1;
  }
}

/* Joins the pieces in their order, and frees them. */
static pawl_status join(struct row_reader *reader, char *error) {
  struct pawl_mlr_rows *rows = reader->rows;
  size_t count = (size_t)rows->info.rows, entries = (size_t)rows->info.entries, row = 0, entry = 0;
  rows->starts = apps_alloc_zero(count + 1, sizeof *rows->starts);
  rows->at = apps_alloc_zero(entries + 1, sizeof *rows->at);
  rows->values = apps_alloc_zero(entries + 1, sizeof *rows->values);
  rows->classes = apps_alloc_zero(count + 1, sizeof *rows->classes);
  if (!rows->starts || !rows->at || !rows->values || !rows->classes)
    return apps_say(error, PAWL_NO_MEMORY, "no memory for %zu rows with %zu values", count, entries);
  for (size_t i = 0; i < reader->pieces; i++) {
    copy_batch(reader, reader->batches[i], row, entry);
    row += reader->batches[i]->rows;
    entry += reader->batches[i]->entries;
    pawl_batch_destroy(reader->batches[i]);
    reader->batches[i] = NULL;
  }
  rows->ids = reader->features.ids;
  reader->features.ids = NULL;
  return PAWL_OK;
}

static pawl_status check_format(const struct pawl_data_info *info, char *error) {
  if (info->format == PAWL_DATA_LDAC || info->format == PAWL_DATA_UCI || info->format == PAWL_DATA_TEXT)
    return apps_say(error, PAWL_UNSUPPORTED, "%s data has documents without labels; if it is libsvm, give its format",
                    pawl_data_format_name(info->format));
  return PAWL_OK;
}

static void note_reading(struct row_reader *reader, const struct pawl_data_info *info) {
  struct pawl_mlr_rows_info *to = &reader->rows->info;
  bool has_names = info->format == PAWL_DATA_VW || info->format == PAWL_DATA_CRITEO || info->format == PAWL_DATA_CSV;
  to->binary = reader->reading.binary;
  to->unit_rows = reader->reading.unit_rows;
  to->hash_bits = has_names ? reader->reading.hash_bits : 0;
}

static pawl_status read_all(struct row_reader *reader, uint32_t threads, char *error) {
  struct pawl_data_info info;
  pawl_data_info(reader->data, &info);
  pawl_status status = check_format(&info, error);
  if (status) return status;
  reader->pieces = info.pieces;
  reader->batches = apps_alloc_zero(info.pieces, sizeof(struct pawl_batch *));
  reader->rows = apps_alloc_zero(1, sizeof *reader->rows);
  if (!reader->batches || !reader->rows) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  status = pawl_data_read_all(reader->data, 0, info.pieces, threads, take, reader);
  if (status) return apps_say(error, status, "%s", apps_error_text(status));
  if (reader->has_weights)
    return apps_say(error, PAWL_UNSUPPORTED, "rows have weights, which multiclass models do not know; remove them");
  note_reading(reader, &info);
  reader->rows->info.columns = info.columns;
  reader->rows->info.label_column = info.label_column;
  reader->rows->info.skipped = pawl_data_skipped(reader->data);
  snprintf(reader->rows->first_bad, sizeof reader->rows->first_bad, "%s", pawl_data_first_bad(reader->data));
  status = count_all(reader, error);
  if (!status) status = join(reader, error);
  if (!status) status = mlr_labels_sort(reader->labels, reader->rows, error);
  return status;
}

static pawl_status open_and_read(struct row_reader *reader, const char *const *paths, size_t count,
                                 const struct pawl_data_options *reading, uint32_t threads, char *error) {
  struct pawl_data_options options;
  pawl_data_options_init(&options);
  if (!apps_sized_read(reading, &options, sizeof options) || options.labels)
    return apps_say(error, PAWL_INVALID, "struct pawl_data_options was not initialised, or has a table of labels");
  pawl_status status = pawl_labels_create(&reader->labels);
  options.labels = reader->labels;
  reader->reading = options;
  if (!status) status = pawl_data_open(paths, count, &options, &reader->data);
  return status ? apps_say(error, status, "%s", apps_error_text(status)) : read_all(reader, threads, error);
}

pawl_status pawl_mlr_rows_read(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                               uint32_t threads, struct pawl_mlr_rows **rows_out, char error[PAWL_MLR_TEXT]) {
  struct row_reader reader = {.data = NULL};
  pawl_status status = open_and_read(&reader, paths, count, reading, threads, error);
  for (size_t i = 0; reader.batches && i < reader.pieces; i++) pawl_batch_destroy(reader.batches[i]);
  apps_free(reader.batches);
  apps_free(reader.features.ids);
  pawl_data_close(reader.data);
  pawl_labels_release(reader.labels);
  if (status)
    pawl_mlr_rows_destroy(reader.rows);
  else
    *rows_out = reader.rows;
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
