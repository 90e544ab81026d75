#include "apps/common/shared_matrix/rows.h"

#include "apps/common/errors.h"
#include "apps/common/model_file.h"

pawl_status matrix_images_read(const struct matrix_spec *spec, bool labels_optional, struct pawl_images **images_out,
                               char *error) {
  struct pawl_images_options reading;
  pawl_images_options_init(&reading);
  reading.format = spec->image_format;
  reading.labels_optional = labels_optional;
  pawl_status status = pawl_images_read((const char *const *)spec->paths, spec->path_count, &reading, images_out);
  return status ? apps_say(error, status, "%s", apps_error_text(status)) : PAWL_OK;
}

pawl_status matrix_rows_differ(const struct matrix_spec *spec, char *error) {
  return apps_say(error, PAWL_MISMATCH,
                  "the rows at %.300s differ from the scheduler's; every worker needs the same files at the same paths",
                  spec->paths[0]);
}

static pawl_status read_images(const struct matrix_spec *spec, struct pawl_mlr_rows **rows_out, char *error) {
  struct pawl_images *images = NULL;
  pawl_status status = matrix_images_read(spec, false, &images, error);
  if (!status) status = pawl_mlr_rows_of_images(images, rows_out, error);
  pawl_images_destroy(images);
  return status;
}

pawl_status matrix_rows_read(const struct matrix_spec *spec, struct pawl_mlr_rows **rows_out, char *error) {
  const char *const *paths = (const char *const *)spec->paths;
  pawl_status status =
      spec->has_images ? read_images(spec, rows_out, error)
                       : pawl_mlr_rows_read(paths, spec->path_count, &spec->reading, spec->threads, rows_out, error);
  if (status || pawl_mlr_rows_digest(*rows_out) == spec->digest) return status;
  return matrix_rows_differ(spec, error);
}
