/* Chains: what a shard knows of each arc that it is a member of (OSDI'14 4.3; design, sections 5 and 6).
 *
 * A chain is [head, …, tail] of full members, then those that are being filled. The head serves requests. What a numbered
 * request changed goes down the chain as a log entry with a *version*: a number that rises by one with every change of the arc,
 * goes on where arcs are split, merged, or get another head, and is the same on all members. A member applies versions in
 * order, and keeps a log entry until all full members behind it have confirmed it, so that it can be sent again to whoever
 * stands behind it after a change of views.
 *
 * ANSWERS. The head gives an answer, also to a duplicate or to a pull, only once all full members have every change that the
 * answer could have seen. Until then it is put off here.
 *
 * EVENNESS. After arcs with different versions were merged, parts of the new arc have different versions, until the next
 * change, which is one of the whole arc. Such a chain is not *even*, and its versions are looked up by position. Changes
 * from before may then have the same version, for different parts of the arc: a version has come when all of them have.
 * Each says how many of its version come before it, so that none is missed. They go down the chain by rising version, so a member sends what it has inherited no sooner than it knows that nothing
 * comes that stands before it.
 *
 * This header is about bookkeeping; what is sent to whom is server/chain_traffic.c's business.
 *
 * Threads: as the server's net.
 */
#ifndef PWI_SERVER_CHAIN_H
#define PWI_SERVER_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "base/fifo.h"
#include "ring/view.h"
#include "shard/shard.h"
#include "server/log_entry.h"
#include "store/clock.h"

/* A reply that waits until a version is confirmed. */
struct pwi_deferred {
  uint64_t version;            /* the reply waits for the confirmation of this version */
  struct pawl_range positions; /* that the reply is about */
  void *reply;                 /* given to `answer`; chains do not look into it */
};

struct pwi_chain {
  struct pawl_range positions;
  uint64_t since;
  size_t place; /* ours, from 0 */
  bool is_head, is_filling;
  uint64_t previous, following; /* nodes; 0: nobody */
  bool following_fills;         /* the one behind us is being filled */

  uint64_t version; /* the highest here */
  bool is_even;     /* it is that of all positions */
  uint64_t confirmed;

  /* What we passed on, or have to. Towards the following. */
  struct pwi_fifo log; /* struct pwi_log_entry *, by rising version */
  size_t sent_count;   /* from the front: given to the link */
  uint64_t sent;       /* version of the last of them, or what the following had */
  bool is_open;        /* the following has said READY, on the link there is now */
  bool is_synced;      /* a filling member has everything: its word counts */
  bool is_full_wanted; /* the next one with its keys */
  uint64_t heard;      /* the last that the following has confirmed */

  /* Towards the previous. */
  uint64_t processed;      /* of what it sends */
  uint64_t siblings;       /* changes of the version after that which were taken: others of it are to come */
  struct pwi_clock staged; /* filling: the versions of what has come, once all of it has */

  bool is_handing;          /* no more requests are taken: another will be the head */
  struct pwi_fifo deferred; /* struct pwi_deferred, by rising version */
};

/* All chains of a shard, by rising position. */
struct pwi_chains {
  struct pwi_chain **items;
  size_t count;
  size_t routed_first, routed_last; /* the chains that the last request is about */
  struct pwi_clock versions;        /* by position, of all that is held; what even chains know better is older here */
  struct pwi_log_entries *log_entries;
  size_t chain_size; /* bytes of the owner's struct that begins with a struct pwi_chain; 0: there is none */
  void (*answer)(void *context, void *reply, bool is_lost); /* lost: say NOT_HERE */
  void (*pump)(void *context, struct pwi_chain *chain);     /* there is something to be sent */
  void (*starve)(void *context, struct pwi_chain *chain);   /* its head has no memory, not even to refuse */
  void *context;
};

void pwi_chains_fini(struct pwi_chains *chains); /* deferred replies are dropped */

/* NULL: we are no member there. */
struct pwi_chain *pwi_chains_find(const struct pwi_chains *chains, uint64_t position);

/* --- a view --------------------------------------------------------------------------------------------- */

/* The chains that the view gives us, with what is known already: logs, versions, answers that still can be given. The old
 * ones are gone then. Positions must be in `versions`, or be filling. PAWL_NO_MEMORY: nothing has changed. */
PAWL_MUST_USE pawl_status pwi_chains_follow_view(struct pwi_chains *chains, const struct pwi_view *view, uint64_t node);

/* Before positions are taken or dropped for a view: versions by position are up to date. */
PAWL_MUST_USE pawl_status pwi_chains_write_versions(struct pwi_chains *chains);

/* Positions that are held from now on, or no more. `filled` is the chain in which we were filled with them: versions are
 * as they were there; NULL: nobody has ever changed anything. */
PAWL_MUST_USE pawl_status pwi_chains_hold(struct pwi_chains *chains, struct pawl_range positions,
                                          const struct pwi_chain *filled);
PAWL_MUST_USE pawl_status pwi_chains_drop(struct pwi_chains *chains, struct pawl_range positions);

/* The versions of an arc as bytes, for a member that is being filled, and back there. PAWL_CORRUPT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_save_versions(struct pwi_chains *chains, const struct pwi_chain *chain,
                                                  struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_chain_load_versions(struct pwi_chain *chain, const void *bytes, size_t size);

/* The lowest version of the arc: what to ask the previous member for. */
uint64_t pwi_chain_lowest(const struct pwi_chains *chains, const struct pwi_chain *chain);

/* --- the head ------------------------------------------------------------------------------------------- */

/* The chain whose head we are and that all of the claim belongs to; NULL: it is not for us to answer. A claim may belong to
 * several neighbouring ones if nobody stands behind us in any of them; then it is the first. */
struct pwi_chain *pwi_chains_route(struct pwi_chains *chains, const struct pwi_place *place, struct pawl_range claim);

/* Before a numbered request is served: a log entry for what it may change, NULL if nobody has to be told. `row_bytes` and
 * `state_bytes` are of one row; `stamps` senders are told of besides. PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_TOO_LARGE; PAWL_QUEUE_FULL if too much is kept. */
PAWL_MUST_USE pawl_status pwi_chain_prepare(struct pwi_chains *chains, struct pwi_chain *chain,
                                            const struct pwi_request *request, size_t row_bytes, size_t state_bytes,
                                            size_t stamps, struct pwi_log_entry **log_entry_out);

/* After it was served: the effect becomes the next version. The log entry is taken, or given back. */
void pwi_chain_commit(struct pwi_chains *chains, struct pwi_chain *chain, struct pwi_shard *shard,
                      const struct pwi_request *request, const struct pwi_served *served,
                      const struct pwi_stamp *stamps, struct pwi_log_entry *log_entry);

/* Where we are in what is sent down the chain. */
static inline uint64_t pwi_chain_at(const struct pwi_chain *chain) {
  return chain->is_head ? chain->version : chain->processed;
}

/* True if everything that is here is confirmed. */
static inline bool pwi_chain_is_settled(const struct pwi_chain *chain) { return chain->confirmed >= chain->version; }

/* Defers a reply about these positions until everything that is here now is confirmed. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_defer(struct pwi_chain *chain, struct pawl_range positions, void *reply);

/* --- members -------------------------------------------------------------------------------------------- */

/* A version was applied here, on `positions` of the arc; `is_last`: no other one of that version comes. Its log entry, if it
 * has to be passed on, is taken. There is room: see pwi_chain_make_room. */
void pwi_chain_applied(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version,
                       struct pawl_range positions, bool is_last, struct pwi_log_entry *log_entry);

/* Nothing more comes up to this version. */
void pwi_chain_caught_up(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version);

/* True if `positions` of the arc have a version below this one; `*piece_out` is the first such part. */
bool pwi_chain_next_due(const struct pwi_chains *chains, const struct pwi_chain *chain, struct pawl_range positions,
                        uint64_t version, struct pawl_range *piece_out);

/* The next change, if it is one of these positions, can be put down without fail. */
PAWL_MUST_USE pawl_status pwi_chain_make_room(struct pwi_chains *chains, struct pwi_chain *chain,
                                              struct pawl_range positions);

/* Does anybody behind us need log entries? */
bool pwi_chain_has_followers(const struct pwi_chain *chain);

/* The following has said that it, and all that count behind it, have this. */
void pwi_chain_heard(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version);

/* The following asks for what comes after `version`. */
void pwi_chain_rewind(struct pwi_chain *chain, uint64_t version);

/* The next log entry to be sent; NULL: none. */
struct pwi_log_entry *pwi_chain_next(const struct pwi_chain *chain);
bool pwi_chain_has_more(const struct pwi_chain *chain);     /* behind that, of the same version */
uint64_t pwi_chain_siblings(const struct pwi_chain *chain); /* how many of the same version come before it */
void pwi_chain_was_sent(struct pwi_chain *chain);

/* True if all was sent and the following does not know that that is all: nothing of the last versions was for it. */
bool pwi_chain_is_ahead(const struct pwi_chain *chain);

/* What is confirmed may have changed for another reason: nobody stands behind us any more, or one that fills counts now. */
void pwi_chain_settle(struct pwi_chains *chains, struct pwi_chain *chain);

#endif
