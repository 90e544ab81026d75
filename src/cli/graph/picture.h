/* Draws a graph as an SVG picture. */
#ifndef PWI_CLI_GRAPH_PICTURE_H
#define PWI_CLI_GRAPH_PICTURE_H

#include "cli/graph/report.h"

/* Larger graphs are not drawn: nothing could be seen. */
#define PWI_GRAPH_PICTURE_NODES 256
#define PWI_GRAPH_PICTURE_EDGES 10000

/* Writes the picture to a file. Nodes stand on a circle, or on one circle for each rack. An edge is an arrow; two
 * edges between the same nodes are one line with two heads. The title has name, gap, edges and diameter. Returns 0
 * or an errno. */
int pwi_graph_picture(const struct pwi_graph_report *report, const char *path);

#endif
