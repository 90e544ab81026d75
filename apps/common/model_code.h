/* pawl's own format of models, as far as it is the same for all kinds: text that a person can read with `head`, then
 * numbers, then a checksum.
 *
 *   pawl-model 1 00000512\n     version, and the offset of the numbers
 *   { … }\n                     the header of the model, one key per line; padded with blanks
 *   …                           numbers, little-endian, as each kind of model defines them
 *   checksum                    XXH3 of everything before, 64 bits
 *
 * docs/model-format.md describes every byte.
 */
#ifndef APPS_COMMON_MODEL_CODE_H
#define APPS_COMMON_MODEL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <pawl/status.h>

#define APPS_MODEL_MAGIC "pawl-model " /* the first bytes */
#define APPS_MODEL_LINE 22             /* size of the first line, including its end: the header follows */
#define APPS_MODEL_SUM 8               /* size of the checksum */

/* --- writing -------------------------------------------------------------------------------------------- */

/* Takes the numbers of a model. A failure is noticed at the end. */
struct apps_sink;

void apps_sink_bytes(struct apps_sink *sink, const void *bytes, size_t size);
void apps_sink_number(struct apps_sink *sink, uint64_t number, int width);

/* Numbers of any type in the order of bytes of this machine; `width` is 2, 4 or 8. */
void apps_sink_numbers(struct apps_sink *sink, const void *numbers, size_t count, int width);

/* Writes a model: its header, what `fill` puts into the sink, and the checksum. Takes `about`; NULL: PAWL_NO_MEMORY. */
pawl_status apps_model_fill(FILE *file, json_t *about, void (*fill)(struct apps_sink *sink, const void *model),
                            const void *model);

/* --- reading -------------------------------------------------------------------------------------------- */

/* No byte of a file is trusted. Texts in `why` do not have the name of the file. */

/* Returns true if these are the first bytes of a model in this format. */
bool apps_model_begins(const char *bytes, size_t size);

/* Returns true if these are the first bytes of a model of this kind as pawl writes it; 64 bytes suffice. */
bool apps_model_is_of(const char *bytes, size_t size, const char *kind);

/* Returns true if a file begins like a model of this kind; false also if it cannot be read. */
bool apps_model_file_is(const char *path, const char *kind);

/* Finds the offset of the numbers. `kind` is the word for the model: "model" or "topic model". PAWL_TRUNCATED,
 * PAWL_CORRUPT, PAWL_UNSUPPORTED (another version). */
pawl_status apps_model_line(const char *bytes, size_t size, const char *kind, size_t *begin_out, char *why);

/* Also parses the header, which is an object. The caller releases it. */
pawl_status apps_model_head(const char *bytes, size_t size, const char *kind, size_t *begin_out, json_t **about_out,
                            char *why);

/* Compares the checksum at the end of the file, which has at least APPS_MODEL_SUM bytes. PAWL_CORRUPT. */
pawl_status apps_model_sum(const char *bytes, size_t size, char *why);

/* An integer of a header. False if it is not there or not in the range. */
bool apps_model_count(const json_t *about, const char *key, uint64_t least, uint64_t most, uint64_t *count_out);

/* Reads a number of 1 to 8 bytes. */
static inline uint64_t apps_model_number(const char *bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

#endif
