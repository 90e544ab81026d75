/* The files of `pawl train`. Before a run starts, the data must be readable and the model writable. */
#ifndef PWI_CLI_TRAIN_FILES_H
#define PWI_CLI_TRAIN_FILES_H

#include "cli/spool.h"
#include "cli/train/options.h"

struct pwi_train_files {
  struct pwi_spool spool, valid_spool; /* copies of pipes */
  char **paths;                        /* absolute, because workers open them; patterns are kept */
  size_t path_count;
  char **valid;
  size_t valid_count;
  char *output;
  bool is_named; /* the user chose the name of the model */
  enum pawl_linear_format format;
  char *checkpoints; /* absolute; NULL: none */
};

/* Builds the names, checks that the data can be opened and the model written, creates the directory of
 * checkpoints, and sets the class weights in options->linear. If it returns false, it has printed an error;
 * return `*exit_out`. Always release with pwi_train_files_fini. */
bool pwi_train_files_init(struct pwi_train_files *files, struct pwi_train_options *options, int *exit_out);
void pwi_train_files_fini(struct pwi_train_files *files);

/* The default name of a model: "x/a9a.svm.gz" gives "a9a.model", or the suffix of the format. NULL: out of
 * memory. Free it with pwi_free. */
char *pwi_train_model_name(const char *data, enum pawl_linear_format format);

/* A name with a mark before its suffix: "m.model" and "l1=0.1" give "m.l1=0.1.model". With the mark "", a
 * copy of the name. NULL: out of memory. Free it with pwi_free. */
char *pwi_train_point_name(const char *output, const char *mark);

/* Sets the class weights of --class-weight from the labels of the data: cli/train/classes.c. */
bool pwi_train_classes_weigh(struct pwi_train_options *options, struct pawl_data *data, int *exit_out);

#endif
