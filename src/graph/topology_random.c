/* Random regular graphs.
 *
 * A graph of degree d is the union of d permutations of the nodes: permutation k sends node i to its k-th
 * out-neighbour. The first is one cycle through all nodes, which makes the graph strongly connected. Each further
 * permutation is drawn at random; where it has a loop or repeats an edge, targets are swapped with those of
 * random other nodes until it has neither. For d <= N / 2 at least half of all targets are free for each node,
 * so that a swap succeeds with a probability of about 1/4 or more.
 *
 * For d > N / 2 the graph is the complement of a random graph of degree N - 1 - d. It is strongly connected
 * without a cycle: if i does not send to k, then the d nodes that i sends to and the d nodes that send to k are
 * among the N - 2 others, so they have a node in common.
 *
 * Only integers and pwi_random_below are used, so a seed gives the same graph on every machine.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "graph/topology_inside.h"

/* Swaps that are tried for one node before the permutation is drawn again. Large graphs hardly need one; a
 * graph of few nodes may run into a permutation that no single swap can repair. */
#define SWAPS_MAX 256

/* Permutations of a graph. The time to draw them grows with the square of their number. */
#define DRAWN_MAX 512

struct regular_draw {
  struct pwi_random random;
  uint32_t nodes, degree;
  uint32_t *rows; /* rows[i * degree + k] is the target of node i in permutation k */
  uint32_t *next; /* the permutation that is being drawn: node i sends to next[i] */
  uint32_t done;  /* number of finished permutations */
};

/* Without an early exit, so that the compiler can compare several targets at a time. */
static bool is_free(const struct regular_draw *draw, uint32_t from, uint32_t to) {
  const uint32_t *row = draw->rows + (size_t)from * draw->degree;
  unsigned hits = from == to;
  for (uint32_t k = 0; k < draw->done; k++) hits |= row[k] == to;
  return !hits;
}

static void shuffle(struct regular_draw *draw) {
  for (uint32_t i = 0; i < draw->nodes; i++) draw->next[i] = i;
  pwi_random_shuffle(&draw->random, draw->next, draw->nodes, sizeof *draw->next);
}

static void keep(struct regular_draw *draw) {
  for (uint32_t i = 0; i < draw->nodes; i++) draw->rows[(size_t)i * draw->degree + draw->done] = draw->next[i];
  draw->done++;
}

/* One cycle through all nodes, in random order. */
static void draw_cycle(struct regular_draw *draw) {
  shuffle(draw);
  for (uint32_t i = 0; i < draw->nodes; i++)
    draw->rows[(size_t)draw->next[i] * draw->degree] = draw->next[(i + 1) % draw->nodes];
  draw->done = 1;
}

/* Gives node `i` a free target, in exchange with a random node that also gets a free one. */
static bool repair(struct regular_draw *draw, uint32_t i) {
  uint32_t *next = draw->next;
  for (int swaps = 0; swaps < SWAPS_MAX; swaps++) {
    uint32_t k = (uint32_t)pwi_random_below(&draw->random, draw->nodes);
    if (!is_free(draw, i, next[k]) || !is_free(draw, k, next[i])) continue;
    uint32_t target = next[i];
    next[i] = next[k];
    next[k] = target;
    return true;
  }
  return false;
}

static bool repair_all(struct regular_draw *draw) {
  for (uint32_t i = 0; i < draw->nodes; i++)
    if (!is_free(draw, i, draw->next[i]) && !repair(draw, i)) return false;
  return true;
}

static void draw_permutation(struct regular_draw *draw) {
  do shuffle(draw);
  while (!repair_all(draw));
  keep(draw);
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static void add_rows(const struct regular_draw *draw, struct pwi_edge_list *list) {
  for (uint32_t i = 0; i < draw->nodes; i++)
    for (uint32_t k = 0; k < draw->degree; k++) pwi_edge_list_add(list, i, draw->rows[(size_t)i * draw->degree + k]);
}

/* Uses `next`, which is no longer needed, to mark the targets of a row. */
static void add_complement(const struct regular_draw *draw, struct pwi_edge_list *list) {
  memset(draw->next, 0xff, draw->nodes * sizeof *draw->next);
  for (uint32_t i = 0; i < draw->nodes; i++) {
    draw->next[i] = i;
    for (uint32_t k = 0; k < draw->degree; k++) draw->next[draw->rows[(size_t)i * draw->degree + k]] = i;
    for (uint32_t to = 0; to < draw->nodes; to++)
      if (draw->next[to] != i) pwi_edge_list_add(list, i, to);
  }
}

static pawl_status check_degree(const struct pwi_graph_spec *spec, uint32_t *degree_out, struct pwi_graph_why *why) {
  uint32_t most = spec->nodes - 1, degree = spec->degree;
  if (degree == 0) degree = most < PWI_TOPOLOGY_DEGREE ? most : PWI_TOPOLOGY_DEGREE;
  if (degree > most)
    return pwi_graph_refuse(why, PAWL_INVALID,
                            "a node of %" PRIu32 " cannot have %" PRIu32 " neighbours; the degree is at most %" PRIu32,
                            spec->nodes, degree, most);
  if (degree > DRAWN_MAX && most - degree > DRAWN_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE,
                            "the degree of a random graph of %" PRIu32 " nodes is at most %d, or at least %" PRIu32
                            ", not %" PRIu32,
                            spec->nodes, DRAWN_MAX, most - DRAWN_MAX, degree);
  *degree_out = degree;
  return PAWL_OK;
}

pawl_status pwi_topology_random(const struct pwi_graph_spec *spec, struct pwi_edge_list *list,
                                struct pwi_graph_why *why) {
  uint32_t degree = 0;
  pawl_status status = check_degree(spec, &degree, why);
  if (!status) status = pwi_edge_list_open(list, (uint64_t)spec->nodes * degree, why);
  if (status || degree == 0) return status;
  bool is_dense = degree > spec->nodes / 2;
  struct regular_draw draw = {.nodes = spec->nodes, .degree = is_dense ? spec->nodes - 1 - degree : degree};
  pwi_random_init(&draw.random, spec->seed, 0);
  draw.rows = pwi_resize_array(NULL, (size_t)draw.nodes * draw.degree, sizeof *draw.rows);
  draw.next = pwi_resize_array(NULL, draw.nodes, sizeof *draw.next);
  if (!draw.rows || !draw.next) {
    status = pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %zu edges", list->room);
  } else {
    if (!is_dense) draw_cycle(&draw);
    while (draw.done < draw.degree) draw_permutation(&draw);
    if (is_dense)
      add_complement(&draw, list);
    else
      add_rows(&draw, list);
  }
  pwi_free(draw.rows);
  pwi_free(draw.next);
  return status;
}
