/* Options of training inside. */
#ifndef SPARSE_OPTIONS_H
#define SPARSE_OPTIONS_H

#include <pawl/sparse_coding.h>

/* Copies the options with their defaults, but for `lambda`, which depends on the rows. Returns false, with a sentence, if
 * they are invalid. */
bool sparse_options_resolve(const struct pawl_sparse_options *options, struct pawl_sparse_options *is_out, char *error);

#endif
