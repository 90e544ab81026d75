/* The workers that `pawl train` starts: children of this process that run `pawl worker`. They are told where the cluster is
 * and what the job is called, and everything else by the scheduler. One that ends badly has its last words shown, with its
 * number before each line.
 *
 * Single-threaded. */
#ifndef PWI_CLI_TRAIN_WORKERS_H
#define PWI_CLI_TRAIN_WORKERS_H

#include <limits.h>

#include "cli/train/base.h"
#include "net/key.h"

struct pwi_child;

#define PWI_TRAIN_WORDS_MAX 32

struct pwi_train_worker {
  struct pwi_child *child; /* NULL: it has ended, and its end was told */
  uint32_t number;         /* from 1, never used twice */
  int64_t started_ns;
};

struct pwi_train_workers {
  void (*say)(void *context, const char *line); /* NULL: nothing is told */
  void *context;
  struct pwi_train_worker *list;
  size_t count, room;
  uint32_t started;    /* so far */
  uint32_t early_ends; /* failures soon after the start, in a row */
  char path[PATH_MAX]; /* of the command */
  char parent[16];
  char key[PWI_KEY_LINE_MAX + sizeof "PAWL_KEY="];
  const char *words[PWI_TRAIN_WORDS_MAX];
  size_t word_count;
  const char *environment[2];
};

/* `address` is the manager's; it and the base must outlive the workers. False: it has said why, return `*exit_out`. */
bool pwi_train_workers_init(struct pwi_train_workers *workers, const struct pwi_train_base *base, const char *address,
                            int *exit_out);

/* Starts one more. PAWL_NODE_STOPPED if the last ones all ended as soon as they were started; else as pwi_child_start. */
pawl_status pwi_train_workers_start(struct pwi_train_workers *workers);

/* Notices who has ended, and tells it if that was an accident. */
void pwi_train_workers_look(struct pwi_train_workers *workers);

/* Waits a little for those that end by themselves, and ends the others. */
void pwi_train_workers_fini(struct pwi_train_workers *workers);

#endif
