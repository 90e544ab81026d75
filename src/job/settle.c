/* Before a round: decides which workers take part, and which pieces each has. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "job/inside.h"

#define SECOND INT64_C(1000000000)

void pwi_scheduler_order(struct pwi_job_worker *member, enum pwi_job_order_kind kind) {
  member->order = kind;
  member->is_handed_out = false;
}

/* --- slow workers --------------------------------------------------------------------------------------- */

static int by_size(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

/* The median of nanoseconds per piece; of an even number the lower one, so of two workers the faster
 * counts. 0: fewer than two workers. */
static double median_pace(const struct pwi_scheduler *scheduler) {
  double *paces = pwi_alloc_zero(scheduler->member_count + 1, sizeof *paces);
  size_t count = 0;
  for (size_t i = 0; i < scheduler->member_count && paces; i++)
    if (scheduler->members[i]->pace > 0) paces[count++] = scheduler->members[i]->pace;
  double median = 0;
  if (count > 1) {
    qsort(paces, count, sizeof *paces, by_size);
    median = paces[(count - 1) / 2];
  }
  pwi_free(paces);
  return median;
}

void pwi_scheduler_judge_pace(struct pwi_scheduler *scheduler) {
  double limit = scheduler->options.drop_slowest;
  if (limit == 0) return;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    member->pace = 0;
    if (!member->has_begun || member->report >= scheduler->report_count) continue;
    const struct pwi_scheduler_report *report = &scheduler->reports[member->report];
    if (report->name.number == member->name.number && report->pieces > 0 && !report->status)
      member->pace = (double)report->took_ns / (double)report->pieces;
  }
  double median = median_pace(scheduler);
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    bool is_slow = median > 0 && member->pace > limit * median;
    member->slow_rounds = is_slow ? member->slow_rounds + 1 : 0;
  }
}

/* --- participants --------------------------------------------------------------------------------------- */

/* Counts workers that have begun or are beginning. */
static uint32_t count_come(const struct pwi_scheduler *scheduler) {
  uint32_t count = 0;
  for (size_t i = 0; i < scheduler->member_count; i++)
    count += scheduler->members[i]->has_begun || scheduler->members[i]->order == PWI_JOB_ORDER_BEGIN;
  return count;
}

bool pwi_scheduler_let_in(struct pwi_scheduler *scheduler) {
  uint32_t count = count_come(scheduler);
  bool has_waiting = false;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (member->has_begun || member->order != 0) continue;
    has_waiting = true;
    if (count >= scheduler->options.most) break;
    pwi_scheduler_order(member, PWI_JOB_ORDER_BEGIN);
    count++;
    has_waiting = false;
  }
  return has_waiting;
}

static struct pwi_job_worker *find_slowest(const struct pwi_scheduler *scheduler) {
  struct pwi_job_worker *slowest = NULL;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (!member->has_begun || member->slow_rounds < PWI_SCHEDULER_SLOW) continue;
    if (!slowest || member->pace > slowest->pace) slowest = member;
  }
  return slowest;
}

/* Only if enough workers remain, or one waits to take the place. Then all counts of slow rounds restart,
 * because shares have changed. */
static void let_go_slowest(struct pwi_scheduler *scheduler, bool has_waiting) {
  struct pwi_job_worker *slowest = find_slowest(scheduler);
  uint32_t left = pwi_scheduler_begun(scheduler) - 1;
  if (!slowest || (left < scheduler->options.least && !has_waiting)) return;
  if (!has_waiting && scheduler->wanted > left) scheduler->wanted = left;
  slowest->has_begun = false;
  pwi_scheduler_order(slowest, PWI_JOB_ORDER_LEAVE);
  pwi_scheduler_tell(scheduler, PAWL_JOB_DROPPED, slowest, 0, NULL);
  for (size_t i = 0; i < scheduler->member_count; i++) scheduler->members[i]->slow_rounds = 0;
}

/* Dismisses surplus workers, the youngest first. */
static void let_go_surplus(struct pwi_scheduler *scheduler) {
  uint32_t count = pwi_scheduler_begun(scheduler);
  for (size_t i = scheduler->member_count; i-- > 0 && count > scheduler->options.most;) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (!member->has_begun) continue;
    member->has_begun = false;
    pwi_scheduler_order(member, PWI_JOB_ORDER_LEAVE);
    count--;
  }
}

/* --- missing workers ------------------------------------------------------------------------------------ */

void pwi_scheduler_ask_for_more(struct pwi_scheduler *scheduler) {
  uint32_t coming = count_come(scheduler) + scheduler->asked;
  if (coming >= scheduler->wanted) return;
  scheduler->to_start += scheduler->wanted - coming;
  scheduler->asked += scheduler->wanted - coming;
}

static void begin_waiting(struct pwi_scheduler *scheduler, int64_t now) {
  int64_t deadline;
  if (scheduler->is_waiting) return;
  scheduler->is_waiting = true;
  scheduler->deadline =
      __builtin_add_overflow(now, scheduler->options.patience_ns, &deadline) ? PWI_SCHEDULER_NEVER : deadline;
  scheduler->tell_at = now + SECOND;
}

/* No more workers will come. A job that has never had its least number does not continue with fewer. */
static bool go_on_without(struct pwi_scheduler *scheduler, uint32_t have) {
  scheduler->is_waiting = false;
  scheduler->asked = 0;
  if (have > 0 && scheduler->is_founded) {
    scheduler->wanted = have;
    return true;
  }
  pwi_scheduler_end_round(scheduler, PAWL_NODE_GONE, "%" PRIu32 " of %" PRIu32 " workers came within %.3g s", have,
                          scheduler->wanted, (double)scheduler->options.patience_ns / (double)SECOND);
  return false;
}

static bool are_enough(struct pwi_scheduler *scheduler, int64_t now) {
  uint32_t have = count_come(scheduler);
  if (have >= scheduler->wanted) {
    scheduler->is_waiting = false;
    return true;
  }
  begin_waiting(scheduler, now);
  if (now >= scheduler->deadline) return go_on_without(scheduler, have);
  pwi_scheduler_ask_for_more(scheduler);
  if (now >= scheduler->tell_at) {
    pwi_scheduler_tell(scheduler, PAWL_JOB_WAITING, NULL, 0, NULL);
    scheduler->tell_at = now + SECOND;
  }
  return false;
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static pawl_status plan(struct pwi_scheduler *scheduler) {
  uint32_t count = 0;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (!member->has_begun) continue;
    member->rank = count;
    scheduler->shares[count++] = &member->share;
  }
  scheduler->round_size = count;
  return pwi_shares_plan(scheduler->shares, count, scheduler->options.pieces);
}

static bool order_drops(struct pwi_scheduler *scheduler) {
  bool is_any = false;
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (!member->has_begun || pwi_rangeset_is_empty(&member->share.drops)) continue;
    pwi_scheduler_order(member, PWI_JOB_ORDER_DROP);
    is_any = true;
  }
  return is_any;
}

pawl_status pwi_scheduler_order_take(struct pwi_scheduler *scheduler, struct pwi_job_worker *member) {
  pawl_status status = pwi_rangeset_add_all(&member->share.has, &member->share.takes);
  if (status) return status;
  scheduler->moved += pwi_rangeset_size(&member->share.takes);
  pwi_scheduler_order(member, PWI_JOB_ORDER_TAKE);
  return PAWL_OK;
}

static pawl_status order_takes(struct pwi_scheduler *scheduler) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < scheduler->member_count && !status; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (member->has_begun && !pwi_rangeset_is_empty(&member->share.takes))
      status = pwi_scheduler_order_take(scheduler, member);
  }
  return status;
}

/* --- the beginning -------------------------------------------------------------------------------------- */

static void begin_round(struct pwi_scheduler *scheduler) {
  uint32_t count = scheduler->round_size;
  struct pwi_scheduler_report *reports = pwi_alloc_zero(count, sizeof *reports);
  if (!reports) {
    pwi_scheduler_end_round(scheduler, PAWL_NO_MEMORY, "not enough memory for the reports of %" PRIu32 " workers",
                            count);
    return;
  }
  if (scheduler->is_founded && scheduler->moved > 0)
    pwi_scheduler_tell(scheduler, PAWL_JOB_MOVED, NULL, scheduler->moved, NULL);
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    member->part = member->has_begun ? PWI_JOB_PART_REPORTS : PWI_JOB_PART_NONE;
    if (!member->has_begun) continue;
    reports[member->rank] = (struct pwi_scheduler_report){
        .name = member->name, .is_open = true, .pieces = pwi_rangeset_size(&member->share.has)};
    member->report = member->rank;
    pwi_scheduler_order(member, PWI_JOB_ORDER_WORK);
  }
  pwi_rangeset_clear(&scheduler->yielded);
  scheduler->moved = 0;
  scheduler->is_founded = true;
  scheduler->reports = reports;
  scheduler->report_count = count;
  scheduler->state = PWI_SCHEDULER_WORKING;
}

void pwi_scheduler_settle(struct pwi_scheduler *scheduler, int64_t now) {
  bool has_waiting = pwi_scheduler_let_in(scheduler);
  if (!are_enough(scheduler, now) || pwi_scheduler_is_at(scheduler, 0)) return;
  let_go_surplus(scheduler);
  let_go_slowest(scheduler, has_waiting);
  if (pwi_scheduler_is_at(scheduler, 0)) return;
  pawl_status status = plan(scheduler);
  if (!status && order_drops(scheduler)) return;
  if (!status) status = order_takes(scheduler);
  if (status)
    pwi_scheduler_end_round(scheduler, status, "not enough memory to divide the pieces");
  else if (!pwi_scheduler_is_at(scheduler, 0))
    begin_round(scheduler);
}
