/* Reads the cluster keys of a process from a text, a file, or both, and explains errors.
 *
 * Sessions and commands follow the same rules: the key of the text comes first and is the one that this
 * process uses; a file without a key is an error; and no message ever contains a key, because even a
 * mistyped key may be a secret.
 */
#ifndef PWI_HOST_KEY_SOURCE_H
#define PWI_HOST_KEY_SOURCE_H

#include <stddef.h>

#include <pawl/status.h>

#include "net/key.h"

#define PWI_KEY_WHAT_MAY_FOLLOW                                                                                        \
  "only 'read-only' or 'operator', 'space=NAME', 'memory=SIZE' (with a space), 'rate=SIZE' and 'connections=N' "       \
  "are allowed"
#define PWI_KEY_ERROR_MAX 512 /* bytes that suffice for any of these texts */

struct pwi_key_source {
  const char *key;  /* NULL or "": no key */
  const char *name; /* where the text comes from, for messages: "PAWL_KEY" */
  const char *file; /* NULL or "": no file */
};

/* Returns all keys in a new key ring; NULL if neither text nor file is given. On failure `text` says what
 * to do. PAWL_INVALID, PAWL_UNSUPPORTED, PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_EXISTS, PAWL_IO,
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_key_source_read(const struct pwi_key_source *source, struct pwi_keyring **keys_out,
                                              char text[PWI_KEY_ERROR_MAX]);

/* Explains an error in a key file; `line` as returned by pwi_keyring_load. */
void pwi_key_file_error(const char *path, size_t line, pawl_status status, char *text, size_t size);

#endif
