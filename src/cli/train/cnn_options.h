/* The options of `pawl train cnn`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_CNN_OPTIONS_H
#define PWI_CLI_TRAIN_CNN_OPTIONS_H

#include <pawl/cnn.h>

#include "cli/cli.h"
#include "cli/train/base.h"

struct pwi_train_cnn_options {
  struct pwi_train_base base;  /* first; its share is settled: not AUTO */
  struct pawl_cnn_options cnn; /* without callbacks */
  enum pawl_cnn_average average;
  struct pawl_images_options reading;
  struct pwi_train_files_given test;
  const char *checkpoints; /* NULL: not given */
  double checkpoint_every_s;
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_cnn_list[];

/* Parses a command line. Keeps pointers into `argv`. If it returns false, return `*exit_out`. */
bool pwi_train_cnn_options_read(struct pwi_train_cnn_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out);

/* Whether the run has checkpoints. */
bool pwi_train_cnn_has_checkpoints(const struct pwi_train_cnn_options *options);

/* How workers share, without callbacks and the folder of checkpoints. `paths` are those of the training images. */
void pwi_train_cnn_sharing(const struct pwi_train_cnn_options *options, const char *const *paths,
                           struct pawl_cnn_sharing *sharing_out);

#endif
