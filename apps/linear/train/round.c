/* Rounds of a linear job: the scheduler sends the order and adds up the workers' replies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/linear/train/inside.h"

void linear_show(struct linear_run *run, const char *stage) {
  run->progress.stage = stage;
  run->progress.seconds = apps_seconds_since(run->common.begun_ns);
  if (run->options->progress) run->options->progress(run->options->context, &run->progress);
}

bool linear_hear(void *application, const struct pawl_job_event *event) {
  struct linear_run *run = application;
  run->progress.workers = event->workers;
  run->moved += event->what == PAWL_JOB_LOST || event->what == PAWL_JOB_DROPPED || event->what == PAWL_JOB_MOVED;
  run->result.workers_lost += event->what == PAWL_JOB_LOST;
  if (event->what == PAWL_JOB_WAITING) linear_show(run, "starting");
  return event->what != PAWL_JOB_MOVED || run->order.round > 0; /* all pieces move when the job begins */
}

static void add_census(struct linear_census *sum, const struct linear_census *part) {
  sum->rows += part->rows;
  sum->entries += part->entries;
  sum->skipped += part->skipped;
  sum->squares += part->squares;
  if (part->max_id > sum->max_id) sum->max_id = part->max_id;
  sum->has_zero |= part->has_zero;
  sum->digest.sum += part->digest.sum;
  sum->digest.pieces += part->digest.pieces;
  for (size_t i = 0; i < part->label_count; i++) {
    size_t k = 0;
    while (k < sum->label_count && sum->labels[k] != part->labels[i]) k++;
    if (k == sizeof sum->labels / sizeof *sum->labels) continue;
    if (k == sum->label_count) {
      sum->labels[sum->label_count++] = part->labels[i];
      sum->label_rows[k] = 0;
    }
    sum->label_rows[k] += part->label_rows[i];
  }
}

static void add_reply(struct linear_reply *sum, const struct linear_reply *part) {
  add_census(&sum->census, &part->census);
  sum->rows += part->rows;
  sum->correct += part->correct;
  sum->loss += part->loss;
  sum->violation += part->violation;
  sum->violation_max = fmax(sum->violation_max, part->violation_max);
  sum->looked_at += part->looked_at;
  sum->waited_s += part->waited_s;
  sum->worked_s += part->worked_s;
  sum->bytes_sent += part->bytes_sent;
  sum->bytes_received += part->bytes_received;
  sum->dual += part->dual;
  sum->loss_before += part->loss_before;
  sum->loss_of_nothing += part->loss_of_nothing;
  for (size_t class = 0; class < 2; class ++) {
    sum->slopes[class] += part->slopes[class];
    for (size_t k = 0; k < LINEAR_SHRINKS; k++) sum->conjugates[class][k] += part->conjugates[class][k];
  }
  for (size_t k = 0; k < LINEAR_TRIALS; k++) sum->trials[k] += part->trials[k];
  if (part->steps > sum->steps) sum->steps = part->steps;
  if (part->number > sum->number) sum->number = part->number;
  sum->lacks |= part->lacks;
  apps_reduce_part_add(&sum->part, &part->part);
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* Finds the slowest worker, and its time over the median. */
static void find_slowest(struct linear_run *run, const struct pawl_round *round) {
  size_t count = pawl_round_count(round), known = 0;
  int64_t *times = apps_alloc((count + 1) * sizeof *times), most = -1;
  run->progress.slowest = 1;
  for (size_t i = 0; times && i < count; i++) {
    struct pawl_report report;
    if (pawl_round_get(round, i, &report) || report.status) continue;
    times[known++] = report.took_ns;
    if (report.took_ns <= most) continue;
    most = report.took_ns;
    snprintf(run->slowest_host, sizeof run->slowest_host, "%s", report.host);
    run->progress.slowest_pid = report.pid;
  }
  run->progress.slowest_host = run->slowest_host;
  if (known > 1) {
    qsort(times, known, sizeof *times, by_size);
    int64_t median = (times[(known - 1) / 2] + times[known / 2]) / 2;
    run->progress.slowest = median > 0 ? (double)most / (double)median : 1;
  }
  apps_free(times);
}

static pawl_status add_report(void *context, size_t index, const struct pawl_report *report) {
  struct linear_reply reply;
  (void)index;
  if (!linear_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  add_reply(context, &reply);
  return PAWL_OK;
}

static bool is_loading(const struct linear_run *run) { return run->order.what == LINEAR_DESCRIBE; }

bool linear_wait(void *application) {
  struct linear_run *run = application;
  if (is_loading(run)) linear_show(run, "loading");
  /* workers that average are needed for the model */
  bool can_leave = run->spec.method->streams && !run->spec.reduces;
  return apps_is_stopping(&run->common) && (is_loading(run) || can_leave);
}

pawl_status linear_round(struct linear_run *run, struct linear_reply *sum_out, bool *whole_out) {
  struct pawl_round *round = NULL;
  struct linear_reply sum = {0};
  size_t workers;
  run->common.shows_progress = is_loading(run) && run->options->progress;
  pawl_status status = apps_round(&run->common, linear_order_write(&run->order), &round);
  if (status) return status;
  status = apps_reports(&run->common, round, add_report, &sum, &workers);
  if (!status) run->progress.workers = run->result.workers = (uint32_t)workers;
  find_slowest(run, round);
  *whole_out = pawl_round_is_whole(round);
  pawl_round_destroy(round);
  if (!status) *sum_out = sum;
  return status;
}
