/* Factors, inside. */
#ifndef PWI_API_FACTOR_FACTOR_H
#define PWI_API_FACTOR_FACTOR_H

#include <pawl/factor.h>

#include "api/group.h"
#include "peer/factor/factor.h"

struct pawl_factor {
  struct pwi_owned owned; /* must be first */
  struct pawl_group *group;
  struct pwi_factor *engine;
  struct pwi_graph *graph; /* of a file; NULL: none */
  char *name;
  void *matrix;
  struct pawl_range rows; /* of it */
  struct factor_batch batch;
  bool is_committing;     /* a commit has timed out: the batch is borrowed */
  struct pwi_event event; /* the want of the engine has changed, or it is closed */
  bool is_closed;
};

#endif
