/* Trees of relays between the members of a group and a server shard (MLNet 3.2).
 *
 * A push goes up the tree: a member sends to its parent, the parent adds up what it receives and what it has, and
 * sends one aggregate on. A pull comes down the same tree. The root is the server shard, which is no member.
 *
 * A tree is a pure function of the members, with their hosts and racks, and of the number of the shard. So every
 * member computes it for itself from the same view, and all of them have the same tree. The order in which members
 * are given does not matter.
 *
 *   none     every member sends to the server; today's parameter server
 *   rack     one member of each rack is its aggregator, and sends to the server; the others send to it
 *   degree   a tree over all members in which a node has `degree` children, whatever racks they are in
 *   near     the same, but every subtree is a run of neighbours in the order of their racks, so that few links of
 *            the tree leave a rack
 *
 * Members on one host are put together first, in all trees but `none`: the one with the smallest id receives from the
 * others, which costs no network. Only it takes part in the tree.
 *
 * ROTATION. With one tree for all shards a few members would aggregate everything. A rotated tree has another
 * aggregator in each shard: `rack` takes the members of a rack in turn, `degree` and `near` shift the order of the
 * members, so that each aggregates for its share of the shards, give or take one.
 */
#ifndef PWI_GRAPH_TREE_H
#define PWI_GRAPH_TREE_H

#include "graph/graph.h"

/* The parent of a member that sends to the server. */
#define PWI_TREE_ROOT UINT32_MAX

enum pwi_tree { PWI_TREE_NONE, PWI_TREE_RACK, PWI_TREE_DEGREE, PWI_TREE_NEAR, PWI_TREES };

struct pwi_tree_member {
  uint64_t id; /* unique */
  uint32_t host, rack;
};

struct pwi_tree_spec {
  enum pwi_tree tree;
  uint32_t degree; /* degree, near: children of a node and of the server, at least 2; others: ignored */
  bool rotates;
  uint32_t shard, shards; /* for which shard, of how many */
  const struct pwi_tree_member *members;
  size_t count;
};

/* "none", "rack", "degree" or "near". */
const char *pwi_tree_name(enum pwi_tree tree);
bool pwi_tree_find(const char *name, enum pwi_tree *tree_out);

/* Writes the parent of each member: its place in spec->members, or PWI_TREE_ROOT.
 *
 * PAWL_INVALID     a degree below 2, a shard that does not exist, or an id that occurs twice
 * PAWL_TOO_LARGE   more than PWI_GRAPH_NODES_MAX members
 * PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_tree_make(const struct pwi_tree_spec *spec, struct pwi_graph_why *why,
                                        uint32_t *parents_out);

/* How a tree looks: for tests, and for those who choose one. */
struct pwi_tree_figures {
  uint32_t height;        /* links on the longest path from a member to the server */
  uint32_t degree;        /* most children of a member */
  uint32_t roots;         /* members that send to the server */
  uint32_t between_racks; /* links between members in different racks */
};

/* PAWL_CORRUPT if a parent does not exist or some member does not reach the server. */
PAWL_MUST_USE pawl_status pwi_tree_figures(const struct pwi_tree_member *members, const uint32_t *parents, size_t count,
                                           struct pwi_tree_figures *figures_out);

#endif
