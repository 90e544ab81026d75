/* The graphs with which a search for short paths begins. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "graph/optimise.h"
#include "graph/topology_inside.h"

const char *pwi_optimise_start_name(enum pwi_optimise_start start) {
  static const char *const names[PWI_OPTIMISE_STARTS] = {"root", "ring", "random", "kautz"};
  return names[start];
}

/* --- circulant graphs ----------------------------------------------------------------------------------- */

/* Step k of a root graph of degree Q: N^(k/Q), rounded, but larger than the step before, and small enough that the
 * steps after it still differ. No power lies so near to a half that its rounding depends on the machine. */
static uint32_t root_step(uint32_t nodes, uint32_t degree, uint32_t k, uint32_t last) {
  uint32_t step = degree == 2 && k == 1 ? pwi_topology_root(nodes)
                                        : (uint32_t)lround(pow((double)nodes, (double)k / (double)degree));
  uint32_t most = nodes - (degree - k);
  if (step <= last) step = last + 1;
  return step > most ? most : step;
}

static void add_circulant(const struct pwi_optimise_options *options, bool is_root, struct pwi_edge_list *list) {
  uint32_t nodes = options->nodes, step = 0;
  for (uint32_t k = 0; k < options->degree; k++) {
    step = is_root ? root_step(nodes, options->degree, k, step) : k + 1;
    for (uint32_t i = 0; i < nodes; i++) pwi_edge_list_add(list, i, (i + step) % nodes);
  }
}

/* --- generalised Kautz graphs --------------------------------------------------------------------------- */

static bool has_edge(const struct pwi_edge_list *list, uint32_t degree, uint32_t from, uint32_t to) {
  for (uint32_t k = 0; k < degree; k++)
    if (list->edges[(size_t)from * degree + k].to == to) return true;
  return false;
}

/* The loop at node i becomes an edge to y, and an edge x -> y becomes x -> i; x may be a node with a loop, too. Every
 * degree stays. The nodes x are tried from i on. */
static bool open_loop(struct pwi_edge_list *list, uint32_t nodes, uint32_t degree, struct pwi_graph_edge *loop) {
  uint32_t i = loop->from;
  for (uint32_t n = 1; n < nodes; n++) {
    uint32_t x = (i + n) % nodes;
    if (has_edge(list, degree, x, i)) continue;
    for (uint32_t k = 0; k < degree; k++) {
      struct pwi_graph_edge *other = &list->edges[(size_t)x * degree + k];
      if (other->to == i || has_edge(list, degree, i, other->to)) continue;
      loop->to = other->to;
      other->to = i;
      return true;
    }
  }
  return false;
}

/* Leaves the list with a loop if there is no way to open it; the start is then skipped. */
static void add_kautz(const struct pwi_optimise_options *options, struct pwi_edge_list *list) {
  uint32_t nodes = options->nodes, degree = options->degree;
  for (uint32_t i = 0; i < nodes; i++)
    for (uint32_t k = 1; k <= degree; k++) {
      uint64_t back = ((uint64_t)degree * i + k) % nodes;
      pwi_edge_list_add(list, i, (uint32_t)((nodes - back) % nodes));
    }
  for (size_t k = 0; k < list->count; k++)
    if (list->edges[k].from == list->edges[k].to && !open_loop(list, nodes, degree, &list->edges[k])) return;
}

/* --- all starts ----------------------------------------------------------------------------------------- */

static pawl_status make_random(const struct pwi_optimise_options *options, struct pwi_graph_why *why,
                               struct pwi_graph **graph_out) {
  struct pwi_graph_spec spec = {PWI_TOPOLOGY_RANDOM, options->nodes, options->degree, options->seed, NULL};
  return pwi_graph_make(&spec, why, graph_out);
}

pawl_status pwi_optimise_make_start(enum pwi_optimise_start start, const struct pwi_optimise_options *options,
                                    struct pwi_graph_why *why, struct pwi_graph **graph_out) {
  struct pwi_edge_list list = {0};
  if (start == PWI_OPTIMISE_RANDOM) return make_random(options, why, graph_out);
  pawl_status status = pwi_edge_list_open(&list, (uint64_t)options->nodes * options->degree, why);
  if (status) return status;
  if (start == PWI_OPTIMISE_KAUTZ)
    add_kautz(options, &list);
  else
    add_circulant(options, start == PWI_OPTIMISE_ROOT, &list);
  status = pwi_graph_create(options->nodes, list.edges, list.count, why, graph_out);
  pwi_free(list.edges);
  return status;
}
