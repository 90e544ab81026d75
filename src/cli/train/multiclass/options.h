/* The options of `pawl train multiclass`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_MULTICLASS_OPTIONS_H
#define PWI_CLI_TRAIN_MULTICLASS_OPTIONS_H

#include <pawl/mlr.h>

#include "cli/cli.h"
#include "cli/train/base.h"
#include "cli/train/matrix/share.h"
#include "cli/train/rules.h"

struct pwi_train_multiclass_options {
  struct pwi_train_base base;  /* first */
  struct pawl_mlr_options mlr; /* without callbacks, and without the default of `checkpoint` */
  struct pawl_data_options reading;
  enum pawl_images_format image_format; /* AUTO: none was given */
  bool has_row_options;                 /* an option was given that images do not have */
  bool has_checkpoints;                 /* --checkpoint-every was given */
  struct pwi_train_files_given test;
  struct pwi_train_matrix matrix;
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_multiclass_list[];

/* Parses a command line. Keeps pointers into `argv`. If it returns false, return `*exit_out`. */
bool pwi_train_multiclass_options_read(struct pwi_train_multiclass_options *options, const struct pwi_command *command,
                                       int argc, char **argv, int *exit_out);

/* Whether the files are images: a format of images was given, or the first file has `idx` in its name, as those of MNIST
 * have. */
bool pwi_train_multiclass_has_images(const struct pwi_train_multiclass_options *options);

#endif
