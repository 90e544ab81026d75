/* The result of `pawl train cnn`, and the figures of an epoch: as text and as JSON. */
#ifndef PWI_CLI_TRAIN_CNN_END_H
#define PWI_CLI_TRAIN_CNN_END_H

#include <jansson.h>

#include "cli/train/cnn_options.h"
#include "cli/train/show.h"

struct pwi_train_cnn_end {
  const struct pwi_train_cnn_options *options;
  const struct pawl_cnn_model *model;
  const struct pawl_cnn_result *result;
  const char *output; /* path of the model */
  uint64_t test_images;
  struct pawl_cnn_costs costs; /* with workers */
  double seconds;              /* since the start of the command */
};

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_cnn_end_json(const struct pwi_train_cnn_end *end);

/* Prints the summary and the next step to standard output. */
void pwi_train_cnn_end_print(const struct pwi_train_cnn_end *end);

void pwi_train_cnn_line(const struct pawl_cnn_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log. NULL: out of memory. */
json_t *pwi_train_cnn_json(const struct pawl_cnn_progress *progress);

#endif
