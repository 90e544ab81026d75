/* The scheduler of a job: decides which workers take part, which pieces each has, and what each does next
 * (OSDI'14 2.2, 4.6).
 *
 * This is the scheduler without its network. Its inputs are: a worker asks to join, a worker is lost, a
 * worker answers an order, the caller wants a round, time passes. Its outputs are orders for workers and
 * events for people. It never reads a clock, sends a message or draws a random number: the same inputs
 * give the same outputs. api/job connects it to sessions.
 *
 * LIFE OF A WORKER. A worker asks to join and waits. When a round is wanted and there is room, the
 * scheduler orders it to BEGIN; from then on it counts as one of the job's workers. It is ordered to TAKE
 * and DROP pieces and to WORK, one order at a time. It goes when it is lost, when it refuses an order, or
 * when it has answered the order to LEAVE. A worker's number is never reused.
 *
 * SETTLING. When a round is wanted the scheduler settles: it admits workers, dismisses those that are too
 * many or too slow, and waits for missing ones. Then it orders drops and, once all are answered, takes,
 * until the shares are even. Whenever all orders are answered it makes a new plan from the current state,
 * so a loss in between needs no special handling. A worker owns a piece from the moment it is ordered to
 * take it until it has answered the order to drop it, or is gone. When no order is left to give, all
 * workers are ordered to WORK. The round is over when no worker has an open order to WORK.
 *
 * A round that ends before it has begun (no worker came, or one refused) may leave orders open; the next
 * round waits for them.
 *
 * JOINING IN A ROUND (the option join_in_round; job/join.c). A worker that comes during a round is a newcomer:
 * it is ordered to BEGIN at once, and all workers that are at work are ordered to YIELD pieces. YIELD is the
 * only order that comes beside another one. A worker that yields pieces has not begun them in this round and
 * never will, and has dropped them. When all have answered, newcomers TAKE what was yielded, and WORK on it.
 * So in a round every piece has one worker, whose report counts it. A newcomer for which nothing was yielded
 * waits for the next round and has no report.
 *
 * Threads: a scheduler belongs to one thread at a time.
 */
#ifndef PWI_JOB_SCHEDULER_H
#define PWI_JOB_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/job.h>

#include "job/shares.h"

struct pwi_scheduler;

#define PWI_SCHEDULER_HOST 255  /* characters of a host name that are kept */
#define PWI_SCHEDULER_TEXT 1023 /* characters of a worker's explanation that are kept */
#define PWI_SCHEDULER_SLOW 3    /* consecutive slow rounds after which a worker may be dismissed */
#define PWI_SCHEDULER_NEVER INT64_MAX

struct pwi_scheduler_options {
  uint64_t pieces;
  uint32_t least, most;
  enum pawl_on_loss on_loss;
  int64_t patience_ns;
  double drop_slowest;
  bool join_in_round;
};

/* PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_scheduler_create(const struct pwi_scheduler_options *options,
                                               struct pwi_scheduler **scheduler_out);
void pwi_scheduler_destroy(struct pwi_scheduler *scheduler); /* NULL is fine */

/* --- inputs --------------------------------------------------------------------------------------------- */

/* Identifies a worker. Numbers increase in the order of joining. */
struct pwi_worker_name {
  uint64_t number, node, pid;
  char host[PWI_SCHEDULER_HOST + 1];
};

/* A worker asks to join. PAWL_NO_MEMORY: as if it had not asked. */
PAWL_MUST_USE pawl_status pwi_scheduler_join(struct pwi_scheduler *scheduler, const struct pwi_worker_name *name);

/* A worker is dead or gone. Unknown numbers are ignored, here and below. */
void pwi_scheduler_lost(struct pwi_scheduler *scheduler, uint64_t number);

/* A worker has answered its order. A worker that could not begin, take or drop is removed. */
struct pwi_scheduler_answer {
  pawl_status status;
  const char *text; /* the reason for a failure; may be NULL */
  int64_t took_ns;  /* duration of WORK */
  uint64_t tick;    /* the tick that the worker has reached in the workers' group */
};

void pwi_scheduler_answered(struct pwi_scheduler *scheduler, uint64_t number,
                            const struct pwi_scheduler_answer *answer);

/* A worker has answered its order to YIELD, with pieces that it has dropped. PAWL_INVALID if these were not its
 * own, PAWL_NO_MEMORY: nothing is certain about its pieces any more, so the caller must report it as lost. */
PAWL_MUST_USE pawl_status pwi_scheduler_yielded(struct pwi_scheduler *scheduler, uint64_t number,
                                                const struct pawl_range *pieces, size_t count);

/* Asks for a round. PAWL_INVALID if a round is under way. */
PAWL_MUST_USE pawl_status pwi_scheduler_want(struct pwi_scheduler *scheduler);

/* Sets the number of workers from the next round on. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_scheduler_resize(struct pwi_scheduler *scheduler, uint32_t least, uint32_t most);

/* Sets the time to `now`, which never decreases, and decides what to do. Call it after every input, then
 * fetch orders and events. */
void pwi_scheduler_advance(struct pwi_scheduler *scheduler, int64_t now);

/* --- outputs -------------------------------------------------------------------------------------------- */

enum pwi_job_order_kind {
  PWI_JOB_ORDER_BEGIN = 1,
  PWI_JOB_ORDER_TAKE = 2,
  PWI_JOB_ORDER_DROP = 3,
  PWI_JOB_ORDER_WORK = 4,
  PWI_JOB_ORDER_LEAVE = 5,
  PWI_JOB_ORDER_YIELD = 6,
};

struct pwi_scheduler_order {
  enum pwi_job_order_kind kind;
  struct pwi_worker_name name;
  const struct pawl_range *pieces; /* TAKE and DROP: valid until the next input */
  size_t piece_count;
  /* TAKE, DROP, WORK: its rank, and the number of workers. YIELD: `rank` newcomers and the workers that yield,
   * together `workers`, are to share what these have not begun */
  uint32_t rank, workers;
  uint64_t tick; /* WORK: the highest tick that any worker has reached */
};

/* The next order that was not handed out yet; false: none. Every order must be answered, or its worker
 * lost. */
bool pwi_scheduler_next_order(struct pwi_scheduler *scheduler, struct pwi_scheduler_order *order_out);

/* How many more workers to start, since the last call. */
uint32_t pwi_scheduler_starts(struct pwi_scheduler *scheduler);

/* A worker that was started will not come. */
void pwi_scheduler_start_failed(struct pwi_scheduler *scheduler);

struct pwi_scheduler_event {
  enum pawl_job_what what;
  struct pwi_worker_name name; /* zeros if the event concerns no worker */
  uint32_t workers;
  uint64_t pieces;
  char text[PWI_SCHEDULER_TEXT + 1];
};

/* The next event that was not returned yet. Events are dropped if memory is short. */
bool pwi_scheduler_next_event(struct pwi_scheduler *scheduler, struct pwi_scheduler_event *event_out);

/* The latest time for the next call of pwi_scheduler_advance, if there is no input before. */
int64_t pwi_scheduler_wake_at(const struct pwi_scheduler *scheduler);

/* --- rounds --------------------------------------------------------------------------------------------- */

enum pwi_scheduler_state {
  PWI_SCHEDULER_RESTING,
  PWI_SCHEDULER_SETTLING,
  PWI_SCHEDULER_WORKING,
  PWI_SCHEDULER_OVER, /* the round is over and not yet closed */
};

struct pwi_scheduler_report {
  struct pwi_worker_name name;
  bool is_open; /* the worker is still working */
  pawl_status status;
  uint64_t pieces;
  int64_t took_ns;
  char text[PWI_SCHEDULER_TEXT + 1];
};

enum pwi_scheduler_state pwi_scheduler_state(const struct pwi_scheduler *scheduler);

/* The result of a round that is over. PAWL_OK: there are reports. PAWL_NODE_GONE, PAWL_REFUSED,
 * PAWL_NO_MEMORY: there is no result, and `*text_out` says why. */
pawl_status pwi_scheduler_verdict(const struct pwi_scheduler *scheduler, const char **text_out);

/* One report per worker, in the order of joining, newcomers of the round last. Valid until the next call of
 * pwi_scheduler_advance, or until the round is closed. */
const struct pwi_scheduler_report *pwi_scheduler_reports(const struct pwi_scheduler *scheduler, size_t *count_out);

/* Closes a round that is over. The caller gets the reports and frees them with pwi_free. */
struct pwi_scheduler_report *pwi_scheduler_close(struct pwi_scheduler *scheduler, size_t *count_out);

/* --- inspection ----------------------------------------------------------------------------------------- */

/* Whether the worker has asked to join and is not gone. */
bool pwi_scheduler_has(const struct pwi_scheduler *scheduler, uint64_t number);

/* The number of workers that have begun, and the pieces of the worker at `index` among them. */
size_t pwi_scheduler_count(const struct pwi_scheduler *scheduler);
const struct pwi_rangeset *pwi_scheduler_pieces(const struct pwi_scheduler *scheduler, size_t index,
                                                uint64_t *number_out);

#endif
