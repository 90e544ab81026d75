/* One run of `pawl train`, whatever is learned: a cluster is found or started, and workers; Ctrl-C asks for an end; news are told, and
 * rounds logged. What is learned, and how it is shown, is between this and the method (cli/train/linear.c, cli/train/lda.c).
 *
 * One at a time: signals belong to the process. Single-threaded. */
#ifndef PWI_CLI_TRAIN_RUN_H
#define PWI_CLI_TRAIN_RUN_H

#include "cli/train/base.h"
#include "cli/train/board.h"
#include "cli/train/log.h"
#include "cli/train/ranks.h"
#include "cli/train/show.h"
#include "cli/train/watch.h"
#include "cli/train/workers.h"

#define PWI_TRAIN_UNCERTAIN 3     /* exit code: a model was written that has not converged, or has diverged */
#define PWI_TRAIN_INTERRUPTED 130 /* exit code, as shells call what ended by Ctrl-C */

struct pawl_session;

struct pwi_train_run {
  struct pwi_train_base *base;
  const char *advice; /* what is lost with a server that nobody has a copy of; see cli/train/watch.h */
  struct pawl_session *session;
  struct pwi_train_show show;
  struct pwi_train_log log;
  struct pwi_train_board board;
  struct pwi_train_workers workers;
  struct pwi_train_meeting meeting;
  struct pwi_train_watch watch;
  uint32_t servers_lost; /* that were told of */
  int64_t began_ns;
  char listen[PWI_NET_ADDRESS_MAX];
  char news[PWI_TRAIN_LINE_MAX]; /* the last that was told */
};

/* The base must outlive the run, and has been settled. To be ended with pwi_train_run_fini. */
void pwi_train_run_init(struct pwi_train_run *run, struct pwi_train_base *base);
void pwi_train_run_fini(struct pwi_train_run *run);

/* Under a launcher, in all processes but the first: works for that one, and this is all there is to do. */
bool pwi_train_run_is_follower(const struct pwi_train_run *run);

/* Opens a session, starts workers, calls `learn`, which returns an exit code, and ends everybody. The exit code. */
int pwi_train_run_session(struct pwi_train_run *run, int (*learn)(void *context), void *context);

/* --- inside `learn` ----------------------------------------------------------------------------------------------- */

/* Whether this run starts its own workers; then pwi_train_run_worker is what the method calls for one. */
bool pwi_train_run_has_workers(const struct pwi_train_run *run);
pawl_status pwi_train_run_worker(struct pwi_train_run *run);

/* News in a line. */
void pwi_train_run_tell(struct pwi_train_run *run, const char *line);

/* It goes on: to be called with every sign of progress. */
void pwi_train_run_beat(struct pwi_train_run *run);

/* Whether somebody wants it to end. */
bool pwi_train_run_is_stopping(struct pwi_train_run *run);

/* A round, for --log and --tensorboard, if they were asked for; the object becomes the log's. What cannot be written is told once. */
bool pwi_train_run_has_log(const struct pwi_train_run *run);
void pwi_train_run_log(struct pwi_train_run *run, json_t *object);
void pwi_train_run_board(struct pwi_train_run *run, const char *mark, uint64_t step,
                         const struct pwi_train_scalar *scalars, size_t count);

/* Nothing is learned any more: how workers end from now on is no news. Seconds since the beginning. */
double pwi_train_run_conclude(struct pwi_train_run *run);

/* Whether somebody wanted it to end, afterwards. */
bool pwi_train_run_was_interrupted(void);

/* Prints why it failed, `error` being what the method says, "" if nothing; the exit code. */
int pwi_train_run_explain(const struct pwi_train_run *run, pawl_status status, const char *error);

#endif
