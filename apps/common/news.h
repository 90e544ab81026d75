/* Events of a job as lines of text. Shared by the applications. */
#ifndef APPS_COMMON_NEWS_H
#define APPS_COMMON_NEWS_H

#include <stdbool.h>
#include <stdio.h>

#include <pawl/job.h>

enum { APPS_NEWS_MAX = 1536 };

/* Formats an event. Returns false if it has no text. */
static inline bool apps_news(const struct pawl_job_event *event, char line[APPS_NEWS_MAX]) {
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

/* Keeps the line of a worker that could not start or could not take its pieces. Such a worker may or may not
 * fail the round. So the line is kept until the status of the round is known, and is then printed once.
 * Returns true if the line was kept. */
struct apps_refusal {
  char line[APPS_NEWS_MAX]; /* "": no line is kept */
};

static inline bool apps_refusal_keep(struct apps_refusal *refusal, const struct pawl_job_event *event) {
  if (event->what != PAWL_JOB_REFUSED) return false;
  if (!*refusal->line) apps_news(event, refusal->line);
  return true;
}

#endif
