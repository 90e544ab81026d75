/* `pawl predict` with a dictionary: codes of rows. */
#ifndef PWI_CLI_MODELS_PREDICT_SPARSE_H
#define PWI_CLI_MODELS_PREDICT_SPARSE_H

#include <pawl/sparse_coding.h>

#include "cli/cli.h"

struct pwi_predict_sparse {
  const struct pwi_command *command;
  const char *model;  /* path */
  const char *output; /* path of the codes, "-": standard output; NULL: none */
  enum pawl_images_format image_format;
  struct pawl_data_options reading; /* as given */
  bool has_hash_bits;
  int binary;       /* -1: as the model says */
  uint32_t threads; /* 0: one for each processor */
  const char *const *paths;
  size_t count;
  bool json;
};

/* Returns the exit code. */
int pwi_predict_sparse(struct pwi_predict_sparse *predict);

#endif
