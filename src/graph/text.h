/* Graphs as text files.
 *
 *   # who sends to whom
 *   nodes 4
 *   0: 1 2
 *   1: 2
 *   2: 3
 *   3: 0
 *
 * The first line is `nodes` and the number of nodes, N. Every further line is a node, a colon, and the nodes that
 * it sends to, separated by blanks. Nodes are numbered from 0 to N-1. A node without a line sends to none, and a
 * node may have several lines. Empty lines are skipped, and everything after a # is ignored. A line may end with a
 * carriage return.
 *
 * An error is explained as `file:line: what is wrong`.
 */
#ifndef PWI_GRAPH_TEXT_H
#define PWI_GRAPH_TEXT_H

#include "graph/graph.h"

/* Bytes of a file that pwi_graph_read accepts. */
#define PWI_GRAPH_TEXT_MAX ((size_t)1 << 30)

/* Reads a graph from text that need not end with a zero. `name` is the name of the file in errors.
 *
 * PAWL_CORRUPT     the text breaks a rule, names a node that does not exist, has a loop, or an edge twice
 * PAWL_TOO_LARGE   more nodes or edges than a graph may have
 * PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_graph_parse(const char *name, const char *text, size_t size, struct pwi_graph_why *why,
                                          struct pwi_graph **graph_out);

/* Reads a graph from a file. Errors as pwi_graph_parse, PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO, and PAWL_TOO_LARGE
 * if the file is larger than PWI_GRAPH_TEXT_MAX. */
PAWL_MUST_USE pawl_status pwi_graph_read(const char *path, struct pwi_graph_why *why, struct pwi_graph **graph_out);

/* The text of a graph, as pwi_graph_parse reads it, with a zero at its end. `*size_out` is its length. Free it with
 * pwi_free. NULL if there is no memory. */
char *pwi_graph_format(const struct pwi_graph *graph, size_t *size_out);

#endif
