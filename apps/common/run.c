/* A training from the scheduler's side: see run.h. */
#include "apps/common/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"

/* --- messages ------------------------------------------------------------------------------------------- */

pawl_status apps_fail(struct apps_run *run, pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!*run->error) vsnprintf(run->error, APPS_TEXT_MAX, format, arguments);
  va_end(arguments);
  return status;
}

pawl_status apps_fail_as_said(struct apps_run *run, pawl_status status) {
  return apps_fail(run, status, "%s", apps_error_text(status));
}

void apps_tell(struct apps_run *run, const char *format, ...) {
  char line[APPS_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (run->tell) run->tell(run->context, line);
}

bool apps_is_stopping(struct apps_run *run) {
  if (!run->is_stopping && run->stopping) run->is_stopping = run->stopping(run->context);
  return run->is_stopping;
}

/* --- the job -------------------------------------------------------------------------------------------- */

/* Writes an event as a line for people. False if people need not know of it. */
static bool say_event(const struct pawl_job_event *event, char line[APPS_NEWS_MAX]) {
  unsigned long long pid = (unsigned long long)event->pid, pieces = (unsigned long long)event->pieces;
  switch (event->what) {
  case PAWL_JOB_JOINED:
    snprintf(line, APPS_NEWS_MAX, "worker %llu at %s joined; %u now", pid, event->host, event->workers);
    return true;
  case PAWL_JOB_LOST:
    snprintf(line, APPS_NEWS_MAX, "worker %llu at %s was lost; %u left", pid, event->host, event->workers);
    return true;
  case PAWL_JOB_DROPPED:
    snprintf(line, APPS_NEWS_MAX, "worker %llu at %s was too slow for too long and was dropped; %u left", pid,
             event->host, event->workers);
    return true;
  case PAWL_JOB_MOVED:
    if (pieces == 1)
      snprintf(line, APPS_NEWS_MAX, "1 piece of the data moved to another worker");
    else
      snprintf(line, APPS_NEWS_MAX, "%llu pieces of the data moved to other workers", pieces);
    return true;
  case PAWL_JOB_REFUSED:
    snprintf(line, APPS_NEWS_MAX, "worker %llu at %s: %s", pid, event->host, event->text);
    return true;
  case PAWL_JOB_WAITING:
    break;
  }
  return false;
}

/* A worker's refusal may or may not end the round. If it does, it is the text of the failure. So its line is
 * kept until the round has ended, and reported once. */
static void hear_event(void *context, const struct pawl_job_event *event) {
  struct apps_run *run = context;
  char line[APPS_NEWS_MAX];
  if (!run->hear(run->application, event) || !say_event(event, line)) return;
  if (event->what != PAWL_JOB_REFUSED)
    apps_tell(run, "%s", line);
  else if (!*run->refusal)
    memcpy(run->refusal, line, sizeof line);
}

static pawl_status start_worker(void *context) {
  struct apps_run *run = context;
  return run->start_worker(run->context);
}

pawl_status apps_job_create(struct apps_run *run, struct pawl_job_options *job, char *spec, int64_t timeout_ns) {
  if (!spec) return PAWL_NO_MEMORY;
  job->spec = spec;
  job->spec_size = strlen(spec);
  job->start = run->start_worker ? start_worker : NULL;
  job->tell = hear_event;
  job->context = run;
  pawl_status status = pawl_job_create(run->session, job, timeout_ns, &run->job);
  apps_json_free(spec);
  if (status == PAWL_EXISTS)
    return apps_fail(run, status, "a job named %s already runs on this cluster; choose another name with --job",
                     job->name);
  return status ? apps_fail(run, status, "cannot start the job: %s", pawl_error_text()) : PAWL_OK;
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* How long to wait for the events of a round before the next tick. The job wakes up by itself when a worker
 * answers, joins or is lost, so a round needs no tick of its own. Two things cannot wake the job. `stopping` is
 * a function to ask: a signal handler can set a flag, but must not call into the job. And a display of progress
 * shows the time that has passed. A second is short enough for both. */
static int64_t tick_ns(const struct apps_run *run) {
  return run->stopping || run->shows_progress ? PAWL_SECOND : PAWL_FOREVER;
}

/* Without a tick PAWL_TIMED_OUT is possible too: the cluster has not declared a lost worker dead for a long
 * time. The round continues in both cases. */
pawl_status apps_round_bytes(struct apps_run *run, const void *order, size_t size, struct pawl_round **round_out) {
  pawl_status status = pawl_job_round(run->job, order, size, tick_ns(run), round_out);
  while (status == PAWL_TIMED_OUT) {
    if (run->tick(run->application)) return PAWL_CANCELLED;
    status = pawl_job_await(run->job, tick_ns(run), round_out);
  }
  if (status == PAWL_REFUSED && *run->refusal) return apps_fail(run, status, "%s", run->refusal);
  if (*run->refusal) apps_tell(run, "%s", run->refusal); /* other workers did the round */
  run->refusal[0] = '\0';
  return status ? apps_fail_as_said(run, status) : PAWL_OK;
}

pawl_status apps_round(struct apps_run *run, char *order, struct pawl_round **round_out) {
  if (!order) return PAWL_NO_MEMORY;
  pawl_status status = apps_round_bytes(run, order, strlen(order), round_out);
  apps_json_free(order);
  return status;
}

pawl_status apps_reports(struct apps_run *run, const struct pawl_round *round,
                         pawl_status (*add)(void *context, size_t index, const struct pawl_report *report),
                         void *context, size_t *count_out) {
  size_t count = 0;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < pawl_round_count(round) && !status; i++) {
    struct pawl_report report;
    if (pawl_round_get(round, i, &report) || report.status == PAWL_NODE_GONE) continue;
    unsigned long long pid = (unsigned long long)report.pid;
    if (report.status)
      return apps_fail(run, report.status, "worker %llu at %s: %s", pid, report.host,
                       *report.text ? report.text : pawl_status_text(report.status));
    status = add(context, count++, &report);
    if (status == PAWL_CORRUPT) apps_fail(run, status, "worker %llu at %s sent an invalid reply", pid, report.host);
  }
  *count_out = count;
  return status;
}
