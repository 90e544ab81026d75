#include "host/disk_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
  char *places[PWI_DEPOT_PLACES_MAX];
  size_t place_count;
  bool is_closed; /* nothing may go anywhere */

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

/* --- directories ---------------------------------------------------------------------------------------------------- */

/* Whether a path without links is a place, or below it. */
static bool is_below(const char *path, const char *place) {
  size_t length = strlen(place);
  if (length == 1) return true; /* "/" */
  return strncmp(path, place, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* Places may be reached by links: it is the operator who named them. One that is not there yet is taken as it is written. */
static bool may_hold(const struct depot *depot, const char *path) {
  bool may = depot->place_count == 0 && !depot->is_closed;
  for (size_t i = 0; i < depot->place_count && !may; i++) {
    char *real = realpath(depot->places[i], NULL);
    may = is_below(path, real ? real : depot->places[i]);
    free(real);
  }
  return may;
}

/* Where an open directory is, whatever links and ".." led to it: nobody can change that after the look. */
static pawl_status path_of(int directory, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return pwi_files_posix_status(errno);
  path[length] = '\0';
  return PAWL_OK;
}

static pawl_status check(const struct depot *depot, int directory) {
  char path[PATH_MAX];
  if (depot->place_count == 0) return depot->is_closed ? PAWL_FORBIDDEN : PAWL_OK;
  pawl_status status = path_of(directory, path);
  if (status) return status;
  return may_hold(depot, path) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* The directory above, and the last name of the path. False: there is none that could be made. */
static bool split(const char *directory, char above[PATH_MAX], char name[NAME_MAX + 1]) {
  size_t length = strlen(directory);
  while (length > 1 && directory[length - 1] == '/') length--;
  size_t start = length;
  while (start > 0 && directory[start - 1] != '/') start--;
  if (start == 0 || start >= PATH_MAX || length == start || length - start > NAME_MAX) return false;
  memcpy(above, directory, start);
  above[start] = '\0';
  memcpy(name, directory + start, length - start);
  name[length - start] = '\0';
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Makes it where it may be, and opens what it has made. */
static pawl_status make_below(const struct depot *depot, int above, const char *name, int *directory_out) {
  char path[2 * PATH_MAX], there[PATH_MAX];
  pawl_status status = path_of(above, there);
  if (status) return status;
  snprintf(path, sizeof path, "%s/%s", strcmp(there, "/") == 0 ? "" : there, name);
  if (!may_hold(depot, path)) return PAWL_FORBIDDEN;
  if (mkdirat(above, name, 0700) != 0 && errno != EEXIST) return pwi_files_posix_status(errno);
  *directory_out = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return *directory_out < 0 ? pwi_files_posix_status(errno) : PAWL_OK;
}

/* One level of a path is made if it is missing. */
static pawl_status make_directory(const struct depot *depot, const char *directory, int *directory_out) {
  char above[PATH_MAX], name[NAME_MAX + 1];
  if (!split(directory, above, name)) return PAWL_NOT_FOUND;
  int descriptor = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return pwi_files_posix_status(errno);
  pawl_status status = make_below(depot, descriptor, name, directory_out);
  close(descriptor);
  return status;
}

static pawl_status open_directory(struct pwi_depot *self, const char *directory, bool make,
                                  struct pwi_files **files_out) {
  const struct depot *depot = (struct depot *)self;
  int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  pawl_status status = descriptor < 0 ? pwi_files_posix_status(errno) : PAWL_OK;
  if (status == PAWL_NOT_FOUND && make) status = make_directory(depot, directory, &descriptor);
  if (status) return status;
  status = check(depot, descriptor);
  if (!status) return pwi_files_posix_take_guarded(descriptor, files_out);
  close(descriptor);
  return status;
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

static void free_depot(struct depot *depot) {
  for (size_t i = 0; i < depot->place_count; i++) pwi_free(depot->places[i]);
  pwi_free(depot);
}

pawl_status pwi_host_depot_open(const struct pwi_depot_places *places, struct pwi_depot **depot_out) {
  struct depot *depot = pwi_alloc_zero(1, sizeof *depot);
  if (!depot) return PAWL_NO_MEMORY;
  depot->is_closed = places->none;
  for (size_t i = 0; i < places->count; i++) {
    if (!(depot->places[i] = pwi_copy_string(places->items[i]))) {
      free_depot(depot);
      return PAWL_NO_MEMORY;
    }
    depot->place_count++;
  }
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
  free_depot(depot);
}
