/* `pawl predict` with a metric: classes by nearest neighbours. */
#ifndef PWI_CLI_MODELS_PREDICT_METRIC_H
#define PWI_CLI_MODELS_PREDICT_METRIC_H

#include <pawl/metric.h>

#include "cli/cli.h"

struct pwi_predict_metric {
  const struct pwi_command *command;
  const char *model;  /* path */
  const char *output; /* path of the predictions, "-": standard output; NULL: none */
  enum pawl_images_format image_format;
  struct pawl_data_options reading; /* as given */
  bool has_hash_bits;
  int binary, unit_rows; /* -1: as the model says */
  uint32_t threads;      /* 0: one for each processor */
  const char *const *paths;
  size_t count;
  bool json;
};

/* Returns the exit code. */
int pwi_predict_metric(struct pwi_predict_metric *predict);

#endif
