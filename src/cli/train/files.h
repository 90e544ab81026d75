/* The files of `pawl train`: data that must be there, and a model that must have a place to go, before anything is started. */
#ifndef PWI_CLI_TRAIN_FILES_H
#define PWI_CLI_TRAIN_FILES_H

#include "cli/spool.h"
#include "cli/train/options.h"

struct pwi_train_files {
  struct pwi_spool spool, valid_spool; /* what came by a pipe */
  char **paths;                        /* absolute, as workers open them; patterns stay patterns */
  size_t path_count;
  char **valid;
  size_t valid_count;
  char *output;
  bool is_named; /* the model's name was chosen by the user */
  enum linear_format format;
  char *checkpoints; /* absolute; NULL: none */
};

/* Makes the names, opens and closes the data, looks whether the model can be written, makes the folder of checkpoints, and weighs
 * the classes (into options->linear). False: it has said why, return `*exit_out`. To be ended with pwi_train_files_fini. */
bool pwi_train_files_init(struct pwi_train_files *files, struct pwi_train_options *options, int *exit_out);
void pwi_train_files_fini(struct pwi_train_files *files);

/* The model's name that goes with data: "x/a9a.svm.gz" makes "a9a.model", or what the format is called by. NULL: no memory. Freed
 * with pwi_free. */
char *pwi_train_model_name(const char *data, enum linear_format format);

/* A name with a mark before its suffix: "m.model" and "l1=0.1" make "m.l1=0.1.model"; with the mark "" the name alone. As
 * above. */
char *pwi_train_point_name(const char *output, const char *mark);

/* Weights of the classes as --class-weight says, after a look at the data's labels: cli/train/classes.c. */
bool pwi_train_classes_weigh(struct pwi_train_options *options, struct pawl_data *data, int *exit_out);

#endif
