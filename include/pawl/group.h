/* Groups: names under which processes meet.
 *
 * The members of a group advance in *ticks*. pawl_group_clock says that this member has finished its present tick; every push
 * that it called before is then applied. pawl_group_await waits until all members have reached a tick. A barrier is both.
 *
 * Members come and go. A group is made by the first to join, with the number of members it starts with: nobody passes
 * before so many have joined, and they all begin at tick 0. A member that joins later begins at the highest tick that any has reached; one that leaves,
 * or dies, is waited for no more.
 *
 * Threads: any; but the ticks of one member are counted once, so let one thread advance them.
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

/* Joins the group `space/name`; names as of vectors. `size` is how many members it starts with; 0 takes it as it is, or one
 * if it is new. PAWL_MISMATCH if it was made with another size, PAWL_EXISTS if this session is a member already,
 * PAWL_FORBIDDEN for read-only sessions. */
PAWL_API pawl_status pawl_group_join(struct pawl_session *session, const char *name, uint32_t size, int64_t timeout_ns,
                                     struct pawl_group **group_out);

/* Leaves: the others no longer wait for us. NULL is fine. */
PAWL_API void pawl_group_leave(struct pawl_group *group);

/* The tick that this member has finished: 0 at first, or where the others were when it joined. */
PAWL_API uint64_t pawl_group_tick(const struct pawl_group *group);

/* How many members there are now, and which of them we are, counted from 0 in the order of joining the cluster: for sharing
 * out work. Both change when members come and go. */
PAWL_API uint32_t pawl_group_size(const struct pawl_group *group);
PAWL_API uint32_t pawl_group_rank(const struct pawl_group *group);

/* This member has finished one more tick. The task finishes when the servers know it. Pushes that were called before and wait for
 * others (where.after) are waited for too, however they end. */
PAWL_API pawl_status pawl_group_clock(struct pawl_group *group, struct pawl_task **task_out);

/* The same, after these tasks: if one of them fails the tick is not finished, and the clock fails with PAWL_CANCELLED. */
PAWL_API pawl_status pawl_group_clock_after(struct pawl_group *group, struct pawl_task *const *tasks, size_t count,
                                            struct pawl_task **task_out);

/* A push that is applied together with those of all other members in the present tick (OSDI'14 4.4): servers add the parts
 * up, apply the sum once, and send one change to their replicas instead of one for each member. For vectors that add, and for
 * those with a server function that can be given a sum (docs/functions.md), which then takes one step with it.
 *
 * KEYS. Every member makes this call once in each tick, between one pawl_group_clock and the next, with the same where.range or
 * all without one. Which keys of the range it names is its own affair: rows of a key that several name are added, rows of a key
 * that one names are taken as they are, and keys that nobody names stay as they are. It may name none: pawl_at_keys(keys, 0), with
 * any pointer but NULL where there is a range. `values` may be NULL then. Members that name the same keys are added up fastest.
 *
 * TICKS. The task finishes when the sum has been applied; until then nothing of it has been. A member need not wait for that
 * before it goes on to the next tick: servers keep what comes early, of up to 1024 ticks at a time; a push of one more is refused. On each key ticks take effect in their order. Pulls, scans and
 * norms of this session do not wait for such a push either, and see it once its task has finished; any other push to the
 * same keys takes its turn behind it.
 *
 * MEMBERS that leave or die are not waited for. If one dies when its part is in, that is applied with the others'. What a function
 * refuses is found by serving each member of that tick by itself: only the one that spoiled the sum fails, and the others take
 * their steps one after another. A vector whose function cannot be given a sum takes every part by itself at once, and the tasks
 * finish together.
 *
 * Errors as pawl_vector_push; PAWL_UNSUPPORTED if `where` names a node. */
PAWL_API pawl_status pawl_group_push(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                                     const void *values, struct pawl_task **task_out);

/* The same, and when the sum has been applied the answer brings the rows as they then are, of this member's own keys: one round trip
 * instead of two. `values_out` is as for pawl_vector_pushpull. What comes back is what the sum of this tick has left, but for a call
 * that had to be sent again: then it may be what is stored later. Errors as pawl_group_push; PAWL_UNSUPPORTED also for a
 * vector with lossy filters, and if a server is too old to know of it. */
PAWL_API pawl_status pawl_group_pushpull(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                                         const void *values, void *values_out, struct pawl_task **task_out);

/* Waits until every member has reached `tick`. */
PAWL_API pawl_status pawl_group_await(struct pawl_group *group, uint64_t tick, int64_t timeout_ns);

/* clock, and await of the tick that was finished; returns when both are over. After PAWL_TIMED_OUT, await pawl_group_tick to wait
 * on. */
PAWL_API pawl_status pawl_group_barrier(struct pawl_group *group, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
