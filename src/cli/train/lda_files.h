/* The files of `pawl train lda`: the documents, the model, and the directory of the run, which keeps the
 * topics of tokens until the model is written. */
#ifndef PWI_CLI_TRAIN_LDA_FILES_H
#define PWI_CLI_TRAIN_LDA_FILES_H

#include "cli/spool.h"
#include "cli/train/lda_options.h"

struct pwi_train_lda_files {
  struct pwi_spool spool, held_out_spool; /* copies of pipes */
  char **paths, **held_out;               /* absolute, because workers open them; patterns are kept */
  size_t path_count, held_out_count;
  char *vocabulary, *stop, *start, *directory; /* absolute; NULL: none. `directory` is always set */
  char *output;
  bool is_named;     /* the user chose the name of the model */
  bool is_directory; /* the directory existed before, possibly empty */
  bool is_ours;      /* the directory was empty or new */
  bool goes;         /* remove the directory after success: neither --dir nor --keep-dir was given */
};

/* Builds the names, sets them in options->lda, and checks that the input can be opened and the model and the
 * run written. Creates nothing but the folder of --tensorboard. If it returns false, it has printed an error;
 * return `*exit_out`. Always release with pwi_train_lda_files_fini. */
bool pwi_train_lda_files_init(struct pwi_train_lda_files *files, struct pwi_train_lda_options *options, int *exit_out);
void pwi_train_lda_files_fini(struct pwi_train_lda_files *files);

/* After the model was written: removes the directory if `goes`. */
void pwi_train_lda_files_clear(const struct pwi_train_lda_files *files);

/* After a failure without state to resume from: restores the directory. */
void pwi_train_lda_files_undo(const struct pwi_train_lda_files *files);

#endif
