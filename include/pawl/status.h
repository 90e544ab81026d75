/* The status that every fallible call returns.
 *
 * One list gives each status its number and its text. Zero is success. Failures are negative and grouped by
 * the largest thing that failed: the argument, this one operation, the link to a peer, a node, or the
 * cluster. The group tells the caller what to do: correct the call, retry the operation, reconnect, look at a
 * node, or call the operator.
 *
 * Waiting is a state and never an error: there is no "would block" status.
 */
#ifndef PAWL_STATUS_H
#define PAWL_STATUS_H

#include <pawl/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, number, text). Numbers are part of the wire format and are never reused. */
#define PAWL_STATUS_MAP(X)                                                                                             \
  X(OK, 0, "success")                                                                                                  \
  /* argument: the call itself is wrong, and nothing happened */                                                       \
  X(INVALID, -101, "invalid argument")                                                                                 \
  X(OVERFLOW, -102, "a size or sum does not fit its type")                                                             \
  X(TOO_LARGE, -103, "larger than the configured limit")                                                               \
  X(NOT_FOUND, -104, "not found")                                                                                      \
  X(EXISTS, -105, "exists already")                                                                                    \
  X(UNSUPPORTED, -106, "not supported here")                                                                           \
  X(FORBIDDEN, -107, "not permitted")                                                                                  \
  X(UNSORTED, -108, "keys are not in strictly ascending order")                                                        \
  X(OUT_OF_SPAN, -109, "a key is outside the span of the vector")                                                      \
  X(MISMATCH, -110, "differs from what was declared")                                                                  \
  /* operation: this one call failed; others continue */                                                               \
  X(NO_MEMORY, -201, "out of memory")                                                                                  \
  X(TIMED_OUT, -202, "deadline passed")                                                                                \
  X(CANCELLED, -203, "cancelled")                                                                                      \
  X(QUEUE_FULL, -204, "the send queue of this peer is full")                                                           \
  X(CORRUPT, -205, "data is damaged or malformed")                                                                     \
  X(IO, -206, "input or output error")                                                                                 \
  X(NO_SPACE, -207, "no space left on the device")                                                                     \
  X(TRUNCATED, -208, "ends too early")                                                                                 \
  X(REFUSED, -209, "the server function refused the values")                                                           \
  X(OUTCOME_UNKNOWN, -210, "unknown whether the operation took effect")                                                \
  X(RESTORED, -211, "the vector was loaded from a checkpoint in the meantime: pull again")                             \
  X(DIVERGED, -212, "the numbers are not finite any more: the training diverged")                                      \
  X(QUOTA_MEMORY, -221, "the memory quota of this key's space is exhausted")                                           \
  X(QUOTA_RATE, -222, "the quota of bytes per second of this key is exhausted")                                        \
  X(QUOTA_LINKS, -223, "the connection quota of this key is exhausted")                                                \
  /* link: the connection to one peer */                                                                               \
  X(LINK_CLOSED, -301, "the peer closed the link")                                                                     \
  X(LINK_RESET, -302, "the link broke")                                                                                \
  X(LINK_SILENT, -303, "the peer has been silent for too long")                                                        \
  X(LINK_REFUSED, -304, "no process listens at that address")                                                          \
  X(LINK_UNREACHABLE, -305, "no route to that address")                                                                \
  X(LINK_PROTOCOL, -306, "the peer does not speak this protocol")                                                      \
  X(LINK_VERSION, -307, "no protocol version in common with the peer")                                                 \
  X(LINK_KEY, -308, "the peer has no key that this node accepts")                                                      \
  X(LINK_BUSY, -309, "too many connections")                                                                           \
  X(LINK_RESOLVE, -310, "the host name cannot be resolved")                                                            \
  X(LINK_PLANE, -311, "the data plane to the peer failed")                                                             \
  X(LINK_REVOKED, -312, "our key was revoked: the session is over; open another with a key that is accepted")          \
  /* node: this process or machine */                                                                                  \
  X(NODE_LIMIT, -401, "a limit of this process or machine was reached")                                                \
  X(NODE_ADDRESS, -402, "the address cannot be used on this machine")                                                  \
  X(NODE_STOPPED, -403, "this node was stopped")                                                                       \
  X(NODE_FULL, -404, "the server has no memory left: see 'pawl status'")                                               \
  X(NODE_GONE, -405, "that node is not in the cluster")                                                                \
  X(NODE_RETIRED, -406, "the cluster declared this node dead")                                                         \
  X(NODE_DEPOSED, -407, "that manager has been replaced by another")                                                   \
  X(NODE_STANDBY, -408, "that manager is a standby")                                                                   \
  /* cluster: all nodes are affected */                                                                                \
  X(CLUSTER_UNKNOWN, -501, "no cluster answers")                                                                       \
  X(CLUSTER_OTHER, -502, "the peer belongs to another cluster")                                                        \
  X(CLUSTER_LOST, -503, "acknowledged data was lost")                                                                  \
  X(CLUSTER_HISTORY, -504, "two histories contradict each other")                                                      \
  X(CLUSTER_WAITING, -505, "the only copy of some keys is on servers that are down")

typedef enum pawl_status {
#define PAWL_STATUS_ENUM(name, number, text) PAWL_##name = (number),
  PAWL_STATUS_MAP(PAWL_STATUS_ENUM)
#undef PAWL_STATUS_ENUM
} pawl_status;

/* The text of a status, such as "out of memory". Never NULL: an unknown number reads "unknown status".
 * Thread-safe; the string is static. */
PAWL_API const char *pawl_status_text(pawl_status status);

/* The name of a status as written in this header without its prefix, such as "NO_MEMORY"; "UNKNOWN" for
 * others. */
PAWL_API const char *pawl_status_name(pawl_status status);

/* The largest thing that broke: "none", "argument", "operation", "link", "node" or "cluster". */
PAWL_API const char *pawl_status_group(pawl_status status);

#ifdef __cplusplus
}
#endif

#endif
