#include "graph/distances.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* --- neighbours ----------------------------------------------------------------------------------------- */

static pawl_status open_neighbours(struct pwi_neighbours *neighbours, uint32_t nodes, uint32_t room) {
  neighbours->room = room;
  neighbours->nodes = pwi_alloc_zero((size_t)nodes * room, sizeof *neighbours->nodes);
  neighbours->counts = pwi_alloc_zero(nodes, sizeof *neighbours->counts);
  return neighbours->nodes && neighbours->counts ? PAWL_OK : PAWL_NO_MEMORY;
}

static void close_neighbours(struct pwi_neighbours *neighbours) {
  pwi_free(neighbours->nodes);
  pwi_free(neighbours->counts);
}

static uint16_t *row_of(const struct pwi_neighbours *neighbours, uint32_t node) {
  return neighbours->nodes + (size_t)node * neighbours->room;
}

static void append(struct pwi_neighbours *neighbours, uint32_t node, uint32_t neighbour) {
  assert(neighbours->counts[node] < neighbours->room);
  row_of(neighbours, node)[neighbours->counts[node]++] = (uint16_t)neighbour;
}

static void drop(struct pwi_neighbours *neighbours, uint32_t node, uint32_t neighbour) {
  uint16_t *row = row_of(neighbours, node);
  size_t k = 0;
  while (row[k] != neighbour) k++;
  row[k] = row[--neighbours->counts[node]];
}

void pwi_distances_link(struct pwi_distances *distances, uint32_t from, uint32_t to) {
  append(&distances->out, from, to);
  append(&distances->in, to, from);
}

void pwi_distances_cut(struct pwi_distances *distances, uint32_t from, uint32_t to) {
  drop(&distances->out, from, to);
  drop(&distances->in, to, from);
}

bool pwi_distances_has(const struct pwi_distances *distances, uint32_t from, uint32_t to) {
  const uint16_t *row = row_of(&distances->out, from);
  for (size_t k = 0; k < distances->out.counts[from]; k++)
    if (row[k] == to) return true;
  return false;
}

/* --- the first distances -------------------------------------------------------------------------------- */

static void search_from(struct pwi_distances *distances, uint32_t source) {
  uint32_t nodes = distances->nodes, reached = 1;
  uint16_t *to = distances->to + (size_t)source * nodes, *queue = distances->queue;
  for (uint32_t i = 0; i < nodes; i++) to[i] = (uint16_t)nodes;
  to[source] = 0;
  queue[0] = (uint16_t)source;
  for (uint32_t at = 0; at < reached; at++) {
    const uint16_t *row = row_of(&distances->out, queue[at]);
    for (size_t k = 0; k < distances->out.counts[queue[at]]; k++) {
      if (to[row[k]] != nodes) continue;
      to[row[k]] = (uint16_t)(to[queue[at]] + 1);
      queue[reached++] = row[k];
    }
  }
  for (uint32_t i = 0; i < nodes; i++) distances->sum += to[i];
}

pawl_status pwi_distances_init(struct pwi_distances *distances, const struct pwi_graph *graph) {
  uint32_t nodes = graph->nodes;
  assert(nodes <= PWI_DISTANCES_NODES_MAX);
  *distances = (struct pwi_distances){.nodes = nodes};
  pawl_status status = open_neighbours(&distances->out, nodes, nodes);
  if (!status) status = open_neighbours(&distances->in, nodes, nodes);
  distances->to = pwi_resize_array(NULL, (size_t)nodes * nodes, sizeof *distances->to);
  distances->queue = pwi_resize_array(NULL, nodes, sizeof *distances->queue);
  distances->is_queued = pwi_alloc_zero(nodes, sizeof *distances->is_queued);
  if (status || !distances->to || !distances->queue || !distances->is_queued) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < nodes; i++) {
    struct pwi_graph_row row = pwi_graph_out(graph, i);
    for (size_t k = 0; k < row.count; k++) pwi_distances_link(distances, i, row.nodes[k]);
  }
  for (uint32_t i = 0; i < nodes; i++) search_from(distances, i);
  distances->marked_sum = distances->sum;
  return PAWL_OK;
}

void pwi_distances_fini(struct pwi_distances *distances) {
  close_neighbours(&distances->out);
  close_neighbours(&distances->in);
  pwi_free(distances->to);
  pwi_free(distances->changes);
  pwi_free(distances->queue);
  pwi_free(distances->is_queued);
}

/* --- recording and taking back -------------------------------------------------------------------------- */

void pwi_distances_mark(struct pwi_distances *distances) {
  distances->change_count = 0;
  distances->marked_sum = distances->sum;
}

void pwi_distances_undo(struct pwi_distances *distances) {
  while (distances->change_count > 0) {
    struct pwi_distance_change *change = &distances->changes[--distances->change_count];
    distances->to[change->pair] = change->old;
  }
  distances->sum = distances->marked_sum;
}

/* Changes the distance from `source` to `node`, and records the old one. */
static pawl_status change(struct pwi_distances *distances, uint32_t source, uint32_t node, uint32_t length) {
  if (!PWI_GROW(distances->changes, distances->change_room, distances->change_count + 1)) return PAWL_NO_MEMORY;
  uint32_t pair = source * distances->nodes + node;
  distances->changes[distances->change_count++] = (struct pwi_distance_change){pair, distances->to[pair]};
  distances->sum += length; /* first, because the difference may be negative */
  distances->sum -= distances->to[pair];
  distances->to[pair] = (uint16_t)length;
  return PAWL_OK;
}

/* --- adding an edge ------------------------------------------------------------------------------------- */

/* A path over the new edge is the shortest one to `first`. A search from there follows the edges that shorten a
 * distance. It reaches nodes in ascending order of their new distances, so each changes once. */
static pawl_status shorten(struct pwi_distances *distances, uint32_t source, uint32_t first, uint32_t length) {
  uint16_t *to = distances->to + (size_t)source * distances->nodes, *queue = distances->queue;
  uint32_t count = 1;
  pawl_status status = change(distances, source, first, length);
  queue[0] = (uint16_t)first;
  for (uint32_t at = 0; !status && at < count; at++) {
    uint32_t next = to[queue[at]] + 1u;
    const uint16_t *row = row_of(&distances->out, queue[at]);
    for (size_t k = 0; !status && k < distances->out.counts[queue[at]]; k++) {
      if (to[row[k]] <= next) continue;
      status = change(distances, source, row[k], next);
      queue[count++] = row[k];
    }
  }
  return status;
}

pawl_status pwi_distances_add(struct pwi_distances *distances, uint32_t from, uint32_t to) {
  uint32_t nodes = distances->nodes;
  pawl_status status = PAWL_OK;
  pwi_distances_link(distances, from, to);
  for (uint32_t source = 0; !status && source < nodes; source++) {
    const uint16_t *row = distances->to + (size_t)source * nodes;
    if (row[from] + 1 < row[to]) status = shorten(distances, source, to, row[from] + 1u);
  }
  return status;
}

/* --- removing an edge ----------------------------------------------------------------------------------- */

/* The length of the shortest path from the source of row `to` that reaches `node` from an in-neighbour whose own
 * distance does not grow. */
static uint32_t supported(const struct pwi_distances *distances, const uint16_t *to, uint32_t node) {
  const uint16_t *row = row_of(&distances->in, node);
  uint32_t least = distances->nodes;
  for (size_t k = 0; k < distances->in.counts[node]; k++)
    if (!distances->is_queued[row[k]] && to[row[k]] + 1u < least) least = to[row[k]] + 1u;
  return least;
}

/* Queues the nodes whose distance from a source grows: `first`, and every node all of whose shortest paths lead
 * over queued nodes. They are queued in ascending order of distance, so all possible predecessors of a node are
 * decided before it. Returns their number. */
static uint32_t find_longer(struct pwi_distances *distances, const uint16_t *to, uint32_t first) {
  uint32_t count = 1;
  distances->queue[0] = (uint16_t)first;
  distances->is_queued[first] = true;
  for (uint32_t at = 0; at < count; at++) {
    uint32_t node = distances->queue[at], next = to[node] + 1u;
    const uint16_t *row = row_of(&distances->out, node);
    for (size_t k = 0; k < distances->out.counts[node]; k++) {
      if (to[row[k]] != next || distances->is_queued[row[k]] || supported(distances, to, row[k]) == next) continue;
      distances->is_queued[row[k]] = true;
      distances->queue[count++] = row[k];
    }
  }
  return count;
}

/* Sends the distance of a queued node along its edges to other queued nodes. Returns whether one of them shrank. */
static bool relax(struct pwi_distances *distances, uint16_t *to, uint32_t node) {
  bool has_changed = false;
  const uint16_t *row = row_of(&distances->out, node);
  for (size_t k = 0; k < distances->out.counts[node]; k++) {
    if (!distances->is_queued[row[k]] || to[row[k]] <= to[node] + 1) continue;
    distances->sum -= (uint64_t)(to[row[k]] - to[node] - 1);
    to[row[k]] = (uint16_t)(to[node] + 1);
    has_changed = true;
  }
  return has_changed;
}

/* The queued nodes take their distances by paths from the others, then from one another until none shrinks. They
 * are few: about the logarithm of the number of nodes in a graph with short paths. */
static pawl_status lengthen(struct pwi_distances *distances, uint32_t source, uint32_t first) {
  uint16_t *to = distances->to + (size_t)source * distances->nodes;
  uint32_t count = find_longer(distances, to, first);
  pawl_status status = PAWL_OK;
  for (uint32_t k = 0; !status && k < count; k++)
    status = change(distances, source, distances->queue[k], supported(distances, to, distances->queue[k]));
  for (bool is_settled = status != PAWL_OK; !is_settled;) {
    is_settled = true;
    for (uint32_t k = 0; k < count; k++) is_settled &= !relax(distances, to, distances->queue[k]);
  }
  for (uint32_t k = 0; k < count; k++) distances->is_queued[distances->queue[k]] = false;
  return status;
}

pawl_status pwi_distances_remove(struct pwi_distances *distances, uint32_t from, uint32_t to, uint64_t most) {
  uint32_t nodes = distances->nodes;
  pawl_status status = PAWL_OK;
  pwi_distances_cut(distances, from, to);
  for (uint32_t source = 0; !status && source < nodes && distances->sum <= most; source++) {
    const uint16_t *row = distances->to + (size_t)source * nodes;
    if (row[from] + 1 != row[to] || supported(distances, row, to) == row[to]) continue;
    status = lengthen(distances, source, to);
  }
  return status;
}
