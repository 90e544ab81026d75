/* Which graph a group of peers uses unless its user names one.
 *
 * Up to PWI_CHOOSE_ROOT_MAX nodes it is the root graph, in which a node knows its neighbours from `nodes` and its own
 * number. Its gap falls with the number of nodes, about as 4 / N. Around 400 nodes it falls below 0.01, where ASAP
 * found sharing to be slow (section 6.1): for some numbers from 349 on, for all above 421. So larger groups use a
 * random regular graph of the same degree, whose gap hardly depends on the number of nodes: it is above 0.057.
 * Several seeds are tried, and the best is taken. docs/graphs.md has the figures.
 *
 * The gaps of two seeds may be so close that rounding, which differs between machines, decides. So one node of a
 * group chooses, and tells the others the spec; each of them then makes the same graph of it.
 */
#ifndef PWI_GRAPH_CHOOSE_H
#define PWI_GRAPH_CHOOSE_H

#include "graph/topology.h"

#define PWI_CHOOSE_ROOT_MAX 400
#define PWI_CHOOSE_TRIES 64 /* seeds that are tried for up to 1,500 nodes */

/* Finds the default for `nodes` nodes. Seeds from `seed` on are tried, fewer in larger graphs, whose gaps differ
 * less from seed to seed and take longer to compute. PAWL_INVALID, PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_choose_default(uint32_t nodes, uint64_t seed, struct pwi_graph_why *why,
                                             struct pwi_graph_spec *spec_out);

/* Sets spec->seed to the one of `tries` seeds, counted from spec->seed on, whose random graph has the largest
 * gap. */
PAWL_MUST_USE pawl_status pwi_choose_seed(struct pwi_graph_spec *spec, uint32_t tries, struct pwi_graph_why *why);

#endif
