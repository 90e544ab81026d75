/* Writes a trained model to another place if its own cannot be used: the disk is full, the folder is gone, or
 * the format cannot represent the model. */
#ifndef PWI_CLI_TRAIN_KEEP_H
#define PWI_CLI_TRAIN_KEEP_H

#include <stdbool.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_TRAIN_KEEP_TEXT 512 /* of errors, as in <pawl/linear_model.h> and <pawl/lda.h> */

/* Writes a model to a file. With `is_rescue`, in a format that can represent any model. */
typedef pawl_status pwi_train_keep_write(void *context, const char *path, bool is_rescue,
                                         char error[PWI_TRAIN_KEEP_TEXT]);

/* Writes to `path`. If that fails, writes to `path`.rescued, or to the current folder, TMPDIR, /tmp or HOME.
 * Returns the first failure; `error` then has the reason and the path of the model. */
PAWL_MUST_USE pawl_status pwi_train_keep(const char *path, pwi_train_keep_write *write, void *context,
                                         char error[PWI_TRAIN_KEEP_TEXT]);

#endif
