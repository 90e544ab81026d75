/* The engine of collectives (docs/collectives.md): barrier, broadcast, all-gather, all-reduce and reduce-scatter
 * between the members of a peer group. <pawl/collective.h> is the contract for users.
 *
 * An engine is a part of the client's actor and uses one channel, "collective/NAME". All of its work runs in callbacks
 * of the net and in the functions below: a piece of 64 KB takes a few microseconds.
 *
 *   pwi_collective_begin(engine, &work);
 *   wait until pwi_collective_is_over(engine), or the deadline has passed;
 *   status = pwi_collective_end(engine);   PAWL_TIMED_OUT: not over; the memory of the work is not touched from now on,
 *                                          until the same work is begun again
 *
 * `wakes` is called when something may be over. Call pwi_collective_look at or soon after pwi_collective_look_at.
 *
 * Threads: all functions belong to the actor.
 */
#ifndef PWI_PEER_COLLECTIVE_COLLECTIVE_H
#define PWI_PEER_COLLECTIVE_COLLECTIVE_H

#include <pawl/collective.h>

#include "peer/collective/messages.h"
#include "peer/peers.h"

struct pwi_collective;

struct pwi_collective_config {
  struct pwi_peers *peers;
  struct pwi_net *net;
  const struct pwi_log *log;
  struct pwi_vector_id group;
  const char *name; /* copied */
  uint64_t life;    /* higher than that of every engine of this name that this node had before; not 0 */

  void *context;                 /* of the functions below */
  void (*wakes)(void *context);  /* inside the actor */
  void (*closed)(void *context); /* the last callback: pwi_collective_destroy may be called, but not from here */
};

/* One operation, with memory of the user, which is borrowed until it is over. Broadcast: `out` only. */
struct pwi_collective_work {
  struct collective_call call;
  const void *in;
  void *out;
  size_t room; /* values in `out`: all-gather and reduce-scatter */
};

/* PAWL_INVALID, PAWL_TOO_LARGE, PAWL_EXISTS, PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_collective_create(const struct pwi_collective_config *config,
                                                struct pwi_collective **engine_out);

/* Begins an operation, or goes on with the one that has timed out. PAWL_INVALID: another one has timed out. */
PAWL_MUST_USE pawl_status pwi_collective_begin(struct pwi_collective *engine, const struct pwi_collective_work *work);
bool pwi_collective_is_over(const struct pwi_collective *engine);
PAWL_MUST_USE pawl_status pwi_collective_end(struct pwi_collective *engine);

/* Gives everything up and asks for another epoch, or goes on with a renewal that has timed out. It is over when
 * pwi_collective_has_begun; then call pwi_collective_renewed, which returns PAWL_OK or PAWL_NO_MEMORY. */
void pwi_collective_renew(struct pwi_collective *engine);
bool pwi_collective_has_begun(const struct pwi_collective *engine);
PAWL_MUST_USE pawl_status pwi_collective_renewed(struct pwi_collective *engine);

/* What failed, for people; "" if the status says all. */
const char *pwi_collective_problem(const struct pwi_collective *engine);

/* What is being waited for, such as "waits for node 7"; for a text about a passed deadline. */
void pwi_collective_explain(const struct pwi_collective *engine, char *text, size_t size);

void pwi_collective_state(const struct pwi_collective *engine, struct pawl_collective_state *state_out);

/* Begins to close: delivers the data of completed operations, says BYE, and closes the channel; `closed` is called at
 * the end. With a look after `deadline` it closes at once. */
void pwi_collective_close(struct pwi_collective *engine, int64_t deadline);
int64_t pwi_collective_look_at(const struct pwi_collective *engine); /* PWI_NET_NEVER: no need to */
void pwi_collective_look(struct pwi_collective *engine, int64_t now);

/* After `closed`, or when the peers are destroyed; regions are closed only in the first case. NULL is allowed. */
void pwi_collective_destroy(struct pwi_collective *engine);

#endif
