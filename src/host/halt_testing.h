/* For tests: stopping a process. A signal stops a process only when the thread that receives it has run, which may take
 * a while on a busy machine; until then its other threads go on. */
#ifndef PWI_HOST_HALT_TESTING_H
#define PWI_HOST_HALT_TESTING_H

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing.h"

/* The letter that says what a process or thread is doing; 'Z' also for one that is gone. */
static inline char state_of(const char *process) {
  char path[420], line[512];
  snprintf(path, sizeof path, "%s/stat", process);
  FILE *file = fopen(path, "re");
  if (!file) return 'Z';
  size_t size = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[size] = '\0';
  const char *after = strrchr(line, ')');
  return after && after[1] == ' ' && after[2] ? after[2] : 'Z';
}

/* Stops a process, and waits until each of its threads stands still. */
static inline void halt(pid_t pid) {
  char tasks[64], one[400];
  assert_int_equal(kill(pid, SIGSTOP), 0);
  snprintf(tasks, sizeof tasks, "/proc/%d/task", (int)pid);
  for (bool moves = true; moves;) {
    DIR *threads = opendir(tasks);
    assert_non_null(threads);
    moves = false;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
      if (entry->d_name[0] == '.') continue;
      snprintf(one, sizeof one, "%s/%s", tasks, entry->d_name);
      moves = moves || state_of(one) != 'T';
    }
    closedir(threads);
    usleep(100);
  }
}

#endif
