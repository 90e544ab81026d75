/* Where a process takes its cluster keys from: a text, a file, or both; and what to say when that goes wrong.
 *
 * Sessions and commands read keys by the same rules: the text comes first and so is the key that is used, a file without
 * a key in it is a mistake, and no text for people ever repeats a key, which may be a secret with a typing error.
 */
#ifndef PWI_HOST_KEY_SOURCE_H
#define PWI_HOST_KEY_SOURCE_H

#include <stddef.h>

#include <pawl/status.h>

#include "net/key.h"

#define PWI_KEY_WHAT_MAY_FOLLOW                                                                                        \
  "only 'read-only' or 'operator', 'space=NAME', 'memory=SIZE' (with a space), 'rate=SIZE' and 'connections=N' may "   \
  "stand"
#define PWI_KEY_ERROR_MAX 512 /* bytes that hold any text of these */

struct pwi_key_source {
  const char *key;  /* NULL or "": none */
  const char *name; /* of the text, for people: "PAWL_KEY" */
  const char *file; /* NULL or "": none */
};

/* All keys of both in a ring of their own; NULL if neither is said. On failure the text says what to do. PAWL_INVALID,
 * PAWL_UNSUPPORTED, PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_EXISTS, PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_key_source_read(const struct pwi_key_source *source, struct pwi_keyring **keys_out,
                                              char text[PWI_KEY_ERROR_MAX]);

/* What went wrong with a file of keys; `line` as pwi_keyring_load says. */
void pwi_key_file_error(const char *path, size_t line, pawl_status status, char *text, size_t size);

#endif
