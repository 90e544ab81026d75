/* Peer groups: named sets of processes that share parameters with one another, without servers.
 *
 * The members of a peer group have ranks from 0 to size-1, in the order in which they joined the cluster. The
 * manager keeps the list of members and tells every session of each change. A peer group has no ticks and no
 * barriers, because servers keep those (<pawl/group.h>); it needs no servers at all. Sessions that use
 * nothing else set `peers_only` (<pawl/session.h>).
 *
 * NUMBERS. Each change of the members gives the group a higher *number*: a member joins, leaves, or is
 * declared dead. All sessions that know the same number of a group know the same members with the same ranks.
 * So members that agree on a number agree on everything that they derive from it, such as a communication
 * graph. Numbers rise, but not by one. Two calls in a row may see two numbers; pawl_peers_state reads
 * everything at once, and a member is returned with the number for which it is valid.
 *
 * LOSS. A member whose process has ended, or whose link to the manager is down for longer than the manager's
 * --client-grace, is removed. A session that was declared dead by mistake joins the group again by itself,
 * with another node id and, in general, another rank. Until then its rank is PAWL_PEERS_NONE. With
 * `stays_dead` it does not join again.
 *
 * Groups and peer groups share their names: a name is one or the other.
 *
 * Threads: any.
 */
#ifndef PAWL_PEER_H
#define PAWL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_peers;

#define PAWL_SITE_MAX 64           /* characters of the label of a host or a rack */
#define PAWL_PEERS_NONE UINT32_MAX /* the rank of a session that is not a member at present */

/* A peer group as this session knows it. */
struct pawl_peers_state {
  uint64_t number;   /* rises whenever a member joins, leaves or is declared dead */
  uint32_t size;     /* present number of members */
  uint32_t rank;     /* of this session; PAWL_PEERS_NONE: it is not a member at present */
  uint32_t founders; /* the size with which the group was created */
  bool complete;     /* the group has had that many members at once; this remains true when members leave */
};

/* One member. */
struct pawl_peer_member {
  struct pawl_node node;        /* to call it (<pawl/call.h>) and to compare it with pawl_session_node */
  uint64_t number;              /* of the group: this node has this rank at that number */
  char host[PAWL_SITE_MAX + 1]; /* label of its machine: the host name; "": unknown */
  char rack[PAWL_SITE_MAX + 1]; /* label of its rack (`rack` of the session's options); "": not set */
};

/* Joins the peer group `space/name`; names follow the rules for vectors. The first member creates the group.
 * `size` is the number of founding members, the same for all members, at least 1; more may join later. Does
 * not wait for the other members (pawl_peers_await does).
 *   PAWL_INVALID     the name is malformed, size is 0, or an argument is NULL
 *   PAWL_MISMATCH    the group was created with another size, or the name belongs to a group of <pawl/group.h>
 *   PAWL_EXISTS      this session is already a member
 *   PAWL_FORBIDDEN   the session is read-only, or its key does not permit changes in the space
 *   PAWL_UNSUPPORTED the manager is of a version without peer groups
 *   PAWL_TIMED_OUT   the manager has not answered */
PAWL_API PAWL_MUST_USE pawl_status pawl_peers_join(struct pawl_session *session, const char *name, uint32_t size,
                                                   int64_t timeout_ns, struct pawl_peers **peers_out);

/* Leaves the group and frees the handle. Closing the session does the same. NULL is allowed. */
PAWL_API void pawl_peers_leave(struct pawl_peers *peers);

/* What this session knows at present. Never fails, sends nothing and does not wait. */
PAWL_API void pawl_peers_state(const struct pawl_peers *peers, struct pawl_peers_state *state_out);

/* Single fields of the state. */
PAWL_API uint32_t pawl_peers_size(const struct pawl_peers *peers);
PAWL_API uint32_t pawl_peers_rank(const struct pawl_peers *peers);
PAWL_API uint64_t pawl_peers_number(const struct pawl_peers *peers);

/* The member with a rank. Sends nothing and does not wait. PAWL_NOT_FOUND: the group has at most `rank`
 * members. PAWL_INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_peers_member(const struct pawl_peers *peers, uint32_t rank,
                                                     struct pawl_peer_member *member_out);

/* With `after` 0, waits until the group is complete. Otherwise waits until its number exceeds `after`, that
 * is until its members differ from those of that number. PAWL_TIMED_OUT; PAWL_NODE_GONE or PAWL_LINK_REVOKED
 * if the session has ended for good (`stays_dead`, or its key was revoked). */
PAWL_API PAWL_MUST_USE pawl_status pawl_peers_await(struct pawl_peers *peers, uint64_t after, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
