/* The bookkeeping of a server about the chains that it is a member of: versions, the log, confirmations,
 * deferred replies (docs/replication.md; OSDI'14 4.3).
 *
 * A chain is [head, ..., tail] of full members, followed by members that are being filled. The head serves
 * requests. The change of a numbered request goes down the chain as a log entry with a *version*. The version
 * of an arc rises by one with every change. It continues when the arc is split, merged, or gets another head,
 * and all members agree on it. A member applies versions in order. It keeps a log entry until all full
 * members behind it have confirmed it, so that after a change of views it can send the entry again to the
 * member that then follows.
 *
 * REPLIES. The head sends a reply, also to a duplicate or a pull, only once all full members have every
 * change that the reply could have seen. Until then the reply is deferred here.
 *
 * EVENNESS. After arcs with different versions were merged, the positions of the new arc have different
 * versions until the next change, which is a change of the whole arc. Such a chain is not *even*, and its
 * versions are looked up by position. Several changes from before the merge may have the same version, for
 * different positions. A version is complete when all its changes have arrived; each carries the number of
 * its siblings that precede it, so that none is missed. Changes go down the chain by rising version. A member
 * therefore sends an inherited entry only when it knows that no entry with a lower version will arrive.
 *
 * Nothing here sends or receives; server/chain_traffic.c does.
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
  size_t place;                 /* of this server in the chain, from 0 */
  bool is_head, is_filling;     /* this server is the head; it is being filled */
  uint64_t previous, following; /* neighbouring nodes; 0: none */
  bool following_fills;         /* the following member is being filled */

  uint64_t version;   /* the highest version here */
  bool is_even;       /* all positions have this version */
  uint64_t confirmed; /* all full members have all changes up to this version */

  /* Towards the following member. */
  struct pwi_fifo log; /* struct pwi_log_entry *, by rising version: sent, or still to be sent */
  size_t sent_count;   /* entries at the front of the log that were given to the link */
  uint64_t sent;       /* version of the last entry sent, or the version that the following member had */
  bool is_open;        /* the following member has said READY over the present link */
  bool is_synced;      /* a member that is being filled has everything: its confirmations count */
  bool is_full_wanted; /* the next entry must carry its keys */
  uint64_t heard;      /* the last version that the following member has confirmed */

  /* Towards the previous member. */
  uint64_t processed; /* the last version of which all changes were received */
  uint64_t siblings;  /* changes received of the version after that, which is still incomplete */
  /* A member that is being filled: versions by position, once all chunks have come. */
  struct pwi_clock staged;

  bool is_handing;          /* the head accepts no more requests: it is handing the arc over */
  struct pwi_fifo deferred; /* struct pwi_deferred, by rising version */
};

/* All chains of a server, by rising position. */
struct pwi_chains {
  struct pwi_chain **items;
  size_t count;
  size_t routed_first, routed_last; /* the chains of the last request */
  struct pwi_clock versions;        /* by position; on even chains it may lag behind `version` */
  struct pwi_log_entries *log_entries;
  size_t chain_size; /* of the owner's struct that begins with a struct pwi_chain; 0: no such struct */
  void (*answer)(void *context, void *reply, bool is_lost); /* is_lost: answer NOT_HERE */
  void (*pump)(void *context, struct pwi_chain *chain);     /* entries are to be sent */
  void (*starve)(void *context, struct pwi_chain *chain);   /* this head has no memory */
  void *context;
};

void pwi_chains_fini(struct pwi_chains *chains); /* deferred replies are dropped */

/* The chain of a position; NULL: this server is not a member there. */
struct pwi_chain *pwi_chains_find(const struct pwi_chains *chains, uint64_t position);

/* --- a view --------------------------------------------------------------------------------------------- */

/* Replaces the chains by those of a view. They take over logs, versions, and the deferred replies that can
 * still be sent. All positions must be in `versions` or be filling. PAWL_NO_MEMORY: nothing has changed. */
PAWL_MUST_USE pawl_status pwi_chains_follow_view(struct pwi_chains *chains, const struct pwi_view *view, uint64_t node);

/* Brings `versions` up to date. Call it before positions are added or dropped for a view. */
PAWL_MUST_USE pawl_status pwi_chains_write_versions(struct pwi_chains *chains);

/* Adds positions. `filled` is the chain in which this server was filled with them, with their versions; NULL:
 * the positions have never been changed. pwi_chains_drop removes positions. */
PAWL_MUST_USE pawl_status pwi_chains_hold(struct pwi_chains *chains, struct pawl_range positions,
                                          const struct pwi_chain *filled);
PAWL_MUST_USE pawl_status pwi_chains_drop(struct pwi_chains *chains, struct pawl_range positions);

/* Encodes the versions of an arc for a member that is being filled, and decodes them there. PAWL_CORRUPT,
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_save_versions(struct pwi_chains *chains, const struct pwi_chain *chain,
                                                  struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_chain_load_versions(struct pwi_chain *chain, const void *bytes, size_t size);

/* The lowest version of the arc. The previous member must send everything after it. */
uint64_t pwi_chain_lowest(const struct pwi_chains *chains, const struct pwi_chain *chain);

/* --- the head ------------------------------------------------------------------------------------------- */

/* The chain that contains the claim and whose head is this server; NULL: this server may not answer. A claim
 * may extend over several neighbouring chains without followers; the result is the first of them. */
struct pwi_chain *pwi_chains_route(struct pwi_chains *chains, const struct pwi_place *place, struct pawl_range claim);

/* The version of the chain that has all these positions, if they all have the same; otherwise false. */
static inline bool pwi_chain_version_at(const struct pwi_chain *chain, struct pawl_range positions,
                                        uint64_t *version_out) {
  if (!chain->is_even || !pawl_range_contains(chain->positions, positions)) return false;
  *version_out = chain->version;
  return true;
}

/* Before a numbered request is served: takes a log entry for its change; NULL if the chain has no followers.
 * `row_bytes` and `state_bytes` are of one row; `stamps` is the number of other senders in an aggregate.
 * PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_TOO_LARGE; PAWL_QUEUE_FULL if the logs are too large. */
PAWL_MUST_USE pawl_status pwi_chain_prepare(struct pwi_chains *chains, struct pwi_chain *chain,
                                            const struct pwi_request *request, size_t row_bytes, size_t state_bytes,
                                            size_t stamps, struct pwi_log_entry **log_entry_out);

/* After the request was served: its effect becomes the next version. Takes over the log entry. */
void pwi_chain_commit(struct pwi_chains *chains, struct pwi_chain *chain, struct pwi_shard *shard,
                      const struct pwi_request *request, const struct pwi_served *served,
                      const struct pwi_stamp *stamps, struct pwi_log_entry *log_entry);

/* The version up to which this server has everything that goes down the chain. */
static inline uint64_t pwi_chain_at(const struct pwi_chain *chain) {
  return chain->is_head ? chain->version : chain->processed;
}

/* True if all full members have everything that is here. */
static inline bool pwi_chain_is_settled(const struct pwi_chain *chain) { return chain->confirmed >= chain->version; }

/* Defers a reply about these positions until everything that is here now is confirmed. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_defer(struct pwi_chain *chain, struct pawl_range positions, void *reply);

/* --- members -------------------------------------------------------------------------------------------- */

/* A change was applied on `positions` of the arc. `is_last`: it is the last change of its version. Takes over
 * the log entry, which is NULL if the chain has no followers. Call pwi_chain_make_room first. */
void pwi_chain_applied(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version,
                       struct pawl_range positions, bool is_last, struct pwi_log_entry *log_entry);

/* The previous member has nothing more to send up to this version. */
void pwi_chain_caught_up(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version);

/* True if some of `positions` have a version below `version`; `*piece_out` is the first such part. */
bool pwi_chain_next_due(const struct pwi_chains *chains, const struct pwi_chain *chain, struct pawl_range positions,
                        uint64_t version, struct pawl_range *piece_out);

/* Reserves memory, so that pwi_chain_applied cannot fail for a change of these positions. */
PAWL_MUST_USE pawl_status pwi_chain_make_room(struct pwi_chains *chains, struct pwi_chain *chain,
                                              struct pawl_range positions);

/* True if the following member needs log entries. */
bool pwi_chain_has_followers(const struct pwi_chain *chain);

/* The following member has confirmed `version` for itself and all full members behind it. */
void pwi_chain_heard(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version);

/* The following member asks for everything after `version`. */
void pwi_chain_rewind(struct pwi_chain *chain, uint64_t version);

/* The next log entry to send; NULL: none. */
struct pwi_log_entry *pwi_chain_next(const struct pwi_chain *chain);
bool pwi_chain_has_more(const struct pwi_chain *chain); /* entries of the same version follow it */
/* Number of entries of the same version before it. */
uint64_t pwi_chain_siblings(const struct pwi_chain *chain);
void pwi_chain_was_sent(struct pwi_chain *chain);

/* True if every entry was sent and the following member does not know that it is up to date, because it needs
 * no entry of the last versions. */
bool pwi_chain_is_ahead(const struct pwi_chain *chain);

/* Confirms what no following member has to confirm. Call it when a view has changed the followers. */
void pwi_chain_settle(struct pwi_chains *chains, struct pwi_chain *chain);

#endif
