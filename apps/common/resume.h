/* What a run remembers of its options and of its data, so that nobody goes on with it under others: what
 * applications share.
 *
 * TERMS are the options that must be the same, as a JSON object of texts by the option's name. DATA is
 * remembered twice: as the list of its files, with sizes and times of modification, which names the one that
 * has changed; and as a digest of the rows themselves, a sum over pieces that does not depend on who has read
 * which.
 */
#ifndef APPS_COMMON_RESUME_H
#define APPS_COMMON_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <pawl/data.h>

#define APPS_RESUME_TEXT 400

struct apps_digest {
  uint64_t pieces; /* that are in the sum */
  uint64_t sum;    /* modulo 2^64 */
};

/* Adds the rows of a piece. */
void apps_digest_add(struct apps_digest *digest, uint64_t piece, const struct pawl_batch *batch);

/* Reads all of it. As pawl_data_read_all. */
pawl_status apps_digest_read(struct pawl_data *data, uint32_t threads, struct apps_digest *digest_out);

/* As JSON, and back; false if it is none. */
json_t *apps_digest_write(const struct apps_digest *digest);
bool apps_digest_of(const json_t *object, struct apps_digest *digest_out);

/* The files of a data set; NULL without memory. */
json_t *apps_files_write(const struct pawl_data *data);

/* Whether they are those that were written. If not, `text` names one that differs. */
bool apps_files_same(const json_t *files, const struct pawl_data *data, char text[APPS_RESUME_TEXT]);

/* Adds a term. What is "off" or "on" is a flag. */
void apps_term(json_t *terms, const char *option, const char *format, ...) PAWL_PRINTF(3, 4);
void apps_term_flag(json_t *terms, const char *option, bool is_on);

/* The terms of how data is read. */
void apps_terms_reading(json_t *terms, const struct pawl_data_options *reading);

/* Whether all terms are what they were. If not, `text` names the first that differs, and both values. */
bool apps_terms_same(const json_t *before, json_t *now, char text[APPS_RESUME_TEXT]);

/* Writes the state of a training, whole or not at all. Takes the object; NULL: PAWL_NO_MEMORY. `error` may be
 * NULL. */
pawl_status apps_state_write(const char *path, json_t *object, char *error);

#endif
