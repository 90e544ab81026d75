/* The run of a method whose model is a matrix (<pawl/shared_matrix.h>): reads rows, trains in this process or is the scheduler of
 * workers, writes the model, and prints the result. multiclass, metric and sparse_coding say what is theirs. */
#ifndef PWI_CLI_TRAIN_MATRIX_RUN_H
#define PWI_CLI_TRAIN_MATRIX_RUN_H

#include "cli/spool.h"
#include "cli/train/matrix/share.h"
#include "cli/train/paths.h"

#define PWI_TRAIN_MATRIX_TEXT 512 /* bytes of an error message of a method */

struct pwi_train_matrix_run;

struct pwi_train_matrix_calls {
  /* Reads rows from files; `is_test`: test rows. Returns PWI_EXIT_OK, or prints an error. */
  int (*read)(struct pwi_train_matrix_run *train, const char *const *paths, size_t count, struct pwi_spool *spool,
              bool is_test);
  pawl_status (*costs)(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                       struct pawl_matrix_costs *costs_out, char *error);
  /* Trains; without `sharing` in this process. */
  pawl_status (*train)(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                       struct pawl_matrix_shared *shared_out, char *error);
  pawl_status (*write)(const struct pwi_train_matrix_run *train, const char *path, char *error);
  /* Says what is doubtful about the result, and returns the exit code that it deserves. */
  int (*judge)(struct pwi_train_matrix_run *train);
  /* Prints the result, unless `quiet`. `shared` NULL: this process has made all steps. Returns the exit code. */
  int (*print)(const struct pwi_train_matrix_run *train, const struct pawl_matrix_shared *shared);
};

struct pwi_train_matrix_run {
  /* Of the method: */
  const struct pwi_train_matrix_calls *calls;
  struct pwi_train_base *base;
  struct pwi_train_matrix *matrix;
  const struct pwi_train_files_given *test;
  bool has_images;
  const struct pawl_data_options *reading; /* of rows */
  const enum pawl_images_format *image_format;
  bool has_checkpoints;    /* without the name of a file */
  const char **checkpoint; /* the name; becomes the default */
  const char *unsaved;     /* in the result: why the last checkpoint could not be written; "": it was */

  /* Of the run: */
  struct pwi_train_run run;           /* in one process, it has no session */
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pwi_train_names names;
  char **paths;   /* absolute paths of the rows, for workers */
  double seconds; /* at the end of training */
};

/* The whole run. Returns the exit code. */
int pwi_train_matrix_run(struct pwi_train_matrix_run *train);

/* --- for methods ------------------------------------------------------------------------------------------------- */

/* Shows an epoch: logs the object, which is taken, unless it is NULL, and prints the line if it is due. `unsaved` says why
 * checkpoints cannot be written, or is "". */
bool pwi_train_matrix_wants_log(struct pwi_train_matrix_run *train);
void pwi_train_matrix_epoch(struct pwi_train_matrix_run *train, uint64_t epoch, uint64_t epochs, const char *line,
                            const char *unsaved, json_t *object);

/* A callback of methods, whose context is a struct pwi_train_matrix_run. */
bool pwi_train_matrix_stopping(void *context);

/* Says how many test rows have labels that no training row has. */
void pwi_train_matrix_tell_unknown(struct pwi_train_matrix_run *train, uint64_t count);

/* Says that an interrupted run has saved `what`. Returns PWI_TRAIN_INTERRUPTED. */
int pwi_train_matrix_interrupted(struct pwi_train_matrix_run *train, const char *what);

#endif
