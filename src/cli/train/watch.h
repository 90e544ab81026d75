/* Looks after the servers. If one dies whose keys nobody else has, everybody would wait for it for ever. In a cluster that was
 * started for this run the command ends, and says why. In any other somebody may bring the server back, or give it up: the command
 * says whom it waits for, and how to end that. It has a thread of its own, for all others may be waiting. */
#ifndef PWI_CLI_TRAIN_WATCH_H
#define PWI_CLI_TRAIN_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pawl_session;

struct pwi_train_watch {
  struct pawl_session *session; /* of a cluster that is not this run's own; NULL: it is, and what follows is set */
  const char *address;
  const char *name; /* of the command, for what is said */
  const char *file; /* to be removed at such an end; "": none */
  uint32_t replicas;
  const char *advice;      /* what is lost, and how to go on; follows "what it held" */
  _Atomic int64_t beat_ns; /* when it was last seen that training goes on */
  _Atomic bool is_ending;
  bool is_running;
  pthread_t thread;
};

/* The fields above `beat_ns` are set. Without a thread to be had, nothing is watched. */
void pwi_train_watch_start(struct pwi_train_watch *watch);
void pwi_train_watch_stop(struct pwi_train_watch *watch); /* if it runs */

/* Training goes on. */
void pwi_train_watch_beat(struct pwi_train_watch *watch);

/* Servers that were lost so far. */
uint32_t pwi_train_watch_lost(const struct pwi_train_watch *watch);

#endif
