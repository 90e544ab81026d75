/* The workers that `pawl train` starts: child processes that run `pawl worker`. They get the address of the
 * cluster and the name of the job as options, everything else from the scheduler. If a worker fails, its last
 * output is shown, prefixed with its number.
 *
 * Single-threaded.
 */
#ifndef PWI_CLI_TRAIN_WORKERS_H
#define PWI_CLI_TRAIN_WORKERS_H

#include <limits.h>

#include "cli/train/base.h"
#include "net/key.h"

struct pwi_child;

#define PWI_TRAIN_WORDS_MAX 32

struct pwi_train_worker {
  struct pwi_child *child; /* NULL: it has ended, and its end was reported */
  uint32_t number;         /* counted from 1, never reused */
  int64_t started_ns;
};

struct pwi_train_workers {
  void (*say)(void *context, const char *line); /* prints a line; NULL: prints nothing */
  void *context;
  struct pwi_train_worker *list;
  size_t count, room;
  uint32_t started;    /* number of workers started so far */
  uint32_t early_ends; /* consecutive failures soon after the start */
  char path[PATH_MAX]; /* path of the pawl command */
  char parent[16], priority[16], dscp[16];
  char key[PWI_KEY_LINE_MAX + sizeof "PAWL_KEY="];
  const char *words[PWI_TRAIN_WORDS_MAX];
  size_t word_count;
  const char *environment[2];
};

/* `address` is that of the manager. It and the base must outlive the workers. If it returns false, it has
 * printed an error; return `*exit_out`. */
bool pwi_train_workers_init(struct pwi_train_workers *workers, const struct pwi_train_base *base, const char *address,
                            int *exit_out);

/* Starts a worker. PAWL_NODE_STOPPED if the last workers all failed right after their start; else errors of
 * pwi_child_start. */
pawl_status pwi_train_workers_start(struct pwi_train_workers *workers);

/* Detects workers that have ended, and reports failures. */
void pwi_train_workers_look(struct pwi_train_workers *workers);

/* Waits briefly for workers to end, then ends the others. */
void pwi_train_workers_fini(struct pwi_train_workers *workers);

#endif
