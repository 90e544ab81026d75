/* The figures of a graph, as `pawl graph` prints them. */
#ifndef PWI_CLI_GRAPH_REPORT_H
#define PWI_CLI_GRAPH_REPORT_H

#include "cli/cli.h"
#include "graph/gap.h"
#include "graph/reach.h"
#include "graph/topology.h"

struct pwi_graph_report {
  const char *name;              /* of the topology or the file */
  const struct pwi_graph *graph; /* borrowed */
  const uint32_t *racks;         /* racks[i] is the rack of node i; NULL: unknown. Borrowed */
  bool has_seed;                 /* the graph was drawn with `seed` */
  uint64_t seed;
  enum pwi_weighting weighting;
  uint64_t bytes; /* bytes that a node sends to each out-neighbour in a round; 0: not given */

  /* Computed by pwi_graph_report_fill. */
  struct pwi_graph_degrees degrees;
  struct pwi_reach reach;
  struct pwi_weights_fault worst; /* how far the weights are from doubly stochastic */
  struct pwi_gap gap;
  struct pwi_diameter diameter; /* undefined if the graph is not strongly connected */
  uint32_t rack_count;
  uint64_t links;   /* edges between racks */
  bool is_balanced; /* every node has as many out-neighbours as in-neighbours */
};

/* Computes the figures. PAWL_INVALID: the graph does not have these weights, or the bytes of a round do not fit in
 * 64 bits; PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_graph_report_fill(struct pwi_graph_report *report, struct pwi_graph_why *why);

/* Print the figures as lines, or as a JSON object. */
void pwi_graph_report_print(const struct pwi_graph_report *report);
int pwi_graph_report_print_json(const struct pwi_graph_report *report, const struct pwi_command *command);

/* Writes the diameter as text: a number, or "at least" and a number, or "infinite". */
void pwi_graph_report_diameter(const struct pwi_graph_report *report, char *text, size_t size);

/* Writes the spectral gap as text, with four digits. */
void pwi_graph_report_gap(const struct pwi_graph_report *report, char *text, size_t size);

#endif
