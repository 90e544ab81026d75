/* Watches the servers. If a server dies that has the only copy of some keys, all calls on these keys wait. In
 * a temporary cluster the command then prints an error and ends. In any other cluster the server may return
 * or be given up, so the command names the servers and how to end the wait. The watch has its own thread,
 * because all others may be waiting. */
#ifndef PWI_CLI_TRAIN_WATCH_H
#define PWI_CLI_TRAIN_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pawl_session;

struct pwi_train_watch {
  struct pawl_session
      *session; /* session with a permanent cluster; NULL: the cluster is temporary, and the fields below are set */
  const char *address;
  const char *name; /* name of the command, for messages */
  const char *file; /* file to remove before the process exits; "": none */
  uint32_t replicas;
  const char *advice;      /* advice appended to the error */
  _Atomic int64_t beat_ns; /* time of the last progress */
  _Atomic bool is_ending;
  bool is_running;
  pthread_t thread;
};

/* The fields above `beat_ns` must be set. If no thread can be started, nothing is watched. */
void pwi_train_watch_start(struct pwi_train_watch *watch);
void pwi_train_watch_stop(struct pwi_train_watch *watch); /* if it runs */

/* Records progress of training. */
void pwi_train_watch_beat(struct pwi_train_watch *watch);

/* The number of servers lost so far. */
uint32_t pwi_train_watch_lost(const struct pwi_train_watch *watch);

#endif
