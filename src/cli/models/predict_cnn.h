/* `pawl predict` with a convolutional net. */
#ifndef PWI_CLI_MODELS_PREDICT_CNN_H
#define PWI_CLI_MODELS_PREDICT_CNN_H

#include <pawl/images.h>

#include "cli/cli.h"

struct pwi_predict_cnn {
  const struct pwi_command *command;
  const char *model;  /* path */
  const char *output; /* path of the predictions, "-": standard output; NULL: none */
  bool probabilities; /* write the probabilities of all classes, too */
  enum pawl_images_format format;
  const char *const *paths;
  size_t count;
  bool json;
};

/* Returns the exit code. */
int pwi_predict_cnn(const struct pwi_predict_cnn *predict);

#endif
