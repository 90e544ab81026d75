/* `pawl lda`: inspects and applies topic models. */
#include "cli/models/lda_input.h"

static const struct pwi_command *const children[] = {&pwi_command_lda_topics, &pwi_command_lda_infer,
                                                     &pwi_command_lda_evaluate, &pwi_command_lda_export, NULL};

const struct pwi_command pwi_command_lda = {
    .name = "lda",
    .summary = "inspect and apply topic models",
    .text = "A topic model is a file written by 'pawl train lda'.\n",
    .children = children,
};
