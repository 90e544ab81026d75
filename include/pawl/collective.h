/* Collectives: operations in which all members of a peer group take part, without servers: barrier, broadcast,
 * all-gather, all-reduce and reduce-scatter of float and double values. docs/collectives.md explains them.
 *
 *   status = pawl_collective_open(peers, "gradients", PAWL_FOREVER, &collective);
 *   while (!status && !done) {
 *     compute(gradient);
 *     status = pawl_collective_all_reduce(collective, gradient, gradient, 1000000, PAWL_F32, PAWL_COLLECTIVE_SUM,
 *                                         PAWL_FOREVER);
 *   }
 *   pawl_collective_close(collective);
 *
 * CALLS. All members call the same operations in the same order, with the same count, type, operator and root. Every
 * operation compares the calls of neighbouring ranks, around the whole ring of members. Members that differ get
 * PAWL_MISMATCH, and pawl_error_text names two members and their calls; no member gets a result to which a member
 * with another call has contributed.
 *
 * RANKS. The rank of a member is its index among the members by ascending node id. Members and ranks are fixed when
 * the collective begins, which the first call waits for, and by each pawl_collective_renew: pawl_collective_state.
 *
 * ORDER OF ADDITION. `count` values form one block for each member: pawl_collective_block. The values of block b are
 * combined in the order of ranks, from rank b + 1 up, then from rank 0, and rank b is the last: with three members
 * block 0 is (v1 + v2) + v0. All sizes, algorithms and transports use this order. So every member gets the same bits,
 * and an all-reduce has the same bits as a reduce-scatter that is followed by an all-gather. Values are combined in
 * their own type. NaN and infinities are values like others: a sum with NaN is NaN, and the minimum or maximum of
 * values with a NaN is NaN. Two or more members get the quiet NaN 0x7fc00000 or 0x7ff8000000000000 then, whichever NaN
 * they gave; one member alone gets its own bits. The minimum or maximum of 0 and -0 is the first in that order.
 *
 * LOSS. When a member is lost, leaves the group or closes the collective, no result can come from the remaining
 * members: the call of each of them returns PAWL_NODE_GONE, either the one that is under way or the next one. A member
 * can be one or more operations ahead of another at that moment: its call may have returned PAWL_OK. After
 * PAWL_NODE_GONE every further call returns the same until the member calls pawl_collective_renew, which waits for all
 * members of the group and begins anew with them. A job then agrees on the point from which it goes on, for
 * instance by an all-reduce of the number of its last checkpoint with PAWL_COLLECTIVE_MIN. A link that breaks
 * between two living members is made again, and nothing is lost.
 *
 * JOINING. A member that joins the group waits in its first call until all others have called pawl_collective_renew.
 * They go on without it until then. `members` of the state shows that a member waits.
 *
 * TIME LIMITS. After PAWL_TIMED_OUT the operation is not over. Repeat the call with the same arguments to go on, or
 * give it up with pawl_collective_renew or pawl_collective_close. The buffers are touched only while a call is under
 * way, but the operation goes on where it stopped: do not change them before the repeated call.
 *
 * FAILURES. After any status but PAWL_OK, PAWL_TIMED_OUT, PAWL_INVALID and PAWL_TOO_LARGE, the contents of the output
 * are undefined, and all members fail: pawl_collective_renew begins anew.
 *
 * MEMORY. Large values are cut into pieces of 64 KB, so that sending, receiving and adding overlap. A collective
 * allocates about 512 KB for each member from which it receives and as much for each to which it sends: at most
 * log2(members), rounded up, in each direction. This and a list of the transfers of an operation are allocated when
 * members begin; other calls allocate nothing.
 *
 * THREADS. One thread at a time may be in a call of a collective; the call of another one returns PAWL_INVALID. Any
 * thread may call pawl_collective_state, and pawl_collective_close while a call is under way: the call returns
 * PAWL_NODE_STOPPED. Several collectives of one group, with different names, may be used by different threads at the
 * same time.
 *
 * ERRORS. All operations return:
 *   PAWL_INVALID      an argument is malformed, or buffers overlap; nothing happened. Also: the last operation has timed
 *                     out, and this is another one; or another thread is in a call
 *   PAWL_TOO_LARGE    the values of all members have more bytes than a size_t can count
 *   PAWL_TIMED_OUT    see TIME LIMITS
 *   PAWL_MISMATCH     see CALLS
 *   PAWL_NODE_GONE    see LOSS; also if this session was declared dead, or has left the group
 *   PAWL_CANCELLED    another member has called pawl_collective_renew
 *   PAWL_CORRUPT      a member sent malformed data; pawl_error_text names it
 *   PAWL_NO_MEMORY    here, or at another member
 *   PAWL_NODE_STOPPED the session or the collective was closed meanwhile
 *   PAWL_LINK_REVOKED
 */
#ifndef PAWL_COLLECTIVE_H
#define PAWL_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_peers;
struct pawl_collective;

#define PAWL_COLLECTIVE_NAME_MAX 48 /* characters of the name of a collective */

enum pawl_collective_operator {
  PAWL_COLLECTIVE_SUM = 0,
  PAWL_COLLECTIVE_MIN = 1,
  PAWL_COLLECTIVE_MAX = 2,
};

/* What this member knows at present. */
struct pawl_collective_state {
  uint64_t number;     /* of the group, at which the present members began; 0: they have not begun yet */
  uint32_t rank;       /* of this member, at that number */
  uint32_t size;       /* members that take part */
  uint32_t members;    /* members of the group now; more than `size`: some wait for pawl_collective_renew */
  uint64_t operations; /* completed since the present members began */
  uint64_t bytes_sent; /* since open, with headers */
  uint64_t renewals;   /* times that members have begun, the first one included */
  pawl_status failed;  /* what every call returns until pawl_collective_renew; PAWL_OK: nothing has failed */
};

/* Opens a collective of a peer group. All members use the same name (letters, digits, '.', '_' and '-'). Waits until
 * the group is complete (pawl_peers_await), but not until the other members have opened the collective: the first
 * operation waits for that.
 *
 * PAWL_EXISTS       this session has a collective of that name open in the group
 * PAWL_TIMED_OUT    the group is not complete
 * PAWL_INVALID, PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_NODE_STOPPED */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_open(struct pawl_peers *peers, const char *name, int64_t timeout_ns,
                                                        struct pawl_collective **collective_out);

/* Returns PAWL_OK after all members have called it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_barrier(struct pawl_collective *collective, int64_t timeout_ns);

/* Copies the values of the member with rank `root` to all others. PAWL_INVALID also if there is no such rank. */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_broadcast(struct pawl_collective *collective, void *values,
                                                             size_t count, enum pawl_type type, uint32_t root,
                                                             int64_t timeout_ns);

/* Every member contributes `count` values, and gets those of all members by rank: size * count values in `out`, which
 * has room for `room` values. `in` may be the member's own place in `out`; otherwise they do not overlap.
 * PAWL_INVALID also if the room is too small. */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_all_gather(struct pawl_collective *collective, const void *in,
                                                              size_t count, enum pawl_type type, void *out, size_t room,
                                                              int64_t timeout_ns);

/* Combines the values of all members one by one. Every member gets all `count` results, with the same bits. `in` and
 * `out` are the same or do not overlap. */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_all_reduce(struct pawl_collective *collective, const void *in,
                                                              void *out, size_t count, enum pawl_type type,
                                                              enum pawl_collective_operator operator_,
                                                              int64_t timeout_ns);

/* Combines the values of all members one by one. The member with rank r gets block r of the `count` results in
 * `out`, which has room for `room` values. `out` may be that block in `in`; otherwise they do not overlap. `in` is not
 * changed except by that. PAWL_INVALID also if the room is too small. */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_reduce_scatter(struct pawl_collective *collective, const void *in,
                                                                  size_t count, enum pawl_type type,
                                                                  enum pawl_collective_operator operator_, void *out,
                                                                  size_t room, int64_t timeout_ns);

/* Block `rank` of `count` values: its first value and its number of values. Blocks are equal, except that the first
 * count % size blocks have one value more. `size` is not 0, and `rank` is less than it. */
PAWL_API void pawl_collective_block(size_t count, uint32_t size, uint32_t rank, size_t *first_out, size_t *count_out);

/* Gives up everything that is under way or has failed, and waits until all members of the group have called it too, or
 * have opened the collective and wait in their first call. They begin anew with new ranks. Members that are in an
 * operation meanwhile get PAWL_CANCELLED.
 *
 * PAWL_TIMED_OUT    a member is missing; pawl_error_text names it. Call this or an operation to go on waiting
 * PAWL_NODE_GONE    this session was declared dead, or has left the group
 * PAWL_NO_MEMORY    call it again; or close the collective and open it again, if pawl_error_text says so
 * PAWL_LINK_REVOKED, PAWL_NODE_STOPPED */
PAWL_API PAWL_MUST_USE pawl_status pawl_collective_renew(struct pawl_collective *collective, int64_t timeout_ns);

/* Never fails, sends nothing and does not wait. */
PAWL_API void pawl_collective_state(const struct pawl_collective *collective, struct pawl_collective_state *state_out);

/* Delivers the data of completed operations that others still need, for at most two seconds, and frees the
 * collective. Members that call another operation get PAWL_NODE_GONE. Call it before pawl_peers_leave. NULL is
 * allowed. */
PAWL_API void pawl_collective_close(struct pawl_collective *collective);

#ifdef __cplusplus
}
#endif

#endif
