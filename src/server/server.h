/* A server shard: joins the cluster as a node, is a member of the chains that views put it in, and serves the arcs of which
 * it is the head (OSDI'14 4.3; design, sections 5, 6 and 9).
 *
 * A process has one per shard, each in a thread of its own with a net and a shard of its own; they share nothing. To the
 * cluster they are nodes that die together (`process`).
 *
 * VIEWS alone decide what a shard holds. Of an arc of which it is a full member it has all rows, clocks and refusals; it
 * serves requests there if it is the head. Arcs of a first view begin empty; one that it was filled with is held from the
 * view on that makes it full; one that it is no longer a member of is dropped. A view that makes it a full member of what it
 * was not filled with is not followed there (`arc.missing` in the log): to serve it empty would be to lose it silently.
 *
 * CHAINS (server/chain.h, server/chain_traffic.c). The head applies a numbered request, and sends the result with the clocks down the
 * chain, as the arc's next version. Each member applies versions in order, passes them on, and keeps them until all full
 * members behind it have confirmed. The head gives no answer, also to a duplicate or to a pull, before every full member has
 * all that the answer may show. Members talk within one `since` of an arc and ignore everything else. So a head that was
 * deposed and does not know it hears no confirmation, and answers nobody what is not stored with its successors. It does
 * still answer pulls of what had been confirmed before.
 *
 * FILLING (server/fill.c). On the manager's order the last full member copies an arc to the one that the view lists behind
 * it as filling, while traffic goes on: changes travel in the same sequence as chunks. From the last chunk on nothing is
 * confirmed that the new member does not have; then the manager is told.
 *
 * HANDOVER. On the manager's order the head takes no more requests in an arc (NOT_HERE), waits until all full members are
 * equal, and says so. It serves again with the next view that makes it the head, if the order is taken back, or if the
 * manager is lost before it was told.
 *
 * COMPLAINTS. A member that has had no way to the one behind it for 200 ms tells the manager, and so does one that has no
 * memory to follow with; the manager drops one of the two, or the one that cannot follow, unless nobody else is left.
 *
 * WITHOUT A MANAGER the shard serves on, and tries to reach one again, at all addresses that it was given. What only a
 * view can settle waits: nothing is confirmed for a member that is gone until somebody drops it.
 *
 * Threads: an actor over net.h, belongs to its net's thread.
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
  const char *manager; /* address, or several with commas (protocol/manager_list.h); copied, like the next three */
  const char *address; /* where we are reached; "": what the net says */
  const char *host;
  const char *rack;
  uint64_t process; /* drawn at random once per process, not 0 */
  uint32_t shard;
  uint32_t shard_count;
  uint32_t weight;      /* 0: 1 */
  uint64_t memory_max;  /* of this shard; UINT64_MAX: no cap */
  uint64_t set_aside;   /* of it, for what is being received and for answers; rows and lists have the rest */
  uint64_t answers_max; /* bytes of answers, see server/handler.h */
  uint64_t cache_max;   /* bytes of kept key lists; 0: the shard's default */
  pwi_rights_of rights; /* NULL: everybody may do everything */
  void *rights_context;
  struct pwi_auditor auditor; /* zeros: the audit goes to the log alone */
  struct pwi_disk_queue
      *disk_queue; /* where checkpoints go, see checkpoint/disk_queue.h; borrowed. NULL: none can be saved here */

  /* Server functions besides the built-in ones, and how they are run: as in shard/shard.h. Borrowed. */
  const struct pwi_function_set *functions;
  void (*run)(void *context, void (*work)(void *argument), void *argument);
  void *run_context;
};

struct pwi_disk_queue;
struct pwi_server;
struct pwi_view;

/* Begins to join. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_server_create(const struct pwi_server_config *config, struct pwi_server **server_out);

/* After the net is destroyed or will not be polled again. NULL is fine. */
void pwi_server_destroy(struct pwi_server *server);

extern const struct pwi_actor pwi_server_actor;

/* What `rights` says has changed: links whose identity may come no more are ended, the others go on with what they may do
 * now. From the net's thread. */
void pwi_server_review(struct pwi_server *server);

/* Ask to leave: the manager moves our arcs to others. pwi_server_state tells when we may go. */
void pwi_server_leave(struct pwi_server *server);

struct pwi_server_state {
  uint64_t node; /* 0: not joined yet */
  uint64_t cluster, epoch, catalogue, membership;
  bool joined;
  bool has_left;       /* we may go: nothing depends on us */
  pawl_status trouble; /* why there is no link to the manager just now; PAWL_OK if there is one */
  uint64_t arcs;       /* of which we are the head */
  uint64_t links;      /* of clients and servers */
  uint64_t moves_out, moves_in;
  uint64_t answer_bytes, answers_dropped; /* as in server/handler.h */
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

/* Of what is on these positions: rows, state, clocks; see pwi_shard_digest. */
uint64_t pwi_server_digest(const struct pwi_server *server, struct pawl_range positions,
                           const struct pwi_membership *membership);
const struct pwi_membership *pwi_server_membership(const struct pwi_server *server);
const struct pwi_view *pwi_server_view(const struct pwi_server *server); /* NULL: none yet */

/* For metrics and tests; valid as long as the server. */
const struct pwi_shard *pwi_server_shard(const struct pwi_server *server);
const struct pwi_catalogue *pwi_server_catalogue(const struct pwi_server *server);

#endif
