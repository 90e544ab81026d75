/* The racks of the nodes of a graph, from the option --racks.
 *
 * The option is a number of racks, over which the nodes are spread in runs of equal length, or a file that has the
 * rack of each node: line i, counted from 0, is the name of the rack of node i. Blanks around a name and everything
 * after a # are ignored; an empty line is an error, because the lines after it would be counted wrong.
 */
#ifndef PWI_CLI_GRAPH_RACKS_H
#define PWI_CLI_GRAPH_RACKS_H

#include "graph/graph.h"

/* Gives each of `nodes` nodes a rack; racks are numbered from 0 in the order of their first nodes. If `nodes` is 0,
 * it is set to the number of lines of the file. Free `*racks_out` with pwi_free. PAWL_INVALID, PAWL_CORRUPT,
 * PAWL_NOT_FOUND, PAWL_IO, PAWL_NO_MEMORY; `why` says what is wrong. */
PAWL_MUST_USE pawl_status pwi_graph_racks(const char *value, uint32_t *nodes, struct pwi_graph_why *why,
                                          uint32_t **racks_out);

#endif
