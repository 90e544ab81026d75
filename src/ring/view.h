/* A view: the nodes of the cluster, and the chain of nodes that holds each arc of the ring.
 *
 * Only the manager creates views; all other nodes receive them. A view never changes. A user of a view
 * retains it, so that old and new views coexist until the last user of the old one releases it.
 *
 * A node is one shard of one server process. The members of a chain are [head, … tail]: full members first,
 * then members that are still filling, which do not count as copies and are never promoted. For placement,
 * `process`, `host` and `rack` identify shards that may fail together: those of one process, of one machine
 * and of one rack.
 *
 * The last full member of a chain is never removed; if it is dead, the arc waits for it. Only an operator can
 * give it up. The arc then restarts empty with other members, and records this in `lost` permanently.
 *
 * An arc is [begin, begin of the next arc); the last ends at PWI_RING_END. The view of a cluster without
 * servers has no arcs.
 *
 * Threads: all functions may be called from several threads at once; retain and release are atomic.
 */
#ifndef PWI_RING_VIEW_H
#define PWI_RING_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#define PWI_CHAIN_MAX 8
#define PWI_VIEW_NODES_MAX 4096
#define PWI_VIEW_ARCS_MAX (1 << 20)
#define PWI_VIEW_TEXT_MAX 255 /* bytes of an address or a label */

/* A node id. The manager assigns it; it is never 0 and never reused. */
struct pwi_node {
  uint64_t id;
};

/* X(name, number, text). Numbers are part of the encoded form. */
#define PWI_NODE_STATE_MAP(X)                                                                                          \
  X(UP, 0, "up")                                                                                                       \
  X(DRAINING, 1, "draining") /* serves requests, receives no new arcs, and leaves once its arcs have moved */          \
  X(DOWN, 2, "down")         /* not reachable; stays in a chain only as its last full member */

enum pwi_node_state {
#define PWI_NODE_STATE_ENUM(name, number, text) PWI_NODE_##name = (number),
  PWI_NODE_STATE_MAP(PWI_NODE_STATE_ENUM)
#undef PWI_NODE_STATE_ENUM
};

const char *pwi_node_state_text(enum pwi_node_state state);

struct pwi_view_node {
  struct pwi_node node;
  uint64_t process; /* number of the process, assigned by the manager */
  uint32_t shard;   /* number of the shard in the process, from 0 */
  uint32_t weight;  /* capacity relative to others; never 0 */
  enum pwi_node_state state;
  const char *address; /* printable, without spaces. The same holds for the labels, which may be empty */
  const char *host;
  const char *rack;
};

struct pwi_member {
  struct pwi_node node;
  bool filling;
};

struct pwi_arc {
  uint64_t begin;
  uint64_t since; /* epoch of the view that gave the arc its present bounds and chain */
  uint8_t count;  /* number of members, including filling ones */
  struct pwi_member chain[PWI_CHAIN_MAX];
  uint64_t lost; /* epoch of the view in which the arc restarted empty; 0: never */
};

/* Read-only. */
struct pwi_view {
  uint64_t epoch;
  const struct pwi_view_node *nodes; /* by ascending id */
  size_t node_count;
  const struct pwi_arc *arcs; /* by ascending begin */
  size_t arc_count;
  const uint32_t *heads; /* per arc: the index of its head in `nodes` */
};

/* The rules of a view by itself, and as the successor of another. */
#define PWI_VIEW_RULE_MAP(X)                                                                                           \
  X(NONE, "no rule is violated")                                                                                       \
  X(LIMITS, "too many nodes or arcs")                                                                                  \
  X(EPOCH, "epochs begin at 1")                                                                                        \
  X(NODE_ORDER, "nodes are sorted by id, and no id is 0")                                                              \
  X(NODE_FIELDS, "a node has a known state, a weight, an address, and printable labels")                               \
  X(NODE_TWICE, "no two nodes are the same shard of one process")                                                      \
  X(TILING, "arcs tile the ring: the first begins at 0, and begins ascend strictly below the end")                     \
  X(SINCE, "an arc is not older than epoch 1 nor newer than its view")                                                 \
  X(LOST, "an arc did not restart empty after it got its chain")                                                       \
  X(CHAIN_LENGTH, "a chain has 1 to 8 members")                                                                        \
  X(CHAIN_NODE, "a member of a chain is a node of the view")                                                           \
  X(CHAIN_PROCESS, "no two members of a chain are in one process")                                                     \
  X(CHAIN_HEAD, "a chain begins with a full member")                                                                   \
  X(CHAIN_ORDER, "full members come before filling ones")                                                              \
  X(NEXT_EPOCH, "a successor's epoch is one higher")                                                                   \
  X(NEXT_NODE, "a node that stays keeps its process and shard")                                                        \
  X(NEXT_HEAD, "a head was a full member of every previous chain of its arc")                                          \
  X(NEXT_FULL, "a full member was a member, full or filling, of every previous chain of its arc")                      \
  X(NEXT_SINCE, "an arc keeps its age if and only if it keeps bounds and chain")                                       \
  X(NEXT_LOST, "an arc restarts empty only if its full members were down, without them and without filling members")   \
  X(NEXT_EMPTY, "arcs do not vanish")

enum pwi_view_rule {
#define PWI_VIEW_RULE_ENUM(name, text) PWI_RULE_##name,
  PWI_VIEW_RULE_MAP(PWI_VIEW_RULE_ENUM)
#undef PWI_VIEW_RULE_ENUM
};

const char *pwi_view_rule_text(enum pwi_view_rule rule);

/* A violated rule; `index` is that of the node or arc, as the name of the rule says. */
struct pwi_view_fault {
  enum pwi_view_rule rule;
  size_t index;
};

/* Returns PAWL_OK, or PAWL_INVALID with the first rule that the view violates. `fault_out` may be NULL; it is
 * written in both cases. */
PAWL_MUST_USE pawl_status pwi_view_check(const struct pwi_view *view, struct pwi_view_fault *fault_out);

/* Checks `next` as the direct successor of `previous`; both must be valid by themselves. If arcs were split
 * or merged, the previous chains of an arc are those of all arcs that it overlaps. The first view with arcs
 * follows one without arcs. */
PAWL_MUST_USE pawl_status pwi_view_check_next(const struct pwi_view *previous, const struct pwi_view *next,
                                              struct pwi_view_fault *fault_out);

/* Creates a view from copies of the arguments, with one reference for the caller. PAWL_INVALID with the
 * violated rule, PAWL_NO_MEMORY (rule: none). `fault_out` may be NULL. */
PAWL_MUST_USE pawl_status pwi_view_create(uint64_t epoch, const struct pwi_view_node *nodes, size_t node_count,
                                          const struct pwi_arc *arcs, size_t arc_count,
                                          struct pwi_view_fault *fault_out, struct pwi_view **view_out);

/* Creates the successor of `previous`: as pwi_view_create, but sets the epoch and every `since`, and checks
 * the view as a successor. `since` in `arcs` is ignored; an arc that restarts empty must have the new epoch
 * in `lost`. */
PAWL_MUST_USE pawl_status pwi_view_create_next(const struct pwi_view *previous, const struct pwi_view_node *nodes,
                                               size_t node_count, const struct pwi_arc *arcs, size_t arc_count,
                                               struct pwi_view_fault *fault_out, struct pwi_view **view_out);

/* Adds and removes a reference; NULL is fine. */
struct pwi_view *pwi_view_retain(struct pwi_view *view);
void pwi_view_release(struct pwi_view *view);

/* The index of the arc that contains `position`, which must not be PWI_RING_END. The view must have arcs. */
size_t pwi_view_arc_of(const struct pwi_view *view, uint64_t position);

/* The positions of an arc. */
struct pawl_range pwi_view_arc_range(const struct pwi_view *view, size_t arc);

/* The head of an arc. */
const struct pwi_view_node *pwi_view_head(const struct pwi_view *view, size_t arc);

/* The node with this id; NULL if there is none. */
const struct pwi_view_node *pwi_view_find(const struct pwi_view *view, struct pwi_node node);

/* The number of full members of a chain. */
size_t pwi_arc_full(const struct pwi_arc *arc);

/* The place of a node in a chain, or PWI_CHAIN_MAX if it is not in it. */
size_t pwi_arc_find(const struct pwi_arc *arc, struct pwi_node node);

/* True if both have the same members in the same order and state. Two such neighbours can be merged if `lost`
 * is equal too. */
bool pwi_arc_same_chain(const struct pwi_arc *a, const struct pwi_arc *b);

/* True if one node alone holds this arc and the next; one request may then cover both. */
static inline bool pwi_view_arcs_join(const struct pwi_view *view, size_t arc) {
  return arc + 1 < view->arc_count && view->arcs[arc].count == 1 && view->arcs[arc + 1].count == 1 &&
         view->arcs[arc].chain[0].node.id == view->arcs[arc + 1].chain[0].node.id;
}

/* The number of arcs with fewer than `replicas` + 1 full members. */
size_t pwi_view_under_replicated(const struct pwi_view *view, unsigned replicas);

/* The encoded form; all numbers little-endian:
 *
 *   u8 version (1), u8 zero, u16 nodes, u32 arcs, u64 epoch
 *   per node: u64 id, u64 process, u32 shard, u32 weight, u8 state, then address, host and rack, each as u8
 *             length and bytes
 *   per arc:  u64 begin, u64 since, u8 members (128 more: lost follows), u8 filling (bit i: member i),
 *             u16 index of each member's node, u64 lost if it is not 0
 */
#define PWI_VIEW_VERSION 1

size_t pwi_view_encoded_size(const struct pwi_view *view);

/* Writes exactly pwi_view_encoded_size(view) bytes. */
void pwi_view_encode(const struct pwi_view *view, void *bytes);

/* Decodes untrusted bytes. PAWL_TRUNCATED if they end too early, PAWL_UNSUPPORTED for another version,
 * PAWL_CORRUPT if the view violates a rule or bytes are left over, PAWL_NO_MEMORY. It allocates memory in
 * proportion to `size`. */
PAWL_MUST_USE pawl_status pwi_view_decode(const void *bytes, size_t size, struct pwi_view **view_out);

/* Formats the view for people: one line for the view, one per node and one per arc. Free the string with
 * pwi_free. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_view_text(const struct pwi_view *view, char **text_out);

#endif
