/* Runs a program of bench/mpi. */
#include "mpi_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* build/pawl-bench and build/bench/NAME. */
static bool find_program(const char *name, char *path, size_t room) {
  ssize_t size = readlink("/proc/self/exe", path, room - 1);
  if (size <= 0) return false;
  path[size] = 0;
  char *slash = strrchr(path, '/');
  if (!slash) return false;
  size_t left = room - (size_t)(slash - path);
  return (size_t)snprintf(slash, left, "/bench/%s", name) < left && access(path, X_OK) == 0;
}

static bool is_in_path(const char *program) {
  const char *folders = getenv("PATH");
  char path[4096];
  for (const char *at = folders; at && *at;) {
    int length = (int)strcspn(at, ":");
    if ((size_t)snprintf(path, sizeof path, "%.*s/%s", length, at, program) < sizeof path && access(path, X_OK) == 0)
      return true;
    at += length;
    at += *at == ':';
  }
  return false;
}

bool pwi_mpi_has(const char *name) {
  char path[4096];
  return is_in_path("mpirun") && find_program(name, path, sizeof path);
}

void pwi_mpi_explain(const char *name) {
  char path[4096];
  if (!is_in_path("mpirun"))
    printf("\nno figures of MPI: there is no mpirun; install openmpi-bin ('tools/deps bench')\n");
  else if (!find_program(name, path, sizeof path))
    printf("\nno figures of MPI: bench/%s is not built beside pawl-bench; install libopenmpi-dev ('tools/deps bench'), "
           "and\n"
           "configure and build the target 'bench' again\n",
           name);
}

static void run(char *const words[], int out) {
  int nowhere = open("/dev/null", O_RDWR);
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDERR_FILENO);
  dup2(out, STDOUT_FILENO);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* Open MPI refuses root otherwise */
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  execvp(words[0], words);
  _exit(127);
}

static void read_all(int from, char *text, size_t room) {
  size_t size = 0;
  ssize_t moved;
  while (size < room - 1 && (moved = read(from, text + size, room - 1 - size)) > 0) size += (size_t)moved;
  text[size] = 0;
}

bool pwi_mpi_run(const char *name, uint32_t ranks, const char *const *arguments, char *text, size_t room) {
  char path[4096], count[16];
  const char *words[PWI_MPI_WORDS_MAX + 6] = {"mpirun", "--oversubscribe", "-np", count, path};
  int out[2], status = 1;
  if (!find_program(name, path, sizeof path) || pipe2(out, O_CLOEXEC) != 0) return false;
  snprintf(count, sizeof count, "%u", ranks);
  for (size_t i = 0; arguments[i] && i < PWI_MPI_WORDS_MAX; i++) words[5 + i] = arguments[i];
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) run((char *const *)(uintptr_t)words, out[1]);
  close(out[1]);
  if (child > 0) read_all(out[0], text, room);
  close(out[0]);
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
