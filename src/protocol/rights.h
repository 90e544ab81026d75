/* Rights of the owner of a key or certificate, as manager and servers check them. The host assigns them
 * (host/run/access.h). */
#ifndef PWI_PROTOCOL_RIGHTS_H
#define PWI_PROTOCOL_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "protocol/catalogue.h"

struct pwi_rights {
  bool write;                    /* may change values and vectors; if false, it only reads, or only
                                    operates */
  bool is_operator;              /* may operate the cluster, but neither read nor write values; `write` is
                                    false */
  bool is_nobody;                /* not accepted, or no longer: its links are closed */
  char space[PWI_SPACE_MAX + 1]; /* "": all spaces */

  /* Quotas; 0: none. */
  uint64_t memory;      /* bytes of tables of the space, on each shard */
  uint64_t rate;        /* bytes of requests a second, on each shard */
  uint64_t connections; /* links with the same identity, to each role */
  uint64_t priority;    /* the highest priority of its work */
};

/* Returns the rights of a link with this identity ("key:…", "cert:…", "user:…" or "", see net.h). A NULL
 * function permits everything. */
typedef struct pwi_rights (*pwi_rights_of)(void *context, const char *identity);

/* Returns true if there are no limits except quotas. Servers need full rights. */
bool pwi_rights_are_full(const struct pwi_rights *rights);

/* Returns true if orders that concern the whole cluster are permitted: moving arcs, draining and giving up
 * servers, checkpoints. */
bool pwi_rights_may_operate(const struct pwi_rights *rights);

/* Returns true if the space of the rights permits this name. */
bool pwi_rights_reach(const struct pwi_rights *rights, const char *name);

/* May the values of this vector or group be read? May the values be changed and the vector be created? May it
 * be deleted? An operator may delete. */
bool pwi_rights_may_read(const struct pwi_rights *rights, const char *name);
bool pwi_rights_may_change(const struct pwi_rights *rights, const char *name);
bool pwi_rights_may_delete(const struct pwi_rights *rights, const char *name);

/* The priority (wire/hello.h) of work for which this one is stated, or none with 0: at most that of the rights. */
uint8_t pwi_rights_priority(const struct pwi_rights *rights, uint8_t stated);

/* The same for the hello of a link. It is logged if there is no such priority (PAWL_UNSUPPORTED), or if it is more than
 * the rights permit. */
PAWL_MUST_USE pawl_status pwi_rights_greet(const struct pwi_rights *rights, uint8_t stated, const char *peer,
                                           const char *identity, const struct pwi_log *log, uint8_t *priority_out);

#define PWI_RIGHTS_TEXT_MAX 192

/* Writes the rights as the limits of a key file, separated by commas: "all", "read-only,space=ads". Returns
 * `text`. */
const char *pwi_rights_print(const struct pwi_rights *rights, char text[PWI_RIGHTS_TEXT_MAX]);

#endif
