/* The scheduler, inside. job/scheduler.c handles inputs and hands out orders and events; job/settle.c
 * decides before a round, and job/join.c during one. */
#ifndef PWI_JOB_INSIDE_H
#define PWI_JOB_INSIDE_H

#include "job/scheduler.h"

/* How a worker takes part in the round that is under way. */
enum pwi_job_part {
  PWI_JOB_PART_NONE,    /* not at all: it came after the round had begun */
  PWI_JOB_PART_ASKED,   /* the others are asked, or were asked, to yield pieces to it */
  PWI_JOB_PART_REPORTS, /* it has a report */
};

/* A worker that has asked to join and is not gone. */
struct pwi_job_worker {
  struct pwi_worker_name name;
  struct pwi_share share;        /* its pieces, including those that it was ordered to take or drop */
  bool has_begun;                /* it has been ordered to BEGIN and counts as one of the job's workers */
  enum pwi_job_order_kind order; /* the order that it has not answered; 0: none */
  bool is_handed_out;            /* pwi_scheduler_next_order has returned that order */
  bool owes_yield;               /* it has not answered the order to YIELD, which may come beside another one */
  bool is_yield_handed_out;      /* pwi_scheduler_next_order has returned that order */
  enum pwi_job_part part;
  uint32_t rank;        /* its rank in this round */
  size_t report;        /* index of its report in this round */
  uint32_t slow_rounds; /* consecutive rounds in which it was slow */
  double pace;          /* nanoseconds per piece in the last round */
};

struct pwi_scheduler_event_item {
  struct pwi_scheduler_event_item *next;
  struct pwi_scheduler_event event;
};

struct pwi_scheduler {
  struct pwi_scheduler_options options;
  struct pwi_job_worker **members; /* by ascending node, then number */
  size_t member_count, member_room;
  struct pwi_share **shares; /* room for the shares of all members while a plan is made */

  enum pwi_scheduler_state state;
  uint32_t wanted;     /* no round begins with fewer workers */
  uint32_t asked;      /* workers that were started and have not asked to join yet */
  uint32_t to_start;   /* workers that the caller must start now */
  bool is_founded;     /* a round has begun */
  bool is_stopped;     /* the job has ended because a worker was lost */
  bool is_waiting;     /* the scheduler waits for workers to come */
  int64_t deadline;    /* when it stops waiting */
  int64_t tell_at;     /* when it reports that it waits */
  uint64_t moved;      /* pieces that workers were ordered to take since the last round */
  uint64_t tick;       /* the highest tick that any worker has reached */
  uint32_t round_size; /* workers of the round so far */

  struct pwi_rangeset yielded;          /* pieces that are to go to newcomers of this round */
  uint32_t newcomers, sharers;          /* YIELD: so many newcomers, and so many workers with them */
  struct pwi_worker_name lost_newcomer; /* the last newcomer that was lost before it got pieces */

  struct pwi_scheduler_report *reports;
  size_t report_count;
  pawl_status verdict;
  char problem[PWI_SCHEDULER_TEXT + PWI_SCHEDULER_HOST + 128];
  char loss[PWI_SCHEDULER_HOST + 128]; /* why the job has ended */

  struct pwi_scheduler_event_item *events, **events_end;
};

uint32_t pwi_scheduler_begun(const struct pwi_scheduler *scheduler); /* number of workers that have begun */
bool pwi_scheduler_is_at(
    const struct pwi_scheduler *scheduler,
    enum pwi_job_order_kind order); /* whether any worker has an open order of this kind; 0: of any kind */

/* Give a worker an order. The second one makes it the owner of the pieces in its `takes`. PAWL_NO_MEMORY: it
 * has no new order. */
void pwi_scheduler_order(struct pwi_job_worker *member, enum pwi_job_order_kind kind);
PAWL_MUST_USE pawl_status pwi_scheduler_order_take(struct pwi_scheduler *scheduler, struct pwi_job_worker *member);

/* Has the caller start workers, if more are required than have come or were started. */
void pwi_scheduler_ask_for_more(struct pwi_scheduler *scheduler);

/* Orders waiting workers to BEGIN. True if there is no room for all of them. */
bool pwi_scheduler_let_in(struct pwi_scheduler *scheduler);

/* Appends an event. `member` NULL: it concerns no worker; `text` NULL: no explanation. */
void pwi_scheduler_tell(struct pwi_scheduler *scheduler, enum pawl_job_what what, const struct pwi_job_worker *member,
                        uint64_t pieces, const char *text);

/* Removes and frees a member. Its pieces are then without an owner. */
void pwi_scheduler_remove(struct pwi_scheduler *scheduler, struct pwi_job_worker *member);

/* Ends the round that is under way with a verdict and its explanation. Does nothing if no round is under
 * way. */
void pwi_scheduler_end_round(struct pwi_scheduler *scheduler, pawl_status verdict, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* Finds slow workers, once all workers of a round have reported or are gone. */
void pwi_scheduler_judge_pace(struct pwi_scheduler *scheduler);

/* While settling: takes the next step if all orders of the last one are answered. */
void pwi_scheduler_settle(struct pwi_scheduler *scheduler, int64_t now);

/* During a round of a job with `join_in_round`: admits workers, asks for pieces for them, and shares out
 * those that were yielded. */
void pwi_scheduler_join_round(struct pwi_scheduler *scheduler);

#endif
