/* Branch and bound for graphs with the smallest sum of shortest path lengths, up to PWI_OPTIMISE_EXACT_NODES nodes.
 *
 * The rows of a graph, the sets of nodes that each node sends to, are chosen one after the other. Two things keep
 * the tree of choices small:
 *
 *   names   A graph is tried under one numbering only, or few: that of a breadth-first search from node 0. The nodes
 *           that row v is the first to name have the next free numbers. A graph in which row v has no node v to
 *           belong to is not connected, and is left out. Node 0 is a node with the smallest sum of distances to all
 *           others. So if a better graph exists, its node 0 has a sum below the present best divided by the number
 *           of nodes, and a choice that takes this away is left out.
 *
 *   bound   After rows 0 .. v are chosen, each node has a bound on its sum: known rows are followed, and every other
 *           row is taken for the best case, as many nodes not seen so far. A choice whose bounds add up to no less
 *           than the best graph is left out.
 *
 * A graph whose sum is the Moore bound ends the search. So does a limit of choices; then nothing is proven.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "graph/optimise_inside.h"

#define NODES PWI_OPTIMISE_EXACT_NODES

static_assert(NODES <= 16, "a set of nodes is a 16-bit mask");

typedef uint16_t node_set;

struct branching {
  const struct pwi_optimise_options *options;
  struct pwi_optimised *best;
  node_set rows[NODES];
  node_set best_rows[NODES];
  uint32_t in_degrees[NODES];
  bool has_better; /* best_rows is better than best->graph */
  bool is_over;    /* the limit is reached, or the watcher stopped the search */
};

static uint32_t size_of(node_set set) { return (uint32_t)__builtin_popcount(set); }

static uint32_t first_of(node_set set) { return (uint32_t)__builtin_ctz(set); }

/* --- the bound ------------------------------------------------------------------------------------------ */

/* At most the true sum of the distances from `source`, however the rows from `known` on are chosen. UINT32_MAX if
 * some nodes cannot be reached. `wild` counts the nodes at a distance, at most, to which every shortest path leads
 * over a row that is not known. */
static uint32_t bound_of(const struct branching *branching, uint32_t source, uint32_t known) {
  uint32_t nodes = branching->options->nodes, degree = branching->options->degree;
  uint32_t wild = 0, all_wild = 0, ball = 1, sum = 0;
  node_set known_rows = (node_set)((1u << known) - 1), reached = (node_set)(1u << source), edge = reached;
  for (uint32_t distance = 1; ball < nodes; distance++) {
    node_set next = 0;
    for (node_set rest = edge & known_rows; rest; rest = (node_set)(rest & (rest - 1)))
      next |= branching->rows[first_of(rest)];
    wild = degree * (size_of((node_set)(edge & ~known_rows)) + wild);
    all_wild += wild;
    edge = (node_set)(next & ~reached);
    reached |= next;
    if (!edge && !wild) return UINT32_MAX;
    uint32_t grown = size_of(reached) + all_wild;
    if (grown > nodes) grown = nodes;
    sum += distance * (grown - ball);
    ball = grown;
  }
  return sum;
}

/* Tells whether a graph with these rows may be better than the best one. `*sum_out` is the bound on its sum. */
static bool is_promising(const struct branching *branching, uint32_t known, uint64_t *sum_out) {
  uint64_t sum = 0, nodes = branching->options->nodes;
  for (uint32_t source = 0; source < nodes; source++) {
    uint32_t least = bound_of(branching, source, known);
    if (least == UINT32_MAX || (source == 0 && least * nodes >= branching->best->sum)) return false;
    sum += least;
  }
  *sum_out = sum;
  return sum < branching->best->sum;
}

/* --- choices -------------------------------------------------------------------------------------------- */

static void choose_row(struct branching *branching, uint32_t node, uint32_t seen);

static bool is_within_limit(struct branching *branching) {
  struct pwi_optimised *best = branching->best;
  best->branches++;
  if (best->branches >= branching->options->branches) branching->is_over = true;
  if (best->branches % PWI_OPTIMISE_BRANCH_PULSE == 0 && !pwi_optimise_tell(branching->options, best, true))
    branching->is_over = true;
  return !branching->is_over;
}

static void finish_row(struct branching *branching, uint32_t node, uint32_t seen) {
  uint64_t sum;
  if (!is_within_limit(branching) || !is_promising(branching, node + 1, &sum)) return;
  if (node + 1 < branching->options->nodes) {
    choose_row(branching, node + 1, seen);
    return;
  }
  branching->best->sum = sum; /* all rows are known, so the bound is the sum */
  memcpy(branching->best_rows, branching->rows, sizeof branching->rows);
  branching->has_better = true;
  if (sum == branching->best->bound) branching->is_over = true;
}

/* Adds `left` nodes, not below `from`, to the row of `node`. Nodes from `seen` on have no number so far, so that only
 * the first of them is a choice. */
static void choose_nodes(struct branching *branching, uint32_t node, uint32_t left, uint32_t from, uint32_t seen) {
  uint32_t nodes = branching->options->nodes;
  if (left == 0) {
    finish_row(branching, node, seen);
    return;
  }
  for (uint32_t to = from; to <= seen && to < nodes && !branching->is_over; to++) {
    if (to == node) continue;
    if (branching->options->is_balanced && branching->in_degrees[to] == branching->options->degree) continue;
    branching->in_degrees[to]++;
    branching->rows[node] |= (node_set)(1u << to);
    choose_nodes(branching, node, left - 1, to + 1, to == seen ? seen + 1 : seen);
    branching->rows[node] &= (node_set) ~(1u << to);
    branching->in_degrees[to]--;
  }
}

static void choose_row(struct branching *branching, uint32_t node, uint32_t seen) {
  if (node < seen) choose_nodes(branching, node, branching->options->degree, 0, seen);
}

/* --- the result ----------------------------------------------------------------------------------------- */

static pawl_status take_best(struct branching *branching) {
  uint32_t nodes = branching->options->nodes;
  struct pwi_graph_edge edges[NODES * NODES];
  size_t count = 0;
  struct pwi_graph *graph = NULL;
  for (uint32_t from = 0; from < nodes; from++)
    for (node_set rest = branching->best_rows[from]; rest; rest = (node_set)(rest & (rest - 1)))
      edges[count++] = (struct pwi_graph_edge){from, first_of(rest)};
  pawl_status status = pwi_graph_create(nodes, edges, count, NULL, &graph);
  if (status) return status;
  pwi_graph_destroy(branching->best->graph);
  branching->best->graph = graph;
  return PAWL_OK;
}

pawl_status pwi_optimise_exact(const struct pwi_optimise_options *options, struct pwi_optimised *optimised) {
  struct branching branching = {.options = options, .best = optimised};
  if (options->branches == 0) return PAWL_OK;
  choose_row(&branching, 0, 1);
  optimised->is_proven = !branching.is_over || optimised->sum == optimised->bound;
  return branching.has_better ? take_best(&branching) : PAWL_OK;
}
