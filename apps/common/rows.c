#include "apps/common/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

void apps_rows_fini(struct apps_rows *rows) {
  apps_free(rows->ids);
  apps_free(rows->starts);
  apps_free(rows->at);
  apps_free(rows->values);
  apps_free(rows->labels);
}

/* Both lists are ascending. */
void apps_rows_match(const uint64_t *ids, uint64_t count, const uint64_t *of, uint64_t of_count, uint32_t *numbers) {
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    while (next < of_count && of[next] < ids[i]) next++;
    numbers[i] = next < of_count && of[next] == ids[i] ? (uint32_t)next : APPS_ROWS_NONE;
  }
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
  const char *models;
  struct pawl_batch **batches; /* by piece */
  size_t pieces;
  struct id_set features;
  struct apps_rows rows;
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
  struct apps_rows *info = &reader->rows;
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
  struct apps_rows *rows = &reader->rows;
  for (size_t i = 0; i < batch->rows; i++) {
    rows->starts[row + i + 1] = entry + batch->starts[i + 1];
    rows->labels[row + i] = isnan(batch->labels[i]) ? APPS_ROWS_NONE : (uint32_t)batch->labels[i];
  }
  for (size_t i = 0; i < batch->entries; i++) {
    rows->at[entry + i] = find_id(&reader->features, batch->ids[i]);
    rows->values[entry + i] = batch->values ? batch->values[i] : 1;
  }
}

/* Joins the pieces in their order, and frees them. */
static pawl_status join(struct row_reader *reader, char *error) {
  struct apps_rows *rows = &reader->rows;
  size_t count = (size_t)rows->rows, entries = (size_t)rows->entries, row = 0, entry = 0;
  rows->starts = apps_alloc_zero(count + 1, sizeof *rows->starts);
  rows->at = apps_alloc_zero(entries + 1, sizeof *rows->at);
  rows->values = apps_alloc_zero(entries + 1, sizeof *rows->values);
  rows->labels = apps_alloc_zero(count + 1, sizeof *rows->labels);
  if (!rows->starts || !rows->at || !rows->values || !rows->labels)
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
  struct apps_rows *to = &reader->rows;
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
  if (!reader->batches) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  status = pawl_data_read_all(reader->data, 0, info.pieces, threads, take, reader);
  if (status) return apps_say(error, status, "%s", apps_error_text(status));
  if (reader->has_weights)
    return apps_say(error, PAWL_UNSUPPORTED, "rows have weights, which %s do not know; remove them", reader->models);
  note_reading(reader, &info);
  reader->rows.columns = info.columns;
  reader->rows.label_column = info.label_column;
  reader->rows.skipped = pawl_data_skipped(reader->data);
  snprintf(reader->rows.first_bad, sizeof reader->rows.first_bad, "%s", pawl_data_first_bad(reader->data));
  status = count_all(reader, error);
  return status ? status : join(reader, error);
}

pawl_status apps_rows_read(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                           uint32_t threads, struct pawl_labels *labels, const char *models, struct apps_rows *rows_out,
                           char *error) {
  struct row_reader reader = {.models = models};
  pawl_data_options_init(&reader.reading);
  if (!apps_sized_read(reading, &reader.reading, sizeof reader.reading) || reader.reading.labels)
    return apps_say(error, PAWL_INVALID, "struct pawl_data_options was not initialised, or has a table of labels");
  reader.reading.labels = labels;
  pawl_status status = pawl_data_open(paths, count, &reader.reading, &reader.data);
  status = status ? apps_say(error, status, "%s", apps_error_text(status)) : read_all(&reader, threads, error);
  for (size_t i = 0; reader.batches && i < reader.pieces; i++) pawl_batch_destroy(reader.batches[i]);
  apps_free(reader.batches);
  apps_free(reader.features.ids);
  pawl_data_close(reader.data);
  if (status)
    apps_rows_fini(&reader.rows);
  else
    *rows_out = reader.rows;
  return status;
}
