/* `pawl predict` with factorised ratings. */
#ifndef PWI_CLI_MODELS_PREDICT_BPMF_H
#define PWI_CLI_MODELS_PREDICT_BPMF_H

#include <pawl/ratings.h>

#include "cli/cli.h"

struct pwi_predict_bpmf {
  const struct pwi_command *command;
  const char *model;  /* path */
  const char *output; /* path of the predictions, "-": standard output; NULL: none */
  enum pawl_ratings_format format;
  uint64_t skip_bad;
  const char *const *paths;
  size_t count;
  bool json;
};

/* Returns the exit code. */
int pwi_predict_bpmf(const struct pwi_predict_bpmf *predict);

#endif
