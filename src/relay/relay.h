/* A relay: adds up the pushes of a group on their way to the servers, and reads rows once for all members that pull
 * them (MLNet 3.2, docs/relays.md).
 *
 * To its children, members of a group and other relays, it is a server that takes pushes and pulls of groups and
 * nothing else. To the servers, and to the relay above it, it is a client that sends aggregates and pulls. It joins the
 * cluster as a sender with the job of a relay (protocol/relays.h), and needs a key without limits.
 *
 * A relay holds nothing that is acknowledged: it answers a push after the server has answered the aggregate. Whenever
 * anything is in doubt it answers DIRECT, and its children send their requests to the server. So a relay may die at any
 * moment.
 *
 * Pushes of a PUSHPULL bring the rows back once; the relay passes them to all children that asked for them.
 *
 * Threads: as the net.
 */
#ifndef PWI_RELAY_RELAY_H
#define PWI_RELAY_RELAY_H

#include "client/client.h"
#include "protocol/relays.h"
#include "protocol/rights.h"

struct pwi_relay;

struct pwi_relay_config {
  struct pwi_net *net;       /* created with pwi_client_actor; the caller listens first */
  struct pwi_random *random; /* borrowed */
  const struct pwi_log *log; /* borrowed */
  const char *manager;       /* as in struct pwi_client_config, as the next three */
  const char *host, *rack;
  const uint8_t *identity;
  struct pwi_relay_tree tree;
  int64_t second;       /* of the times in relay/choice.h; 0: a second. For simulations */
  uint8_t priority;     /* the lowest of its requests at servers, PWI_PRIORITY_…; 0: that of its children */
  uint64_t memory_max;  /* bytes of pushes and rows that wait or are kept; 0: 1 GiB */
  pwi_rights_of rights; /* of its children, of which it needs the priority; NULL: they have no limits */
  void *rights_context;
};

/* Creates a relay, which begins to join. Errors as pwi_client_create. */
PAWL_MUST_USE pawl_status pwi_relay_create(const struct pwi_relay_config *config, struct pwi_relay **relay_out);

/* Call it after the net is destroyed or will not be polled again. NULL is allowed. */
void pwi_relay_destroy(struct pwi_relay *relay);

/* Leaves the cluster, as pwi_client_leave: the children send to the servers from now on. */
void pwi_relay_leave(struct pwi_relay *relay);

/* The actor of the net is pwi_client_actor, with this client. It is also for the state. */
struct pwi_client *pwi_relay_client(struct pwi_relay *relay);

struct pwi_relay_figures {
  uint64_t pushes, bytes_in;       /* of children that were added up, or passed on alone */
  uint64_t aggregates, bytes_out;  /* sent up, with their values */
  uint64_t applied;                /* aggregates that the server applied */
  uint64_t refused;                /* pushes and pulls that were answered DIRECT */
  uint64_t waiting, waiting_bytes; /* aggregates that are gathered or under way now */
  uint64_t pulls, bytes_back;      /* pulls of children that were answered with rows */
  uint64_t pulls_kept;             /* of these, with rows that were here already */
  uint64_t reads, bytes_read;      /* requests for rows that were sent up */
  uint64_t kept, kept_bytes;       /* reads whose rows are here now, or on their way */
  uint64_t children;               /* members and relays that have a link to it */
  uint64_t priority;               /* of its requests at servers */
  uint64_t memory_max;
  struct pwi_relay_tree tree; /* in force, as a relay with --tree auto last saw; otherwise its own */
  uint64_t tree_changes;      /* that it saw */
};

void pwi_relay_figures(const struct pwi_relay *relay, struct pwi_relay_figures *figures_out);

#endif
