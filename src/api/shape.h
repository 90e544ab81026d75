/* Describes the differences between the options of two vectors. */
#ifndef PWI_API_SHAPE_H
#define PWI_API_SHAPE_H

#include <stddef.h>

#include <pawl/vector.h>

#define PWI_SHAPE_TEXT_MAX 512

/* Writes "its width is 3, not 1, and its type is f64, not f32", truncated to `size`. Both options must be
 * settled (protocol/catalogue.h). Returns the number of differences. */
size_t pwi_shape_difference(const struct pawl_vector_options *has, const struct pawl_vector_options *wanted, char *text,
                            size_t size);

#endif
