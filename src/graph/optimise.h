/* Graphs of a given out-degree on which updates spread fast (SFB, section 3, "partial broadcasting").
 *
 * Among all strongly connected graphs of P nodes in which every node sends to Q others, the search looks for the one
 * whose sum of shortest directed path lengths over all ordered pairs of nodes is smallest (equation 3).
 *
 *   starts    the root graph, the ring and a random regular graph of this degree, and a generalised Kautz graph; the
 *             best of them begins the search, so the result is never worse than any of them
 *   search    edges are exchanged as long as steps are left (optimise_search.c)
 *   exact     up to PWI_OPTIMISE_EXACT_NODES nodes, branch and bound then finds a graph of smallest sum, and proves
 *             it (optimise_exact.c)
 *
 * No graph has a sum below pwi_optimise_bound. A graph that reaches it is proven without a search.
 *
 * Everything is computed in integers: a seed and a number of steps give the same graph on every machine. A search
 * that is stopped by its watcher gives a graph that depends on when it was stopped.
 */
#ifndef PWI_GRAPH_OPTIMISE_H
#define PWI_GRAPH_OPTIMISE_H

#include "graph/graph.h"

#define PWI_OPTIMISE_NODES_MAX 2048
#define PWI_OPTIMISE_EXACT_NODES 12

/* Choices of branch and bound before it gives up, by default: some minutes. After the default
 * steps no number of nodes and no degree needs a tenth of them. */
#define PWI_OPTIMISE_BRANCHES ((uint64_t)1000000000)

/* Steps of the search by default: some seconds for each number of nodes. Branch and bound needs only a good graph to
 * begin with. */
static inline uint64_t pwi_optimise_steps(uint32_t nodes) {
  return nodes <= PWI_OPTIMISE_EXACT_NODES ? 50000 : 20000000 / nodes;
}

struct pwi_optimise_progress {
  uint64_t sum;      /* of the best graph so far */
  uint64_t steps;    /* of the search so far */
  uint64_t branches; /* choices of branch and bound so far */
  bool is_exact;     /* branch and bound is running */
};

struct pwi_optimise_options {
  uint32_t nodes;
  uint32_t degree;  /* 1 .. nodes - 1 */
  bool is_balanced; /* every node also receives from `degree` others */
  uint64_t seed;
  uint64_t steps;    /* of the search; 0: only the starts are compared */
  uint64_t branches; /* of branch and bound; 0: none */

  /* Called now and then; returns false to stop with the best graph so far. May be NULL. */
  bool (*watch)(void *watcher, const struct pwi_optimise_progress *progress);
  void *watcher;
};

/* The starts, in the order in which they are tried. */
enum pwi_optimise_start {
  PWI_OPTIMISE_ROOT,   /* i sends to i + N^(k/Q), rounded, for k = 0 .. Q-1: at Q = 2 the root graph */
  PWI_OPTIMISE_RING,   /* i sends to i+1 .. i+Q */
  PWI_OPTIMISE_RANDOM, /* random regular, drawn with the seed */
  PWI_OPTIMISE_KAUTZ,  /* i sends to -Qi-1 .. -Qi-Q (Imase and Itoh 1983); a node that would send to itself exchanges
                          that edge */
  PWI_OPTIMISE_STARTS, /* their number */
};

const char *pwi_optimise_start_name(enum pwi_optimise_start start);

/* Makes a start. Destroy it with pwi_graph_destroy. Errors as pwi_optimise. */
PAWL_MUST_USE pawl_status pwi_optimise_make_start(enum pwi_optimise_start start,
                                                  const struct pwi_optimise_options *options, struct pwi_graph_why *why,
                                                  struct pwi_graph **graph_out);

struct pwi_optimised {
  struct pwi_graph *graph;       /* destroy it with pwi_graph_destroy */
  uint64_t sum;                  /* of its path lengths */
  uint64_t bound;                /* no graph of this degree has a smaller sum: pwi_optimise_bound, or `sum` if proven */
  bool is_proven;                /* no graph has a smaller sum */
  bool is_stopped;               /* the watcher stopped the search */
  enum pwi_optimise_start start; /* the start with which the search began */
  uint64_t steps, branches;
};

/* PAWL_INVALID     no such graph: fewer than 2 nodes, or a degree that is 0 or not below the number of nodes
 * PAWL_TOO_LARGE   more than PWI_OPTIMISE_NODES_MAX nodes
 * PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_optimise(const struct pwi_optimise_options *options, struct pwi_graph_why *why,
                                       struct pwi_optimised *optimised_out);

/* The Moore bound on the sum of path lengths: at most Q nodes are at distance 1 of a node, Q^2 at distance 2 and so
 * on, until all are counted. */
uint64_t pwi_optimise_bound(uint32_t nodes, uint32_t degree);

/* The most clocks of a node that another node may lack if every link allows a staleness of `staleness` and the
 * shortest path between them has `length` edges: staleness * length + length - 1.
 *
 * A node at clock c has at least the first c - s updates of an in-neighbour. The neighbour computed the last of them
 * at clock c - s - 1, with at least the first c - s - 1 - s updates of its own in-neighbour, which it passed on. So
 * each edge costs s clocks, and each but the first one more. */
uint64_t pwi_optimise_staleness(uint32_t staleness, uint32_t length);

#endif
