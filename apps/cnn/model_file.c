/* Files of nets: reading and writing them by their path. */
#include <stdio.h>

#include "apps/cnn/model.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"

pawl_status pawl_cnn_model_write(const struct pawl_cnn_model *model, const char *path, char error[PAWL_CNN_TEXT]) {
  return apps_model_write(path, cnn_model_fill, model, error);
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return cnn_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_cnn_model_read(const char *path, struct pawl_cnn_model **model_out, char error[PAWL_CNN_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}

bool pawl_cnn_model_is(const char *path) { return apps_model_file_is(path, "cnn"); }
