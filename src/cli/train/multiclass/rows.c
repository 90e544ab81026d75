#include "cli/train/multiclass/rows.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/image_files.h"

static void tell_skipped(struct pwi_train_run *run, const struct pawl_mlr_rows *rows) {
  struct pawl_mlr_rows_info info;
  char line[PWI_TRAIN_LINE_MAX];
  pawl_mlr_rows_info(rows, &info);
  if (info.skipped == 0) return;
  snprintf(line, sizeof line, "skipped %" PRIu64 " bad row%s, the first: %.400s", info.skipped,
           info.skipped == 1 ? "" : "s", pawl_mlr_rows_first_bad(rows));
  pwi_train_run_tell(run, line);
}

static pawl_status read_images(const struct pwi_train_rows_wanted *wanted, const struct pwi_spool *spool, size_t count,
                               struct pawl_mlr_rows **rows_out, char error[PAWL_MLR_TEXT]) {
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, count, wanted->image_format, false, &images, error);
  if (!status) status = pawl_mlr_rows_of_images(images, rows_out, error);
  pawl_images_destroy(images);
  return status;
}

int pwi_train_rows_read(struct pwi_train_run *run, const struct pwi_train_rows_wanted *wanted, const char *const *paths,
                        size_t count, struct pwi_spool *spool, struct pawl_mlr_rows **rows_out) {
  const struct pwi_command *command = wanted->base->command;
  char error[PAWL_MLR_TEXT] = "";
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, wanted->base->quiet, &exit_code)) return exit_code;
  pawl_status status = wanted->has_images
                           ? read_images(wanted, spool, count, rows_out, error)
                           : pawl_mlr_rows_read(spool->paths, count, wanted->reading, wanted->threads, rows_out, error);
  if (status) return pwi_cli_failure(command, "%s", error);
  tell_skipped(run, *rows_out);
  return PWI_EXIT_OK;
}
