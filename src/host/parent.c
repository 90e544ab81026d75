#include "host/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/children.h"

/* --- ready ---------------------------------------------------------------------------------------------- */

static pawl_status write_all(int fd, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(fd, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EPIPE ? PAWL_LINK_CLOSED : PAWL_IO;
    bytes += written;
    count -= (size_t)written;
  }
  return PAWL_OK;
}

/* Writing to a pipe without a reader sends SIGPIPE to the writing thread. The signal is blocked, and
 * consumed afterwards unless it was pending before. */
pawl_status pwi_parent_say_ready(int fd, const char *line) {
  char whole[PWI_READY_LINE_MAX + 1];
  size_t length = strlen(line);
  if (length > PWI_READY_LINE_MAX || strchr(line, '\n')) return PAWL_INVALID;
  memcpy(whole, line, length);
  whole[length] = '\n';
  sigset_t broken_pipe, before, waiting;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&waiting);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  pawl_status status = write_all(fd, whole, length + 1);
  if (status == PAWL_LINK_CLOSED && !sigismember(&waiting, SIGPIPE))
    sigtimedwait(&broken_pipe, NULL, &(struct timespec){0});
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

/* --- watching ------------------------------------------------------------------------------------------- */

enum { CLOSING, PARENT, PIPE, WATCHED };

struct pwi_parent_watch {
  /* written by the opening thread before the thread starts, by the thread from then on */
  struct pollfd watched[WATCHED];
  int closing; /* an eventfd */
  int pidfd;
  bool gone_before; /* before the watch began */
  void (*gone)(void *context);
  void *context;
  pthread_t thread;
};

/* poll reports errors and hang-ups without being asked; nothing else matters on the pipe. A pipe that this
 * process closed itself, which would be a bug, says nothing about the parent. */
static void *run(void *argument) {
  struct pwi_parent_watch *watch = argument;
  struct pollfd *watched = watch->watched;
  bool gone = watch->gone_before;
  while (!gone) {
    if (poll(watched, WATCHED, -1) < 0) continue;
    if (watched[CLOSING].revents) return NULL;
    if (watched[PIPE].revents & POLLNVAL) watched[PIPE].fd = -1;
    gone = (watched[PARENT].revents & POLLIN) || (watched[PIPE].revents & (POLLERR | POLLHUP));
  }
  watch->gone(watch->context);
  return NULL;
}

/* The pid may have been reused. If it is still our parent's pid after the pidfd was opened, the pidfd is
 * our parent's. */
static pawl_status open_parent(struct pwi_parent_watch *watch, pid_t parent, bool has_pipe) {
  watch->pidfd = (int)syscall(SYS_pidfd_open, parent, 0);
  int error = errno;
  watch->gone_before = getppid() != parent;
  if (watch->pidfd >= 0 || watch->gone_before || has_pipe) return PAWL_OK;
  return error == EMFILE || error == ENFILE ? PAWL_NODE_LIMIT : PAWL_UNSUPPORTED;
}

static pawl_status start(struct pwi_parent_watch *watch) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&watch->thread, NULL, run, watch);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error ? PAWL_NODE_LIMIT : PAWL_OK;
}

pawl_status pwi_parent_watch(pid_t parent, int fd, void (*gone)(void *context), void *context,
                             struct pwi_parent_watch **watch_out) {
  if (parent < 0 || (parent == 0 && fd < 0)) return PAWL_INVALID;
  if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return PAWL_INVALID;
  struct pwi_parent_watch *watch = pwi_alloc_zero(1, sizeof *watch);
  if (!watch) return PAWL_NO_MEMORY;
  *watch = (struct pwi_parent_watch){.pidfd = -1, .gone = gone, .context = context};
  pawl_status status = PAWL_NODE_LIMIT;
  watch->closing = eventfd(0, EFD_CLOEXEC);
  if (watch->closing < 0) goto free_watch;
  status = parent ? open_parent(watch, parent, fd >= 0) : PAWL_OK;
  if (status) goto close_event;
  watch->watched[CLOSING] = (struct pollfd){.fd = watch->closing, .events = POLLIN};
  watch->watched[PARENT] = (struct pollfd){.fd = watch->pidfd, .events = POLLIN};
  watch->watched[PIPE] = (struct pollfd){.fd = fd};
  status = start(watch);
  if (status) goto close_pidfd;
  *watch_out = watch;
  return PAWL_OK;
close_pidfd:
  if (watch->pidfd >= 0) close(watch->pidfd);
close_event:
  close(watch->closing);
free_watch:
  pwi_free(watch);
  return status;
}

void pwi_parent_watch_close(struct pwi_parent_watch *watch) {
  if (!watch) return;
  eventfd_write(watch->closing, 1);
  pthread_join(watch->thread, NULL);
  if (watch->pidfd >= 0) close(watch->pidfd);
  close(watch->closing);
  pwi_free(watch);
}
