/* The result of `pawl train sparse-coding`, and the figures of an epoch: as text and as JSON. */
#ifndef PWI_CLI_TRAIN_SPARSE_CODING_END_H
#define PWI_CLI_TRAIN_SPARSE_CODING_END_H

#include <jansson.h>

#include "cli/train/show.h"
#include "cli/train/sparse_coding/options.h"

struct pwi_train_sparse_end {
  const struct pwi_train_sparse_options *options;
  const struct pawl_sparse_model *model;
  const struct pawl_sparse_result *result;
  const struct pawl_matrix_shared *shared; /* NULL: this process has made all steps */
  const char *output;                      /* path of the model */
  struct pawl_sparse_rows_info read;
  double seconds; /* since the start of the command */
};

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_sparse_end_json(const struct pwi_train_sparse_end *end);

/* Prints the summary and the next step to standard output. */
void pwi_train_sparse_end_print(const struct pwi_train_sparse_end *end);

void pwi_train_sparse_line(const struct pawl_sparse_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log. NULL: out of memory. */
json_t *pwi_train_sparse_json(const struct pawl_sparse_progress *progress);

#endif
