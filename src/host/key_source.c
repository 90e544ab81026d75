#include "host/key_source.h"

#include <stdbool.h>
#include <stdio.h>

#define WHAT_A_KEY_IS "'pawl1-' and 64 hexadecimal digits"

static bool is_said(const char *text) { return text && *text; }

void pwi_key_file_error(const char *path, size_t line, pawl_status status, char *text, size_t size) {
  if (line > 0 && status == PAWL_INVALID)
    snprintf(text, size, "%s:%zu: not a key: expected " WHAT_A_KEY_IS, path, line);
  else if (line > 0 && status == PAWL_UNSUPPORTED)
    snprintf(text, size, "%s:%zu: after a key " PWI_KEY_WHAT_MAY_FOLLOW, path, line);
  else if (line > 0)
    snprintf(text, size, "%s:%zu: %s", path, line, pawl_status_text(status));
  else if (status == PAWL_FORBIDDEN)
    snprintf(text, size, "%s: the file must be readable by you and nobody else: chmod 600 %s", path, path);
  else
    snprintf(text, size, "%s: %s", path, status == PAWL_NOT_FOUND ? "cannot be opened" : pawl_status_text(status));
}

static pawl_status add_text(struct pwi_keyring *keys, const struct pwi_key_source *source, char *text) {
  pawl_status status = pwi_keyring_add(keys, source->key);
  if (status == PAWL_INVALID)
    snprintf(text, PWI_KEY_ERROR_MAX, "%s is not a key: expected " WHAT_A_KEY_IS, source->name);
  else if (status == PAWL_UNSUPPORTED)
    snprintf(text, PWI_KEY_ERROR_MAX, "%s: after a key " PWI_KEY_WHAT_MAY_FOLLOW, source->name);
  else if (status)
    snprintf(text, PWI_KEY_ERROR_MAX, "%s: %s", source->name, pawl_status_text(status));
  return status;
}

static pawl_status add_file(struct pwi_keyring *keys, const char *path, char *text) {
  size_t line = 0;
  pawl_status status = pwi_keyring_load(keys, path, &line);
  if (status) pwi_key_file_error(path, line, status, text, PWI_KEY_ERROR_MAX);
  if (status || pwi_keyring_count(keys) > 0) return status;
  snprintf(text, PWI_KEY_ERROR_MAX, "%s: the file contains no key", path);
  return PAWL_NOT_FOUND;
}

pawl_status pwi_key_source_read(const struct pwi_key_source *source, struct pwi_keyring **keys_out,
                                char text[PWI_KEY_ERROR_MAX]) {
  bool has_key = is_said(source->key), has_file = is_said(source->file);
  struct pwi_keyring *keys = NULL;
  pawl_status status = has_key || has_file ? pwi_keyring_create(&keys) : PAWL_OK;
  if (status) snprintf(text, PWI_KEY_ERROR_MAX, "keys: %s", pawl_status_text(status));
  if (!status && has_key) status = add_text(keys, source, text);
  if (!status && has_file) status = add_file(keys, source->file, text);
  if (status)
    pwi_keyring_destroy(keys);
  else
    *keys_out = keys;
  return status;
}
