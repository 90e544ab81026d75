/* How `pawl train lda` ended, for people and for programs. */
#ifndef PWI_CLI_TRAIN_LDA_END_H
#define PWI_CLI_TRAIN_LDA_END_H

#include "cli/train/lda_files.h"

struct pwi_train_lda_end {
  const struct pwi_train_lda_options *options;
  const struct pwi_train_lda_files *files;
  const struct pawl_lda_model *model;
  const struct pawl_lda_result *result;
  double seconds; /* from the beginning of the command */
};

/* The object of --json, on standard output; the exit code. */
int pwi_train_lda_end_json(const struct pwi_train_lda_end *end);

/* The summary for people, on standard output, and what to do next. */
void pwi_train_lda_end_print(const struct pwi_train_lda_end *end);

#endif
