/* The result of `pawl train bpmf`, and the figures of an iteration: as text and as JSON. */
#ifndef PWI_CLI_TRAIN_BPMF_END_H
#define PWI_CLI_TRAIN_BPMF_END_H

#include <jansson.h>

#include "cli/train/bpmf/options.h"
#include "cli/train/show.h"

struct pwi_train_bpmf_end {
  const struct pwi_train_bpmf_options *options;
  const struct pawl_bpmf_model *model;
  const struct pawl_bpmf_result *result;
  const char *output;                       /* path of the model */
  struct pawl_ratings_info read, test_read; /* of the files; test_read is zero without --test */
  double seconds;                           /* since the start of the command */
};

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_bpmf_end_json(const struct pwi_train_bpmf_end *end);

/* Prints the summary and the next step to standard output. */
void pwi_train_bpmf_end_print(const struct pwi_train_bpmf_end *end);

void pwi_train_bpmf_line(const struct pawl_bpmf_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log. NULL: out of memory. */
json_t *pwi_train_bpmf_json(const struct pawl_bpmf_progress *progress);

#endif
