#include "host/run_rights.h"

#include <assert.h>
#include <string.h>

static_assert(PWI_KEY_SPACE_MAX == PWI_SPACE_MAX, "a key's space is a space");

#define KEY "key:"
#define KEY_SIZE (sizeof KEY - 1)
#define NOWHERE "/" /* no name has a slash in its first word */

struct pwi_rights pwi_run_rights(void *context, const char *identity) {
  const struct pwi_keyring *keys = context;
  struct pwi_rights rights = {.write = true};
  struct pwi_key_limits limits;
  if (strncmp(identity, KEY, KEY_SIZE) != 0) return rights;
  const char *name = identity + KEY_SIZE;
  if (!keys || !pwi_keyring_limits(keys, name, strlen(name), &limits))
    return (struct pwi_rights){.write = false, .space = NOWHERE};
  rights.write = !limits.read_only;
  memcpy(rights.space, limits.space, sizeof rights.space);
  return rights;
}

bool pwi_run_rights_are_limited(const struct pwi_keyring *keys) {
  const struct pwi_key *first = keys ? pwi_keyring_first(keys) : NULL;
  struct pwi_key_limits limits;
  if (!first || !pwi_keyring_limits(keys, first->name, PWI_KEY_NAME_SIZE, &limits)) return false;
  return limits.read_only || limits.space[0];
}
