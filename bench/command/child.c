/* Programs that are run. */
#include "child.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool pwi_child_find(const char *name, char *path, size_t room) {
  ssize_t size = readlink("/proc/self/exe", path, room - 1);
  if (size <= 0) return false;
  path[size] = 0;
  char *slash = strrchr(path, '/');
  if (!slash) return false;
  size_t left = room - (size_t)(slash - path);
  return (size_t)snprintf(slash, left, "/%s", name) < left && access(path, X_OK) == 0;
}

static void run(const char *const *words, const char *errors, int out) {
  int nowhere = open("/dev/null", O_RDONLY), log = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(nowhere, STDIN_FILENO);
  dup2(log, STDERR_FILENO);
  dup2(out, STDOUT_FILENO);
  execvp(words[0], (char *const *)(uintptr_t)words);
  _exit(127);
}

static void read_all(int from, char *text, size_t room) {
  size_t size = 0;
  ssize_t moved;
  while (size < room - 1 && (moved = read(from, text + size, room - 1 - size)) > 0) size += (size_t)moved;
  text[size] = 0;
}

int pwi_child_run(const char *const *words, const char *errors, char *text, size_t room) {
  int out[2], status = -1;
  if (pipe2(out, O_CLOEXEC) != 0) return -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) run(words, errors, out[1]);
  close(out[1]);
  if (child > 0) read_all(out[0], text, room);
  close(out[0]);
  bool has_ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  return has_ended ? WEXITSTATUS(status) : -1;
}
