/* The options and the data of a run, saved so that the run can be resumed only with the same ones. Shared by
 * the applications.
 *
 * TERMS are the options that must be equal, as a JSON object of strings by option name. DATA is saved twice:
 * as a list of files with sizes and times of modification, which identifies a changed file; and as a digest
 * of the rows, a sum over pieces that does not depend on which worker read which piece.
 */
#ifndef APPS_COMMON_RESUME_H
#define APPS_COMMON_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <pawl/data.h>

#define APPS_RESUME_TEXT 400

struct apps_digest {
  uint64_t pieces; /* number of pieces in the sum */
  uint64_t sum;    /* modulo 2^64 */
};

/* Adds the rows of a piece. */
void apps_digest_add(struct apps_digest *digest, uint64_t piece, const struct pawl_batch *batch);

/* Adds all rows of the data. Errors are those of pawl_data_read_all. */
pawl_status apps_digest_read(struct pawl_data *data, uint32_t threads, struct apps_digest *digest_out);

/* A digest as JSON, and back. Reading returns false if the JSON is not a digest. */
json_t *apps_digest_write(const struct apps_digest *digest);
bool apps_digest_of(const json_t *object, struct apps_digest *digest_out);

/* The list of files of a data set; NULL if it is out of memory. */
json_t *apps_files_write(const struct pawl_data *data);

/* Whether the files are those of the list. If not, `text` names one that differs. */
bool apps_files_same(const json_t *files, const struct pawl_data *data, char text[APPS_RESUME_TEXT]);

/* Adds a term. The value of a flag is "off" or "on". */
void apps_term(json_t *terms, const char *option, const char *format, ...) PAWL_PRINTF(3, 4);
void apps_term_flag(json_t *terms, const char *option, bool is_on);

/* Adds the terms of the options of reading data. */
void apps_terms_reading(json_t *terms, const struct pawl_data_options *reading);

/* Whether all terms are equal. If not, `text` names the first that differs, with both values. */
bool apps_terms_same(const json_t *before, json_t *now, char text[APPS_RESUME_TEXT]);

/* Whether the header of a checkpoint has these "options", which are taken over, and this "digest" of the rows. PAWL_MISMATCH:
 * the sentence in `why`, of APPS_TEXT_MAX bytes, names what differs. */
PAWL_MUST_USE pawl_status apps_state_compare(const json_t *header, json_t *terms, uint64_t digest, char *why);

/* The value that the run which wrote a checkpoint has chosen for an option that was not given: the run that goes on takes it, even if
 * it would choose another one. Checkpoints of earlier versions have none; *value stays. False: it is not from `least` to `most`. */
bool apps_state_chosen(const json_t *header, const char *key, double least, double most, double *value);

/* Writes the state of a training, whole or not at all. Takes the object; NULL: PAWL_NO_MEMORY. `error` may be
 * NULL. */
pawl_status apps_state_write(const char *path, json_t *object, char *error);

/* Whether a checkpoint of this kind may be written to a path: nothing is there, or an earlier checkpoint. PAWL_EXISTS: another
 * file, which is not to be lost. Errors of opening are left to the writer. */
PAWL_MUST_USE pawl_status apps_state_place(const char *path, const char *kind, char *error);

/* A checkpoint that cannot be written, because the disk is full, does not end a training: the next one may succeed. `unsaved`
 * becomes the sentence in `error`, which becomes "", or "" if it was written. Both have APPS_TEXT_MAX bytes. */
void apps_state_note(pawl_status status, char *error, char *unsaved);

#endif
