/* Push and pull to one server, and to all members of a group (OSDI'14 3.2, 4.2).
 *
 * A push or pull of <pawl/vector.h> goes to the servers that hold the keys, or to one node that opened the vector
 * locally (where.node). The calls of this header name other destinations.
 *
 * ONE SERVER. Each key belongs to one server. A call to a server is about those keys of `where` that the server serves
 * when the call is made; other rows of `values` are neither read nor written. So a program can work server by server:
 * its own share of the work at its nearest server first, say. If keys move while the call is under way, the call follows
 * them, and everything that <pawl/vector.h> guarantees holds. PAWL_UNSUPPORTED for a vector with mixed placement.
 *
 * A GROUP. A call to a group goes to every member that the group `space/name` has when the call is made; each has opened
 * the vector locally (pawl_vector_open_local) and keeps a copy of its own. A push is applied once to each copy. A pull
 * brings the rows of each copy. The caller may be a member itself. Groups of <pawl/group.h> and <pawl/peer.h> serve
 * alike.
 *
 * TASKS. One task stands for all of the call, and finishes when all destinations have answered. It fails with the status
 * of the first that failed: PAWL_NODE_GONE if a member is gone, PAWL_NOT_FOUND if it has not opened the vector. The
 * others have done their part. pawl_task_describe names the failed part. Keys and values belong to the task until it has
 * finished. `where.after` works as for every push. `where.node` must be {0} and `where.parent` NULL; `where.clocks` is
 * ignored.
 *
 * THREADS: any. ERRORS as in <pawl/vector.h>; PAWL_INVALID also for a node or a parent in `where`.
 */
#ifndef PAWL_DESTINATION_H
#define PAWL_DESTINATION_H

#include <stddef.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The servers that serve keys of the vector now, by rising id: up to `room` of them. `*count_out` is their number, even
 * if it exceeds `room`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_servers(struct pawl_vector *vector, struct pawl_node *servers_out,
                                                       size_t room, size_t *count_out);

/* PAWL_NOT_FOUND if that server serves no keys now. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_push_server(struct pawl_vector *vector, struct pawl_node server,
                                                           struct pawl_where where, const void *values,
                                                           struct pawl_task **task_out);
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_pull_server(struct pawl_vector *vector, struct pawl_node server,
                                                           struct pawl_where where, void *values,
                                                           struct pawl_task **task_out);

/* PAWL_NOT_FOUND if the group does not exist or has no members. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_push_group(struct pawl_vector *vector, const char *group,
                                                          struct pawl_where where, const void *values,
                                                          struct pawl_task **task_out);

/* `values` has room for the rows of `room` members, one after the other, and `members_out` for their nodes, by rising
 * id. `*count_out` is the number of members. PAWL_TOO_LARGE if it exceeds `room`: nothing is pulled. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_pull_group(struct pawl_vector *vector, const char *group,
                                                          struct pawl_where where, void *values, size_t room,
                                                          struct pawl_node *members_out, size_t *count_out,
                                                          struct pawl_task **task_out);

#ifdef __cplusplus
}
#endif

#endif
