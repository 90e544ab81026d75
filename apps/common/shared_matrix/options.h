/* Options of sharing inside. */
#ifndef SHARED_MATRIX_OPTIONS_H
#define SHARED_MATRIX_OPTIONS_H

#include <pawl/shared_matrix.h>

/* Copies the options with their defaults. Returns false, with a sentence, if they are invalid. */
bool matrix_sharing_resolve(const struct pawl_matrix_sharing *sharing, struct pawl_matrix_sharing *is_out, char *error);

#endif
