/* What the owner of a key or certificate may do, as manager and servers ask for it. Where it comes from is the host's
 * business (host/run/access.h). */
#ifndef PWI_PROTOCOL_RIGHTS_H
#define PWI_PROTOCOL_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/catalogue.h"

struct pwi_rights {
  bool write;                    /* without it: only reads, or only operates */
  bool is_operator;              /* operates, and neither reads nor writes values; `write` is false */
  bool is_nobody;                /* not accepted, or no longer: its links are ended */
  char space[PWI_SPACE_MAX + 1]; /* "": in all spaces */

  /* Quotas; 0: none. */
  uint64_t memory;      /* bytes of tables of the space, on each shard */
  uint64_t rate;        /* bytes of requests a second, on each shard */
  uint64_t connections; /* links of the same identity, to each role */
};

/* What the identity of a link ("key:…", "cert:…", "user:…" or "", see net.h) permits. NULL instead: everything. */
typedef struct pwi_rights (*pwi_rights_of)(void *context, const char *identity);

/* Everything, as servers must: no limit but quotas. */
bool pwi_rights_are_full(const struct pwi_rights *rights);

/* Orders that concern the whole cluster: moving arcs, draining and giving up servers, checkpoints. */
bool pwi_rights_may_operate(const struct pwi_rights *rights);

/* True if `name` is a name that the space permits. */
bool pwi_rights_reach(const struct pwi_rights *rights, const char *name);

/* Values of a vector or group; and making, deleting it. An operator deletes. */
bool pwi_rights_may_read(const struct pwi_rights *rights, const char *name);
bool pwi_rights_may_change(const struct pwi_rights *rights, const char *name);
bool pwi_rights_may_delete(const struct pwi_rights *rights, const char *name);

#define PWI_RIGHTS_TEXT_MAX 192

/* As key files write limits, with commas: "all", "read-only,space=ads". Returns `text`. */
const char *pwi_rights_print(const struct pwi_rights *rights, char text[PWI_RIGHTS_TEXT_MAX]);

#endif
