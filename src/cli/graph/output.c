#include "cli/graph/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/graph/picture.h"
#include "graph/text.h"

int pwi_graph_save(const struct pwi_command *command, const struct pwi_graph *graph, const char *path) {
  size_t size;
  char *text = pwi_graph_format(graph, &size);
  if (!text) return pwi_cli_failure(command, "out of memory");
  FILE *file = fopen(path, "we");
  bool is_written = file && fwrite(text, 1, size, file) == size;
  int problem = errno;
  if (file && fclose(file)) {
    is_written = false;
    problem = errno;
  }
  pwi_free(text);
  return is_written ? PWI_EXIT_OK : pwi_cli_failure(command, "cannot write %s: %s", path, strerror(problem));
}

int pwi_graph_draw(const struct pwi_command *command, const struct pwi_graph_report *report, const char *path) {
  const struct pwi_graph *graph = report->graph;
  if (graph->nodes > PWI_GRAPH_PICTURE_NODES || graph->edges > PWI_GRAPH_PICTURE_EDGES)
    return pwi_cli_failure(command, "--svg draws at most %d nodes and %d edges, not %" PRIu32 " and %" PRIu32,
                           PWI_GRAPH_PICTURE_NODES, PWI_GRAPH_PICTURE_EDGES, graph->nodes, graph->edges);
  int problem = pwi_graph_picture(report, path);
  return problem ? pwi_cli_failure(command, "cannot write %s: %s", path, strerror(problem)) : PWI_EXIT_OK;
}
