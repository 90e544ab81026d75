/* During a round: admits workers, asks for pieces for them, and shares out those that were yielded (OSDI'14
 * 4.6). */
#include "base/memory.h"
#include "job/inside.h"

/* A newcomer has begun and has no report. PART_ASKED: nothing has been yielded for it yet. */
static bool is_newcomer(const struct pwi_job_worker *member, enum pwi_job_part part) {
  return member->has_begun && member->part == part;
}

static uint32_t count_newcomers(const struct pwi_scheduler *scheduler, enum pwi_job_part part) {
  uint32_t count = 0;
  for (size_t i = 0; i < scheduler->member_count; i++) count += is_newcomer(scheduler->members[i], part);
  return count;
}

/* --- asking --------------------------------------------------------------------------------------------- */

/* Reports of all newcomers, and one of a newcomer that is lost: no piece is yielded in vain for lack of
 * memory. */
static bool make_room(struct pwi_scheduler *scheduler, size_t newcomers) {
  size_t room = scheduler->report_count + newcomers + 1;
  struct pwi_scheduler_report *reports = pwi_resize_array(scheduler->reports, room, sizeof *reports);
  if (!reports) return false;
  scheduler->reports = reports;
  return true;
}

/* Asks once for each newcomer. Those that got nothing before may get something now. */
static void ask_for_pieces(struct pwi_scheduler *scheduler) {
  uint32_t count = count_newcomers(scheduler, PWI_JOB_PART_NONE), at_work = 0;
  uint32_t newcomers = count + count_newcomers(scheduler, PWI_JOB_PART_ASKED);
  if (count == 0 || !make_room(scheduler, newcomers)) return;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (is_newcomer(member, PWI_JOB_PART_NONE)) member->part = PWI_JOB_PART_ASKED;
    if (member->order != PWI_JOB_ORDER_WORK || pwi_rangeset_is_empty(&member->share.has)) continue;
    member->owes_yield = true;
    member->is_yield_handed_out = false;
    at_work++;
  }
  scheduler->newcomers = newcomers;
  scheduler->sharers = newcomers + at_work;
}

/* --- sharing out ---------------------------------------------------------------------------------------- */

static void add_report(struct pwi_scheduler *scheduler, const struct pwi_scheduler_report *report) {
  scheduler->reports[scheduler->report_count++] = *report;
}

/* Moves the first `count` pieces. Taking from the front of a set needs no memory. */
static pawl_status move_front(struct pwi_rangeset *from, uint64_t count, struct pwi_rangeset *to) {
  pawl_status status = PAWL_OK;
  while (count > 0 && !status) {
    struct pawl_range run = from->ranges[0];
    if (pawl_range_size(run) > count) run.end = run.begin + count;
    status = pwi_rangeset_add(to, run);
    if (!status) status = pwi_rangeset_remove(from, run);
    count -= pawl_range_size(run);
  }
  return status;
}

static pawl_status give(struct pwi_scheduler *scheduler, struct pwi_job_worker *member, uint64_t pieces) {
  pwi_rangeset_clear(&member->share.takes);
  pawl_status status = move_front(&scheduler->yielded, pieces, &member->share.takes);
  if (!status) status = pwi_scheduler_order_take(scheduler, member);
  if (status) return status;
  member->part = PWI_JOB_PART_REPORTS;
  member->rank = scheduler->round_size++;
  member->report = scheduler->report_count;
  add_report(scheduler, &(struct pwi_scheduler_report){.name = member->name, .is_open = true, .pieces = pieces});
  return PAWL_OK;
}

/* All newcomers were lost in the meantime: no worker has these pieces in this round. */
static void give_up(struct pwi_scheduler *scheduler) {
  add_report(scheduler, &(struct pwi_scheduler_report){.name = scheduler->lost_newcomer,
                                                       .status = PAWL_NODE_GONE,
                                                       .text = "lost",
                                                       .pieces = pwi_rangeset_size(&scheduler->yielded)});
  pwi_rangeset_clear(&scheduler->yielded);
}

static void share_out(struct pwi_scheduler *scheduler) {
  uint32_t left = count_newcomers(scheduler, PWI_JOB_PART_ASKED);
  pawl_status status = PAWL_OK;
  if (left == 0) give_up(scheduler);
  for (size_t i = 0; i < scheduler->member_count && !status; i++) {
    uint64_t pieces = pwi_rangeset_size(&scheduler->yielded);
    if (!is_newcomer(scheduler->members[i], PWI_JOB_PART_ASKED)) continue;
    pieces = pieces / left + (pieces % left > 0);
    left--;
    if (pieces > 0) status = give(scheduler, scheduler->members[i], pieces);
  }
  if (scheduler->moved > 0) pwi_scheduler_tell(scheduler, PAWL_JOB_MOVED, NULL, scheduler->moved, NULL);
  scheduler->moved = 0;
  if (status) pwi_scheduler_end_round(scheduler, status, "not enough memory to divide the pieces");
}

/* One question at a time: it ends before a worker that came in the meantime is asked for. */
void pwi_scheduler_join_round(struct pwi_scheduler *scheduler) {
  (void)pwi_scheduler_let_in(scheduler);
  for (size_t i = 0; i < scheduler->member_count; i++)
    if (scheduler->members[i]->owes_yield) return;
  if (!pwi_rangeset_is_empty(&scheduler->yielded)) share_out(scheduler);
  if (scheduler->state == PWI_SCHEDULER_WORKING) ask_for_pieces(scheduler);
}
