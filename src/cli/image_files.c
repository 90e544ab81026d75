#include "cli/image_files.h"

#include <stdio.h>
#include <string.h>

#include <pawl/session.h>

bool pwi_image_files_are_meant(const char *first, enum pawl_data_format format, enum pawl_images_format image_format) {
  if (image_format) return true;
  const char *slash = strrchr(first, '/');
  return format == PAWL_DATA_AUTO && strstr(slash ? slash + 1 : first, "idx");
}

pawl_status pwi_image_files_read(const char *const *paths, size_t count, enum pawl_images_format format,
                                 bool labels_optional, struct pawl_images **images_out,
                                 char error[PWI_IMAGE_FILES_TEXT]) {
  struct pawl_images_options reading;
  pawl_images_options_init(&reading);
  reading.format = format;
  reading.labels_optional = labels_optional;
  pawl_status status = pawl_images_read(paths, count, &reading, images_out);
  if (status) snprintf(error, PWI_IMAGE_FILES_TEXT, "%s", pawl_error_text());
  return status;
}
