/* Work that may take long, done by a thread of its own while ours goes on showing peers that we are alive.
 *
 * A role is single-threaded and calls server functions that others wrote. One that takes 200 ms would keep the role's thread
 * from sending heartbeats, and its peers would take it for dead. So the function runs aside: the role's thread hands it over,
 * sends heartbeats until it is done, and goes on where it was. To the role it is a call like any other, and nothing else
 * happens meanwhile; the roles need no locks, and in the simulator the work is simply called.
 *
 * Threads: used by the one that polls the net.
 */
#ifndef PWI_HOST_ASIDE_H
#define PWI_HOST_ASIDE_H

#include <stdbool.h>

#include <pthread.h>

#include <pawl/status.h>

#include "net/net.h"

struct pwi_aside {
  struct pwi_net *net;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t begun, ended;
  void (*work)(void *argument); /* NULL: none is under way */
  void *argument;
  bool is_ending;
};

/* PAWL_NO_MEMORY, PAWL_NODE_LIMIT: there is no thread. */
PAWL_MUST_USE pawl_status pwi_aside_init(struct pwi_aside *aside, struct pwi_net *net);
void pwi_aside_fini(struct pwi_aside *aside); /* while no work is under way */

/* Returns when `work` has. For struct pwi_server_config: `context` is the aside. */
void pwi_aside_run(void *context, void (*work)(void *argument), void *argument);

#endif
