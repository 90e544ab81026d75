/* Groups: named sets of processes that advance together.
 *
 * The members of a group advance in *ticks*. pawl_group_clock declares that this member has finished its
 * current tick; all its earlier pushes have then been applied. pawl_group_await waits until all members have
 * reached a tick. A barrier does both.
 *
 * Members come and go. The first member to join creates the group and states the number of founding members.
 * No member passes a tick before all founders have joined; they all begin at tick 0. A member that joins
 * later begins at the highest tick that any member has reached. The group does not wait for members that
 * leave or die.
 *
 * Threads: any. A member has one tick count, so only one thread should advance it.
 */
#ifndef PAWL_GROUP_H
#define PAWL_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_group;
struct pawl_task;

/* Joins the group `space/name`; names follow the rules for vectors. `size` is the number of founding members;
 * 0 accepts the size of an existing group, or founds a group of one. PAWL_MISMATCH if the group was created
 * with another size, PAWL_EXISTS if this session is already a member, PAWL_FORBIDDEN for read-only
 * sessions. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_join(struct pawl_session *session, const char *name, uint32_t size,
                                                   int64_t timeout_ns, struct pawl_group **group_out);

/* Leaves the group; the other members no longer wait for this one. NULL is allowed. */
PAWL_API void pawl_group_leave(struct pawl_group *group);

/* The last tick that this member has finished: 0 at first, or the tick at which it joined. */
PAWL_API uint64_t pawl_group_tick(const struct pawl_group *group);

/* The present number of members, and the rank of this member, from 0 in the order of joining the cluster. Use
 * them to divide work. Both change when members come and go. */
PAWL_API uint32_t pawl_group_size(const struct pawl_group *group);
PAWL_API uint32_t pawl_group_rank(const struct pawl_group *group);

/* Declares one more tick of this member finished. The task finishes when the servers have recorded the tick.
 * The call also waits for earlier pushes that come after other tasks (where.after), whether they succeed or
 * fail. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_clock(struct pawl_group *group, struct pawl_task **task_out);

/* The same, after these tasks. If one of them fails, the tick is not finished and the task fails with
 * PAWL_CANCELLED. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_clock_after(struct pawl_group *group, struct pawl_task *const *tasks,
                                                          size_t count, struct pawl_task **task_out);

/* A push that is aggregated with the pushes of all other members in the current tick (OSDI'14 4.4). Servers
 * add up the members' rows, apply the sum once, and send one change to their replicas instead of one per
 * member. For vectors that add, and for vectors whose server function accepts sums (docs/functions.md): it
 * then takes one step with the sum.
 *
 * KEYS. Every member makes this call once per tick, between one pawl_group_clock and the next. All members
 * use the same where.range, or all use none. Within the range each member chooses its own keys. Rows of a key
 * that several members name are added; rows of a key that one member names are used as they are; keys that no
 * member names stay unchanged. A member may name no keys: pawl_at_keys(NULL, 0), with the range of the others;
 * `values` may then be NULL. An empty range is a push that no member makes: it finishes at once. Aggregation is fastest if all members name the same keys.
 *
 * TICKS. The task finishes when the sum has been applied; until then none of it has. A member need not wait
 * for this before it goes on to the next tick: servers keep early pushes of up to 1024 ticks at a time and
 * refuse further ones. On each key, ticks take effect in order. Pulls, scans and norms of this session do not
 * wait for such a push, and see it once its task has finished. Any other push of this session to the same
 * keys is applied after it.
 *
 * MEMBERS. Servers do not wait for members that leave or die. If a member dies after its push has arrived,
 * the push is included. If the function refuses the sum, the servers apply the pushes of that tick one by
 * one: only the member whose push is refused fails. If the function of the vector does not accept sums, the
 * servers apply each push at once, and the tasks finish together.
 *
 * Errors as pawl_vector_push; PAWL_UNSUPPORTED if `where` names a node. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_push(struct pawl_group *group, struct pawl_vector *vector,
                                                   struct pawl_where where, const void *values,
                                                   struct pawl_task **task_out);

/* The same, but the answer brings the rows of this member's keys after the sum has been applied: one round
 * trip instead of two. `values_out` is as in pawl_vector_pushpull. If the call had to be sent again, the rows
 * may include later changes. Errors as pawl_group_push; PAWL_UNSUPPORTED also for a vector with lossy
 * filters, or if a server is too old to support the call. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_pushpull(struct pawl_group *group, struct pawl_vector *vector,
                                                       struct pawl_where where, const void *values, void *values_out,
                                                       struct pawl_task **task_out);

/* Fetches rows as pawl_vector_pull does, but they may be older: a relay between the members and the servers
 * (docs/relays.md) may give this member rows that it has read for another one. Without relays the two calls do the same.
 *
 * With t as pawl_group_tick, the rows contain every push that any member made before it finished tick t - staleness. So
 * with 0 they contain all pushes up to a barrier that this member has just passed. The promise holds if this member has
 * waited for that tick (pawl_group_await, pawl_group_barrier, or a policy such as "ssp"). If it has not, the rows are
 * read anew, as by pawl_vector_pull.
 *
 * Either way the rows contain all pushes that this session called earlier, except pushes of a group that are not
 * finished, and are no older than rows that this session has got before. Errors as pawl_vector_pull; PAWL_UNSUPPORTED
 * if `where` names a node. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_pull(struct pawl_group *group, struct pawl_vector *vector,
                                                   struct pawl_where where, uint64_t staleness, void *values_out,
                                                   struct pawl_task **task_out);

/* Waits until every member has reached `tick`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_await(struct pawl_group *group, uint64_t tick, int64_t timeout_ns);

/* Finishes a tick and waits until every member has reached it. After PAWL_TIMED_OUT, continue waiting with
 * pawl_group_await and pawl_group_tick. */
PAWL_API PAWL_MUST_USE pawl_status pawl_group_barrier(struct pawl_group *group, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
