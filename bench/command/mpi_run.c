/* Runs a program of bench/mpi. */
#include "mpi_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

static bool find_program(const char *name, char *path, size_t room) {
  char place[64];
  snprintf(place, sizeof place, "bench/%s", name);
  return pwi_child_find(place, path, room);
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

bool pwi_mpi_run(const char *name, uint32_t ranks, const char *const *arguments, char *text, size_t room) {
  char path[4096], count[16];
  const char *words[PWI_MPI_WORDS_MAX + 6] = {"mpirun", "--oversubscribe", "-np", count, path};
  if (!find_program(name, path, sizeof path)) return false;
  snprintf(count, sizeof count, "%u", ranks);
  for (size_t i = 0; arguments[i] && i < PWI_MPI_WORDS_MAX; i++) words[5 + i] = arguments[i];
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* Open MPI refuses root otherwise */
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  return pwi_child_run(words, "/dev/null", text, room) == 0;
}
