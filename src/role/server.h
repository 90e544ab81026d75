/* A server shard: joins the cluster as a node, holds the arcs that views give it, serves requests for them, and hands arcs
 * over when the manager says so.
 *
 * A process has one per shard, each in a thread of its own with a net and a holding of its own; they share nothing. To the
 * cluster they are nodes that die together (`process`).
 *
 * HOLDING. The shard holds the arcs of which the newest view makes it the head. Arcs of a first view begin empty. An arc
 * that it was filled with is adopted when a view makes it the head; one that it is no longer a member of is dropped.
 *
 * MOVING, stop-and-copy: on MOVE the positions are frozen and copied to the target chunk by chunk, a few under way at a
 * time. They stay frozen until a view without the target (serve again) or without us (drop). The manager's word is
 * needed for both, so a lost link to it leaves them frozen, never served by two.
 *
 * WITHOUT A MANAGER the shard serves on, and tries to reach it again.
 *
 * Threads: an actor over net.h, belongs to its net's thread.
 */
#ifndef PWI_ROLE_SERVER_H
#define PWI_ROLE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "role/holding.h"
#include "role/manager.h" /* pwi_rights_of */
#include "role/protocol.h"
#include "role/roster.h"

struct pwi_server_config {
  struct pwi_net *net;       /* created with pwi_server_actor, and listening */
  const struct pwi_log *log; /* borrowed */
  const char *manager;       /* address; copied, like the next three */
  const char *address;       /* where we are reached; "": what the net says */
  const char *host;
  const char *rack;
  uint64_t process; /* drawn at random once per process, not 0 */
  uint32_t shard;
  uint32_t shard_count;
  uint32_t weight;      /* 0: 1 */
  uint64_t memory_max;  /* of this shard; UINT64_MAX: no cap */
  uint64_t cache_max;   /* bytes of kept key lists; 0: the holding's default */
  pwi_rights_of rights; /* NULL: everybody may do everything */
  void *rights_context;
};

struct pwi_server;
struct pwi_view;

/* Begins to join. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_server_create(const struct pwi_server_config *config, struct pwi_server **server_out);

/* After the net is destroyed or will not be polled again. NULL is fine. */
void pwi_server_destroy(struct pwi_server *server);

extern const struct pwi_actor pwi_server_actor;

/* Ask to leave: the manager moves our arcs to others. pwi_server_state tells when we may go. */
void pwi_server_leave(struct pwi_server *server);

struct pwi_server_state {
  uint64_t node; /* 0: not joined yet */
  uint64_t cluster, epoch, catalogue, roster;
  bool joined;
  bool has_left;       /* we may go: nothing depends on us */
  pawl_status trouble; /* why there is no link to the manager just now; PAWL_OK if there is one */
  uint64_t arcs;       /* of which we are the head */
  uint64_t links;      /* of clients and servers */
  uint64_t moves_out, moves_in;
};

void pwi_server_state(const struct pwi_server *server, struct pwi_server_state *state_out);

/* An arc that the shard is a member of. For tests: full members of one chain (the same positions and `since`) that have the
 * same version of it are equal in content. */
struct pwi_server_arc {
  struct pawl_range positions;
  uint64_t since;
  size_t place; /* in the chain, from 0 */
  bool filling;
  bool even; /* the version is that of all positions */
  uint64_t version, confirmed;
};

size_t pwi_server_arcs(const struct pwi_server *server, struct pwi_server_arc *arcs,
                       size_t room); /* how many there are */

/* Of what is on these positions: rows, state, clocks; see pwi_holding_digest. */
uint64_t pwi_server_digest(const struct pwi_server *server, struct pawl_range positions,
                           const struct pwi_roster *roster);
const struct pwi_roster *pwi_server_roster(const struct pwi_server *server);
const struct pwi_view *pwi_server_view(const struct pwi_server *server); /* NULL: none yet */

/* For metrics and tests; valid as long as the server. */
const struct pwi_holding *pwi_server_holding(const struct pwi_server *server);
const struct pwi_catalogue *pwi_server_catalogue(const struct pwi_server *server);

#endif
