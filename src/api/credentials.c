#include "api/credentials.h"

#include <stdlib.h>

#include "api/error.h"
#include "host/key_source.h"

static bool is_said(const char *text) { return text && *text; }

pawl_status pwi_credentials_find(const struct pawl_session_options *options, struct pwi_credentials *credentials_out) {
  bool has_keys = is_said(options->key) || is_said(options->key_file);
  int files = (options->certificate != NULL) + (options->private_key != NULL) + (options->authority != NULL);
  if (files != 0 && files != 3)
    return pwi_error(PAWL_INVALID, "certificate, private_key and authority must be given together");
  if (files != 0 && has_keys) return pwi_error(PAWL_INVALID, "a session takes a key or a certificate, not both");
  *credentials_out = (struct pwi_credentials){0};
  if (has_keys)
    *credentials_out = (struct pwi_credentials){options->key, options->key_file};
  else if (files == 0)
    *credentials_out = (struct pwi_credentials){getenv("PAWL_KEY"), getenv("PAWL_KEY_FILE")};
  return PAWL_OK;
}

pawl_status pwi_credentials_read(const struct pwi_credentials *credentials, struct pwi_keyring **keys_out) {
  char text[PWI_KEY_ERROR_MAX] = "";
  struct pwi_key_source source = {.key = credentials->key, .name = "that", .file = credentials->key_file};
  pawl_status status = pwi_key_source_read(&source, keys_out, text);
  return status ? pwi_error(status, "%s", text) : PAWL_OK;
}
