/* An actor that wraps a role for an observer: it forwards everything, and has timers for the observer.
 *
 * Such a timer is an event of the node: it waits while the node is paused or busy, and vanishes when the
 * node is killed. So actions of its callback happen as if the role itself had caused them.
 */
#ifndef PWI_SIM_SHELL_H
#define PWI_SIM_SHELL_H

#include <stdint.h>

#include "net/net.h"

/* The caller's memory, as long as the node is up. A boot function returns pwi_sim_shell_actor and this. */
struct pwi_sim_shell {
  const struct pwi_actor *inner; /* the role's actor and its `self`; the role's cookies are below 253 << 56 */
  void *self;
  void (*timer)(void *context, uint64_t cookie); /* may be NULL if no timer is set */
  void *context;
  /* a message arrives, and the role has not seen it yet. May be NULL */
  void (*heard)(void *context, const struct pwi_message *message);
};

extern const struct pwi_actor pwi_sim_shell_actor;

/* Calls `timer` after `delay`, with a cookie below 2^56. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_sim_shell_timer(struct pwi_net *net, int64_t delay, uint64_t cookie);

#endif
