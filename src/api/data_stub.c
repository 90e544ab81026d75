/* Stands in for the readers while they are being written. */
#include <sys/stat.h>

#include <pawl/data.h>

#include "api/error.h"
#include "base/memory.h"

struct pawl_data {
  int nothing;
};

void pawl_data_options_init(struct pawl_data_options *options) {
  *options = (struct pawl_data_options){.hash_bits = 22};
}

pawl_status pawl_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                           struct pawl_data **data_out) {
  struct stat about;
  (void)options;
  for (size_t i = 0; i < count; i++) {
    if (stat(paths[i], &about) != 0) return pwi_error(PAWL_NOT_FOUND, "%s: no such file", paths[i]);
    if (about.st_size == 0) return pwi_error(PAWL_TRUNCATED, "%s: the file is empty", paths[i]);
  }
  *data_out = pwi_alloc_zero(1, sizeof **data_out);
  return *data_out ? PAWL_OK : PAWL_NO_MEMORY;
}

void pawl_data_close(struct pawl_data *data) { pwi_free(data); }

void pawl_data_info(const struct pawl_data *data, struct pawl_data_info *info_out) {
  (void)data;
  *info_out = (struct pawl_data_info){.files = 1, .pieces = 1};
}

pawl_status pawl_data_format_parse(const char *name, enum pawl_data_format *format_out) {
  *format_out = PAWL_DATA_LIBSVM;
  return *name ? PAWL_OK : PAWL_INVALID;
}

pawl_status pawl_data_read(struct pawl_data *data, size_t piece, struct pawl_batch **batch_out) {
  static const float labels[] = {-1, 1, 1};
  (void)data;
  if (piece > 0) return PAWL_OUT_OF_SPAN;
  *batch_out = pwi_alloc_zero(1, sizeof **batch_out);
  if (*batch_out) **batch_out = (struct pawl_batch){.rows = 3, .labels = labels};
  return PAWL_OK;
}

void pawl_batch_destroy(struct pawl_batch *batch) { pwi_free(batch); }

pawl_status pawl_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                               pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch),
                               void *context) {
  struct pawl_batch *batch;
  (void)begin, (void)end, (void)threads;
  pawl_status status = pawl_data_read(data, 0, &batch);
  return status ? status : take(context, 0, batch);
}
