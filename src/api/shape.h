/* In what the options of two vectors differ, in words. */
#ifndef PWI_API_SHAPE_H
#define PWI_API_SHAPE_H

#include <stddef.h>

#include <pawl/vector.h>

#define PWI_SHAPE_TEXT_MAX 512

/* "its width is 3, not 1, and its type is f64, not f32"; what is too long is cut off. Both have been settled
 * (protocol/catalogue.h). Returns in how many things they differ. */
size_t pwi_shape_difference(const struct pawl_vector_options *has, const struct pawl_vector_options *wanted, char *text,
                            size_t size);

#endif
