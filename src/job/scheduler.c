/* Inputs and outputs of the scheduler. job/settle.c makes the decisions while settling, and job/join.c those
 * during a round. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "job/inside.h"

/* --- workers -------------------------------------------------------------------------------------------- */

uint32_t pwi_scheduler_begun(const struct pwi_scheduler *scheduler) {
  uint32_t count = 0;
  for (size_t i = 0; i < scheduler->member_count; i++) count += scheduler->members[i]->has_begun;
  return count;
}

bool pwi_scheduler_is_at(const struct pwi_scheduler *scheduler, enum pwi_job_order_kind order) {
  for (size_t i = 0; i < scheduler->member_count; i++) {
    enum pwi_job_order_kind is_at = scheduler->members[i]->order;
    if (is_at != 0 && (order == 0 || order == is_at)) return true;
  }
  return false;
}

static struct pwi_job_worker *find(const struct pwi_scheduler *scheduler, uint64_t number) {
  for (size_t i = 0; i < scheduler->member_count; i++)
    if (scheduler->members[i]->name.number == number) return scheduler->members[i];
  return NULL;
}

static void free_member(struct pwi_job_worker *member) {
  pwi_share_fini(&member->share);
  pwi_free(member);
}

void pwi_scheduler_remove(struct pwi_scheduler *scheduler, struct pwi_job_worker *member) {
  size_t at = 0;
  while (scheduler->members[at] != member) at++;
  scheduler->member_count--;
  memmove(&scheduler->members[at], &scheduler->members[at + 1],
          (scheduler->member_count - at) * sizeof(struct pwi_job_worker *));
  free_member(member);
}

void pwi_scheduler_tell(struct pwi_scheduler *scheduler, enum pawl_job_what what, const struct pwi_job_worker *member,
                        uint64_t pieces, const char *text) {
  struct pwi_scheduler_event_item *told = pwi_alloc_zero(1, sizeof *told);
  if (!told) return;
  told->event.what = what;
  if (member) told->event.name = member->name;
  told->event.workers = pwi_scheduler_begun(scheduler);
  told->event.pieces = pieces;
  snprintf(told->event.text, sizeof told->event.text, "%s", text ? text : "");
  *scheduler->events_end = told;
  scheduler->events_end = &told->next;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static bool is_sound(const struct pwi_scheduler_options *options) {
  bool is_loss = options->on_loss == PAWL_LOSS_REPLACE || options->on_loss == PAWL_LOSS_CONTINUE ||
                 options->on_loss == PAWL_LOSS_STOP;
  bool is_slow = options->drop_slowest == 0 || (isfinite(options->drop_slowest) && options->drop_slowest > 1);
  return is_loss && is_slow && options->pieces < PAWL_KEY_END && options->least > 0 &&
         options->most >= options->least && options->patience_ns >= 0;
}

pawl_status pwi_scheduler_create(const struct pwi_scheduler_options *options, struct pwi_scheduler **scheduler_out) {
  if (!is_sound(options)) return PAWL_INVALID;
  struct pwi_scheduler *scheduler = pwi_alloc_zero(1, sizeof *scheduler);
  if (!scheduler) return PAWL_NO_MEMORY;
  scheduler->options = *options;
  scheduler->wanted = scheduler->to_start = scheduler->asked = options->least;
  scheduler->events_end = &scheduler->events;
  *scheduler_out = scheduler;
  return PAWL_OK;
}

void pwi_scheduler_destroy(struct pwi_scheduler *scheduler) {
  if (!scheduler) return;
  for (size_t i = 0; i < scheduler->member_count; i++) free_member(scheduler->members[i]);
  while (scheduler->events) {
    struct pwi_scheduler_event_item *told = scheduler->events;
    scheduler->events = told->next;
    pwi_free(told);
  }
  pwi_rangeset_fini(&scheduler->yielded);
  pwi_free(scheduler->members);
  pwi_free(scheduler->shares);
  pwi_free(scheduler->reports);
  pwi_free(scheduler);
}

/* --- joining -------------------------------------------------------------------------------------------- */

static pawl_status make_room(struct pwi_scheduler *scheduler) {
  if (scheduler->member_count < scheduler->member_room) return PAWL_OK;
  size_t room = scheduler->member_room ? 2 * scheduler->member_room : 8;
  struct pwi_job_worker **members = pwi_resize_array(scheduler->members, room, sizeof(struct pwi_job_worker *));
  if (!members) return PAWL_NO_MEMORY;
  scheduler->members = members;
  struct pwi_share **shares = pwi_resize_array(scheduler->shares, room, sizeof(struct pwi_share *));
  if (!shares) return PAWL_NO_MEMORY;
  scheduler->shares = shares;
  scheduler->member_room = room;
  return PAWL_OK;
}

/* By node, as peer groups rank their members: the same number of workers that start together get the same pieces at the
 * same ranks in every run, in whatever order they ask. */
static bool is_before(const struct pwi_worker_name *a, const struct pwi_worker_name *b) {
  return a->node != b->node ? a->node < b->node : a->number < b->number;
}

pawl_status pwi_scheduler_join(struct pwi_scheduler *scheduler, const struct pwi_worker_name *name) {
  struct pwi_job_worker *member = make_room(scheduler) ? NULL : pwi_alloc_zero(1, sizeof *member);
  if (!member) return PAWL_NO_MEMORY;
  member->name = *name;
  if (scheduler->asked > 0) scheduler->asked--;
  size_t at = scheduler->member_count++;
  for (; at > 0 && is_before(name, &scheduler->members[at - 1]->name); at--)
    scheduler->members[at] = scheduler->members[at - 1];
  scheduler->members[at] = member;
  return PAWL_OK;
}

/* --- rounds --------------------------------------------------------------------------------------------- */

static bool is_under_way(const struct pwi_scheduler *scheduler) {
  return scheduler->state == PWI_SCHEDULER_SETTLING || scheduler->state == PWI_SCHEDULER_WORKING;
}

void pwi_scheduler_end_round(struct pwi_scheduler *scheduler, pawl_status verdict, const char *format, ...) {
  va_list arguments;
  if (!is_under_way(scheduler)) return;
  va_start(arguments, format);
  vsnprintf(scheduler->problem, sizeof scheduler->problem, format, arguments);
  va_end(arguments);
  scheduler->state = PWI_SCHEDULER_OVER;
  scheduler->verdict = verdict;
  scheduler->is_waiting = false;
}

/* Pieces that were yielded, or may still be, are part of the round. */
static bool is_complete(const struct pwi_scheduler *scheduler) {
  for (size_t i = 0; i < scheduler->report_count; i++)
    if (scheduler->reports[i].is_open) return false;
  for (size_t i = 0; i < scheduler->member_count; i++)
    if (scheduler->members[i]->owes_yield) return false;
  return pwi_rangeset_is_empty(&scheduler->yielded);
}

static void look_round(struct pwi_scheduler *scheduler) {
  if (scheduler->state != PWI_SCHEDULER_WORKING) return;
  if (scheduler->options.join_in_round && !is_complete(scheduler)) pwi_scheduler_join_round(scheduler);
  if (scheduler->state != PWI_SCHEDULER_WORKING || !is_complete(scheduler)) return;
  pwi_scheduler_judge_pace(scheduler);
  pwi_scheduler_end_round(scheduler, PAWL_OK, "%s", "");
}

static void stop(struct pwi_scheduler *scheduler) {
  pwi_scheduler_end_round(scheduler, PAWL_NODE_GONE, "%s", scheduler->loss);
}

pawl_status pwi_scheduler_want(struct pwi_scheduler *scheduler) {
  if (scheduler->state != PWI_SCHEDULER_RESTING) return PAWL_INVALID;
  scheduler->state = PWI_SCHEDULER_SETTLING;
  scheduler->verdict = PAWL_OK;
  return PAWL_OK;
}

void pwi_scheduler_advance(struct pwi_scheduler *scheduler, int64_t now) {
  if (scheduler->is_stopped) stop(scheduler);
  if (scheduler->state == PWI_SCHEDULER_SETTLING) pwi_scheduler_settle(scheduler, now);
  look_round(scheduler);
}

enum pwi_scheduler_state pwi_scheduler_state(const struct pwi_scheduler *scheduler) { return scheduler->state; }

pawl_status pwi_scheduler_verdict(const struct pwi_scheduler *scheduler, const char **text_out) {
  *text_out = scheduler->problem;
  return scheduler->verdict;
}

const struct pwi_scheduler_report *pwi_scheduler_reports(const struct pwi_scheduler *scheduler, size_t *count_out) {
  *count_out = scheduler->report_count;
  return scheduler->reports;
}

struct pwi_scheduler_report *pwi_scheduler_close(struct pwi_scheduler *scheduler, size_t *count_out) {
  struct pwi_scheduler_report *reports = scheduler->reports;
  *count_out = scheduler->report_count;
  scheduler->reports = NULL;
  scheduler->report_count = 0;
  scheduler->state = PWI_SCHEDULER_RESTING;
  return reports;
}

/* --- losses --------------------------------------------------------------------------------------------- */

static bool has_open_report(const struct pwi_scheduler *scheduler, const struct pwi_job_worker *member) {
  return scheduler->state == PWI_SCHEDULER_WORKING && member->part == PWI_JOB_PART_REPORTS &&
         scheduler->reports[member->report].is_open;
}

static void report(struct pwi_scheduler *scheduler, const struct pwi_job_worker *member,
                   const struct pwi_scheduler_answer *answer) {
  if (!has_open_report(scheduler, member)) return;
  struct pwi_scheduler_report *open = &scheduler->reports[member->report];
  open->is_open = false;
  open->status = answer->status;
  open->took_ns = answer->took_ns;
  snprintf(open->text, sizeof open->text, "%s", answer->text ? answer->text : "");
}

/* Sets how many workers are required from now on. Before the first round the number stays as it is. */
static void mourn(struct pwi_scheduler *scheduler, uint32_t before) {
  const struct pwi_scheduler_options *options = &scheduler->options;
  if (!scheduler->is_founded) return;
  if (options->on_loss == PAWL_LOSS_REPLACE) {
    if (scheduler->wanted < before) scheduler->wanted = before;
    if (scheduler->wanted > options->most) scheduler->wanted = options->most;
  } else if (scheduler->wanted >= before) {
    scheduler->wanted = before > 1 ? before - 1 : 1;
  }
}

void pwi_scheduler_lost(struct pwi_scheduler *scheduler, uint64_t number) {
  struct pwi_job_worker *member = find(scheduler, number);
  if (!member) return;
  struct pwi_scheduler_answer gone = {.status = PAWL_NODE_GONE, .text = "lost"};
  struct pwi_worker_name name = member->name;
  bool counts = member->order != PWI_JOB_ORDER_LEAVE && (member->has_begun || member->order == PWI_JOB_ORDER_BEGIN);
  bool had_begun = member->has_begun;
  uint32_t before = pwi_scheduler_begun(scheduler);
  report(scheduler, member, &gone);
  if (member->part == PWI_JOB_PART_ASKED) scheduler->lost_newcomer = name;
  pwi_scheduler_remove(scheduler, member);
  if (!counts) return;
  struct pwi_job_worker ghost = {.name = name};
  pwi_scheduler_tell(scheduler, PAWL_JOB_LOST, &ghost, 0, NULL);
  if (had_begun) mourn(scheduler, before);
  if (had_begun && scheduler->options.join_in_round && scheduler->state == PWI_SCHEDULER_WORKING)
    pwi_scheduler_ask_for_more(scheduler); /* once for each loss: it may help in this round */
  if (scheduler->options.on_loss != PAWL_LOSS_STOP || scheduler->is_stopped) return;
  scheduler->is_stopped = true;
  snprintf(scheduler->loss, sizeof scheduler->loss, "the worker with pid %" PRIu64 " on %s, node %" PRIu64 ", was lost",
           name.pid, name.host, name.node);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static const char *verb(enum pwi_job_order_kind order) {
  return order == PWI_JOB_ORDER_BEGIN ? "begin" : order == PWI_JOB_ORDER_TAKE ? "take its pieces" : "drop pieces";
}

/* A worker that is not needed may refuse to begin; the others continue. So they do if a newcomer refuses its
 * pieces during a round: it is missing from that round like a worker that was lost. */
static void refused(struct pwi_scheduler *scheduler, struct pwi_job_worker *member,
                    const struct pwi_scheduler_answer *answer) {
  const char *said = answer->text && *answer->text ? answer->text : pawl_status_text(answer->status);
  bool is_needed = scheduler->state != PWI_SCHEDULER_WORKING &&
                   (member->order != PWI_JOB_ORDER_BEGIN || pwi_scheduler_begun(scheduler) < scheduler->wanted);
  struct pwi_scheduler_answer gone = {.status = PAWL_NODE_GONE, .text = said};
  report(scheduler, member, &gone);
  struct pwi_worker_name name = member->name;
  enum pwi_job_order_kind order = member->order;
  member->has_begun = false; /* it leaves */
  pwi_scheduler_tell(scheduler, PAWL_JOB_REFUSED, member, 0, said);
  pwi_scheduler_remove(scheduler, member);
  if (is_needed)
    pwi_scheduler_end_round(scheduler, PAWL_REFUSED, "the worker with pid %" PRIu64 " on %s could not %s: %s", name.pid,
                            name.host, verb(order), said);
}

/* A worker owns a piece as soon as it is ordered to take it, and until it has dropped it. */
static void dropped(struct pwi_job_worker *member) {
  for (size_t i = 0; i < member->share.drops.count; i++) {
    pawl_status status = pwi_rangeset_remove(&member->share.has, member->share.drops.ranges[i]);
    assert(status == PAWL_OK && "removing whole runs and tails of runs needs no memory");
    (void)status;
  }
}

void pwi_scheduler_answered(struct pwi_scheduler *scheduler, uint64_t number,
                            const struct pwi_scheduler_answer *answer) {
  struct pwi_job_worker *member = find(scheduler, number);
  if (!member || member->order == 0) return;
  enum pwi_job_order_kind order = member->order;
  if (order == PWI_JOB_ORDER_WORK) report(scheduler, member, answer);
  if (answer->tick > scheduler->tick) scheduler->tick = answer->tick;
  if (order == PWI_JOB_ORDER_LEAVE) {
    pwi_scheduler_remove(scheduler, member);
    return;
  }
  if (answer->status && order != PWI_JOB_ORDER_WORK) {
    refused(scheduler, member, answer);
    return;
  }
  member->order = 0;
  if (order == PWI_JOB_ORDER_DROP) dropped(member);
  if (order == PWI_JOB_ORDER_TAKE && has_open_report(scheduler, member)) /* a newcomer of this round */
    pwi_scheduler_order(member, PWI_JOB_ORDER_WORK);
  if (order != PWI_JOB_ORDER_BEGIN) return;
  member->has_begun = true;
  pwi_scheduler_tell(scheduler, PAWL_JOB_JOINED, member, 0, NULL);
}

pawl_status pwi_scheduler_yielded(struct pwi_scheduler *scheduler, uint64_t number, const struct pawl_range *pieces,
                                  size_t count) {
  struct pwi_job_worker *member = find(scheduler, number);
  if (!member || !member->owes_yield) return PAWL_OK;
  bool is_working = scheduler->state == PWI_SCHEDULER_WORKING;
  for (size_t i = 0; i < count; i++) {
    if (pawl_range_is_empty(pieces[i]) || !pwi_rangeset_contains(&member->share.has, pieces[i])) return PAWL_INVALID;
    pawl_status status = pwi_rangeset_remove(&member->share.has, pieces[i]);
    if (!status && is_working) status = pwi_rangeset_add(&scheduler->yielded, pieces[i]);
    if (status) return status;
    if (is_working) scheduler->reports[member->report].pieces -= pawl_range_size(pieces[i]);
  }
  member->owes_yield = false;
  return PAWL_OK;
}

/* --- outputs -------------------------------------------------------------------------------------------- */

pawl_status pwi_scheduler_resize(struct pwi_scheduler *scheduler, uint32_t least, uint32_t most) {
  struct pwi_scheduler_options options = scheduler->options;
  options.least = least;
  options.most = most;
  if (!is_sound(&options)) return PAWL_INVALID;
  scheduler->options = options;
  scheduler->wanted = least;
  return PAWL_OK;
}

static bool next_yield(struct pwi_scheduler *scheduler, struct pwi_scheduler_order *order_out) {
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (!member->owes_yield || member->is_yield_handed_out) continue;
    member->is_yield_handed_out = true;
    *order_out = (struct pwi_scheduler_order){
        .kind = PWI_JOB_ORDER_YIELD, .name = member->name, .rank = scheduler->newcomers, .workers = scheduler->sharers};
    return true;
  }
  return false;
}

bool pwi_scheduler_next_order(struct pwi_scheduler *scheduler, struct pwi_scheduler_order *order_out) {
  for (size_t i = 0; i < scheduler->member_count; i++) {
    struct pwi_job_worker *member = scheduler->members[i];
    if (member->order == 0 || member->is_handed_out) continue;
    member->is_handed_out = true;
    const struct pwi_rangeset *pieces = member->order == PWI_JOB_ORDER_TAKE   ? &member->share.takes
                                        : member->order == PWI_JOB_ORDER_DROP ? &member->share.drops
                                                                              : NULL;
    *order_out = (struct pwi_scheduler_order){.kind = member->order,
                                              .name = member->name,
                                              .pieces = pieces ? pieces->ranges : NULL,
                                              .piece_count = pieces ? pieces->count : 0,
                                              .rank = member->rank,
                                              .workers = scheduler->round_size,
                                              .tick = scheduler->tick};
    return true;
  }
  return next_yield(scheduler, order_out);
}

uint32_t pwi_scheduler_starts(struct pwi_scheduler *scheduler) {
  uint32_t count = scheduler->to_start;
  scheduler->to_start = 0;
  return count;
}

void pwi_scheduler_start_failed(struct pwi_scheduler *scheduler) {
  if (scheduler->asked > 0) scheduler->asked--;
}

bool pwi_scheduler_next_event(struct pwi_scheduler *scheduler, struct pwi_scheduler_event *event_out) {
  struct pwi_scheduler_event_item *told = scheduler->events;
  if (!told) return false;
  scheduler->events = told->next;
  if (!scheduler->events) scheduler->events_end = &scheduler->events;
  *event_out = told->event;
  pwi_free(told);
  return true;
}

int64_t pwi_scheduler_wake_at(const struct pwi_scheduler *scheduler) {
  if (!scheduler->is_waiting) return PWI_SCHEDULER_NEVER;
  return scheduler->tell_at < scheduler->deadline ? scheduler->tell_at : scheduler->deadline;
}

/* --- inspection ----------------------------------------------------------------------------------------- */

bool pwi_scheduler_has(const struct pwi_scheduler *scheduler, uint64_t number) {
  return find(scheduler, number) != NULL;
}

size_t pwi_scheduler_count(const struct pwi_scheduler *scheduler) { return pwi_scheduler_begun(scheduler); }

const struct pwi_rangeset *pwi_scheduler_pieces(const struct pwi_scheduler *scheduler, size_t index,
                                                uint64_t *number_out) {
  for (size_t i = 0; i < scheduler->member_count; i++) {
    const struct pwi_job_worker *member = scheduler->members[i];
    if (!member->has_begun || index-- > 0) continue;
    *number_out = member->name.number;
    return &member->share.has;
  }
  return NULL;
}
