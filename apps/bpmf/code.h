/* The frame of files of this folder, models and checkpoints. It is that of all models of pawl (docs/model-format.md):
 *
 *   pawl-model 1 00000768\n     version, and the offset of the arrays
 *   { … }\n                     header: "kind" and others, one key per line; padded with blanks
 *   arrays                      as the kind says
 *   checksum                    XXH3 of everything before, 64 bits
 *
 * All little-endian.
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

/* A header for one kind of file. The caller releases it. */
pawl_status bpmf_code_write(FILE *file, const json_t *header, const struct bpmf_array *arrays, size_t count);

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

/* Whether a file begins like one of this kind; 64 bytes suffice. */
bool bpmf_code_begins(const char *bytes, size_t size, const char *kind);

/* Numbers of a header. False: there is no such number, or it is above `most`. */
bool bpmf_code_count(const json_t *header, const char *key, uint64_t most, uint64_t *count_out);
bool bpmf_code_u32(const json_t *header, const char *key, uint32_t most, uint32_t *count_out);

#endif
