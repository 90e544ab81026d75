/* <pawl/data.h>: wraps src/data and copies its faults to pawl_error_text. */
#include <pawl/data.h>

#include <string.h>

#include <pawl/session.h>

#include "api/error.h"
#include "api/options.h"
#include "data/data.h"
#include "data/names.h"
#include "data/formats/csv_layout.h"

static pawl_status say(pawl_status status, const struct pwi_fault *fault) {
  return status ? pwi_error(status, "%s", fault->text) : PAWL_OK;
}

/* --- opening -------------------------------------------------------------------------------------------- */

void pawl_data_options_init_sized(struct pawl_data_options *options, size_t struct_size) {
  const struct pawl_data_options defaults = {.hash_bits = PWI_DATA_HASH_BITS};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

pawl_status pawl_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                           struct pawl_data **data_out) {
  struct pawl_data_options is;
  struct pwi_fault fault = {""};
  pawl_data_options_init(&is);
  pawl_status status = pwi_take_options("data", options, &is, sizeof is);
  return status ? status : say(pwi_data_open(paths, count, &is, data_out, &fault), &fault);
}

void pawl_data_close(struct pawl_data *data) { pwi_data_close(data); }

void pawl_data_info(const struct pawl_data *data, struct pawl_data_info *info_out) {
  *info_out = (struct pawl_data_info){.files = data->count,
                                      .pieces = data->pieces,
                                      .bytes = data->bytes,
                                      .format = data->sources[0].rule.format,
                                      .fingerprint = data->fingerprint};
  pwi_data_counts(data, &info_out->rows, &info_out->entries, &info_out->max_id);
  if (info_out->format != PAWL_DATA_CSV) return;
  info_out->columns = data->sources[0].rule.table.width;
  if (!data->sources[0].rule.table.lacks_label) info_out->label_column = data->sources[0].rule.table.label + 1;
}

const char *pawl_data_file(const struct pawl_data *data, size_t file, uint64_t *size_out) {
  if (file >= data->count) return NULL;
  if (size_out) *size_out = data->sources[file].size;
  return data->sources[file].path;
}

size_t pawl_data_column_name(const struct pawl_data *data, uint64_t column, char *name, size_t room) {
  const struct pwi_source *source = &data->sources[0];
  struct pwi_field field;
  size_t length = 0;
  if (!source->head || source->rule.format != PAWL_DATA_CSV || column < 1 || column > SIZE_MAX) return 0;
  if (!pwi_csv_name(source->head, source->head + source->head_size, source->rule.table.separator, (size_t)column - 1,
                    &field))
    return 0;
  for (const char *at = field.begin; at < field.end; at++) {
    if (field.is_quoted && *at == '"') at++; /* one of the two quotes */
    if (length + 1 < room) name[length] = *at;
    length++;
  }
  if (room) name[length + 1 < room ? length : room - 1] = 0;
  return length;
}

const char *pawl_data_format_name(enum pawl_data_format format) { return pwi_data_format_name(format); }

pawl_status pawl_data_format_parse(const char *name, enum pawl_data_format *format_out) {
  for (enum pawl_data_format format = PAWL_DATA_AUTO; format <= PAWL_DATA_TEXT; format++)
    if (strcmp(name, pwi_data_format_name(format)) == 0) {
      *format_out = format;
      return PAWL_OK;
    }
  return pwi_error(PAWL_INVALID, "unknown data format %s; known: auto, libsvm, vw, criteo, csv, cache, ldac, uci, text",
                   name);
}

/* --- names ---------------------------------------------------------------------------------------------- */

pawl_status pawl_data_names(struct pawl_data *data, const uint64_t *ids, size_t count, uint32_t threads,
                            struct pawl_names **names_out) {
  struct pwi_fault fault = {""};
  return say(pwi_feature_names_find(data, ids, count, threads, names_out, &fault), &fault);
}

const char *pawl_names_at(const struct pawl_names *names, size_t i) {
  return i < names->count ? names->names[i] : NULL;
}

void pawl_names_destroy(struct pawl_names *names) { pwi_feature_names_destroy(names); }

/* --- reading -------------------------------------------------------------------------------------------- */

pawl_status pawl_data_read(struct pawl_data *data, size_t piece, struct pawl_batch **batch_out) {
  struct pwi_fault fault = {""};
  struct pwi_batch *batch;
  pawl_status status = pwi_data_read(data, piece, &batch, &fault);
  if (!status) *batch_out = &batch->is;
  return say(status, &fault);
}

void pawl_batch_destroy(struct pawl_batch *batch) { pwi_batch_destroy((struct pwi_batch *)batch); }

struct piece_receiver {
  pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch);
  void *context;
};

/* The receiver may fail in another thread than the caller's; its text is copied from there. */
static pawl_status take(void *context, size_t piece, struct pwi_batch *batch, struct pwi_fault *fault) {
  const struct piece_receiver *taking = context;
  pawl_status status = taking->take(taking->context, piece, &batch->is);
  return status ? pwi_fault(fault, status, "%s", pawl_error_text()) : PAWL_OK;
}

pawl_status pawl_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                               pawl_status (*take_one)(void *context, size_t piece, struct pawl_batch *batch),
                               void *context) {
  struct piece_receiver taking = {take_one, context};
  struct pwi_fault fault = {""};
  return say(pwi_data_read_all(data, begin, end, threads, false, take, &taking, &fault), &fault);
}

uint64_t pawl_data_skipped(const struct pawl_data *data) { return atomic_load(&data->skipped); }

const char *pawl_data_first_bad(const struct pawl_data *data) {
  return atomic_load(&data->has_first_bad) ? data->first_bad.text : "";
}

/* --- columns, and caches -------------------------------------------------------------------------------- */

pawl_status pawl_data_read_columns(struct pawl_data *data, size_t piece, struct pawl_columns **columns_out) {
  struct pwi_fault fault = {""};
  struct pwi_columns *columns;
  pawl_status status = pwi_data_read_columns(data, piece, &columns, &fault);
  if (!status) *columns_out = &columns->is;
  return say(status, &fault);
}

void pawl_columns_destroy(struct pawl_columns *columns) { pwi_columns_destroy((struct pwi_columns *)columns); }

pawl_status pawl_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                              bool (*progress)(void *context, const struct pawl_data_progress *progress),
                              void *context) {
  struct pwi_fault fault = {""};
  return say(pwi_data_convert(data, path, threads, progress, context, &fault), &fault);
}
