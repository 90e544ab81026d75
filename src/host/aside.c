/* One thread that waits for work, and one that waits for its end. */
#include "host/aside.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define BEAT_NS 10000000 /* how often a heartbeat may be due */

static void *run(void *argument) {
  struct pwi_aside *aside = argument;
  pthread_mutex_lock(&aside->mutex);
  for (;;) {
    while (!aside->work && !aside->is_ending) pthread_cond_wait(&aside->begun, &aside->mutex);
    if (!aside->work) break;
    void (*work)(void *) = aside->work;
    pthread_mutex_unlock(&aside->mutex);
    work(aside->argument);
    pthread_mutex_lock(&aside->mutex);
    aside->work = NULL;
    pthread_cond_signal(&aside->ended);
  }
  pthread_mutex_unlock(&aside->mutex);
  return NULL;
}

pawl_status pwi_aside_init(struct pwi_aside *aside, struct pwi_net *net) {
  pthread_condattr_t monotonic;
  sigset_t all, before;
  *aside = (struct pwi_aside){.net = net};
  pthread_mutex_init(&aside->mutex, NULL);
  pthread_cond_init(&aside->begun, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&aside->ended, &monotonic);
  pthread_condattr_destroy(&monotonic);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for other threads */
  int failed = pthread_create(&aside->thread, NULL, run, aside);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed == 0) return PAWL_OK;
  pthread_cond_destroy(&aside->ended);
  pthread_cond_destroy(&aside->begun);
  pthread_mutex_destroy(&aside->mutex);
  return failed == ENOMEM ? PAWL_NO_MEMORY : PAWL_NODE_LIMIT;
}

void pwi_aside_fini(struct pwi_aside *aside) {
  pthread_mutex_lock(&aside->mutex);
  aside->is_ending = true;
  pthread_cond_signal(&aside->begun);
  pthread_mutex_unlock(&aside->mutex);
  pthread_join(aside->thread, NULL);
  pthread_cond_destroy(&aside->ended);
  pthread_cond_destroy(&aside->begun);
  pthread_mutex_destroy(&aside->mutex);
}

static struct timespec soon(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_nsec += BEAT_NS;
  if (at.tv_nsec >= 1000000000) {
    at.tv_nsec -= 1000000000;
    at.tv_sec++;
  }
  return at;
}

void pwi_aside_run(void *context, void (*work)(void *argument), void *argument) {
  struct pwi_aside *aside = context;
  pthread_mutex_lock(&aside->mutex);
  aside->argument = argument;
  aside->work = work;
  pthread_cond_signal(&aside->begun);
  while (aside->work) {
    struct timespec at = soon();
    if (pthread_cond_timedwait(&aside->ended, &aside->mutex, &at) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&aside->mutex);
    pwi_net_beat(aside->net);
    pthread_mutex_lock(&aside->mutex);
  }
  pthread_mutex_unlock(&aside->mutex);
}
