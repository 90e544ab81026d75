/* One run of `pawl train`, for any method: finds or starts a cluster and workers, handles Ctrl-C, prints news
 * and logs rounds. The method itself is called from cli/train/linear.c or cli/train/lda.c.
 *
 * Only one run at a time, because signals belong to the process. Single-threaded.
 */
#ifndef PWI_CLI_TRAIN_RUN_H
#define PWI_CLI_TRAIN_RUN_H

#include "cli/train/base.h"
#include "cli/train/board.h"
#include "cli/train/log.h"
#include "cli/train/ranks.h"
#include "cli/train/show.h"
#include "cli/train/watch.h"
#include "cli/train/words.h"
#include "cli/train/workers.h"

#define PWI_TRAIN_UNCERTAIN 3     /* exit code: a model was written that has not converged, or has diverged */
#define PWI_TRAIN_INTERRUPTED 130 /* exit code, as shells report an end by Ctrl-C */

struct pawl_session;

struct pwi_train_run {
  struct pwi_train_base *base;
  const char *advice; /* what to do if a server without replicas dies; see cli/train/watch.h */
  struct pawl_session *session;
  struct pwi_train_show show;
  struct pwi_train_log log;
  struct pwi_train_board board;
  struct pwi_train_workers workers;
  struct pwi_train_meeting meeting;
  struct pwi_train_watch watch;
  uint32_t servers_lost; /* number of lost servers reported */
  int64_t began_ns;
  char listen[PWI_NET_ADDRESS_MAX];
  struct pwi_train_words words;  /* of workers that have failed */
  bool is_unsaved;               /* the user knows that checkpoints cannot be written */
  char lost[PWI_TRAIN_LINE_MAX]; /* which log is incomplete, and why; "": none */
};

/* `base` must be settled and outlive the run. Release with pwi_train_run_fini, which returns the exit code: that of the method, or
 * PWI_EXIT_FAILURE if a log is incomplete, which it says. */
void pwi_train_run_init(struct pwi_train_run *run, struct pwi_train_base *base);
int pwi_train_run_fini(struct pwi_train_run *run, int exit_code);

/* Whether this process was started by a launcher and is not the first: it only works for the first one. */
bool pwi_train_run_is_follower(const struct pwi_train_run *run);

/* Opens a session, starts workers, calls `learn`, which returns an exit code, and ends the workers. Returns
 * the exit code. */
int pwi_train_run_session(struct pwi_train_run *run, int (*learn)(void *context), void *context);

/* --- inside `learn` ----------------------------------------------------------------------------------------------- */

/* Whether this run starts its own workers. The method then starts a worker with pwi_train_run_worker. */
bool pwi_train_run_has_workers(const struct pwi_train_run *run);
pawl_status pwi_train_run_worker(struct pwi_train_run *run);

/* Prints a line of news, unless a worker has said the same. */
void pwi_train_run_tell(struct pwi_train_run *run, const char *line);

/* Prints why the exit code will not be 0, even if the run is quiet. */
void pwi_train_run_reason(struct pwi_train_run *run, const char *line);

/* Tells, once, that checkpoints cannot be written, and that they can be again. `why` "": they can. */
void pwi_train_run_unsaved(struct pwi_train_run *run, const char *why);

/* At the end, with a model in `output`: says that the last checkpoint could not be written, unless `unsaved` is "". Returns
 * `exit_code`, or PWI_EXIT_FAILURE. */
int pwi_train_run_saved(const struct pwi_train_run *run, const char *unsaved, const char *output, int exit_code);

/* Reports progress. Call it at every sign of progress. */
void pwi_train_run_beat(struct pwi_train_run *run);

/* Whether the run should stop. */
bool pwi_train_run_is_stopping(struct pwi_train_run *run);

/* Log a round for --log and --tensorboard, if requested; takes over the object. Reports a failure once. */
bool pwi_train_run_has_log(const struct pwi_train_run *run);
void pwi_train_run_log(struct pwi_train_run *run, json_t *object);
void pwi_train_run_board(struct pwi_train_run *run, const char *mark, uint64_t step,
                         const struct pwi_train_scalar *scalars, size_t count);

/* After training: prints what workers have said, except for `error`, the text of a failure, which may be "". Workers that
 * end from now on are not reported. Returns the seconds since the start. */
double pwi_train_run_conclude(struct pwi_train_run *run, const char *error);

/* From now on the first Ctrl-C or SIGTERM is remembered, and the second ends the process. For runs without a session;
 * pwi_train_run_session does it by itself. */
void pwi_train_run_catch(void);

/* Whether the run was interrupted. */
bool pwi_train_run_was_interrupted(void);

/* Prints why the run failed; `error` is the method's text, or "". Returns the exit code. */
int pwi_train_run_explain(const struct pwi_train_run *run, pawl_status status, const char *error);

#endif
