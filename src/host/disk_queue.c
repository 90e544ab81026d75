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

#define BEHIND 10 /* nice value */

struct disk_queue {
  struct pwi_disk_queue disk_queue; /* must be first */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  bool has_thread;
  char *places[PWI_DISK_QUEUE_PLACES_MAX];
  size_t place_count;
  bool is_closed; /* checkpoints may not be written at all */

  /* Guarded by the mutex. */
  struct pwi_disk_job *first, **end;
  bool is_busy, is_ending;
};

/* Lowers the thread's priority, so that requests come before files. On Linux every thread has a priority
 * of its own. */
static void step_back(void) {
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid()) + BEHIND);
}

static void *run(void *argument) {
  struct disk_queue *disk_queue = argument;
  step_back();
  pthread_mutex_lock(&disk_queue->mutex);
  for (;;) {
    while (!disk_queue->first && !disk_queue->is_ending) pthread_cond_wait(&disk_queue->changed, &disk_queue->mutex);
    struct pwi_disk_job *disk_job = disk_queue->first;
    if (!disk_job) break;
    disk_queue->first = disk_job->next;
    if (!disk_queue->first) disk_queue->end = &disk_queue->first;
    disk_queue->is_busy = true;
    pthread_mutex_unlock(&disk_queue->mutex);
    pwi_disk_job_do(disk_job);
    pthread_mutex_lock(&disk_queue->mutex);
    disk_queue->is_busy = false;
    if (!disk_queue->first) pthread_cond_broadcast(&disk_queue->changed);
  }
  pthread_mutex_unlock(&disk_queue->mutex);
  return NULL;
}

static void start(struct disk_queue *disk_queue) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  disk_queue->has_thread = pthread_create(&disk_queue->thread, NULL, run, disk_queue) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* If no thread can be created, the job runs in the calling thread. */
static void send_disk_job(struct pwi_disk_queue *self, struct pwi_disk_job *disk_job) {
  struct disk_queue *disk_queue = (struct disk_queue *)self;
  if (!disk_queue->has_thread) start(disk_queue);
  if (!disk_queue->has_thread) {
    pwi_disk_job_do(disk_job);
    return;
  }
  pthread_mutex_lock(&disk_queue->mutex);
  disk_job->next = NULL;
  *disk_queue->end = disk_job;
  disk_queue->end = &disk_job->next;
  pthread_cond_broadcast(&disk_queue->changed);
  pthread_mutex_unlock(&disk_queue->mutex);
}

static void settle(struct pwi_disk_queue *self) {
  struct disk_queue *disk_queue = (struct disk_queue *)self;
  pthread_mutex_lock(&disk_queue->mutex);
  while (disk_queue->has_thread && (disk_queue->first || disk_queue->is_busy))
    pthread_cond_wait(&disk_queue->changed, &disk_queue->mutex);
  pthread_mutex_unlock(&disk_queue->mutex);
}

/* --- directories ---------------------------------------------------------------------------------------- */

/* Whether a path without symbolic links is the place or below it. */
static bool is_below(const char *path, const char *place) {
  size_t length = strlen(place);
  if (length == 1) return true; /* "/" */
  return strncmp(path, place, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* Places may contain symbolic links, because the operator named them. A place that does not exist yet is
 * compared as written. */
static bool may_hold(const struct disk_queue *disk_queue, const char *path) {
  bool may = disk_queue->place_count == 0 && !disk_queue->is_closed;
  for (size_t i = 0; i < disk_queue->place_count && !may; i++) {
    char *real = realpath(disk_queue->places[i], NULL);
    may = is_below(path, real ? real : disk_queue->places[i]);
    free(real); /* allocated by realpath */
  }
  return may;
}

/* The real path of an open directory, after symbolic links and "..". It cannot be changed after the check. */
static pawl_status path_of(int directory, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return pwi_files_posix_status(errno);
  path[length] = '\0';
  return PAWL_OK;
}

static pawl_status check(const struct disk_queue *disk_queue, int directory) {
  char path[PATH_MAX];
  if (disk_queue->place_count == 0) return disk_queue->is_closed ? PAWL_FORBIDDEN : PAWL_OK;
  pawl_status status = path_of(directory, path);
  if (status) return status;
  return may_hold(disk_queue, path) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* The parent directory, and the last component of the path. False: the path has none that could be
 * created. */
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

/* Creates the directory if it is allowed there, and opens it. */
static pawl_status make_below(const struct disk_queue *disk_queue, int above, const char *name, int *directory_out) {
  char path[2 * PATH_MAX], there[PATH_MAX];
  pawl_status status = path_of(above, there);
  if (status) return status;
  snprintf(path, sizeof path, "%s/%s", strcmp(there, "/") == 0 ? "" : there, name);
  if (!may_hold(disk_queue, path)) return PAWL_FORBIDDEN;
  if (mkdirat(above, name, 0700) != 0 && errno != EEXIST) return pwi_files_posix_status(errno);
  *directory_out = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return *directory_out < 0 ? pwi_files_posix_status(errno) : PAWL_OK;
}

/* Creates the last component of a path if it is missing. */
static pawl_status make_directory(const struct disk_queue *disk_queue, const char *directory, int *directory_out) {
  char above[PATH_MAX], name[NAME_MAX + 1];
  if (!split(directory, above, name)) return PAWL_NOT_FOUND;
  int descriptor = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return pwi_files_posix_status(errno);
  pawl_status status = make_below(disk_queue, descriptor, name, directory_out);
  close(descriptor);
  return status;
}

static pawl_status open_directory(struct pwi_disk_queue *self, const char *directory, bool make,
                                  struct pwi_files **files_out) {
  const struct disk_queue *disk_queue = (struct disk_queue *)self;
  int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  pawl_status status = descriptor < 0 ? pwi_files_posix_status(errno) : PAWL_OK;
  if (status == PAWL_NOT_FOUND && make) status = make_directory(disk_queue, directory, &descriptor);
  if (status) return status;
  status = check(disk_queue, descriptor);
  if (!status) return pwi_files_posix_take_guarded(descriptor, files_out);
  close(descriptor);
  return status;
}

static void close_directory(struct pwi_disk_queue *disk_queue, struct pwi_files *files) {
  (void)disk_queue;
  pwi_files_posix_close(files);
}

static int64_t wall_s(struct pwi_disk_queue *disk_queue) {
  (void)disk_queue;
  return (int64_t)time(NULL);
}

static const struct pwi_disk_queue_ops ops = {
    .open = open_directory, .close = close_directory, .send = send_disk_job, .settle = settle, .wall_s = wall_s};

static void free_disk_queue(struct disk_queue *disk_queue) {
  for (size_t i = 0; i < disk_queue->place_count; i++) pwi_free(disk_queue->places[i]);
  pwi_free(disk_queue);
}

pawl_status pwi_host_disk_queue_open(const struct pwi_disk_queue_places *places,
                                     struct pwi_disk_queue **disk_queue_out) {
  struct disk_queue *disk_queue = pwi_alloc_zero(1, sizeof *disk_queue);
  if (!disk_queue) return PAWL_NO_MEMORY;
  disk_queue->is_closed = places->none;
  for (size_t i = 0; i < places->count; i++) {
    if (!(disk_queue->places[i] = pwi_copy_string(places->items[i]))) {
      free_disk_queue(disk_queue);
      return PAWL_NO_MEMORY;
    }
    disk_queue->place_count++;
  }
  disk_queue->disk_queue.ops = &ops;
  disk_queue->end = &disk_queue->first;
  pthread_mutex_init(&disk_queue->mutex, NULL);
  pthread_cond_init(&disk_queue->changed, NULL);
  *disk_queue_out = &disk_queue->disk_queue;
  return PAWL_OK;
}

void pwi_host_disk_queue_close(struct pwi_disk_queue *self) {
  struct disk_queue *disk_queue = (struct disk_queue *)self;
  if (!disk_queue) return;
  if (disk_queue->has_thread) {
    pthread_mutex_lock(&disk_queue->mutex);
    disk_queue->is_ending = true;
    pthread_cond_broadcast(&disk_queue->changed);
    pthread_mutex_unlock(&disk_queue->mutex);
    pthread_join(disk_queue->thread, NULL);
  }
  pthread_cond_destroy(&disk_queue->changed);
  pthread_mutex_destroy(&disk_queue->mutex);
  free_disk_queue(disk_queue);
}
