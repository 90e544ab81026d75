/* An actor around a role, for those who watch it from outside: it hands everything on, and has timers of its own.
 *
 * A timer of the outside is an event of the node: it waits while the node is paused or busy, and is gone when the node is
 * killed. So what happens in it happens as the role's own doing would.
 */
#ifndef PWI_SIM_SHELL_H
#define PWI_SIM_SHELL_H

#include <stdint.h>

#include "net/net.h"

/* The caller's memory, as long as the node is up. A boot function answers with pwi_sim_shell_actor and this. */
struct pwi_sim_shell {
  const struct pwi_actor *inner; /* the role's, and its `self`; its cookies are below 253 << 56 */
  void *self;
  void (*timer)(void *context, uint64_t cookie); /* may be NULL if none is set */
  void *context;
};

extern const struct pwi_actor pwi_sim_shell_actor;

/* Have `timer` called after `delay`, with a cookie below 2^56. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_sim_shell_timer(struct pwi_net *net, int64_t delay, uint64_t cookie);

#endif
