/* The lengths of the shortest directed paths between all nodes of a graph whose edges change one at a time (SFB,
 * equation 3).
 *
 * A change touches only the pairs of nodes whose distance it changes, and the edges around them (Ramalingam and
 * Reps, "On the computational complexity of dynamic graph problems", 1996). Each pair that changes is recorded, so
 * that a search which tries a change and rejects it takes the change back without computing anything.
 *
 * A distance is a number of edges, and `nodes` where there is no path. So the sum of all distances is defined for
 * every graph, and joining two parts that were separate always makes it smaller.
 *
 * Threads: a struct belongs to one thread at a time.
 */
#ifndef PWI_GRAPH_DISTANCES_H
#define PWI_GRAPH_DISTANCES_H

#include "graph/graph.h"

/* Memory is 6 bytes for each pair of nodes. */
#define PWI_DISTANCES_NODES_MAX 2048

struct pwi_distance_change {
  uint32_t pair;
  uint16_t old;
};

/* Neighbours in no particular order: the row of node i begins at i * room. */
struct pwi_neighbours {
  uint16_t *nodes;
  uint16_t *counts;
  uint32_t room;
};

struct pwi_distances {
  uint32_t nodes;
  uint16_t *to; /* to[s * nodes + t] is the distance from s to t */
  uint64_t sum; /* of all distances */
  struct pwi_neighbours out, in;

  /* The changes since the last pwi_distances_mark. */
  struct pwi_distance_change *changes;
  size_t change_count, change_room;
  uint64_t marked_sum;

  /* For one source at a time: nodes whose distance grows. */
  uint16_t *queue;
  bool *is_queued;
};

/* Starts with the edges of `graph`, which has at most PWI_DISTANCES_NODES_MAX nodes. PAWL_NO_MEMORY; `distances` may
 * always be given to pwi_distances_fini. */
PAWL_MUST_USE pawl_status pwi_distances_init(struct pwi_distances *distances, const struct pwi_graph *graph);
void pwi_distances_fini(struct pwi_distances *distances);

bool pwi_distances_has(const struct pwi_distances *distances, uint32_t from, uint32_t to);

/* Forgets the changes that were recorded: from here on pwi_distances_undo returns to the distances of now. */
void pwi_distances_mark(struct pwi_distances *distances);

/* Adds an edge that is not there. PAWL_NO_MEMORY: some distances are out of date until pwi_distances_undo. */
PAWL_MUST_USE pawl_status pwi_distances_add(struct pwi_distances *distances, uint32_t from, uint32_t to);

/* Removes an edge. Stops early, with distances that are out of date until pwi_distances_undo, once the sum of all
 * distances exceeds `most`. PAWL_NO_MEMORY: as pwi_distances_add. */
PAWL_MUST_USE pawl_status pwi_distances_remove(struct pwi_distances *distances, uint32_t from, uint32_t to,
                                               uint64_t most);

/* Takes all changes of distances since the last mark back. The caller takes the changes of edges back, by
 * pwi_distances_link and pwi_distances_cut, which change no distance. */
void pwi_distances_undo(struct pwi_distances *distances);
void pwi_distances_link(struct pwi_distances *distances, uint32_t from, uint32_t to);
void pwi_distances_cut(struct pwi_distances *distances, uint32_t from, uint32_t to);

#endif
