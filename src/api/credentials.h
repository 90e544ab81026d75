/* By what a session proves who it is: the options' keys or certificates, else the keys that the environment names, as the
 * command finds them (cli/keys.c). */
#ifndef PWI_API_CREDENTIALS_H
#define PWI_API_CREDENTIALS_H

#include <pawl/session.h>

#include "net/key.h"

/* Borrowed texts: a key, a file of keys, either, both or none. */
struct pwi_credentials {
  const char *key;
  const char *key_file;
};

/* What the options or, if these say nothing, the environment names. PAWL_INVALID if the options contradict themselves. */
PAWL_MUST_USE pawl_status pwi_credentials_find(const struct pawl_session_options *options,
                                               struct pwi_credentials *credentials_out);

/* Reads them into a ring; NULL if there are none. PAWL_INVALID, PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO, PAWL_NO_MEMORY.
 * Both leave a text for pawl_error_text, in which no key is ever repeated. */
PAWL_MUST_USE pawl_status pwi_credentials_read(const struct pwi_credentials *credentials,
                                               struct pwi_keyring **keys_out);

#endif
