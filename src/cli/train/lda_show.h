/* The figures of a round of `pawl train lda`: as text, as JSON, and as scalars. */
#ifndef PWI_CLI_TRAIN_LDA_SHOW_H
#define PWI_CLI_TRAIN_LDA_SHOW_H

#include <jansson.h>

#include <pawl/lda.h>

#include "cli/train/board.h"
#include "cli/train/show.h"

#define PWI_TRAIN_LDA_SCALARS 5

void pwi_train_lda_line(const struct pawl_lda_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log: all fields, the workers in an array (OSDI'14, figure 14). NULL: out of memory. */
json_t *pwi_train_lda_json(const struct pawl_lda_progress *progress);

/* For --tensorboard. */
void pwi_train_lda_board(const struct pawl_lda_progress *progress,
                         struct pwi_train_scalar scalars_out[PWI_TRAIN_LDA_SCALARS]);

#endif
