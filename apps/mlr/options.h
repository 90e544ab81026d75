/* Options of training inside. */
#ifndef MLR_OPTIONS_H
#define MLR_OPTIONS_H

#include <pawl/mlr.h>

/* Copies the options with their defaults. Returns false, with a sentence, if they are invalid. */
bool mlr_options_resolve(const struct pawl_mlr_options *options, struct pawl_mlr_options *is_out, char *error);

#endif
