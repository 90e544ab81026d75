/* The result of training, as text and as JSON. */
#ifndef PWI_CLI_TRAIN_END_H
#define PWI_CLI_TRAIN_END_H

#include "cli/train/files.h"

/* A model that was found. */
struct pwi_train_found {
  char *path; /* path of the model; NULL: no model, or it could not be written */
  char why[32];
  struct pawl_linear_result result; /* its `why` is dangling; use the one above */
};

struct pwi_train_end {
  const struct pwi_train_options *options;
  const struct pwi_train_files *files;
  struct pwi_train_found *found;    /* one for each point */
  struct pawl_linear_result result; /* result of the whole run */
  size_t last;                      /* the point that was found last */
  bool has_found;
  bool can_resume; /* from the last checkpoint */
  double seconds;  /* since the start of the command */
};

bool pwi_train_end_init(struct pwi_train_end *end, const struct pwi_train_options *options,
                        const struct pwi_train_files *files);
void pwi_train_end_fini(struct pwi_train_end *end);

/* Writes a model and keeps its figures. On failure, `error` has the reason and the path to which the model
 * was saved instead. */
pawl_status pwi_train_end_found(struct pwi_train_end *end, size_t point, const struct pawl_linear_model *model,
                                const struct pawl_linear_result *result, char error[PAWL_LINEAR_TEXT]);

/* Prints the JSON object to standard output. Returns the exit code. */
int pwi_train_end_json(const struct pwi_train_end *end);

/* Prints the summary and the next steps to standard output. */
void pwi_train_end_print(const struct pwi_train_end *end);

#endif
