/* A reduce, inside. */
#ifndef PWI_API_REDUCE_REDUCE_H
#define PWI_API_REDUCE_REDUCE_H

#include <pawl/reduce.h>

#include "api/group.h"
#include "graph/graph.h"
#include "peer/reduce/reduce.h"

struct pawl_reduce {
  struct pwi_owned owned; /* must be first */
  struct pawl_group *group;
  struct pwi_reduce *engine;
  char *name;
  struct pwi_graph *graph;     /* of a file; NULL: none */
  struct pawl_tensor *tensors; /* the reduced ones, then the carried ones */
  size_t count, all;
  char *checkpoint;
  uint64_t checkpoint_period;
  struct pwi_event event; /* the want of the engine has changed, or it is closed */
  bool is_closed;
  /* looking at boards of neighbours: until when; for how long the next time; since when other threads may
   * run */
  int64_t look_until, look_ns, yield_from;
};

/* Reads the name of a graph, makes or reads it for `founders` members, and checks it. `*file_out` is the
 * graph of a file, or NULL. Sets pawl_error_text. */
PAWL_MUST_USE pawl_status pwi_reduce_graph_read(const char *name, uint64_t seed, uint32_t degree, uint32_t founders,
                                                struct pwi_reduce_graph *graph_out, struct pwi_graph **file_out);

#endif
