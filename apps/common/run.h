/* The scheduler's side of a training, as far as it is the same for all applications: the job, its rounds, and
 * messages for people. */
#ifndef APPS_COMMON_RUN_H
#define APPS_COMMON_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/job.h>

#include "apps/common/clock.h"
#include "apps/common/model_file.h"

enum { APPS_NEWS_MAX = 1536 };

struct apps_run {
  struct pawl_session *session;
  struct pawl_job *job;

  /* Functions of the caller of the training. All may be NULL. */
  void (*tell)(void *context, const char *line); /* a line of news */
  bool (*stopping)(void *context);               /* true: the training should end soon */
  pawl_status (*start_worker)(void *context);
  void *context;

  /* Functions of the application, which are called with `application`. `hear` receives every event of the
   * job and returns whether `tell` should receive a line about it. `tick` is called during a round as
   * apps_round describes; if it returns true, apps_round leaves the round with PAWL_CANCELLED. */
  bool (*hear)(void *application, const struct pawl_job_event *event);
  bool (*tick)(void *application);
  void *application;
  bool shows_progress; /* `tick` displays progress of this kind of round */

  char *error; /* APPS_TEXT_MAX bytes with the text of the first failure; "" before */
  int64_t begun_ns;
  bool is_stopping;
  char refusal[APPS_NEWS_MAX]; /* text of the first refusal of a worker in this round; "": none */
};

/* Writes the text of a failure, unless there is one already, and returns the status. */
pawl_status apps_fail(struct apps_run *run, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* The same with pawl_error_text, or with the text of the status if that is empty. */
pawl_status apps_fail_as_said(struct apps_run *run, pawl_status status);

void apps_tell(struct apps_run *run, const char *format, ...) PAWL_PRINTF(2, 3);

/* Whether the caller wants the training to end. Once true, it stays true. */
bool apps_is_stopping(struct apps_run *run);

/* Creates the job. The caller has filled in name, pieces, least, most, on_loss and drop_slowest. Takes
 * `spec`; NULL: PAWL_NO_MEMORY. */
pawl_status apps_job_create(struct apps_run *run, struct pawl_job_options *job, char *spec, int64_t timeout_ns);

/* Runs one round. Takes `order`; NULL: PAWL_NO_MEMORY. Waits for the events of the job. If `stopping` is set or
 * `shows_progress` is true, it also calls `tick` once a second; otherwise it does not wake up without an event. */
pawl_status apps_round(struct apps_run *run, char *order, struct pawl_round **round_out);

/* The same with an order of `size` bytes, which stays the caller's. */
pawl_status apps_round_bytes(struct apps_run *run, const void *order, size_t size, struct pawl_round **round_out);

/* Calls `add` for each worker that has reported, with numbers from 0. `add` returns PAWL_CORRUPT if it cannot
 * read the report. Stops at the first failure of a worker or of `add`. */
pawl_status apps_reports(struct apps_run *run, const struct pawl_round *round,
                         pawl_status (*add)(void *context, size_t index, const struct pawl_report *report),
                         void *context, size_t *count_out);

#endif
