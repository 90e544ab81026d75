/* Files of nets: reading and writing them by their path. */
#include <stdio.h>

#include "apps/cnn/model.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

pawl_status pawl_cnn_model_write(const struct pawl_cnn_model *model, const char *path, char error[PAWL_CNN_TEXT]) {
  locale_t before, c = apps_locale_enter(&before);
  pawl_status status = apps_file_write(path, cnn_model_fill, model, error);
  apps_locale_leave(c, before);
  return status;
}

pawl_status pawl_cnn_model_read(const char *path, struct pawl_cnn_model **model_out, char error[PAWL_CNN_TEXT]) {
  char why[PAWL_CNN_TEXT] = "", *bytes;
  locale_t before, c;
  size_t size;
  pawl_status status = apps_file_read(path, &bytes, &size, error);
  if (status) return status;
  c = apps_locale_enter(&before);
  status = cnn_model_decode(bytes, size, model_out, why);
  apps_locale_leave(c, before);
  apps_free(bytes);
  return status ? apps_say(error, status, "%s: %s", path, why) : PAWL_OK;
}

bool pawl_cnn_model_is(const char *path) {
  char bytes[64];
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  size_t got = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return cnn_model_begins(bytes, got);
}
