/* The options of `pawl train lda`, parsed and checked. */
#ifndef PWI_CLI_TRAIN_LDA_OPTIONS_H
#define PWI_CLI_TRAIN_LDA_OPTIONS_H

#include <pawl/lda.h>

#include "cli/train/base.h"

struct pwi_train_lda_options {
  struct pwi_train_base base;  /* first */
  struct pawl_lda_options lda; /* without the file names below and without callbacks */

  /* File names as given; NULL: not given. */
  struct pwi_train_files_given held_out;
  const char *vocabulary, *stop, *start, *directory;

  bool keep_directory;
  bool has_topics, has_sweeps;
  bool has_building; /* an option about the vocabulary of text was given */
  bool has_steps;    /* an option of SVI was given */
};

/* The options, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_lda_list[];

/* Parses a command line and resolves defaults. Keeps pointers into `argv`. If it returns false, return
 * `*exit_out`. */
bool pwi_train_lda_options_read(struct pwi_train_lda_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out);

#endif
