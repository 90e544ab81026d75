/* Relays: which there are, and how they form trees (MLNet 3.2).
 *
 * A relay is a sender of the membership whose job is "pawl-relay." and the name of its tree. The manager lets it join
 * only with a key without limits, because it acts for others. Its address, host and rack are in the membership, so
 * every node that knows a membership and a view computes the same trees (graph/tree.h), one for each server.
 *
 * A member of a group sends to a relay on its host; if there is none, to one in its rack; if there is none, to any.
 * Several candidates take turns, by member and by server.
 *
 * The tree in force is the one with the most votes; of several, that of the voter with the lowest id. Every relay has a
 * vote. A relay with a tree in its job always votes for it. A relay with the job "pawl-relay.auto" chooses
 * (relay/choice.h), and votes by being a member of the peer group "pawl-relay/." and the name of the tree: so every
 * node sees all votes in the membership. A relay that is in no such group abstains. If all abstain, it is `rack`.
 *
 * Threads: belongs to one thread at a time.
 */
#ifndef PWI_PROTOCOL_RELAYS_H
#define PWI_PROTOCOL_RELAYS_H

#include "graph/tree.h"
#include "protocol/catalogue.h"
#include "protocol/membership.h"
#include "ring/view.h"

/* --- names ---------------------------------------------------------------------------------------------- */

struct pwi_relay_tree {
  enum pwi_tree tree;
  uint32_t degree; /* PWI_TREE_DEGREE and PWI_TREE_NEAR; otherwise 0 */
  bool is_fixed;   /* one tree for all servers; otherwise another relay is at the top for each of them */
  bool is_auto;    /* not a tree: the relay votes for one */
};

#define PWI_RELAY_TREE_MAX 31 /* characters of a tree's name */

/* Reads "auto", "none", "rack", "binary", "degree-4" or "near-4", the last five with ".fixed" behind them for a tree that
 * does not rotate. Returns false for any other text; nothing has changed then. */
bool pwi_relay_tree_parse(const char *text, struct pwi_relay_tree *tree_out);
void pwi_relay_tree_name(const struct pwi_relay_tree *tree, char name[PWI_RELAY_TREE_MAX + 1]);
bool pwi_relay_tree_is(const struct pwi_relay_tree *a, const struct pwi_relay_tree *b);

/* The job under which a relay of this tree joins. */
void pwi_relay_job(const struct pwi_relay_tree *tree, char job[PWI_JOB_MAX + 1]);

/* Returns true for the job of a relay, whatever its tree. `tree_out` may be NULL; a tree that is not known here is
 * read as "none". */
bool pwi_relay_is_job(const char *job, struct pwi_relay_tree *tree_out);

/* The peer group of those that vote for a tree; returns false if the entry is none. */
void pwi_relay_vote_name(const struct pwi_relay_tree *tree, char name[PAWL_NAME_MAX + 1]);
bool pwi_relay_is_vote(const struct pwi_entry *entry, struct pwi_relay_tree *tree_out);

/* Returns true for the id of a live sender that is a relay. */
bool pwi_relay_is_listed(const struct pwi_membership *membership, uint64_t id);

/* --- trees ---------------------------------------------------------------------------------------------- */

#define PWI_RELAY_SHARDS 64 /* servers with a tree of their own; further ones share these */

struct pwi_relay_site {
  uint64_t id;
  const char *host, *rack;    /* of the membership */
  struct pwi_relay_tree vote; /* is_auto: it abstains */
};

/* The relays of a membership. A struct of zeros is empty. It borrows the membership until it is refreshed. */
struct pwi_relays {
  uint64_t made;                  /* how often it was made; 0: not yet */
  uint64_t membership, catalogue; /* numbers for which it was made */
  size_t nodes;                   /* of the view for which it was made */
  struct pwi_relay_tree tree;     /* in force */
  struct pwi_relay_site *items;   /* by ascending id */
  size_t count, room;
  uint32_t *parents; /* of each relay, for each server; NULL: no tree */
  uint32_t shards;
};

void pwi_relays_fini(struct pwi_relays *relays);

/* Call it before the functions below whenever membership, catalogue or view may have changed. Without memory there are
 * no relays. */
void pwi_relays_refresh(struct pwi_relays *relays, const struct pwi_membership *membership,
                        const struct pwi_catalogue *catalogue, const struct pwi_view *view);

/* Finds the relays and the tree in force, but does not make the trees. False without memory. For relays that are not
 * refreshed. */
PAWL_MUST_USE bool pwi_relays_find(struct pwi_relays *relays, const struct pwi_membership *membership,
                                   const struct pwi_catalogue *catalogue);

/* Writes what relays->parents would be with this tree. False without memory. */
PAWL_MUST_USE bool pwi_relays_plan(const struct pwi_relays *relays, const struct pwi_relay_tree *tree,
                                   uint32_t *parents_out);

/* The tree of a server, for the functions below. */
uint32_t pwi_relays_shard(const struct pwi_relays *relays, const struct pwi_view *view, uint64_t head);

/* The relay to which a member of a group sends; 0: to the server. */
uint64_t pwi_relays_above_member(const struct pwi_relays *relays, const struct pwi_membership *membership,
                                 struct pwi_vector_id group, struct pwi_sender member, uint32_t shard);

/* The relay to which a relay sends; 0: to the server. */
uint64_t pwi_relays_above(const struct pwi_relays *relays, uint64_t relay, uint32_t shard);

/* Number of members of the group whose pushes pass this relay. */
size_t pwi_relays_below(const struct pwi_relays *relays, const struct pwi_membership *membership,
                        struct pwi_vector_id group, uint64_t relay, uint32_t shard);

#endif
