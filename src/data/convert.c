/* Converts a whole data set to a cache; rows stay in the order of the files. */
#include "data/data.h"

#include <sys/stat.h>

#include "data/cache.h"

struct converting {
  struct pwi_cache_writer *writer;
  const char *path;
  struct pawl_data_progress so_far;
  bool (*progress)(void *context, const struct pawl_data_progress *progress);
  void *context;
};

static pawl_status take(void *context, size_t piece, struct pwi_batch *batch, struct pwi_fault *fault) {
  struct converting *converting = context;
  struct pawl_data_progress *so_far = &converting->so_far;
  (void)piece;
  pawl_status status = pwi_cache_writer_add(converting->writer, &batch->is, fault);
  so_far->pieces++;
  so_far->rows += batch->is.rows;
  so_far->entries += batch->is.entries;
  so_far->bytes_written = pwi_cache_writer_bytes(converting->writer);
  pwi_batch_destroy(batch);
  if (!status && converting->progress && !converting->progress(converting->context, so_far))
    status = pwi_fault(fault, PAWL_CANCELLED, "%s: cancelled; nothing was written", converting->path);
  return status;
}

/* Refuses to overwrite an input file: a later failure would lose the data. */
static pawl_status check(const struct pawl_data *data, const char *path, struct pwi_fault *fault) {
  struct stat there, other;
  if (stat(path, &there) != 0) return PAWL_OK;
  for (size_t i = 0; i < data->count; i++)
    if (stat(data->sources[i].path, &other) == 0 && other.st_dev == there.st_dev && other.st_ino == there.st_ino)
      return pwi_fault(fault, PAWL_INVALID, "%s: this file is also an input", path);
  return PAWL_OK;
}

/* A cache that is made of caches keeps the flags that all of them share. */
static bool all_are(const struct pawl_data *data, bool (*is)(const struct pwi_cache *cache)) {
  for (size_t i = 0; i < data->count; i++)
    if (!data->sources[i].cache || !is(data->sources[i].cache)) return false;
  return true;
}

pawl_status pwi_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                             bool (*progress)(void *context, const struct pawl_data_progress *progress), void *context,
                             struct pwi_fault *fault) {
  struct converting converting = {.path = path, .so_far.of = data->pieces, .progress = progress, .context = context};
  bool binary = data->options.binary || all_are(data, pwi_cache_is_binary);
  bool unit_rows = data->options.unit_rows || (!data->options.binary && all_are(data, pwi_cache_has_unit_rows));
  pawl_status status = check(data, path, fault);
  if (status) return status;
  status = pwi_cache_writer_open(path, binary, unit_rows, &converting.writer, fault);
  if (status) return status;
  status = pwi_data_read_all(data, 0, data->pieces, threads, true, take, &converting, fault);
  if (!status) return pwi_cache_writer_finish(converting.writer, fault);
  pwi_cache_writer_abandon(converting.writer);
  return status;
}
