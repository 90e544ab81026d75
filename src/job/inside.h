/* The scheduler, inside: job/scheduler.c takes in what happens and hands out what is to be done, job/settle.c decides. */
#ifndef PWI_JOB_INSIDE_H
#define PWI_JOB_INSIDE_H

#include "job/scheduler.h"

/* A worker that has asked to join, and is not gone. */
struct pwi_crew_member {
  struct pwi_worker_name name;
  struct pwi_share share;         /* what it has, with what it is being ordered to take or drop */
  bool has_begun;                 /* it is one of the workers */
  enum pwi_crew_order_kind order; /* that it has not answered; 0: none */
  bool is_handed_out;             /* the order was */
  uint32_t rank;                  /* in this round */
  size_t report;                  /* its index in this round */
  uint32_t slow_rounds;           /* how many in a row it was slow in */
  double pace;                    /* nanoseconds a piece in the last round */
};

struct pwi_crew_event {
  struct pwi_crew_event *next;
  struct pwi_scheduler_event event;
};

struct pwi_scheduler {
  struct pwi_scheduler_options options;
  struct pwi_crew_member **members; /* by rising number */
  size_t member_count, member_room;
  struct pwi_share **shares; /* room for as many: what plans are made with */

  enum pwi_scheduler_state state;
  uint32_t wanted;     /* workers: no round begins with fewer */
  uint32_t asked;      /* that were started and have not asked to join yet */
  uint32_t to_start;   /* that have to be started now */
  bool is_founded;     /* a round has begun */
  bool is_stopped;     /* one was lost, and that is the end of it */
  bool is_waiting;     /* for workers, until */
  int64_t deadline;    /* then; and */
  int64_t tell_at;     /* then somebody is told */
  uint64_t moved;      /* pieces that were ordered to be taken since the last round */
  uint64_t tick;       /* the highest that any worker has reached */
  uint32_t round_size; /* workers that the round began with */

  struct pwi_scheduler_report *reports;
  size_t report_count;
  pawl_status verdict;
  char problem[PWI_SCHEDULER_TEXT + PWI_SCHEDULER_HOST + 128];
  char loss[PWI_SCHEDULER_HOST + 128]; /* why it is stopped */

  struct pwi_crew_event *events, **events_end;
};

uint32_t pwi_crew_begun(const struct pwi_scheduler *scheduler); /* how many have begun */
bool pwi_crew_is_at(const struct pwi_scheduler *scheduler,
                    enum pwi_crew_order_kind order); /* anybody; 0: at anything */

/* NULL for `member`: none is concerned; for `text`: nothing to add. */
void pwi_crew_tell(struct pwi_scheduler *scheduler, enum pawl_job_what what, const struct pwi_crew_member *member,
                   uint64_t pieces, const char *text);

/* Takes it out and frees it: what it had is nobody's. */
void pwi_crew_remove(struct pwi_scheduler *scheduler, struct pwi_crew_member *member);

/* The round that is under way is over, with a verdict and words for it. Does nothing if none is. */
void pwi_scheduler_end_round(struct pwi_scheduler *scheduler, pawl_status verdict, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* All workers have reported or are gone: who was slow? */
void pwi_scheduler_judge_pace(struct pwi_scheduler *scheduler);

/* While settling: the next step, if the last one is done. */
void pwi_scheduler_settle(struct pwi_scheduler *scheduler, int64_t now);

#endif
