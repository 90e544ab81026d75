#include "host/depot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define BEHIND 10 /* of nice */

struct depot {
  struct pwi_depot depot; /* first */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  bool has_thread;

  /* Under the mutex. */
  struct pwi_errand *first, **end;
  bool is_busy, is_ending;
};

/* Requests come first: files have what processors have left. On Linux every thread has a priority of its own. */
static void step_back(void) {
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid()) + BEHIND);
}

static void *run(void *argument) {
  struct depot *depot = argument;
  step_back();
  pthread_mutex_lock(&depot->mutex);
  for (;;) {
    while (!depot->first && !depot->is_ending) pthread_cond_wait(&depot->changed, &depot->mutex);
    struct pwi_errand *errand = depot->first;
    if (!errand) break;
    depot->first = errand->next;
    if (!depot->first) depot->end = &depot->first;
    depot->is_busy = true;
    pthread_mutex_unlock(&depot->mutex);
    pwi_errand_do(errand);
    pthread_mutex_lock(&depot->mutex);
    depot->is_busy = false;
    if (!depot->first) pthread_cond_broadcast(&depot->changed);
  }
  pthread_mutex_unlock(&depot->mutex);
  return NULL;
}

static void start(struct depot *depot) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  depot->has_thread = pthread_create(&depot->thread, NULL, run, depot) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Where no thread can be had it is done here and now. */
static void send_errand(struct pwi_depot *self, struct pwi_errand *errand) {
  struct depot *depot = (struct depot *)self;
  if (!depot->has_thread) start(depot);
  if (!depot->has_thread) {
    pwi_errand_do(errand);
    return;
  }
  pthread_mutex_lock(&depot->mutex);
  errand->next = NULL;
  *depot->end = errand;
  depot->end = &errand->next;
  pthread_cond_broadcast(&depot->changed);
  pthread_mutex_unlock(&depot->mutex);
}

static void settle(struct pwi_depot *self) {
  struct depot *depot = (struct depot *)self;
  pthread_mutex_lock(&depot->mutex);
  while (depot->has_thread && (depot->first || depot->is_busy)) pthread_cond_wait(&depot->changed, &depot->mutex);
  pthread_mutex_unlock(&depot->mutex);
}

/* One level of a path is made if it is missing. */
static pawl_status open_directory(struct pwi_depot *depot, const char *directory, struct pwi_files **files_out) {
  (void)depot;
  pawl_status status = pwi_files_posix_open(directory, files_out);
  if (status != PAWL_NOT_FOUND) return status;
  if (mkdir(directory, 0777) != 0 && errno != EEXIST) return status;
  return pwi_files_posix_open(directory, files_out);
}

static void close_directory(struct pwi_depot *depot, struct pwi_files *files) {
  (void)depot;
  pwi_files_posix_close(files);
}

static int64_t wall_s(struct pwi_depot *depot) {
  (void)depot;
  return (int64_t)time(NULL);
}

static const struct pwi_depot_ops ops = {
    .open = open_directory, .close = close_directory, .send = send_errand, .settle = settle, .wall_s = wall_s};

pawl_status pwi_host_depot_open(struct pwi_depot **depot_out) {
  struct depot *depot = pwi_alloc_zero(1, sizeof *depot);
  if (!depot) return PAWL_NO_MEMORY;
  depot->depot.ops = &ops;
  depot->end = &depot->first;
  pthread_mutex_init(&depot->mutex, NULL);
  pthread_cond_init(&depot->changed, NULL);
  *depot_out = &depot->depot;
  return PAWL_OK;
}

void pwi_host_depot_close(struct pwi_depot *self) {
  struct depot *depot = (struct depot *)self;
  if (!depot) return;
  if (depot->has_thread) {
    pthread_mutex_lock(&depot->mutex);
    depot->is_ending = true;
    pthread_cond_broadcast(&depot->changed);
    pthread_mutex_unlock(&depot->mutex);
    pthread_join(depot->thread, NULL);
  }
  pthread_cond_destroy(&depot->changed);
  pthread_mutex_destroy(&depot->mutex);
  pwi_free(depot);
}
