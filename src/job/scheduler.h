/* The scheduler of a job: who its workers are, which pieces are whose, and what each is to do next (OSDI'14 2.2, 4.6).
 *
 * This is the scheduler without its network: it is told who asks to join, who is lost, what orders came to, that a round is wanted,
 * and what time it is; and hands out orders for workers, and events for people. It never reads a clock, sends, or draws random numbers:
 * the same inputs give the same outputs. api/job.h binds it to sessions.
 *
 * LIFE OF A WORKER. It asks to join and waits. When a round is wanted and there is room it is ordered to BEGIN, and is then one of
 * the workers. It is ordered to TAKE and DROP pieces, and to WORK; never two things at once. It goes when it is lost, when it refuses (it then goes by
 * itself), or when it has answered the order to LEAVE. A number stands for one such life and is never used again.
 *
 * SETTLING. When a round is wanted the scheduler settles: lets workers in, lets go who is too many or too slow, waits for those who are missing,
 * then orders drops, and when all are answered takes, until shares are even. It plans anew from what is the case whenever all orders are answered,
 * so losses on the way need no thought. A piece is its owner's from the moment it is ordered to take it until it has answered the order to drop it,
 * or is gone. When there is nothing left to do all are ordered to WORK, and the round is over when none of them has that to do any more.
 *
 * A round that is over without having begun (nobody came, somebody refused) may leave orders open; the next one waits for them.
 *
 * Threads: belongs to one at a time.
 */
#ifndef PWI_JOB_SCHEDULER_H
#define PWI_JOB_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/job.h>

#include "job/shares.h"

struct pwi_scheduler;

#define PWI_SCHEDULER_HOST 255  /* characters of a host's name that are kept */
#define PWI_SCHEDULER_TEXT 1023 /* of what a worker says */
#define PWI_SCHEDULER_SLOW 3    /* rounds in which one may be slow */
#define PWI_SCHEDULER_NEVER INT64_MAX

struct pwi_scheduler_options {
  uint64_t pieces;
  uint32_t least, most;
  enum pawl_on_loss on_loss;
  int64_t patience_ns;
  double drop_slowest;
};

/* PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_scheduler_create(const struct pwi_scheduler_options *options,
                                               struct pwi_scheduler **scheduler_out);
void pwi_scheduler_destroy(struct pwi_scheduler *scheduler); /* NULL is fine */

/* --- what happens ------------------------------------------------------------------------------------------------------ */

/* Who a worker is. Of one life numbers only rise. */
struct pwi_worker_name {
  uint64_t number, node, pid;
  char host[PWI_SCHEDULER_HOST + 1];
};

/* Asks to join. PAWL_NO_MEMORY: it is as if it had not asked. */
PAWL_MUST_USE pawl_status pwi_scheduler_join(struct pwi_scheduler *scheduler, const struct pwi_worker_name *name);

/* Is dead, or gone. Numbers that are not known any more are fine, here and below. */
void pwi_scheduler_lost(struct pwi_scheduler *scheduler, uint64_t number);

/* Has done as it was ordered, or not. Whoever could not begin, take or drop goes by itself. */
struct pwi_crew_answer {
  pawl_status status;
  const char *text; /* why not; may be NULL */
  int64_t took_ns;  /* of WORK */
  uint64_t tick;    /* that it has reached in the workers' group */
};

void pwi_scheduler_answered(struct pwi_scheduler *scheduler, uint64_t number, const struct pwi_crew_answer *answer);

/* A round is wanted. PAWL_INVALID if one is under way. */
PAWL_MUST_USE pawl_status pwi_scheduler_want(struct pwi_scheduler *scheduler);

/* So many workers from the next round on. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_scheduler_resize(struct pwi_scheduler *scheduler, uint32_t least, uint32_t most);

/* It is `now`, which never runs back. After it, what is to be done is handed out: whenever anything has happened. */
void pwi_scheduler_advance(struct pwi_scheduler *scheduler, int64_t now);

/* --- what is to be done ------------------------------------------------------------------------------------------------- */

enum pwi_crew_order_kind {
  PWI_CREW_BEGIN = 1,
  PWI_CREW_TAKE = 2,
  PWI_CREW_DROP = 3,
  PWI_CREW_WORK = 4,
  PWI_CREW_LEAVE = 5,
};

struct pwi_crew_order {
  enum pwi_crew_order_kind kind;
  struct pwi_worker_name name;
  const struct pawl_range *pieces; /* TAKE and DROP: valid until the scheduler is told something */
  size_t piece_count;
  uint32_t rank, workers; /* TAKE, DROP, WORK */
  uint64_t tick;          /* WORK: the highest that any has reached */
};

/* The next order that was not handed out yet; false: there is none. Each has to be answered, or its worker lost. */
bool pwi_scheduler_next_order(struct pwi_scheduler *scheduler, struct pwi_crew_order *order_out);

/* How many more workers should be started: since it was asked last. */
uint32_t pwi_scheduler_starts(struct pwi_scheduler *scheduler);

/* One that was started will not come. */
void pwi_scheduler_start_failed(struct pwi_scheduler *scheduler);

struct pwi_scheduler_event {
  enum pawl_job_what what;
  struct pwi_worker_name name; /* zeros if none is concerned */
  uint32_t workers;
  uint64_t pieces;
  char text[PWI_SCHEDULER_TEXT + 1];
};

/* The next event that was not told yet. What there is no memory for is not told. */
bool pwi_scheduler_next_event(struct pwi_scheduler *scheduler, struct pwi_scheduler_event *event_out);

/* When to advance at the latest although nothing happens. */
int64_t pwi_scheduler_wake_at(const struct pwi_scheduler *scheduler);

/* --- rounds ------------------------------------------------------------------------------------------------------------- */

enum pwi_scheduler_state {
  PWI_SCHEDULER_RESTING,
  PWI_SCHEDULER_SETTLING,
  PWI_SCHEDULER_WORKING,
  PWI_SCHEDULER_OVER, /* the round that was wanted: until it is closed */
};

struct pwi_scheduler_report {
  struct pwi_worker_name name;
  bool is_open; /* the worker is still at it */
  pawl_status status;
  uint64_t pieces;
  int64_t took_ns;
  char text[PWI_SCHEDULER_TEXT + 1];
};

enum pwi_scheduler_state pwi_scheduler_state(const struct pwi_scheduler *scheduler);

/* Of a round that is over: PAWL_OK, and there are reports; or why there is no result, which `text` says in words: PAWL_NODE_GONE, PAWL_REFUSED,
 * PAWL_NO_MEMORY. */
pawl_status pwi_scheduler_verdict(const struct pwi_scheduler *scheduler, const char **text_out);

/* By worker, in the order of joining. Valid until the round is closed. */
const struct pwi_scheduler_report *pwi_scheduler_reports(const struct pwi_scheduler *scheduler, size_t *count_out);

/* Closes a round that is over: it rests. The reports become the caller's: freed with pwi_free. */
struct pwi_scheduler_report *pwi_scheduler_close(struct pwi_scheduler *scheduler, size_t *count_out);

/* --- for those who look at it -------------------------------------------------------------------------------------------- */

/* Whether it has asked to join, and is not gone. */
bool pwi_scheduler_has(const struct pwi_scheduler *scheduler, uint64_t number);

/* Workers that have begun, and worker number `index` of them: its pieces. */
size_t pwi_scheduler_count(const struct pwi_scheduler *scheduler);
const struct pwi_rangeset *pwi_scheduler_pieces(const struct pwi_scheduler *scheduler, size_t index,
                                                uint64_t *number_out);

#endif
