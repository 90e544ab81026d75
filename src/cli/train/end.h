/* How training ended, for people and for programs. */
#ifndef PWI_CLI_TRAIN_END_H
#define PWI_CLI_TRAIN_END_H

#include "cli/train/files.h"

/* A model that was found. */
struct pwi_train_found {
  char *path; /* where it is; NULL: none was found, or it could not be written */
  char why[32];
  struct linear_result result; /* whose `why` is not to be used */
};

struct pwi_train_end {
  const struct pwi_train_options *options;
  const struct pwi_train_files *files;
  struct pwi_train_found *found; /* one for each point */
  struct linear_result result;   /* of the whole */
  size_t last;                   /* the point that was found last */
  bool has_found;
  double seconds; /* from the beginning of the command */
};

bool pwi_train_end_init(struct pwi_train_end *end, const struct pwi_train_options *options,
                        const struct pwi_train_files *files);
void pwi_train_end_fini(struct pwi_train_end *end);

/* Writes a model and keeps its figures. `error` receives a sentence, which says where else the model is if it cannot be written. */
pawl_status pwi_train_end_found(struct pwi_train_end *end, size_t point, const struct linear_model *model,
                                const struct linear_result *result, char error[APPS_TEXT_MAX]);

/* The object of --json, on standard output; the exit code. */
int pwi_train_end_json(const struct pwi_train_end *end);

/* The summary for people, on standard output, and what to do next. */
void pwi_train_end_print(const struct pwi_train_end *end);

#endif
