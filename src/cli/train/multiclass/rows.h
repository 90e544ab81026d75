/* Rows or images with labels, for the methods that learn from struct pawl_mlr_rows. */
#ifndef PWI_CLI_TRAIN_MULTICLASS_ROWS_H
#define PWI_CLI_TRAIN_MULTICLASS_ROWS_H

#include <pawl/mlr.h>

#include "cli/spool.h"
#include "cli/train/run.h"

struct pwi_train_rows_wanted {
  const struct pwi_train_base *base;
  bool has_images;
  enum pawl_images_format image_format;
  const struct pawl_data_options *reading; /* of rows */
  uint32_t threads;
};

/* Reads all files, and tells how many bad rows were skipped. Returns PWI_EXIT_OK, or prints an error. The caller releases
 * `spool`, which has copies of files of a pipe, in any case. */
int pwi_train_rows_read(struct pwi_train_run *run, const struct pwi_train_rows_wanted *wanted, const char *const *paths,
                        size_t count, struct pwi_spool *spool, struct pawl_mlr_rows **rows_out);

#endif
