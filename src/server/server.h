/* A server shard: joins the cluster as a node, is a member of the chains that views assign to it, and serves
 * the arcs whose head it is (docs/replication.md, docs/protocol.md).
 *
 * A process has one actor per shard, each in its own thread with its own net and its own data; they share
 * nothing. To the cluster they are nodes that fail together (`process`).
 *
 * VIEWS alone decide which arcs a server has. As a full member of an arc it has all rows, clocks and refusals
 * there; as its head it serves requests. Arcs of a first view begin empty. A server that was filled with an
 * arc has it from the view on that makes the server a full member. It drops an arc of which it is no longer a
 * member. If a view makes it a full member of an arc with which it was not filled, it does not follow the
 * view there (`arc.missing` in the log): to serve the arc empty would lose its data silently.
 *
 * CHAINS (server/chain.h, server/chain_traffic.c). The head applies a numbered request, and sends the result
 * with the clocks down the chain as the next version of the arc. Each member applies versions in order,
 * passes them on, and keeps them until all full members behind it have confirmed them. The head sends no
 * reply, also to a duplicate or a pull, before every full member has everything that the reply may show.
 * Members accept only messages of the present `since` of an arc. A head that was deposed and does not know it
 * therefore receives no confirmations, and cannot acknowledge a change that its successors lack. It still
 * answers pulls of data that was confirmed before.
 *
 * FILLING (server/fill.c). By order of the manager the last full member copies an arc to the member that
 * follows it as filling, while requests go on: changes travel in the same sequence as chunks. After the last
 * chunk no change is confirmed that the new member lacks. Then the manager is told.
 *
 * HANDOVER. By order of the manager the head accepts no more requests for an arc (NOT_HERE), waits until all
 * full members are equal, and reports this. It serves again with the next view that makes it the head, if the
 * order is cancelled, or if the link to the manager is lost before the report.
 *
 * COMPLAINTS. A member that cannot reach the following member for 200 ms tells the manager, which drops one
 * of the two. A member without memory to follow tells the manager as well, and is dropped unless it is the
 * last.
 *
 * WITHOUT A MANAGER the server continues to serve, and tries to reach a manager at all known addresses.
 * Whatever needs a new view waits: changes are not confirmed while a lost member is still in the chain.
 *
 * Threads: an actor over net.h; it belongs to the thread of its net.
 */
#ifndef PWI_SERVER_SERVER_H
#define PWI_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "shard/shard.h"
#include "protocol/audit.h"
#include "protocol/rights.h"
#include "protocol/protocol.h"
#include "protocol/membership.h"

struct pwi_server_config {
  struct pwi_net *net;       /* created with pwi_server_actor, and listening */
  const struct pwi_log *log; /* borrowed */
  const char *manager;       /* one address, or several with commas (protocol/manager_list.h); copied */
  const char *address;       /* where others reach this server, copied; "": as the net says */
  const char *host;          /* label of this machine, copied */
  const char *rack;          /* label of its rack, copied */
  uint64_t process;          /* a random number of the process, not 0 */
  uint32_t shard;            /* number of this shard in the process, from 0 */
  uint32_t shard_count;
  uint32_t weight;     /* capacity relative to others; 0 means 1 */
  uint64_t memory_max; /* bytes for this shard; UINT64_MAX: no limit */
  /* Bytes of `memory_max` for messages and answers; the rest is for rows and key lists. */
  uint64_t set_aside;
  uint64_t answers_max; /* bytes of answers, see server/handler.h */
  uint64_t cache_max;   /* bytes of kept key lists; 0: the default of the shard */
  pwi_rights_of rights; /* NULL: every peer has all rights */
  void *rights_context;
  struct pwi_auditor auditor; /* zeros: the audit goes to the log alone */
  /* For checkpoints (checkpoint/disk_queue.h), borrowed; NULL: none can be saved. */
  struct pwi_disk_queue *disk_queue;

  /* Server functions in addition to the built-in ones, and how to run them; as in shard/shard.h. Borrowed. */
  const struct pwi_function_set *functions;
  void (*run)(void *context, void (*work)(void *argument), void *argument);
  void *run_context;
};

struct pwi_disk_queue;
struct pwi_server;
struct pwi_view;

/* Creates a server, which begins to join. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_server_create(const struct pwi_server_config *config, struct pwi_server **server_out);

/* Call it after the net is destroyed or will not be polled again. NULL is allowed. */
void pwi_server_destroy(struct pwi_server *server);

extern const struct pwi_actor pwi_server_actor;

/* Call it from the net's thread when the result of `rights` has changed. Closes the links of identities
 * without rights; the other links get their new rights. */
void pwi_server_review(struct pwi_server *server);

/* Asks to leave: the manager moves this server's arcs to others. `has_left` in the state tells when this is
 * done. */
void pwi_server_leave(struct pwi_server *server);

struct pwi_server_state {
  uint64_t node; /* this server's id; 0: not joined yet */
  uint64_t cluster, epoch, catalogue, membership;
  bool joined;
  bool has_left;       /* nothing depends on this server any more: it may stop */
  pawl_status trouble; /* why there is no link to the manager; PAWL_OK if there is one */
  uint64_t arcs;       /* whose head is this server */
  uint64_t links;      /* of clients */
  uint64_t lanes_held; /* links of clients that wait for more urgent work */
  uint64_t holds;      /* such waits begun since the start */
  uint64_t moves_out, moves_in;
  uint64_t answer_bytes, answers_dropped; /* as in server/handler.h */
};

void pwi_server_state(const struct pwi_server *server, struct pwi_server_state *state_out);

/* An arc of which this server is a member. For tests: full members with the same positions, `since` and
 * version have the same data. */
struct pwi_server_arc {
  struct pawl_range positions;
  uint64_t since;
  size_t place; /* in the chain, from 0 */
  bool filling;
  bool even; /* all positions have this version */
  uint64_t version, confirmed;
};

/* Lists at most `room` arcs; returns the number of all. */
size_t pwi_server_arcs(const struct pwi_server *server, struct pwi_server_arc *arcs, size_t room);

/* A digest of the rows, state and clocks on these positions; see pwi_shard_digest. */
uint64_t pwi_server_digest(const struct pwi_server *server, struct pawl_range positions,
                           const struct pwi_membership *membership);
const struct pwi_membership *pwi_server_membership(const struct pwi_server *server);
const struct pwi_view *pwi_server_view(const struct pwi_server *server); /* NULL: no view yet */

/* For metrics and tests; valid as long as the server exists. */
const struct pwi_shard *pwi_server_shard(const struct pwi_server *server);
const struct pwi_catalogue *pwi_server_catalogue(const struct pwi_server *server);

#endif
