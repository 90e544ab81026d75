/* Models and checkpoints as files: the frame of all models of pawl (apps/common/model_code.h) with a "kind" in its header,
 * and arrays in it.
 */
#ifndef APPS_COMMON_MODEL_ARRAYS_H
#define APPS_COMMON_MODEL_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <pawl/export.h>
#include <pawl/status.h>

/* An array of `count` elements of `width` bytes: 1, 4 or 8. */
struct apps_array {
  const void *elements;
  size_t count;
  int width;
};

/* Takes the header, which names the kind; NULL: PAWL_NO_MEMORY. */
pawl_status apps_arrays_write(FILE *file, json_t *header, const struct apps_array *arrays, size_t count);

/* A file in memory. */
struct apps_arrays {
  const char *bytes; /* a 0 follows them */
  size_t size;
  size_t at; /* offset of the next array */
};

/* Checks first line, checksum and kind, and parses the header, which the caller releases. `why` gets an error without the
 * file name. PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED, PAWL_MISMATCH (another kind). */
PAWL_MUST_USE pawl_status apps_arrays_open(struct apps_arrays *code, const char *kind, json_t **header_out, char *why);

/* Allocates and reads the next array. NULL: the file ends before its end, or there is no memory; `status_out` says
 * which. */
void *apps_arrays_next(struct apps_arrays *code, uint64_t count, int width, pawl_status *status_out);

/* Reads the next array into memory that is there already. `why` gets an error. */
PAWL_MUST_USE pawl_status apps_arrays_into(struct apps_arrays *code, void *to, uint64_t count, int width, char *why);

/* Writes the sentence about an array that apps_arrays_next could not read. Returns the status. */
pawl_status apps_arrays_lack(char *why, pawl_status status, const char *what);

/* Whether all numbers are finite. */
bool apps_is_finite(const float *numbers, size_t count);

/* Whether each number is above the one before it. */
bool apps_are_rising(const uint64_t *numbers, uint64_t count);

/* Whether all arrays have been read. */
bool apps_arrays_are_over(const struct apps_arrays *code);

/* A number of a header. False: there is no such number, or it is above `most`. */
bool apps_model_count32(const json_t *header, const char *key, uint32_t most, uint32_t *count_out);

#endif
