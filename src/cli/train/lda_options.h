/* What `pawl train lda` was asked for: its command line, read and settled. */
#ifndef PWI_CLI_TRAIN_LDA_OPTIONS_H
#define PWI_CLI_TRAIN_LDA_OPTIONS_H

#include <pawl/lda.h>

#include "cli/train/base.h"

#define PWI_TRAIN_HELD_OUT_MAX 64 /* files */

struct pwi_train_lda_options {
  struct pwi_train_base base;
  struct pawl_lda_options lda; /* without the names below, and calls */

  /* As given; NULL: not. */
  const char *const *data;
  size_t data_count;
  const char *held_out[PWI_TRAIN_HELD_OUT_MAX];
  size_t held_out_count;
  const char *vocabulary, *stop, *start, *directory;

  bool keep_directory;
  bool has_topics, has_sweeps;
  bool has_building; /* something about the vocabulary that is built of text */
  bool has_steps;    /* something that SVI alone has */
};

/* For --help and reading. */
extern const struct pwi_cli_option pwi_train_lda_list[];

/* Reads a command line, `argv` staying in use, and settles what was left open. False: return `*exit_out`. */
bool pwi_train_lda_options_read(struct pwi_train_lda_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out);

#endif
