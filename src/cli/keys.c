/* The cluster keys of this process, from the environment. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "host/key_source.h"

void pwi_cli_keys_init(struct pwi_cli_keys *keys) {
  const char *text = getenv(PWI_CLI_KEY), *path = getenv(PWI_CLI_KEY_FILE);
  *keys = (struct pwi_cli_keys){0};
  bool has_text = text && *text, has_path = path && *path;
  if (!has_text && !has_path) return;
  snprintf(keys->from, sizeof keys->from, "%s%s%s%s%s", has_text ? PWI_CLI_KEY : "",
           has_text && has_path ? " and " : "", has_path ? PWI_CLI_KEY_FILE : "", has_path ? "=" : "",
           has_path ? path : "");
  char error[PWI_KEY_ERROR_MAX] = "";
  struct pwi_key_source source = {.key = text, .name = PWI_CLI_KEY, .file = path};
  if (pwi_key_source_read(&source, &keys->ring, error)) snprintf(keys->error, sizeof keys->error, "%s", error);
}

void pwi_cli_keys_fini(struct pwi_cli_keys *keys) {
  pwi_keyring_destroy(keys->ring);
  keys->ring = NULL;
}
