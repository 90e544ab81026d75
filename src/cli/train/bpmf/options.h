/* The options of `pawl train bpmf`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_BPMF_OPTIONS_H
#define PWI_CLI_TRAIN_BPMF_OPTIONS_H

#include <pawl/bpmf.h>

#include "cli/cli.h"
#include "cli/train/base.h"
#include "cli/train/rules.h"

struct pwi_train_bpmf_options {
  struct pwi_train_base base;    /* first; its share is settled: not AUTO */
  struct pawl_bpmf_options bpmf; /* without callbacks, and without the default of `checkpoint` */
  struct pawl_ratings_options reading;
  bool has_checkpoints; /* --checkpoint-every was given */
  enum pawl_items_variant variant;
  uint32_t slack;
  bool has_sharing; /* --variant or --slack was given */
  struct pwi_train_files_given test;
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_bpmf_list[];

/* Parses a command line. Keeps pointers into `argv`. If it returns false, return `*exit_out`. */
bool pwi_train_bpmf_options_read(struct pwi_train_bpmf_options *options, const struct pwi_command *command, int argc,
                                 char **argv, int *exit_out);

/* How workers share, without callbacks. The paths are those of training and test ratings. */
void pwi_train_bpmf_sharing(const struct pwi_train_bpmf_options *options, const char *const *paths,
                            const char *const *test_paths, struct pawl_bpmf_sharing *sharing_out);

#endif
