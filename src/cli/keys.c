/* The cluster keys of this process, as the environment names them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void pwi_cli_key_error(const char *path, size_t line, pawl_status status, char *text, size_t size) {
  if (line > 0 && status == PAWL_INVALID)
    snprintf(text, size, "%s:%zu: this is not a key: 'pawl1-' and 64 hexadecimal digits", path, line);
  else if (line > 0 && status == PAWL_UNSUPPORTED)
    snprintf(text, size, "%s:%zu: behind a key only 'read-only' and 'space=NAME' may stand", path, line);
  else if (line > 0)
    snprintf(text, size, "%s:%zu: %s", path, line, pawl_status_text(status));
  else if (status == PAWL_FORBIDDEN)
    snprintf(text, size, "%s: you, and nobody else, must be able to read it: chmod 600 %s", path, path);
  else
    snprintf(text, size, "%s: %s", path, status == PAWL_NOT_FOUND ? "cannot be opened" : pawl_status_text(status));
}

static pawl_status add_key(struct pwi_cli_keys *keys, const char *text) {
  pawl_status status = pwi_keyring_add(keys->ring, text);
  if (status == PAWL_INVALID) /* the text stays out of it: it may be a secret with a typing error */
    snprintf(keys->error, sizeof keys->error, "%s is not a key: 'pawl1-' and 64 hexadecimal digits", PWI_CLI_KEY);
  else if (status == PAWL_UNSUPPORTED)
    snprintf(keys->error, sizeof keys->error, "%s: behind a key only 'read-only' and 'space=NAME' may stand",
             PWI_CLI_KEY);
  else if (status)
    snprintf(keys->error, sizeof keys->error, "%s: %s", PWI_CLI_KEY, pawl_status_text(status));
  return status;
}

static pawl_status add_file(struct pwi_cli_keys *keys, const char *path) {
  size_t line;
  pawl_status status = pwi_keyring_load(keys->ring, path, &line);
  if (status) pwi_cli_key_error(path, line, status, keys->error, sizeof keys->error);
  if (!status && pwi_keyring_count(keys->ring) == 0) {
    snprintf(keys->error, sizeof keys->error, "%s: there is no key in it", path);
    status = PAWL_NOT_FOUND;
  }
  return status;
}

void pwi_cli_keys_init(struct pwi_cli_keys *keys) {
  const char *text = getenv(PWI_CLI_KEY), *path = getenv(PWI_CLI_KEY_FILE);
  *keys = (struct pwi_cli_keys){0};
  bool has_text = text && *text, has_path = path && *path;
  if (!has_text && !has_path) return;
  snprintf(keys->from, sizeof keys->from, "%s%s%s%s%s", has_text ? PWI_CLI_KEY : "",
           has_text && has_path ? " and " : "", has_path ? PWI_CLI_KEY_FILE : "", has_path ? "=" : "",
           has_path ? path : "");
  pawl_status status = pwi_keyring_create(&keys->ring);
  if (status) snprintf(keys->error, sizeof keys->error, "%s", pawl_status_text(status));
  if (!status && has_text) status = add_key(keys, text); /* first: it is the one that is used */
  if (!status && has_path) status = add_file(keys, path);
  if (!status) return;
  pwi_keyring_destroy(keys->ring);
  keys->ring = NULL;
}

void pwi_cli_keys_fini(struct pwi_cli_keys *keys) {
  pwi_keyring_destroy(keys->ring);
  keys->ring = NULL;
}
