/* The result of `pawl train lda`, as text and as JSON. */
#ifndef PWI_CLI_TRAIN_LDA_END_H
#define PWI_CLI_TRAIN_LDA_END_H

#include "cli/train/lda_files.h"

struct pwi_train_lda_end {
  const struct pwi_train_lda_options *options;
  const struct pwi_train_lda_files *files;
  const struct pawl_lda_model *model;
  const struct pawl_lda_result *result;
  double seconds; /* since the start of the command */
};

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_lda_end_json(const struct pwi_train_lda_end *end);

/* Prints the summary and the next steps to standard output. */
void pwi_train_lda_end_print(const struct pwi_train_lda_end *end);

#endif
