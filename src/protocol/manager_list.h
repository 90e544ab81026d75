/* The addresses of the managers of a cluster, one of which leads at a time.
 *
 * Several managers can share a store for the decisions of the cluster (manager/leader/meta.h). One of them
 * leads and the others stand by. A node is given the addresses of all or some of them and tries one after
 * another. A standby says so and names the manager that it believes to lead, which the node tries at once.
 * Between two rounds through the list the node pauses; the pause doubles each time.
 *
 * TERMS. Each leadership has a number, its term, which only rises. Every message of a manager carries it. A
 * node remembers the highest term and ignores managers of lower terms. So a manager that was stopped,
 * replaced and continued changes nothing.
 *
 * The caller connects and reports the result. Threads: as the caller.
 */
#ifndef PWI_PROTOCOL_MANAGER_LIST_H
#define PWI_PROTOCOL_MANAGER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"
#include "protocol/protocol.h"

#define PWI_MANAGERS_MAX 16

struct pwi_managers {
  char (*addresses)[PWI_NET_ADDRESS_MAX];
  size_t count;
  size_t at;                        /* the address tried now or last */
  size_t failed;                    /* failed attempts on the list since the last success; after `count` of
                                       them a round is over */
  char hint[PWI_NET_ADDRESS_MAX];   /* address of the leader according to a standby; "": none */
  char tried[PWI_NET_ADDRESS_MAX];  /* the last result of pwi_managers_next */
  char before[PWI_NET_ADDRESS_MAX]; /* the address that failed before `tried` */
  bool is_hinted;                   /* `tried` was a hint */
  unsigned hops;                    /* hints followed since the last address of the list */
  int64_t pause_min_ns, pause_ns;
  uint64_t term; /* the highest term received; 0: none */
};

/* Reads addresses separated by commas. The pause after the first round is `pause_min_ns`. PAWL_INVALID for an
 * invalid address, an empty list, or too many addresses; PAWL_NO_MEMORY. Free it with pwi_managers_fini,
 * which accepts a struct of zeros. */
PAWL_MUST_USE pawl_status pwi_managers_init(struct pwi_managers *managers, const char *list, int64_t pause_min_ns);
void pwi_managers_fini(struct pwi_managers *managers);

/* Returns the address to try now; valid until the next call. */
const char *pwi_managers_next(struct pwi_managers *managers);

/* The attempt failed, or its link is lost. Returns how long to wait before the next attempt: 0 if another
 * manager can be tried at once. */
int64_t pwi_managers_failed(struct pwi_managers *managers);

/* A link over which the node had joined is lost. As pwi_managers_failed, but the only manager is tried again
 * at once. */
int64_t pwi_managers_lost(struct pwi_managers *managers);

/* The node has joined. If the link is lost, another address of the list is tried first. */
void pwi_managers_found(struct pwi_managers *managers);

/* The manager just tried names another one as the leader. Ignores "", invalid addresses, and the address that
 * was tried immediately before. */
void pwi_managers_hint(struct pwi_managers *managers, const char *address);

/* How long an attempt may take until its link is up. It is limited because other managers may be waiting, and
 * because a connection begun while there was no route may come up much later than a new one would. */
int64_t pwi_managers_patience(const struct pwi_managers *managers);

/* Processes a JOINED: follows the hint of a standby, and checks the term of any other manager as
 * pwi_managers_heed does. */
PAWL_MUST_USE pawl_status pwi_managers_welcome(struct pwi_managers *managers, const struct pwi_joined *joined,
                                               uint64_t term);

/* Checks the term of any other message of a manager. PAWL_NODE_DEPOSED if a higher term was received before;
 * close the link then. */
PAWL_MUST_USE pawl_status pwi_managers_heed(struct pwi_managers *managers, uint64_t term);

/* The first address of a list, for callers that need a route to it. `address_out` has room for
 * PWI_NET_ADDRESS_MAX characters. PAWL_INVALID as pwi_managers_init. */
PAWL_MUST_USE pawl_status pwi_managers_first(const char *list, char *address_out);

#endif
