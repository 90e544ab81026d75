/* posix_spawn is safe while other threads run, and does not copy the page tables of a process with
 * gigabytes of memory. The pidfd is opened right after it. In between, the child could have ended, been
 * reaped by another part of the program, and its pid reused; so the kernel is asked whether the pidfd is
 * that of our child. */
#include "host/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/clock.h"

#define BY_PIDFD ((idtype_t)3)                /* P_PIDFD, which older C libraries do not define */
#define LOOK_AGAIN_NS (PWI_HOST_SECOND / 200) /* polling interval if there is no pidfd */

struct pwi_child {
  pid_t pid;
  int pidfd;         /* -1: none */
  int ready;         /* the reading end of the ready pipe */
  int output;        /* for reading the child's output, or -1 */
  off_t output_from; /* size of the file before the child started */
  struct pwi_child_end end;
  bool ready_closed;
  bool line_complete; /* complete, or invalid */
  pawl_status line_status;
  size_t line_length;
  char line[PWI_READY_LINE_MAX + 1]; /* a NUL replaces the line break */
};

static pawl_status status_of(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return PAWL_NOT_FOUND;
  case EACCES:
  case EPERM:
    return PAWL_FORBIDDEN;
  case ENOMEM:
    return PAWL_NO_MEMORY;
  case EMFILE:
  case ENFILE:
  case EAGAIN:
    return PAWL_NODE_LIMIT;
  default:
    return PAWL_IO;
  }
}

static void close_if_open(int descriptor) {
  if (descriptor >= 0) close(descriptor);
}

/* Moves a descriptor of ours above the numbers with a meaning in the child: if our standard error is
 * closed, another descriptor may have its number, and must not be passed on as standard error. -1 on
 * failure; then the descriptor is closed. */
static int lift(int descriptor) {
  if (descriptor < 0 || descriptor > PWI_CHILD_READY_FD) return descriptor;
  int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, PWI_CHILD_READY_FD + 1);
  int error = errno;
  close(descriptor);
  errno = error;
  return lifted;
}

/* --- starting ------------------------------------------------------------------------------------------- */

/* Whether two strings NAME=value have the same name. */
static bool same_name(const char *a, const char *b) {
  size_t length = strcspn(a, "=");
  return strncmp(a, b, length) == 0 && (b[length] == '=' || b[length] == '\0');
}

static bool is_replaced(const char *variable, const char *const *additions) {
  for (; *additions; additions++)
    if (same_name(variable, *additions)) return true;
  return false;
}

static size_t length_of(const char *const *list) {
  size_t length = 0;
  while (list[length]) length++;
  return length;
}

/* An array of borrowed strings; the caller frees the array. */
static char **make_environment(const char *const *additions) {
  static const char *const none[] = {NULL};
  if (!additions) additions = none;
  const char *const *ours = environ ? (const char *const *)environ : none;
  size_t count = 0, most = length_of(ours) + length_of(additions) + 1;
  const char **list = pwi_alloc_zero(most, sizeof *list);
  if (!list) return NULL;
  for (; *ours; ours++)
    if (!is_replaced(*ours, additions)) list[count++] = *ours;
  for (; *additions; additions++) list[count++] = *additions;
  return (char **)list;
}

/* Actions in the child, in this order. Only the caller's `output` can be one of the numbers that are
 * written to, so it is read first. */
static int plan_files(posix_spawn_file_actions_t *files, int output, int ready) {
  int error = output >= 0 ? posix_spawn_file_actions_adddup2(files, output, STDERR_FILENO) : 0;
  if (output < 0 && fcntl(STDERR_FILENO, F_GETFD) < 0)
    error = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
  if (!error) error = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(files, ready, PWI_CHILD_READY_FD);
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
  /* Our descriptors are closed by exec; those of the rest of the program need not be. */
  if (!error) error = posix_spawn_file_actions_addclosefrom_np(files, PWI_CHILD_READY_FD + 1);
#endif
#endif
  return error;
}

static int plan_signals(posix_spawnattr_t *attributes, bool own_group) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0);
  int error = posix_spawnattr_setflags(attributes, (short)flags);
  if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
  if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
  return error;
}

static pawl_status spawn(const struct pwi_child_config *config, int output, int ready, pid_t *pid_out) {
  char **environment = make_environment(config->environment);
  if (!environment) return PAWL_NO_MEMORY;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  int error = posix_spawn_file_actions_init(&files);
  if (error) goto free_environment;
  error = posix_spawnattr_init(&attributes);
  if (error) goto destroy_files;
  error = plan_files(&files, output, ready);
  if (!error) error = plan_signals(&attributes, config->own_group);
  if (!error) error = posix_spawn(pid_out, config->path, &files, &attributes, config->argv, environment);
  posix_spawnattr_destroy(&attributes);
destroy_files:
  posix_spawn_file_actions_destroy(&files);
free_environment:
  pwi_free(environment);
  return error ? status_of(error) : PAWL_OK;
}

static pawl_status make_pipe(int *read_out, int *write_out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return status_of(errno);
  int from = lift(ends[0]), to = lift(ends[1]);
  if (from < 0 || to < 0 || fcntl(from, F_SETFL, O_NONBLOCK) < 0) {
    close_if_open(from);
    close_if_open(to);
    return PAWL_NODE_LIMIT;
  }
  *read_out = from;
  *write_out = to;
  return PAWL_OK;
}

/* Opens a descriptor for reading the output: the caller's may be write-only, and shares its position with
 * the child. If that fails, the output cannot be read. */
static void prepare_reading(struct pwi_child *child, int output) {
  struct stat about;
  if (output < 0 || fstat(output, &about) != 0 || !S_ISREG(about.st_mode)) return;
  char path[40];
  snprintf(path, sizeof path, "/proc/self/fd/%d", output);
  child->output = lift(open(path, O_RDONLY | O_CLOEXEC));
  child->output_from = about.st_size;
}

static id_t number_of(const struct pwi_child *child) { return (id_t)(child->pidfd >= 0 ? child->pidfd : child->pid); }

static int wait_now(const struct pwi_child *child, int options, siginfo_t *info) {
  int result;
  memset(info, 0, sizeof *info);
  do result = waitid(child->pidfd >= 0 ? BY_PIDFD : P_PID, number_of(child), info, WEXITED | WNOHANG | options);
  while (result != 0 && errno == EINTR);
  return result;
}

static void open_pidfd(struct pwi_child *child) {
  child->pidfd = lift((int)syscall(SYS_pidfd_open, child->pid, 0));
  if (child->pidfd < 0) {
    if (errno == ESRCH) child->end.how = PWI_CHILD_ENDED;
    return;
  }
  siginfo_t info;
  if (wait_now(child, WNOWAIT, &info) == 0) return;
  if (errno == ECHILD) child->end.how = PWI_CHILD_ENDED;
  close(child->pidfd);
  child->pidfd = -1;
}

pawl_status pwi_child_start(const struct pwi_child_config *config, struct pwi_child **child_out) {
  struct pwi_child *child = pwi_alloc_zero(1, sizeof *child);
  if (!child) return PAWL_NO_MEMORY;
  child->pidfd = child->output = -1;
  bool keep = config->output_fd == PWI_CHILD_OUTPUT_KEEP;
  int output = keep ? lift(memfd_create("pawl-child", MFD_CLOEXEC)) : config->output_fd;
  pawl_status status = keep && output < 0 ? status_of(errno) : PAWL_OK;
  if (status) goto free_child;
  prepare_reading(child, output);
  int ready = -1;
  status = make_pipe(&child->ready, &ready);
  if (status) goto close_output;
  status = spawn(config, output, ready, &child->pid);
  close(ready);
  if (status) goto close_ready;
  if (keep) close(output);
  if (!config->without_pidfd) open_pidfd(child);
  *child_out = child;
  return PAWL_OK;
close_ready:
  close(child->ready);
close_output:
  close_if_open(child->output);
  if (keep) close(output);
free_child:
  pwi_free(child);
  return status;
}

/* --- its end -------------------------------------------------------------------------------------------- */

/* True if the child has ended. It is reaped then, and its pid is not used any more. */
static bool has_ended(struct pwi_child *child) {
  siginfo_t info;
  if (child->end.how != PWI_CHILD_RUNS) return true;
  int result = wait_now(child, 0, &info);
  if (result == 0 && info.si_pid == 0) return false;
  child->end.how = PWI_CHILD_ENDED;
  if (result == 0) {
    child->end.how = info.si_code == CLD_EXITED ? PWI_CHILD_EXITED : PWI_CHILD_SIGNALLED;
    child->end.number = info.si_status;
  }
  return true;
}

/* Waits until the child ends, `descriptor` (or -1) is readable, or the deadline passes; may return early. */
static void pause_for(const struct pwi_child *child, int descriptor, int64_t deadline_ns) {
  struct pollfd wanted[] = {{.fd = child->pidfd, .events = POLLIN}, {.fd = descriptor, .events = POLLIN}};
  int64_t soon = pwi_host_after(LOOK_AGAIN_NS);
  if (child->pidfd < 0 && soon < deadline_ns) deadline_ns = soon;
  struct timespec left = pwi_host_until(deadline_ns);
  ppoll(wanted, 2, &left, NULL);
}

pawl_status pwi_child_wait(struct pwi_child *child, int64_t deadline_ns, struct pwi_child_end *end_out) {
  while (!has_ended(child)) {
    if (pwi_host_now() >= deadline_ns) return PAWL_TIMED_OUT;
    pause_for(child, -1, deadline_ns);
  }
  *end_out = child->end;
  return PAWL_OK;
}

static void send_signal(struct pwi_child *child, int number) {
  if (has_ended(child)) return;
  if (child->pidfd >= 0)
    (void)syscall(SYS_pidfd_send_signal, child->pidfd, number, NULL, 0);
  else
    kill(child->pid, number);
}

void pwi_child_ask(struct pwi_child *child) { send_signal(child, SIGTERM); }

struct pwi_child_end pwi_child_stop(struct pwi_child *child, int64_t grace_ns) {
  struct pwi_child_end end = {PWI_CHILD_ENDED, 0};
  if (!child) return end;
  send_signal(child, SIGTERM);
  if (pwi_child_wait(child, pwi_host_after(grace_ns), &end) != PAWL_OK) {
    send_signal(child, SIGKILL);
    while (pwi_child_wait(child, INT64_MAX, &end) != PAWL_OK) continue;
  }
  close_if_open(child->pidfd);
  close_if_open(child->output);
  close(child->ready);
  pwi_free(child);
  return end;
}

const char *pwi_child_end_print(struct pwi_child_end end, char *text_out, size_t size) {
  switch (end.how) {
  case PWI_CHILD_EXITED:
    snprintf(text_out, size, "exit code %d", end.number);
    break;
  case PWI_CHILD_SIGNALLED:
    snprintf(text_out, size, "signal %d", end.number);
    break;
  case PWI_CHILD_RUNS:
  case PWI_CHILD_ENDED:
    snprintf(text_out, size, "%s", end.how == PWI_CHILD_RUNS ? "running" : "ended");
    break;
  }
  return text_out;
}

pid_t pwi_child_pid(const struct pwi_child *child) { return child->pid; }

/* --- its output ----------------------------------------------------------------------------------------- */

static bool is_ready_line(const char *line) {
  for (const char *at = line; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
  return strncmp(line, "ready", 5) == 0 && (line[5] == '\0' || line[5] == ' ');
}

static void finish_line(struct pwi_child *child, pawl_status status) {
  child->line_complete = true;
  child->line_status = status;
}

/* Examines `got` more bytes of the line. A NUL from the child would hide the bytes behind it. */
static void take_bytes(struct pwi_child *child, size_t got) {
  char *end = memchr(child->line + child->line_length, '\n', got);
  child->line_length += got;
  if (end) {
    bool whole = !memchr(child->line, '\0', (size_t)(end - child->line));
    *end = '\0';
    finish_line(child, whole && is_ready_line(child->line) ? PAWL_OK : PAWL_CORRUPT);
  } else if (child->line_length == sizeof child->line) {
    finish_line(child, PAWL_CORRUPT);
  }
}

/* Reads from the pipe, up to the first line break. */
static void read_line(struct pwi_child *child) {
  while (!child->line_complete && !child->ready_closed) {
    ssize_t got = read(child->ready, child->line + child->line_length, sizeof child->line - child->line_length);
    if (got > 0)
      take_bytes(child, (size_t)got);
    else if (got == 0)
      child->ready_closed = true;
    else if (errno != EINTR)
      break;
  }
}

pawl_status pwi_child_ready(struct pwi_child *child, int64_t deadline_ns, const char **line_out) {
  for (;;) {
    bool ended = has_ended(child); /* asked first, so that everything it wrote before its end is read below */
    read_line(child);
    if (child->line_complete) break;
    if (ended) return PAWL_NODE_STOPPED;
    if (pwi_host_now() >= deadline_ns) return PAWL_TIMED_OUT;
    pause_for(child, child->ready_closed ? -1 : child->ready, deadline_ns);
  }
  if (!child->line_status) *line_out = child->line;
  return child->line_status;
}

pawl_status pwi_child_value(const char *line, const char *key, char *value_out, size_t size) {
  size_t key_length = strlen(key);
  for (const char *word = line; *word;) {
    word += strspn(word, " ");
    size_t length = strcspn(word, " ");
    if (length > key_length && strncmp(word, key, key_length) == 0 && word[key_length] == '=') {
      size_t value_length = length - key_length - 1;
      if (value_length >= size) return PAWL_TOO_LARGE;
      memcpy(value_out, word + key_length + 1, value_length);
      value_out[value_length] = '\0';
      return PAWL_OK;
    }
    word += length;
  }
  return PAWL_NOT_FOUND;
}

void pwi_child_last_words(const struct pwi_child *child, char *text_out, size_t size) {
  if (size == 0) return;
  struct stat about;
  ssize_t got = 0;
  if (child->output >= 0 && fstat(child->output, &about) == 0 && about.st_size > child->output_from) {
    off_t from = about.st_size - (off_t)(size - 1);
    if (from < child->output_from) from = child->output_from;
    got = pread(child->output, text_out, size - 1, from);
  }
  if (got < 0) got = 0;
  for (ssize_t i = 0; i < got; i++) {
    unsigned char byte = (unsigned char)text_out[i];
    if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f) text_out[i] = '?';
  }
  text_out[got] = '\0';
}
