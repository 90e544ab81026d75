/* The result of `pawl train metric`, and the figures of an epoch: as text and as JSON. */
#ifndef PWI_CLI_TRAIN_METRIC_END_H
#define PWI_CLI_TRAIN_METRIC_END_H

#include <jansson.h>

#include "cli/train/metric/options.h"
#include "cli/train/show.h"

struct pwi_train_metric_end {
  const struct pwi_train_metric_options *options;
  const struct pawl_metric_model *model;
  const struct pawl_metric_result *result;
  const struct pawl_matrix_shared *shared; /* NULL: this process has made all steps */
  const char *output;                      /* path of the model */
  struct pawl_mlr_rows_info read;
  double seconds; /* since the start of the command */
};

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_metric_end_json(const struct pwi_train_metric_end *end);

/* Prints the summary and the next step to standard output. */
void pwi_train_metric_end_print(const struct pwi_train_metric_end *end);

void pwi_train_metric_line(const struct pawl_metric_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log. NULL: out of memory. */
json_t *pwi_train_metric_json(const struct pawl_metric_progress *progress);

#endif
