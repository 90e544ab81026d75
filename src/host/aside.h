/* Runs long work in a second thread while the role's thread keeps sending heartbeats.
 *
 * A role is single-threaded and calls server functions that users wrote. A function that takes 200 ms
 * would keep the role's thread from sending heartbeats, and its peers would take it for dead. So the
 * function runs aside: the role's thread hands it over, sends heartbeats until it is done, and continues.
 * To the role it is an ordinary call, and nothing else happens in the meantime. So roles need no locks,
 * and the simulator calls the work directly.
 *
 * Threads: used by the thread that polls the net.
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
  void (*work)(void *argument); /* NULL: no work is under way */
  void *argument;
  bool is_ending;
};

/* PAWL_NO_MEMORY, PAWL_NODE_LIMIT: the thread cannot be created. */
PAWL_MUST_USE pawl_status pwi_aside_init(struct pwi_aside *aside, struct pwi_net *net);
void pwi_aside_fini(struct pwi_aside *aside); /* no work may be under way */

/* Runs `work` and returns when it has returned. For struct pwi_server_config; `context` is the aside. */
void pwi_aside_run(void *context, void (*work)(void *argument), void *argument);

#endif
