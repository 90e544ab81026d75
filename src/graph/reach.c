#include "graph/reach.h"

#include <string.h>

#include "base/memory.h"

#define FAR UINT32_MAX /* the distance of a node that was not reached */

/* A search, breadth first. */
struct wave {
  const struct pwi_graph *graph;
  const uint32_t *begin, *rows; /* the out-rows of the graph, or its in-rows to search backwards */
  uint32_t *queue;              /* nodes in the order in which they were reached */
  uint32_t *distance;           /* edges from the first node */
  uint32_t reached;
  uint64_t visits; /* edges that were visited, over all searches */
};

static pawl_status open_wave(struct wave *wave, const struct pwi_graph *graph) {
  *wave = (struct wave){.graph = graph, .begin = graph->out_begin, .rows = graph->out};
  wave->queue = pwi_resize_array(NULL, graph->nodes, sizeof *wave->queue);
  wave->distance = pwi_resize_array(NULL, graph->nodes, sizeof *wave->distance);
  return wave->queue && wave->distance ? PAWL_OK : PAWL_NO_MEMORY;
}

static void close_wave(struct wave *wave) {
  pwi_free(wave->queue);
  pwi_free(wave->distance);
}

static void visit(struct wave *wave, uint32_t node) {
  uint32_t next = wave->distance[node] + 1, begin = wave->begin[node], end = wave->begin[node + 1];
  for (uint32_t k = begin; k < end; k++) {
    uint32_t to = wave->rows[k];
    if (wave->distance[to] != FAR) continue;
    wave->distance[to] = next;
    wave->queue[wave->reached++] = to;
  }
  wave->visits += end - begin + 1;
}

/* Returns the distance of the farthest node that can be reached. Ends as soon as all nodes are reached, which
 * saves most visits in a dense graph. */
static uint32_t spread(struct wave *wave, uint32_t first) {
  uint32_t nodes = wave->graph->nodes;
  memset(wave->distance, 0xff, nodes * sizeof *wave->distance);
  wave->distance[first] = 0;
  wave->queue[0] = first;
  wave->reached = 1;
  for (uint32_t at = 0; at < wave->reached && wave->reached < nodes; at++) visit(wave, wave->queue[at]);
  return wave->distance[wave->queue[wave->reached - 1]];
}

static uint32_t first_missed(const struct wave *wave) {
  uint32_t node = 0;
  while (wave->distance[node] != FAR) node++;
  return node;
}

/* A graph is strongly connected if node 0 reaches all nodes and all nodes reach node 0. */
pawl_status pwi_reach_check(const struct pwi_graph *graph, struct pwi_reach *reach_out) {
  struct wave wave;
  pawl_status status = open_wave(&wave, graph);
  if (!status) {
    *reach_out = (struct pwi_reach){.is_strong = true};
    spread(&wave, 0);
    if (wave.reached < graph->nodes) {
      *reach_out = (struct pwi_reach){.from = 0, .to = first_missed(&wave)};
    } else {
      wave.begin = graph->in_begin;
      wave.rows = graph->in;
      spread(&wave, 0);
      if (wave.reached < graph->nodes) *reach_out = (struct pwi_reach){.from = first_missed(&wave), .to = 0};
    }
  }
  close_wave(&wave);
  return status;
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
  while (b) {
    uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* A step of about 0.618 of all nodes that visits each of them once. */
static uint32_t stride(uint32_t nodes) {
  uint32_t step = (uint32_t)((uint64_t)nodes * 618 / 1000);
  if (step == 0) return 1;
  while (common_divisor(step, nodes) != 1) step--;
  return step;
}

pawl_status pwi_diameter_find(const struct pwi_graph *graph, uint64_t limit, struct pwi_diameter *diameter_out) {
  struct wave wave;
  struct pwi_diameter found = {.is_exact = true};
  uint32_t step = stride(graph->nodes);
  pawl_status status = open_wave(&wave, graph);
  for (uint32_t i = 0; !status && i < graph->nodes; i++) {
    if (i > 0 && wave.visits >= limit) {
      found.is_exact = false;
      break;
    }
    uint32_t length = spread(&wave, (uint32_t)((uint64_t)i * step % graph->nodes));
    if (length > found.length) found.length = length;
  }
  close_wave(&wave);
  if (!status) *diameter_out = found;
  return status;
}

pawl_status pwi_path_lengths_find(const struct pwi_graph *graph, struct pwi_path_lengths *lengths_out) {
  struct wave wave;
  struct pwi_path_lengths found = {0};
  pawl_status status = open_wave(&wave, graph);
  for (uint32_t i = 0; !status && i < graph->nodes; i++) {
    uint32_t longest = spread(&wave, i);
    if (longest > found.longest) found.longest = longest;
    for (uint32_t k = 0; k < graph->nodes; k++) found.sum += wave.distance[k];
  }
  close_wave(&wave);
  if (!status) *lengths_out = found;
  return status;
}
