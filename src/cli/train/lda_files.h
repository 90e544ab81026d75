/* The files of `pawl train lda`: documents that must be there, a model that must have a place to go, and the run's directory, in which
 * topics of tokens are until the model is written. */
#ifndef PWI_CLI_TRAIN_LDA_FILES_H
#define PWI_CLI_TRAIN_LDA_FILES_H

#include "cli/spool.h"
#include "cli/train/lda_options.h"

struct pwi_train_lda_files {
  struct pwi_spool spool, held_out_spool; /* what came by a pipe */
  char **paths, **held_out;               /* absolute, as workers open them; patterns stay patterns */
  size_t path_count, held_out_count;
  char *vocabulary, *stop, *start, *directory; /* absolute; NULL: none. There is always a directory */
  char *output;
  bool is_named;     /* the model's name was chosen by the user */
  bool is_directory; /* the directory was there before us, if empty */
  bool is_ours;      /* nothing in it is of anybody else, or of an earlier run */
  bool goes;         /* with success: the user has neither named it nor wants to keep it */
};

/* Makes the names and hands them to options->lda, opens and closes what is read, and looks whether the model and the run have a place.
 * Nothing is made but the folder of --tensorboard. False: it has said why, return `*exit_out`. To be ended with
 * pwi_train_lda_files_fini. */
bool pwi_train_lda_files_init(struct pwi_train_lda_files *files, struct pwi_train_lda_options *options, int *exit_out);
void pwi_train_lda_files_fini(struct pwi_train_lda_files *files);

/* After the model was written: removes the directory, if it is to go. */
void pwi_train_lda_files_clear(const struct pwi_train_lda_files *files);

/* After a failure before anything was learned: the directory is as it was before us. */
void pwi_train_lda_files_undo(const struct pwi_train_lda_files *files);

#endif
