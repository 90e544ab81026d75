/* The topologies that pawl can make for a given number of nodes.
 *
 * A spec names a graph completely, in integers: two machines that make the same spec have the same graph. So a
 * group of peers agrees on a spec and each peer makes the graph for itself. When peers are lost, the survivors
 * agree on a spec for the new number of nodes.
 *
 * i is the number of a node, N the number of nodes; sums are modulo N.
 *
 *   complete    every node sends to every other; all-reduce (ASAP, figure 2a)
 *   star        node 0 and every other node send to each other; a parameter server (figure 2b)
 *   ring        i sends to i+1; a closed chain
 *   chain       i sends to i+1, and the last node to none; not strongly connected (figure 2d)
 *   root        i sends to i+1 and i+r, where r is the square root of N, rounded to the nearest whole number
 *               (figure 2c). At N = 2 both are the same node, and there is one edge; at any other N they differ
 *   random      every node has `degree` out-neighbours and as many in-neighbours, drawn with `seed`; strongly
 *               connected
 *   hypercube   i and j send to each other if their numbers differ in one bit; N is a power of two
 *   butterfly   the wrapped butterfly: k levels of 2^k nodes, N = k * 2^k. Node (l, r) is number l * 2^k + r,
 *               and sends to nodes r and r xor 2^l of level l+1, where level k is level 0
 *   racks       complete in each rack, and `degree` links out of each rack to others (topology_racks.c)
 *
 * All but star, chain, and racks of different sizes are regular: each node has the same in-degree and
 * out-degree.
 */
#ifndef PWI_GRAPH_TOPOLOGY_H
#define PWI_GRAPH_TOPOLOGY_H

#include "graph/graph.h"

enum pwi_topology {
  PWI_TOPOLOGY_COMPLETE,
  PWI_TOPOLOGY_STAR,
  PWI_TOPOLOGY_RING,
  PWI_TOPOLOGY_CHAIN,
  PWI_TOPOLOGY_ROOT,
  PWI_TOPOLOGY_RANDOM,
  PWI_TOPOLOGY_HYPERCUBE,
  PWI_TOPOLOGY_BUTTERFLY,
  PWI_TOPOLOGY_RACKS,
  PWI_TOPOLOGIES, /* the number of topologies */
};

/* Out-neighbours of a node of a random graph whose spec has the degree 0: as many as the root graph has. */
#define PWI_TOPOLOGY_DEGREE 2

struct pwi_graph_spec {
  enum pwi_topology topology;
  uint32_t nodes;
  uint32_t degree;       /* random: out-neighbours of a node; racks: links out of a rack; others: 0. 0 is the default */
  uint64_t seed;         /* random: seed of the draw; others: ignored */
  const uint32_t *racks; /* racks: racks[i] is the rack of node i, a number below `nodes`; others: NULL. Borrowed
                            until the graph is made. Numbers without a node are skipped */
};

struct pwi_topology_info {
  const char *name;
  const char *nodes;   /* the numbers of nodes that are possible */
  const char *degree;  /* out-neighbours of a node */
  const char *summary; /* one line, lower case, without a full stop */
};

const struct pwi_topology_info *pwi_topology_info(enum pwi_topology topology);

/* Finds a topology by its name. */
bool pwi_topology_find(const char *name, enum pwi_topology *topology_out);

/* The distance of the farther out-neighbour in a root graph: the square root of `nodes`, rounded. */
uint32_t pwi_topology_root(uint32_t nodes);

/* Makes the graph of a spec. Destroy it with pwi_graph_destroy.
 *
 * PAWL_INVALID     the topology has no graph of that many nodes or of that degree; `why` names numbers that are
 *                  possible
 * PAWL_TOO_LARGE   more nodes or edges than a graph may have, or a random graph whose degree is neither small nor
 *                  nearly the number of nodes
 * PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_graph_make(const struct pwi_graph_spec *spec, struct pwi_graph_why *why,
                                         struct pwi_graph **graph_out);

#endif
