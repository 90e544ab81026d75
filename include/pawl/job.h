/* Jobs: a scheduler and the workers that it gives work to (OSDI'14 2.2 and 4.6).
 *
 * A job has data, which is numbered in *pieces* (<pawl/data.h>), and work, which is done in *rounds*. One program creates the job and
 * is its scheduler; any number of others join it by name and are its workers. At any time every piece belongs to one worker. In
 * a round each worker is handed the same argument, works on the pieces that are its own, and reports bytes. What the bytes mean
 * is between the two programs.
 *
 *   scheduler:   pawl_job_create(session, &options, &job);
 *                while (…) { pawl_job_round(job, &argument, size, PAWL_FOREVER, &round); … pawl_round_destroy(round); }
 *                pawl_job_end(job);
 *
 *   worker:      pawl_worker_run(session, "ads", &calls, context, PAWL_FOREVER);
 *
 * WHO COMES AND GOES. Between rounds, and only then, workers that have asked to join are let in, and pieces are moved so that
 * everybody has his share, with as few moves as can be: those who hand over free their data, and those who take read it. A worker
 * that is lost in the middle of a round is missing from its results; its pieces go to the others, or to whoever takes its place,
 * before the next round, and not before the cluster has declared it dead: nothing that it pushed is applied after that. A worker that was only
 * stopped joins anew when it goes on; if its session was opened with `stays_dead`, which is for methods whose pushes must not come late, all its
 * calls fail with PAWL_NODE_GONE (docs/jobs.md, "Fencing").
 *
 * THE GROUP. All workers of a job are members of one group (<pawl/group.h>), made when the first round begins. Since workers come only
 * between rounds, members that clock it equally often in a round are at the same tick when one begins.
 *
 * NAMES. The scheduler is found through the cluster by the job's name: one job of a name at a time (PAWL_EXISTS). Both sessions must have been
 * opened with `listen`.
 *
 * docs/jobs.md tells what happens in which failure. apps/linear is a program of this kind.
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
struct pawl_job;
struct pawl_round;
struct pawl_worker;

#define PAWL_JOB_BYTES                                                                                                 \
  ((4 << 20) - 4096) /* of what a job or a round tells its workers, and of a report: a call less our part of it */

/* --- the scheduler ---------------------------------------------------------------------------------------------------- */

enum pawl_on_loss {
  PAWL_LOSS_REPLACE = 0,  /* ask for another, wait for it up to `patience_ns`, and then go on as CONTINUE */
  PAWL_LOSS_CONTINUE = 1, /* its pieces go to the others. Without any left: as REPLACE */
  PAWL_LOSS_STOP = 2,     /* the round, and every later one, ends with PAWL_NODE_GONE */
};

enum pawl_job_what {
  PAWL_JOB_JOINED = 1,  /* a worker was let in */
  PAWL_JOB_LOST = 2,    /* one died, or was not heard of any more */
  PAWL_JOB_DROPPED = 3, /* one was slow for so long that it was let go */
  PAWL_JOB_MOVED = 4,   /* pieces changed hands: `pieces` of them */
  PAWL_JOB_WAITING = 5, /* for workers: `workers` of the least number are here. Told every second */
  PAWL_JOB_REFUSED = 6, /* a worker could not begin or take its pieces: `text` says why, in its own words */
};

struct pawl_job_event {
  enum pawl_job_what what;
  struct pawl_node node;
  const char *host; /* of the worker; "" if none is concerned */
  uint64_t pid;
  uint32_t workers; /* now */
  uint64_t pieces;
  const char *text; /* for people; "" if there is nothing to add */
};

struct pawl_job_options {
  const char *name; /* a word of letters, digits, '.', '_' and '-' */
  const void *spec; /* what every worker is told when it joins: copied */
  size_t spec_size;
  uint64_t pieces;      /* may be fewer than workers: some then have none, and still take part */
  uint32_t least, most; /* workers: no round begins with fewer; further ones have to wait until others go */
  enum pawl_on_loss on_loss;
  int64_t patience_ns; /* for replacements, and for the first `least`; default 60 s */
  double
      drop_slowest; /* a worker that took so many times the median in three rounds running is dropped; 0: nobody is */
  pawl_status (*start)(
      void *context); /* asks for one more worker, such as by starting a process; NULL: they come by themselves */
  void (*tell)(void *context, const struct pawl_job_event *event); /* may be NULL */
  void *context;
};

PAWL_API void pawl_job_options_init(struct pawl_job_options *options);

/* Begins a job; asks for `least` workers by `start`. Does not wait for them. PAWL_EXISTS, PAWL_INVALID. Options are copied. */
PAWL_API pawl_status pawl_job_create(struct pawl_session *session, const struct pawl_job_options *options,
                                     int64_t timeout_ns, struct pawl_job **job_out);

/* Settles who takes part, and then has everybody work. Waits until all have reported or are lost. A worker whose work fails has
 * reported too. `start`, `tell` are called by this thread.
 *   PAWL_NODE_GONE   a worker was lost and the job is to stop then, or nobody came within `patience_ns`: pawl_error_text names whom
 *   PAWL_REFUSED     a worker could not begin, or not take or drop pieces: pawl_error_text says what it said. It goes, and the next
 *                    round does without. If it is one more than have to be, its refusing to begin is told and nothing else
 *   PAWL_TIMED_OUT   it goes on: call pawl_job_await. Also if one was lost that the cluster does not declare dead within `patience_ns`
 *   PAWL_CANCELLED   pawl_job_interrupt was called */
PAWL_API pawl_status pawl_job_round(struct pawl_job *job, const void *argument, size_t size, int64_t timeout_ns,
                                    struct pawl_round **round_out);
PAWL_API pawl_status pawl_job_await(struct pawl_job *job, int64_t timeout_ns, struct pawl_round **round_out);

/* From any thread, also from a signal handler's self-pipe reader: a round that waits returns PAWL_CANCELLED soon, or the
 * next one that does; pawl_job_await goes on with it. Workers are not told. */
PAWL_API void pawl_job_interrupt(struct pawl_job *job);

/* As a round is, by one thread at a time. Sets how many workers there should be, from the next round on: more are asked for by `start`, the superfluous are let go. */
PAWL_API pawl_status pawl_job_resize(struct pawl_job *job, uint32_t least, uint32_t most);

struct pawl_report {
  struct pawl_node node;
  const char *host;
  uint64_t pid;
  pawl_status status; /* what the work returned; PAWL_NODE_GONE if it was lost */
  const char *text;   /* why it failed, as pawl_error_text said there */
  const void *bytes;  /* aligned as malloc would align them */
  size_t size;
  uint64_t pieces; /* that it had */
  int64_t took_ns; /* as the worker measured it */
};

/* The results of a round, by worker in the order of joining. They live until it is destroyed. */
PAWL_API size_t pawl_round_count(const struct pawl_round *round);
PAWL_API pawl_status pawl_round_get(const struct pawl_round *round, size_t index, struct pawl_report *report_out);
PAWL_API bool pawl_round_is_whole(const struct pawl_round *round); /* nobody was lost, and none has failed */
PAWL_API void pawl_round_destroy(struct pawl_round *round);        /* NULL is fine */

/* Tells all workers that the job has ended, which makes pawl_worker_run return, and frees it. NULL is fine. */
PAWL_API void pawl_job_end(struct pawl_job *job);

/* --- workers ------------------------------------------------------------------------------------------------------------- */

/* What a worker does. All are called by the thread in pawl_worker_run, one at a time, and may take as long as they like. One that fails
 * says more by pawl_worker_say. `take` and `drop` come between rounds; pieces are told as ranges of numbers. */
struct pawl_worker_calls {
  pawl_status (*begin)(struct pawl_worker *worker, void *context, const void *spec, size_t size); /* once, first */
  pawl_status (*take)(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count);
  pawl_status (*drop)(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count);
  pawl_status (*work)(struct pawl_worker *worker, void *context, const void *argument, size_t size);
  void (*end)(struct pawl_worker *worker, void *context); /* once, last, if begin was called */
};

/* Joins the job of that name, waiting up to `timeout_ns` until there is one, and works until it ends: PAWL_OK. PAWL_CANCELLED if this worker was dropped or is
 * not needed; PAWL_NODE_GONE if the scheduler is lost, or the session stays dead; else what `begin` returned. */
PAWL_API pawl_status pawl_worker_run(struct pawl_session *session, const char *name,
                                     const struct pawl_worker_calls *calls, void *context, int64_t timeout_ns);

/* What the job of that name tells its workers when they begin, without joining it: for programs that can work for jobs of several kinds, and
 * have to know of which this is. Waits up to `timeout_ns` until there is one. At most `room` bytes are written; `*size_out` is how
 * many there are. PAWL_TIMED_OUT if there is no such job, PAWL_TOO_LARGE (PAWL_JOB_BYTES always suffice), PAWL_FORBIDDEN. */
PAWL_API pawl_status pawl_job_spec(struct pawl_session *session, const char *name, int64_t timeout_ns, void *spec_out,
                                   size_t room, size_t *size_out);

/* Inside the calls. */
PAWL_API struct pawl_session *pawl_worker_session(const struct pawl_worker *worker);
PAWL_API struct pawl_group *pawl_worker_group(const struct pawl_worker *worker); /* NULL in `begin` */
PAWL_API uint32_t pawl_worker_count(const struct pawl_worker *worker);           /* of workers in this round */
PAWL_API uint32_t pawl_worker_rank(const struct pawl_worker *worker);            /* of this one among them, from 0 */
PAWL_API bool pawl_worker_is_ending(
    const struct pawl_worker *worker); /* in `work`: the job ended, or the scheduler is lost: return soon */

/* The report: copied, the last one counts. PAWL_TOO_LARGE beyond PAWL_JOB_BYTES, PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_worker_report(struct pawl_worker *worker, const void *bytes, size_t size);

/* Why a call fails, for people; cut to 1023 bytes. */
PAWL_API void pawl_worker_say(struct pawl_worker *worker, const char *format, ...) PAWL_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
