/* The options of `pawl train bpmf`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_BPMF_OPTIONS_H
#define PWI_CLI_TRAIN_BPMF_OPTIONS_H

#include <pawl/bpmf.h>

#include "cli/cli.h"
#include "cli/train/base.h"
#include "cli/train/rules.h"

struct pwi_train_bpmf_options {
  struct pwi_train_base base;
  struct pawl_bpmf_options bpmf; /* without callbacks, and without the default of `checkpoint` */
  struct pawl_ratings_options reading;
  bool has_checkpoints; /* --checkpoint-every was given */
  struct pwi_train_files_given test;
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_bpmf_list[];

/* Parses a command line. Keeps pointers into `argv`. If it returns false, return `*exit_out`. */
bool pwi_train_bpmf_options_read(struct pwi_train_bpmf_options *options, const struct pwi_command *command, int argc,
                                 char **argv, int *exit_out);

#endif
