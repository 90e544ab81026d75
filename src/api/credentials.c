#include "api/credentials.h"

#include <stdlib.h>

#include "api/error.h"

static bool is_said(const char *text) { return text && *text; }

pawl_status pwi_credentials_find(const struct pawl_session_options *options, struct pwi_credentials *credentials_out) {
  bool has_keys = is_said(options->key) || is_said(options->key_file);
  int files = (options->certificate != NULL) + (options->private_key != NULL) + (options->authority != NULL);
  if (files != 0 && files != 3)
    return pwi_error(PAWL_INVALID, "certificate, private_key and authority go together: all three or none");
  if (files != 0 && has_keys) return pwi_error(PAWL_INVALID, "a session has a key or a certificate, not both");
  *credentials_out = (struct pwi_credentials){0};
  if (has_keys)
    *credentials_out = (struct pwi_credentials){options->key, options->key_file};
  else if (files == 0)
    *credentials_out = (struct pwi_credentials){getenv("PAWL_KEY"), getenv("PAWL_KEY_FILE")};
  return PAWL_OK;
}

static pawl_status add_file(struct pwi_keyring *keys, const char *path) {
  size_t line = 0;
  pawl_status status = pwi_keyring_load(keys, path, &line);
  if (status == PAWL_OK && pwi_keyring_count(keys) == 0)
    return pwi_error(PAWL_NOT_FOUND, "%s: there is no key in it", path);
  if (status == PAWL_OK) return PAWL_OK;
  if (line > 0 && status == PAWL_INVALID)
    return pwi_error(status, "%s:%zu: this is not a key: 'pawl1-' and 64 hexadecimal digits", path, line);
  if (line > 0) return pwi_error_status(status, "%s:%zu", path, line);
  if (status == PAWL_FORBIDDEN)
    return pwi_error(status, "%s: you, and nobody else, must be able to read it: chmod 600 %s", path, path);
  return status == PAWL_NOT_FOUND ? pwi_error(status, "%s: cannot be opened", path)
                                  : pwi_error_status(status, "%s", path);
}

pawl_status pwi_credentials_read(const struct pwi_credentials *credentials, struct pwi_keyring **keys_out) {
  bool has_key = is_said(credentials->key), has_file = is_said(credentials->key_file);
  struct pwi_keyring *keys = NULL;
  pawl_status status = PAWL_OK;
  if (has_key || has_file) {
    status = pwi_keyring_create(&keys);
    if (status) return pwi_error_status(status, "keys");
  }
  if (has_key) {
    status = pwi_keyring_add(keys, credentials->key); /* first: it is the one that is used */
    if (status == PAWL_INVALID)                       /* the text stays out of it: it may be a secret with a mistake */
      pwi_error(status, "that is not a key: 'pawl1-' and 64 hexadecimal digits");
    else if (status)
      pwi_error_status(status, "key");
  }
  if (!status && has_file) status = add_file(keys, credentials->key_file);
  if (status) {
    pwi_keyring_destroy(keys);
    return status;
  }
  *keys_out = keys;
  return PAWL_OK;
}
