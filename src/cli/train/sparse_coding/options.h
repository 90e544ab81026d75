/* The options of `pawl train sparse-coding`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_SPARSE_CODING_OPTIONS_H
#define PWI_CLI_TRAIN_SPARSE_CODING_OPTIONS_H

#include <pawl/sparse_coding.h>

#include "cli/cli.h"
#include "cli/train/base.h"
#include "cli/train/matrix/share.h"
#include "cli/train/rules.h"

struct pwi_train_sparse_options {
  struct pwi_train_base base;        /* first */
  struct pawl_sparse_options sparse; /* without callbacks, and without the default of `checkpoint` */
  struct pawl_data_options reading;
  enum pawl_images_format image_format; /* AUTO: none was given */
  bool has_images;                      /* the files are images */
  bool has_row_options;                 /* an option was given that images do not have */
  bool has_checkpoints;                 /* --checkpoint-every was given */
  uint32_t patch;                       /* 0: whole images */
  uint64_t patches;                     /* number of patches; 0: the default */
  struct pwi_train_files_given test;
  struct pwi_train_matrix matrix;
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_sparse_list[];

/* Parses a command line. Keeps pointers into `argv`. If it returns false, return `*exit_out`. */
bool pwi_train_sparse_options_read(struct pwi_train_sparse_options *options, const struct pwi_command *command,
                                   int argc, char **argv, int *exit_out);

#endif
