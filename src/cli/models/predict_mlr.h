/* `pawl predict` with a multiclass model. */
#ifndef PWI_CLI_MODELS_PREDICT_MLR_H
#define PWI_CLI_MODELS_PREDICT_MLR_H

#include <pawl/mlr.h>

#include "cli/cli.h"

struct pwi_predict_mlr {
  const struct pwi_command *command;
  const char *model;  /* path */
  const char *output; /* path of the predictions, "-": standard output; NULL: none */
  bool probabilities; /* write the probabilities of all classes, too */
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
int pwi_predict_mlr(struct pwi_predict_mlr *predict);

#endif
