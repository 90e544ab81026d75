/* Jobs: a scheduler and its workers (OSDI'14 2.2 and 4.6).
 *
 * A job has data, divided into numbered *pieces* (<pawl/data.h>), and work, done in *rounds*. One program
 * creates the job and is its scheduler. Any number of other programs join it by name and are its workers. At
 * any time every piece belongs to one worker. In a round each worker receives the same argument, works on its
 * own pieces, and reports bytes. The two programs define the meaning of these bytes.
 *
 *   scheduler:   pawl_job_create(session, &options, &job);
 *                while (…) {
 *                  pawl_job_round(job, &argument, size, PAWL_FOREVER, &round);
 *                  … pawl_round_destroy(round);
 *                }
 *                pawl_job_end(job);
 *
 *   worker:      pawl_worker_run(session, "ads", &calls, context, PAWL_FOREVER);
 *
 * JOINING AND LEAVING. Workers that have asked to join are admitted between rounds. Then the scheduler
 * moves as few pieces as necessary so that each worker has its share: a worker that gives up a piece frees
 * its data, and a worker that receives a piece reads it. A worker that is lost during a round is missing from
 * the results of that round. Its pieces go to the other workers or to a replacement before the next round,
 * but only after the cluster has declared the worker dead: none of its pushes is applied after that. A worker
 * that was only stopped joins again when it resumes. If its session was opened with `stays_dead`, all its
 * calls fail with PAWL_NODE_GONE instead; this is for methods whose pushes must not arrive late
 * (docs/jobs.md, "Fencing").
 *
 * JOINING IN A ROUND. A job with the option `join_in_round` admits workers during a round, too. A worker that
 * arrives begins at once. Each worker that is at work then gives up some of the pieces that it has not begun
 * in this round, and the newcomer takes these and works on them in the same round. So every piece is worked on
 * once in a round. The job calls `start` for a replacement as soon as it loses a worker. A worker
 * tells which pieces it has begun by asking for them:
 *
 *   work:        while (!(status = pawl_worker_next(worker, 1, &pieces)) && !pawl_range_is_empty(pieces)) …
 *
 * The option is for work on pieces that do not depend on one another, such as counting, prediction, or
 * asynchronous gradient descent. It is wrong for work that clocks the group or meets the others in another
 * way: a newcomer takes part in the rest of a round only.
 *
 * THE GROUP. All workers of a job are members of one group (<pawl/group.h>), which is created when the first
 * round begins. Without `join_in_round` workers join only between rounds; so if all members clock the group
 * equally often in a round, they are at the same tick when the next round begins.
 *
 * WITHOUT SERVERS. If the sessions of the scheduler and of all workers are for peers only (`peers_only`), a job
 * needs no servers. Its workers are members of one peer group (<pawl/peer.h>) instead of a group. There are no
 * ticks then. A job of such sessions and one of other sessions do not see each other.
 *
 * NAMES. Workers find the scheduler through the cluster by the name of the job. Only one job of a name can
 * exist at a time (PAWL_EXISTS). The sessions of the scheduler and of the workers must have been opened with
 * `listen`.
 *
 * docs/jobs.md describes the behaviour in each failure. apps/linear is an example.
 */
#ifndef PAWL_JOB_H
#define PAWL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_group;
struct pawl_peers;
struct pawl_job;
struct pawl_round;
struct pawl_worker;

/* Limit for the spec of a job, the argument of a round, and a report: PAWL_CALL_BYTES less a header. */
#define PAWL_JOB_BYTES ((4 << 20) - 4096)

/* --- the scheduler -------------------------------------------------------------------------------------- */

/* The reaction to the loss of a worker. */
enum pawl_on_loss {
  PAWL_LOSS_REPLACE = 0,  /* ask for a replacement, wait for it up to `patience_ns`, then act as CONTINUE */
  PAWL_LOSS_CONTINUE = 1, /* give its pieces to the other workers; act as REPLACE if there are none */
  PAWL_LOSS_STOP = 2,     /* this round and all later rounds end with PAWL_NODE_GONE */
};

enum pawl_job_what {
  PAWL_JOB_JOINED = 1,  /* a worker was admitted */
  PAWL_JOB_LOST = 2,    /* a worker died or stopped responding */
  PAWL_JOB_DROPPED = 3, /* a worker was dropped because it was too slow (`drop_slowest`) */
  PAWL_JOB_MOVED = 4,   /* `pieces` pieces moved between workers */
  PAWL_JOB_WAITING = 5, /* waiting for workers: `workers` of the required number are present. Sent every
                           second */
  PAWL_JOB_REFUSED = 6, /* a worker could not begin or could not take its pieces: `text` is its own
                           explanation */
};

struct pawl_job_event {
  enum pawl_job_what what;
  struct pawl_node node;
  const char *host; /* host of the worker; "" if the event is not about one worker */
  uint64_t pid;
  uint32_t workers; /* present number of workers */
  uint64_t pieces;
  const char *text; /* message for people; may be "" */
};

struct pawl_job_options {
  size_t struct_size; /* set by pawl_job_options_init */
  const char *name;   /* a word of letters, digits, '.', '_' and '-' */
  const void *spec;   /* bytes that every worker receives when it joins; copied */
  size_t spec_size;
  uint64_t pieces;      /* number of pieces; workers without a piece still take part in rounds */
  uint32_t least, most; /* number of workers: no round begins with fewer than `least`; beyond `most` workers
                           have to wait until others leave */
  enum pawl_on_loss on_loss;
  int64_t patience_ns; /* how long to wait for replacements and for the first `least` workers; default 60 s */
  double drop_slowest; /* drop a worker that took this many times the median in three consecutive rounds; 0:
                          never */
  pawl_status (*start)(void *context); /* asks for one more worker, for example by starting a process; NULL:
                                          workers come by themselves */
  void (*tell)(void *context, const struct pawl_job_event *event); /* may be NULL */
  void *context;
  bool join_in_round; /* workers that arrive during a round take part in it; see above, "JOINING IN A ROUND" */
};

PAWL_API void pawl_job_options_init_sized(struct pawl_job_options *options, size_t struct_size);
static inline void pawl_job_options_init(struct pawl_job_options *options) {
  pawl_job_options_init_sized(options, sizeof *options);
}

/* Creates a job and asks for `least` workers with `start`. Does not wait for them. Options are copied.
 * PAWL_EXISTS, PAWL_INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_job_create(struct pawl_session *session, const struct pawl_job_options *options,
                                                   int64_t timeout_ns, struct pawl_job **job_out);

/* Admits workers, moves pieces, and runs one round. Waits until every worker has reported or is lost. A
 * worker whose work fails has reported too. `start` and `tell` are called by this thread.
 *   PAWL_NODE_GONE   a worker was lost and `on_loss` is STOP, or no worker came within `patience_ns`: see
 *                    pawl_error_text
 *   PAWL_REFUSED     a worker could not begin, or could not take or drop pieces: pawl_error_text has its
 *                    message. The worker leaves, and the next round goes on without it. If more than `least`
 *                    workers are present, a refusal to begin is only reported to `tell`; so is a refusal of a
 *                    worker that joins in a round
 *   PAWL_TIMED_OUT   the round continues: call pawl_job_await. Also if the cluster has not declared a lost
 *                    worker dead within `patience_ns` */
PAWL_API PAWL_MUST_USE pawl_status pawl_job_round(struct pawl_job *job, const void *argument, size_t size,
                                                  int64_t timeout_ns, struct pawl_round **round_out);
PAWL_API PAWL_MUST_USE pawl_status pawl_job_await(struct pawl_job *job, int64_t timeout_ns,
                                                  struct pawl_round **round_out);

/* Changes the number of workers from the next round on. The job asks for more with `start`, or lets surplus
 * workers go. As with pawl_job_round, one thread at a time. */
PAWL_API PAWL_MUST_USE pawl_status pawl_job_resize(struct pawl_job *job, uint32_t least, uint32_t most);

/* The report of one worker in a round. */
struct pawl_report {
  struct pawl_node node;
  const char *host;
  uint64_t pid;
  pawl_status status; /* status that `work` returned; PAWL_NODE_GONE if the worker was lost */
  const char *text;   /* reason of a failure: pawl_error_text of the worker */
  const void *bytes;  /* aligned as by malloc */
  size_t size;
  uint64_t pieces; /* number of pieces that the worker had in this round */
  int64_t took_ns; /* as the worker measured it */
};

/* The reports of a round, in the order in which workers joined the cluster, workers that joined in the round
 * last. They are valid until the round is destroyed. */
PAWL_API size_t pawl_round_count(const struct pawl_round *round);
PAWL_API PAWL_MUST_USE pawl_status pawl_round_get(const struct pawl_round *round, size_t index,
                                                  struct pawl_report *report_out);
PAWL_API bool pawl_round_is_whole(const struct pawl_round *round); /* no worker was lost, and none failed */
PAWL_API void pawl_round_destroy(struct pawl_round *round);        /* NULL is allowed */

/* Tells all workers that the job has ended, so that pawl_worker_run returns, and frees the job. NULL is
 * allowed. */
PAWL_API void pawl_job_end(struct pawl_job *job);

/* --- workers -------------------------------------------------------------------------------------------- */

/* The callbacks of a worker. The thread in pawl_worker_run calls them one at a time; they may take any time.
 * A callback that fails can give a reason with pawl_worker_say. `take` and `drop` are called between rounds,
 * with pieces as ranges of numbers. With `join_in_round`, pawl_worker_next also calls `drop`, inside `work`,
 * and a worker that joins in a round gets its first pieces during it. */
struct pawl_worker_calls {
  /* Called once, first. */
  pawl_status (*begin)(struct pawl_worker *worker, void *context, const void *spec, size_t size);
  pawl_status (*take)(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count);
  pawl_status (*drop)(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count);
  pawl_status (*work)(struct pawl_worker *worker, void *context, const void *argument, size_t size);
  void (*end)(struct pawl_worker *worker, void *context); /* called once, last, if `begin` was called */
};

/* Joins the job `name`, for which it waits up to `timeout_ns`, and works until the job ends: PAWL_OK.
 * PAWL_CANCELLED if this worker was dropped or is not needed. PAWL_NODE_GONE if the scheduler is lost, or if
 * the session has `stays_dead` and was declared dead. Otherwise the status that `begin` returned. */
PAWL_API PAWL_MUST_USE pawl_status pawl_worker_run(struct pawl_session *session, const char *name,
                                                   const struct pawl_worker_calls *calls, void *context,
                                                   int64_t timeout_ns);

/* Reads the spec of the job `name` without joining it, for programs that can work for several kinds of jobs.
 * Waits up to `timeout_ns` for the job. Writes at most `room` bytes; `*size_out` is the size of the spec.
 * PAWL_TIMED_OUT if there is no such job, PAWL_TOO_LARGE (PAWL_JOB_BYTES always suffices), PAWL_FORBIDDEN. */
PAWL_API PAWL_MUST_USE pawl_status pawl_job_spec(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                                 void *spec_out, size_t room, size_t *size_out);

/* For use inside the callbacks. */
PAWL_API struct pawl_session *pawl_worker_session(const struct pawl_worker *worker);
/* The group of the workers; NULL in `begin`, and if the session is for peers only. */
PAWL_API struct pawl_group *pawl_worker_group(const struct pawl_worker *worker);
/* Their peer group, if the session is for peers only; NULL in `begin`, and otherwise. */
PAWL_API struct pawl_peers *pawl_worker_peers(const struct pawl_worker *worker);
/* Number of workers in this round, when this worker began it. */
PAWL_API uint32_t pawl_worker_count(const struct pawl_worker *worker);
/* Rank of this worker, from 0. */
PAWL_API uint32_t pawl_worker_rank(const struct pawl_worker *worker);
/* Inside `work`: true if the job has ended or the scheduler is lost; `work` should then return soon. */
PAWL_API bool pawl_worker_is_ending(const struct pawl_worker *worker);

/* Inside `work`: the next pieces of this worker in this round, in ascending order: a run of at least one and at
 * most `most`, or an empty range when no piece is left. Without `join_in_round`, a worker need not ask, and gets
 * all its pieces if it does. With it, a worker keeps the pieces that it has asked for in this round, and this
 * function first gives up others if a newcomer needs some: then it calls `drop`, whose failure it returns. A
 * worker that does not ask gives up none. PAWL_INVALID outside `work` or if `most` is 0. */
PAWL_API PAWL_MUST_USE pawl_status pawl_worker_next(struct pawl_worker *worker, uint64_t most,
                                                    struct pawl_range *pieces_out);

/* Sets the report of this round, which is copied; a later call replaces it. PAWL_TOO_LARGE beyond
 * PAWL_JOB_BYTES, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_worker_report(struct pawl_worker *worker, const void *bytes, size_t size);

/* Gives the reason of a failure, for people; truncated to 1023 bytes. */
PAWL_API void pawl_worker_say(struct pawl_worker *worker, const char *format, ...) PAWL_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
