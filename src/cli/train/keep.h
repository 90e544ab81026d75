/* A model that was trained is written somewhere, whatever is wrong with the place that was meant for it: the disk is full, the folder
 * has gone, the format cannot say this model. */
#ifndef PWI_CLI_TRAIN_KEEP_H
#define PWI_CLI_TRAIN_KEEP_H

#include <stdbool.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_TRAIN_KEEP_TEXT 512 /* of errors, as in apps/linear and <pawl/lda.h> */

/* Writes a model to a file. `is_rescue`: in a format that can say any model. */
typedef pawl_status pwi_train_keep_write(void *context, const char *path, bool is_rescue,
                                         char error[PWI_TRAIN_KEEP_TEXT]);

/* Writes to `path`. Where that fails, writes to `path`.rescued, or beside it in the current folder, TMPDIR, /tmp and HOME. Returns the
 * first failure; `error` then says what it was and where the model is. */
PAWL_MUST_USE pawl_status pwi_train_keep(const char *path, pwi_train_keep_write *write, void *context,
                                         char error[PWI_TRAIN_KEEP_TEXT]);

#endif
