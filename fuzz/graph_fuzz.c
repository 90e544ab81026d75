/* Graphs as text: any bytes. A graph that is read keeps the rules, and its own text gives the same graph again.
 *
 * covers: src/graph/text.c
 */
#include "fuzz.h"

#include <string.h>

#include "base/memory.h"
#include "graph/text.h"

static UNTRACED void check_rows(const struct pwi_graph *graph) {
  size_t out = 0, in = 0;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    struct pwi_graph_row row = pwi_graph_out(graph, i);
    for (size_t k = 0; k < row.count; k++) {
      assert(row.nodes[k] < graph->nodes && row.nodes[k] != i);
      assert(k == 0 || row.nodes[k] > row.nodes[k - 1]);
    }
    out += row.count;
    row = pwi_graph_in(graph, i);
    for (size_t k = 0; k < row.count; k++) assert(pwi_graph_has(graph, row.nodes[k], i));
    in += row.count;
  }
  assert(out == graph->edges && in == graph->edges);
  struct pwi_graph_degrees degrees = pwi_graph_degrees(graph);
  assert(degrees.out_min <= degrees.out_max && degrees.in_min <= degrees.in_max);
}

static void check_again(const struct pwi_graph *graph) {
  size_t size;
  struct pwi_graph *again = NULL;
  char *text = pwi_graph_format(graph, &size);
  assert(text && strlen(text) == size);
  pawl_status status = pwi_graph_parse("again", text, size, NULL, &again);
  assert(!status && again->nodes == graph->nodes && again->edges == graph->edges);
  assert(memcmp(again->out, graph->out, graph->edges * sizeof *graph->out) == 0);
  assert(memcmp(again->in, graph->in, graph->edges * sizeof *graph->in) == 0);
  pwi_graph_destroy(again);
  pwi_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph = NULL;
  pawl_status status = pwi_graph_parse("file", (const char *)data, size, &why, &graph);
  if (status) {
    assert(!graph && strncmp(why.text, "file:", 5) == 0);
    return 0;
  }
  check_rows(graph);
  if (graph->nodes <= 10000) check_again(graph); /* larger ones take too long */
  pwi_graph_destroy(graph);
  return 0;
}
