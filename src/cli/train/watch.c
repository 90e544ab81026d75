#include "cli/train/watch.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <pawl/session.h>

#include "api/embedded.h"
#include "cli/cli.h"
#include "cli/spool.h"
#include "host/clock.h"

#define LOOK_US 200000
#define LOOKS_BEFORE_WORDS 5
#define SILENCE_NS                                                                                                     \
  (60 * PWI_HOST_SECOND) /* with replicas: training without progress for so long has lost its last copy */

/* A loss beyond the number of replicas may still be survived if the keys were already copied, so the watch
 * waits for progress. Without replicas the data is lost. */
static bool is_hopeless(const struct pwi_train_watch *watch, uint32_t lost, uint32_t servers) {
  if (lost <= watch->replicas) return false;
  if (watch->replicas == 0 || lost == servers) return true;
  return pwi_host_now() - atomic_load(&watch->beat_ns) > SILENCE_NS;
}

/* The other threads wait for a server that will not return, so the process exits here. Its children notice
 * and end. */
static void give_up(const struct pwi_train_watch *watch) {
  if (watch->file[0]) unlink(watch->file);
  fprintf(stderr, "%spawl %s: a server has died, and no other server has a copy of its data%s\n",
          isatty(STDERR_FILENO) ? "\r\033[K" : "", watch->name, watch->advice);
  pwi_spool_remove();
  _exit(PWI_EXIT_FAILURE);
}

static void look_at_own(const struct pwi_train_watch *watch) {
  uint32_t lost, servers;
  pwi_embedded_look(watch->address, &lost, &servers);
  if (is_hopeless(watch, lost, servers)) give_up(watch);
}

/* Warns once each time keys begin to wait. Servers that are replaced or return at once are not reported. */
static void look_at_others(const struct pwi_train_watch *watch, uint32_t *looks) {
  if (pawl_session_check(watch->session) != PAWL_CLUSTER_WAITING)
    *looks = 0;
  else if ((*looks)++ == LOOKS_BEFORE_WORDS)
    fprintf(stderr, "%spawl %s: the cluster is not complete, so training waits: %s\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", watch->name, pawl_error_text());
}

static void *run(void *context) {
  struct pwi_train_watch *watch = context;
  uint32_t looks = 0;
  while (!atomic_load(&watch->is_ending)) {
    if (watch->session)
      look_at_others(watch, &looks);
    else
      look_at_own(watch);
    usleep(LOOK_US);
  }
  return NULL;
}

void pwi_train_watch_start(struct pwi_train_watch *watch) {
  sigset_t all, before;
  pwi_train_watch_beat(watch);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are handled by the training thread */
  watch->is_running = pthread_create(&watch->thread, NULL, run, watch) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pwi_train_watch_stop(struct pwi_train_watch *watch) {
  if (!watch->is_running) return;
  atomic_store(&watch->is_ending, true);
  pthread_join(watch->thread, NULL);
  watch->is_running = false;
}

void pwi_train_watch_beat(struct pwi_train_watch *watch) { atomic_store(&watch->beat_ns, pwi_host_now()); }

/* Checks by itself: a run may be over before the thread checks again. */
uint32_t pwi_train_watch_lost(const struct pwi_train_watch *watch) {
  uint32_t lost = 0, servers;
  if (watch->address && !watch->session) pwi_embedded_look(watch->address, &lost, &servers);
  return lost;
}
