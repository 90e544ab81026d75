/* The figures of a round of `pawl train logistic`, `svm` and `linear`: as text, as JSON, and as scalars. */
#ifndef PWI_CLI_TRAIN_FIGURES_H
#define PWI_CLI_TRAIN_FIGURES_H

#include <jansson.h>

#include <pawl/linear_model.h>

#include "cli/train/board.h"
#include "cli/train/show.h"

#define PWI_TRAIN_FIGURES 6

void pwi_train_figures_line(const struct pawl_linear_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* For --log. NULL: out of memory. */
json_t *pwi_train_figures_json(const struct pawl_linear_progress *progress);

/* For --tensorboard. */
void pwi_train_figures_board(const struct pawl_linear_progress *progress,
                             struct pwi_train_scalar scalars_out[PWI_TRAIN_FIGURES]);

#endif
