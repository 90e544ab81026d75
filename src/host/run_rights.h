/* What a key lets its holder do: from the limits in a key file (net/key.h) to the rights that roles ask for. */
#ifndef PWI_HOST_RUN_RIGHTS_H
#define PWI_HOST_RUN_RIGHTS_H

#include <stdbool.h>

#include "net/key.h"
#include "role/manager.h"

/* A pwi_rights_of; the context is a `const struct pwi_keyring *`, or NULL where there are no keys. An identity "key:NAME"
 * has what the limits of that key leave, and nothing at all if the ring has no such key: it may read in a space that no
 * vector can be in. Every other identity ("user:…", "cert:…", "") may do everything: how its link came up was enough. */
struct pwi_rights pwi_run_rights(void *context, const char *identity);

/* True if the first key, the one that a node shows when it connects, has limits. */
bool pwi_run_rights_are_limited(const struct pwi_keyring *keys);

#endif
