/* A collective, inside. */
#ifndef PWI_API_COLLECTIVE_COLLECTIVE_H
#define PWI_API_COLLECTIVE_COLLECTIVE_H

#include <pawl/collective.h>

#include "api/group.h"
#include "peer/collective/collective.h"

struct pawl_collective {
  struct pwi_owned owned; /* must be first */
  struct pawl_group *group;
  struct pwi_collective *engine;
  char *name;
  struct pwi_event event; /* something of the engine may be over */
  bool is_closed;

  bool is_called;        /* a thread is in a call */
  bool is_closing;       /* another thread closes: the call ends, */
  struct pwi_event left; /* and this event happens */
};

#endif
