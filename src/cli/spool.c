#include "cli/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define COPIES_MAX 64
#define CHUNK ((size_t)1 << 18)

/* --- what is to be removed ---------------------------------------------------------------------------------------- */

static char copies[COPIES_MAX][PATH_MAX];
static volatile sig_atomic_t copy_count;

void pwi_spool_remove(void) {
  for (int i = 0; i < copy_count; i++)
    if (copies[i][0]) unlink(copies[i]);
}

static void remove_and_die(int number) {
  pwi_spool_remove();
  signal(number, SIG_DFL);
  raise(number);
}

/* A handler that is installed later replaces this one, and ends the process by exit. */
static void watch(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  struct sigaction before, action = {.sa_handler = remove_and_die};
  atexit(pwi_spool_remove);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(numbers[i], &action, NULL);
}

/* --- a copy ------------------------------------------------------------------------------------------------------- */

static const char *name_of(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }

/* The name of a copy: `pawl-stdin-XXXXXX`, or the name of the pipe instead of "stdin". */
static int open_copy(const char *path, char *copy) {
  const char *folder = getenv("TMPDIR"), *slash = strrchr(path, '/');
  const char *base = strcmp(path, "-") == 0 ? "stdin" : slash ? slash + 1 : path;
  if (!folder || !*folder) folder = "/tmp";
  int size = snprintf(copy, PATH_MAX, "%s/pawl-%.100s-XXXXXX", folder, base);
  if (size < 0 || size >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return mkostemp(copy, O_CLOEXEC);
}

static bool write_all(int file, const char *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t put = write(file, bytes + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

struct copying {
  const struct pwi_command *command;
  const char *path; /* path of the pipe */
  char *copy;
  uint64_t bytes;
};

/* The exit code. */
static int pour(struct copying *copying, int from, int to) {
  char *chunk = pwi_alloc(CHUNK);
  ssize_t got = 1;
  if (!chunk) return pwi_cli_failure(copying->command, "out of memory");
  int exit_code = PWI_EXIT_OK;
  while (exit_code == PWI_EXIT_OK && got != 0) {
    got = read(from, chunk, CHUNK);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      exit_code = pwi_cli_failure(copying->command, "%s: %s", name_of(copying->path), strerror(errno));
    else if (!write_all(to, chunk, (size_t)got))
      exit_code = pwi_cli_failure(copying->command, "cannot copy %s to %s: %s; set TMPDIR to another folder",
                                  name_of(copying->path), copying->copy, strerror(errno));
    else
      copying->bytes += (uint64_t)got;
  }
  pwi_free(chunk);
  return exit_code;
}

static int copy_pipe(struct copying *copying) {
  bool is_stdin = strcmp(copying->path, "-") == 0;
  int from = is_stdin ? STDIN_FILENO : open(copying->path, O_RDONLY | O_CLOEXEC);
  if (from < 0) return pwi_cli_failure(copying->command, "%s: %s", copying->path, strerror(errno));
  if (copy_count == 0) watch();
  copying->copy = copies[copy_count];
  int to = open_copy(copying->path, copying->copy);
  int exit_code = PWI_EXIT_OK;
  if (to < 0) {
    exit_code = pwi_cli_failure(copying->command, "cannot copy %s to %s: %s; set TMPDIR to another folder",
                                name_of(copying->path), copying->copy, strerror(errno));
    copying->copy[0] = 0;
  } else {
    copy_count++;
    if (is_stdin && isatty(STDIN_FILENO)) fprintf(stderr, "reading from the terminal; end with Ctrl-D\n");
    exit_code = pour(copying, from, to);
    if (close(to) != 0 && exit_code == PWI_EXIT_OK)
      exit_code = pwi_cli_failure(copying->command, "%s: %s", copying->copy, strerror(errno));
  }
  if (!is_stdin) close(from);
  return exit_code;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static bool is_pipe(const char *path) {
  struct stat about;
  if (strcmp(path, "-") == 0) return true;
  return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode) && !S_ISBLK(about.st_mode);
}

static int copy_one(struct pwi_spool *spool, const struct pwi_command *command, size_t i, bool quiet) {
  static bool has_stdin;
  struct copying copying = {.command = command, .path = spool->paths[i]};
  bool is_stdin = strcmp(copying.path, "-") == 0;
  if (is_stdin && has_stdin) return pwi_cli_usage(command, "standard input can be read only once");
  has_stdin |= is_stdin;
  if (copy_count == COPIES_MAX) return pwi_cli_failure(command, "too many pipes; at most %d can be read", COPIES_MAX);
  int exit_code = copy_pipe(&copying);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (copying.bytes == 0) return pwi_cli_failure(command, "%s: the input is empty", name_of(copying.path));
  if (!quiet)
    fprintf(stderr, "copied %s to %s (%.1f MB), so that it can be read in parts\n", name_of(copying.path), copying.copy,
            (double)copying.bytes / 1e6);
  spool->paths[i] = copying.copy;
  return PWI_EXIT_OK;
}

bool pwi_spool_init(struct pwi_spool *spool, const struct pwi_command *command, const char *const *paths, size_t count,
                    bool quiet, int *exit_out) {
  *spool = (struct pwi_spool){.paths = pwi_alloc_zero(count + 1, sizeof *spool->paths), .count = count};
  *exit_out = spool->paths ? PWI_EXIT_OK : pwi_cli_failure(command, "out of memory");
  if (*exit_out == PWI_EXIT_OK) memcpy(spool->paths, paths, count * sizeof *paths);
  for (size_t i = 0; i < count && *exit_out == PWI_EXIT_OK; i++)
    if (is_pipe(paths[i])) *exit_out = copy_one(spool, command, i, quiet);
  return *exit_out == PWI_EXIT_OK;
}

void pwi_spool_fini(struct pwi_spool *spool) {
  for (size_t i = 0; spool->paths && i < spool->count; i++)
    for (int k = 0; k < copy_count; k++)
      if (spool->paths[i] == copies[k]) {
        unlink(copies[k]);
        copies[k][0] = 0;
      }
  pwi_free(spool->paths);
  *spool = (struct pwi_spool){0};
}
