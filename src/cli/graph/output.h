/* Writes graphs and pictures of graphs for the commands below `pawl graph`. */
#ifndef PWI_CLI_GRAPH_OUTPUT_H
#define PWI_CLI_GRAPH_OUTPUT_H

#include "cli/graph/report.h"

/* Write a graph as text, or the picture of a report. Return an exit code; a failure is printed. */
int pwi_graph_save(const struct pwi_command *command, const struct pwi_graph *graph, const char *path);
int pwi_graph_draw(const struct pwi_command *command, const struct pwi_graph_report *report, const char *path);

#endif
