/* The credentials of a session: the keys or certificates of its options, else the keys that the
 * environment names, by the rules of the command (cli/keys.c). */
#ifndef PWI_API_CREDENTIALS_H
#define PWI_API_CREDENTIALS_H

#include <pawl/session.h>

#include "net/key.h"

/* Borrowed strings: a key, a key file, both or neither. */
struct pwi_credentials {
  const char *key;
  const char *key_file;
};

/* Finds the credentials in the options or, if these name none, in the environment. PAWL_INVALID if the
 * options contradict one another. */
PAWL_MUST_USE pawl_status pwi_credentials_find(const struct pawl_session_options *options,
                                               struct pwi_credentials *credentials_out);

/* Reads them into a key ring; NULL if there are none. PAWL_INVALID, PAWL_NOT_FOUND, PAWL_FORBIDDEN,
 * PAWL_IO, PAWL_NO_MEMORY. Both functions set pawl_error_text, which never contains a key. */
PAWL_MUST_USE pawl_status pwi_credentials_read(const struct pwi_credentials *credentials,
                                               struct pwi_keyring **keys_out);

#endif
