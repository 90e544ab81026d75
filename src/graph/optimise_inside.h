/* What the files of the search for graphs with short paths share. */
#ifndef PWI_GRAPH_OPTIMISE_INSIDE_H
#define PWI_GRAPH_OPTIMISE_INSIDE_H

#include "graph/optimise.h"

/* Progress is reported once after so many steps of the search, or branches of branch and bound. */
#define PWI_OPTIMISE_PULSE 256
#define PWI_OPTIMISE_BRANCH_PULSE 65536

/* Tells the watcher. Returns whether the search goes on; if not, `optimised` remembers that it was stopped. */
bool pwi_optimise_tell(const struct pwi_optimise_options *options, struct pwi_optimised *optimised, bool is_exact);

/* Improves optimised->graph and optimised->sum by exchanging edges. PAWL_NO_MEMORY: the graph is as good as before or
 * better. */
PAWL_MUST_USE pawl_status pwi_optimise_search(const struct pwi_optimise_options *options,
                                              struct pwi_optimised *optimised);

/* Replaces optimised->graph by one of smallest sum unless the limit of branches is reached first; sets is_proven. */
PAWL_MUST_USE pawl_status pwi_optimise_exact(const struct pwi_optimise_options *options,
                                             struct pwi_optimised *optimised);

#endif
