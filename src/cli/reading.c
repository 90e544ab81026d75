#include "cli/reading.h"

#include <string.h>

bool pwi_separator_read(const char *text, struct pawl_data_options *reading) {
  static const struct {
    const char *name;
    char is;
  } names[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"\\t", '\t'}, {"space", ' '}, {"bar", '|'}};
  char is = text[0] && !text[1] ? text[0] : 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i].name, text) == 0) is = names[i].is;
  if (!is || strchr("\"\r\n+-.0123456789", is)) return false;
  reading->separator = is;
  if (reading->format == PAWL_DATA_AUTO) reading->format = PAWL_DATA_CSV;
  return true;
}

static bool cut_end(const char *path, size_t *length, const char *end) {
  size_t size = strlen(end);
  if (*length <= size || strncmp(path + *length - size, end, size) != 0) return false;
  *length -= size;
  return true;
}

static bool is_called_text(const char *path) {
  static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2"};
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
    if (cut_end(path, &length, packed[i])) break;
  return cut_end(path, &length, ".txt") || cut_end(path, &length, ".text");
}

void pwi_reading_text(const char *const *paths, size_t count, bool takes_rows, struct pawl_data_options *reading) {
  struct pawl_data_info info = {.format = PAWL_DATA_AUTO};
  struct pawl_data *data = NULL;
  if (reading->format != PAWL_DATA_AUTO) return;
  for (size_t i = 0; i < count; i++)
    if (!is_called_text(paths[i])) return;
  pawl_status status = pawl_data_open(paths, count, reading, &data);
  if (!status) pawl_data_info(data, &info);
  pawl_data_close(data);
  if (status && status != PAWL_CORRUPT && status != PAWL_INVALID) return; /* the next open reports the error */
  bool is_other = info.format == PAWL_DATA_LDAC || info.format == PAWL_DATA_UCI || info.format == PAWL_DATA_CACHE ||
                  (takes_rows && info.format == PAWL_DATA_LIBSVM);
  if (!is_other) reading->format = PAWL_DATA_TEXT;
}
