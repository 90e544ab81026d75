/* Models and checkpoints as files: the frame of all models of pawl (apps/common/model_code.h) with a "kind" in its header,
 * and arrays in it.
 */
#ifndef BPMF_CODE_H
#define BPMF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <pawl/export.h>
#include <pawl/status.h>

/* An array of `count` elements of `width` bytes: 1, 4 or 8. */
struct bpmf_array {
  const void *elements;
  size_t count;
  int width;
};

/* Takes the header, which names the kind; NULL: PAWL_NO_MEMORY. */
pawl_status bpmf_code_write(FILE *file, json_t *header, const struct bpmf_array *arrays, size_t count);

/* A file in memory. */
struct bpmf_code {
  const char *bytes; /* a 0 follows them */
  size_t size;
  size_t at; /* offset of the next array */
};

/* Checks first line, checksum and kind, and parses the header, which the caller releases. `why` gets an error without the
 * file name. PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED, PAWL_MISMATCH (another kind). */
PAWL_MUST_USE pawl_status bpmf_code_open(struct bpmf_code *code, const char *kind, json_t **header_out, char *why);

/* Allocates and reads the next array. NULL: the file ends before its end, or there is no memory; `status_out` says
 * which. */
void *bpmf_code_array(struct bpmf_code *code, uint64_t count, int width, pawl_status *status_out);

/* Whether all arrays have been read. */
bool bpmf_code_is_over(const struct bpmf_code *code);

/* A number of a header. False: there is no such number, or it is above `most`. */
bool bpmf_code_u32(const json_t *header, const char *key, uint32_t most, uint32_t *count_out);

#endif
