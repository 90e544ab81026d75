/* Local search for graphs with a small sum of shortest path lengths, by threshold accepting (Dueck and Scheuer 1990).
 *
 * A step exchanges edges at random:
 *
 *   swap   a -> b and c -> d become a -> d and c -> b; in-degrees stay
 *   turn   a -> b becomes a -> d; only if in-degrees need not be equal
 *
 * A step is kept if the sum grows by no more than a threshold. The threshold falls from a part of the mean growth of
 * a few trial steps to 0, which is reached when three quarters of a round are done: at first the search leaves local
 * minima, at last it only descends. The more steps there are for each edge, the larger is that part: a search that
 * leaves a good start for a short time only gets back to a worse one. Beyond STEPS_MOST steps for each edge another
 * round begins. The best graph is kept. Sums and thresholds are integers, so a seed gives the same graph on every
 * machine.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "graph/distances.h"
#include "graph/optimise_inside.h"

static_assert(PWI_OPTIMISE_NODES_MAX <= PWI_DISTANCES_NODES_MAX, "the search holds all distances");

#define TRIALS 32 /* steps from which the first threshold is computed */

/* The first threshold is the mean growth times the steps for each edge, at most STEPS_MOST, divided by STEPS_WHOLE.
 * Of 0, 0.02, 0.1 and 0.3 of the growth, after 100,000 steps the largest was best with 16 and 50 nodes (3,125 and
 * 1,000 steps for each edge), the smallest with 200 (250 steps). */
#define STEPS_MOST 1200
#define STEPS_WHOLE 4000

struct edge_search {
  const struct pwi_optimise_options *options;
  struct pwi_optimised *best;
  struct pwi_random random;
  struct pwi_distances distances;
  struct pwi_graph_edge *edges, *best_edges;
  size_t count;
  bool has_better; /* best_edges are better than best->graph */
};

/* A step: the edges that it takes away, and the edges that it adds. */
struct edge_step {
  size_t places[2]; /* in edges */
  struct pwi_graph_edge added[2];
  int count; /* 1: turn, 2: swap */
};

/* --- drawing -------------------------------------------------------------------------------------------- */

static bool is_possible(const struct edge_search *search, struct pwi_graph_edge edge) {
  return edge.from != edge.to && !pwi_distances_has(&search->distances, edge.from, edge.to);
}

static bool draw_swap(struct edge_search *search, struct edge_step *step) {
  for (int k = 0; k < 2; k++) step->places[k] = (size_t)pwi_random_below(&search->random, search->count);
  const struct pwi_graph_edge *one = &search->edges[step->places[0]], *other = &search->edges[step->places[1]];
  step->added[0] = (struct pwi_graph_edge){one->from, other->to};
  step->added[1] = (struct pwi_graph_edge){other->from, one->to};
  step->count = 2;
  return is_possible(search, step->added[0]) && is_possible(search, step->added[1]);
}

static bool draw_turn(struct edge_search *search, struct edge_step *step) {
  step->places[0] = (size_t)pwi_random_below(&search->random, search->count);
  uint32_t to = (uint32_t)pwi_random_below(&search->random, search->options->nodes);
  step->added[0] = (struct pwi_graph_edge){search->edges[step->places[0]].from, to};
  step->count = 1;
  return is_possible(search, step->added[0]);
}

static bool draw(struct edge_search *search, struct edge_step *step) {
  if (search->options->is_balanced || pwi_random_u32(&search->random) % 2) return draw_swap(search, step);
  return draw_turn(search, step);
}

/* --- stepping ------------------------------------------------------------------------------------------- */

/* Takes the first `added` new edges and the first `removed` old edges of a step back. */
static void revert(struct edge_search *search, const struct edge_step *step, int added, int removed) {
  struct pwi_distances *distances = &search->distances;
  for (int k = 0; k < removed; k++)
    pwi_distances_link(distances, search->edges[step->places[k]].from, search->edges[step->places[k]].to);
  for (int k = 0; k < added; k++) pwi_distances_cut(distances, step->added[k].from, step->added[k].to);
  pwi_distances_undo(distances);
}

/* Adds edges first: the sum then only grows while edges are removed, so that the removal can stop once it exceeds
 * `most`. With `is_trial` the step is reverted in any case. `*sum_out` is the sum after it, or some sum above
 * `most`. */
static pawl_status try_step(struct edge_search *search, const struct edge_step *step, uint64_t most, bool is_trial,
                            uint64_t *sum_out) {
  struct pwi_distances *distances = &search->distances;
  pawl_status status = PAWL_OK;
  int added = 0, removed = 0;
  pwi_distances_mark(distances);
  while (!status && added < step->count) {
    status = pwi_distances_add(distances, step->added[added].from, step->added[added].to);
    added++;
  }
  while (!status && removed < step->count && (removed == 0 || distances->sum <= most)) {
    const struct pwi_graph_edge *edge = &search->edges[step->places[removed++]];
    status = pwi_distances_remove(distances, edge->from, edge->to, most);
  }
  *sum_out = distances->sum;
  if (status || is_trial || distances->sum > most)
    revert(search, step, added, removed);
  else
    for (int k = 0; k < step->count; k++) search->edges[step->places[k]] = step->added[k];
  return status;
}

static void keep_best(struct edge_search *search) {
  if (search->distances.sum >= search->best->sum) return;
  search->best->sum = search->distances.sum;
  memcpy(search->best_edges, search->edges, search->count * sizeof *search->edges);
  search->has_better = true;
}

static pawl_status find_threshold(struct edge_search *search, uint64_t *threshold_out) {
  uint64_t growth = 0, sum = 0, before = search->distances.sum, steps = search->options->steps / search->count;
  struct edge_step step;
  pawl_status status = PAWL_OK;
  for (int i = 0; !status && i < TRIALS; i++) {
    if (!draw(search, &step)) continue;
    status = try_step(search, &step, UINT64_MAX, true, &sum);
    if (sum > before) growth += sum - before;
  }
  *threshold_out = growth / TRIALS * (steps < STEPS_MOST ? steps : STEPS_MOST) / STEPS_WHOLE;
  return status;
}

/* --- searching ------------------------------------------------------------------------------------------ */

static bool is_done(struct edge_search *search) {
  const struct pwi_optimise_options *options = search->options;
  struct pwi_optimised *best = search->best;
  if (best->steps >= options->steps || best->sum == best->bound) return true;
  return best->steps % PWI_OPTIMISE_PULSE == 0 && !pwi_optimise_tell(options, best, false);
}

/* Thousandths, so that the products of large numbers fit. */
static uint64_t threshold_after(uint64_t first, uint64_t done, uint64_t steps) {
  uint64_t falling = steps / 4 * 3;
  return done >= falling ? 0 : first * ((falling - done) / (falling / 1000 + 1)) / 1000;
}

static pawl_status run_steps(struct edge_search *search) {
  uint64_t first, sum, round = search->options->steps, most = STEPS_MOST * search->count;
  pawl_status status = find_threshold(search, &first);
  if (round > most) round = most;
  while (!status && !is_done(search)) {
    struct edge_step step;
    uint64_t threshold = threshold_after(first, search->best->steps++ % round, round);
    if (!draw(search, &step)) continue;
    status = try_step(search, &step, search->distances.sum + threshold, false, &sum);
    if (!status) keep_best(search);
  }
  return status;
}

static pawl_status open_search(struct edge_search *search) {
  const struct pwi_graph *graph = search->best->graph;
  pwi_random_init(&search->random, search->options->seed, 1);
  search->edges = pwi_resize_array(NULL, graph->edges, sizeof *search->edges);
  search->best_edges = pwi_resize_array(NULL, graph->edges, sizeof *search->best_edges);
  pawl_status status = pwi_distances_init(&search->distances, graph);
  if (status || !search->edges || !search->best_edges) return PAWL_NO_MEMORY;
  for (uint32_t from = 0; from < graph->nodes; from++) {
    struct pwi_graph_row row = pwi_graph_out(graph, from);
    for (size_t k = 0; k < row.count; k++) search->edges[search->count++] = (struct pwi_graph_edge){from, row.nodes[k]};
  }
  return PAWL_OK;
}

pawl_status pwi_optimise_search(const struct pwi_optimise_options *options, struct pwi_optimised *optimised) {
  struct edge_search search = {.options = options, .best = optimised};
  struct pwi_graph *graph = NULL;
  pawl_status status = open_search(&search);
  if (!status) status = run_steps(&search);
  if (!status && search.has_better)
    status = pwi_graph_create(options->nodes, search.best_edges, search.count, NULL, &graph);
  if (graph) {
    pwi_graph_destroy(optimised->graph);
    optimised->graph = graph;
  }
  pwi_distances_fini(&search.distances);
  pwi_free(search.edges);
  pwi_free(search.best_edges);
  return status;
}
