/* What the formats of models share: for apps/linear/model*.c and their tests alone.
 *
 * A decoder gets the bytes of a whole file, which a 0 follows, and fills a model that was all zeros. What it
 * says in `why` is a sentence without the name of the file; who called it adds that, and frees the model if
 * it failed. No byte of a file is trusted: nothing is allocated but in proportion to what is there.
 */
#ifndef APPS_LINEAR_MODEL_INSIDE_H
#define APPS_LINEAR_MODEL_INSIDE_H

#include <stdio.h>

#include <jansson.h>

#include "apps/linear/losses.h"
#include "apps/linear/model/model.h"

/* --- what all formats say ------------------------------------------------------------------------------- */

/* Everything but the weights, as JSON; NULL without memory. */
json_t *linear_about_make(const struct pawl_linear_model *model);

/* Reads it back. `features` must be there; what else is lacking is taken for not said. */
pawl_status linear_about_read(const json_t *about, struct pawl_linear_model *model, char *why);
pawl_status linear_about_parse(const char *text, size_t size, struct pawl_linear_model *model, json_t **about_out,
                               char *why);

/* --- weights -------------------------------------------------------------------------------------------- */

/* Adds a weight, unless it is 0. `*room` is how many there is memory for, 0 in the beginning. */
pawl_status linear_model_append(struct pawl_linear_model *model, size_t *room, uint64_t id, double weight);

/* Whether the model can be one: ids rise and are known, weights are finite, labels differ. False, and why
 * not. */
bool linear_model_is_sound(const struct pawl_linear_model *model, char *why);

/* --- formats -------------------------------------------------------------------------------------------- */

bool linear_pawl_is(const char *bytes, size_t size);
pawl_status linear_pawl_decode(const char *bytes, size_t size, struct pawl_linear_model *model, char *why);
pawl_status linear_pawl_fill(FILE *file, const void *model);

bool linear_liblinear_is(const char *bytes, size_t size);
pawl_status linear_liblinear_decode(const char *bytes, size_t size, struct pawl_linear_model *model, char *why);
/* whether it can say this model */
pawl_status linear_liblinear_check(const struct pawl_linear_model *model, char *why);
pawl_status linear_liblinear_fill(FILE *file, const void *model);

bool linear_npy_is(const char *bytes, size_t size);
pawl_status linear_npy_decode(const char *bytes, size_t size, const char *about, size_t about_size,
                              struct pawl_linear_model *model, char *why);
pawl_status linear_npy_check(const struct pawl_linear_model *model, char *why);
pawl_status linear_npy_fill(FILE *file, const void *model);
pawl_status linear_npy_fill_about(FILE *file, const void *model);

#define LINEAR_DENSE_MAX ((uint64_t)1 << 31) /* features of a model that is written with all its zeros */

#endif
