/* Stands in for the method while it is being written: goes through the motions, and learns nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/linear/linear.h"

void linear_options_init(struct linear_options *options) {
  *options = (struct linear_options){.bias = true, .loss = LINEAR_LOGISTIC};
  pawl_data_options_init(&options->reading);
}

bool linear_check(const struct linear_options *options, char error[LINEAR_TEXT_MAX]) {
  if (options->method == LINEAR_METHOD_DUAL && options->loss == LINEAR_LOGISTIC) {
    snprintf(error, LINEAR_TEXT_MAX, "the dual method is for hinge losses; leave --method out");
    return false;
  }
  return true;
}

static void tell_event(void *context, const struct pawl_job_event *event) {
  const struct linear_options *options = context;
  static const char *const words[] = {"", "joined", "lost", "dropped", "moved", "waiting", "refused"};
  char line[256];
  snprintf(line, sizeof line, "worker %s:%llu %s (%u now)", event->host, (unsigned long long)event->pid,
           words[event->what], event->workers);
  if (options->tell && event->what != PAWL_JOB_MOVED) options->tell(options->context, line);
}

static pawl_status start_one(void *context) {
  const struct linear_options *options = context;
  return options->start_worker(options->context);
}

static pawl_status run_point(struct pawl_job *job, const struct linear_options *options, size_t point,
                             struct linear_result *result) {
  uint64_t rounds = options->rounds ? options->rounds : 20;
  const char *why = "rounds";
  pawl_status failed = PAWL_OK;
  struct linear_progress progress = {.stage = "training",
                                     .point = point,
                                     .points = options->point_count,
                                     .l1 = options->points[point].l1,
                                     .l2 = options->points[point].l2,
                                     .rounds = rounds,
                                     .valid_loss = options->valid_count ? 0.5 : NAN,
                                     .valid_accuracy = options->valid_count ? 0.75 : NAN,
                                     .rows = 100,
                                     .features = 10,
                                     .workers = options->workers,
                                     .slowest = 1,
                                     .slowest_host = "here",
                                     .examples_per_s = 1e6,
                                     .wait_pct = 5,
                                     .bytes_per_s = 1e6};
  for (uint64_t round = 1; round <= rounds; round++) {
    struct pawl_round *result_of_round;
    failed = pawl_job_round(job, "x", 1, PAWL_FOREVER, &result_of_round);
    if (failed) break;
    progress.workers = (uint32_t)pawl_round_count(result_of_round);
    pawl_round_destroy(result_of_round);
    progress.round = round;
    progress.objective = 100.0 / (double)round;
    progress.nonzeros = 3;
    progress.seconds = 0.02 * (double)round;
    progress.left_s = 0.02 * (double)(rounds - round);
    progress.bytes_sent = progress.bytes_received = round * 1000;
    if (options->progress) options->progress(options->context, &progress);
    if (options->stopping && options->stopping(options->context)) {
      why = "interrupted";
      break;
    }
  }
  *result = (struct linear_result){.why = why,
                                   .rounds = progress.round,
                                   .seconds = progress.seconds,
                                   .train_s = progress.seconds,
                                   .objective = progress.objective,
                                   .nonzeros = 3,
                                   .accuracy = options->loss == LINEAR_SQUARED ? NAN : 0.9,
                                   .valid_loss = progress.valid_loss,
                                   .valid_accuracy = progress.valid_accuracy,
                                   .wait_pct = 5,
                                   .bytes_sent = progress.bytes_sent,
                                   .bytes_received = progress.bytes_received,
                                   .rows = 100,
                                   .features = 10};
  return failed;
}

pawl_status linear_train(struct pawl_session *session, const struct linear_options *options,
                         struct linear_result *result_out, char error[LINEAR_TEXT_MAX]) {
  uint64_t ids[] = {1, 2, 3};
  double weights[] = {0.5, -0.5, 0.25};
  struct linear_model model = {
      .loss = options->loss, .labels = {-1, 1}, .features = 10, .count = 3, .ids = ids, .weights = weights};
  struct pawl_job_options of_job;
  struct pawl_job *job;
  pawl_job_options_init(&of_job);
  of_job.name = options->job;
  of_job.spec = "x";
  of_job.spec_size = 1;
  of_job.pieces = 4;
  of_job.least = options->workers;
  of_job.most = options->workers_most;
  of_job.on_loss = options->on_loss;
  of_job.start = options->start_worker ? start_one : NULL;
  of_job.tell = tell_event;
  of_job.context = (void *)(uintptr_t)options;
  pawl_status begun = pawl_job_create(session, &of_job, 30 * PAWL_SECOND, &job);
  if (begun) {
    snprintf(error, LINEAR_TEXT_MAX, "%s", pawl_error_text());
    return begun;
  }
  for (size_t point = 0; point < options->point_count; point++) {
    pawl_status failed = run_point(job, options, point, result_out);
    if (failed) snprintf(error, LINEAR_TEXT_MAX, "%s", pawl_error_text());
    pawl_status status = options->found ? options->found(options->context, point, &model, result_out) : PAWL_OK;
    if (status || failed) return status ? status : failed;
    if (strcmp(result_out->why, "interrupted") == 0) break;
  }
  pawl_job_end(job);
  return PAWL_OK;
}

static pawl_status begin(struct pawl_worker *worker, void *context, const void *spec, size_t size) {
  (void)worker, (void)context, (void)spec, (void)size;
  return PAWL_OK;
}

static pawl_status move(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  (void)worker, (void)context, (void)pieces, (void)count;
  return PAWL_OK;
}

static pawl_status work(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  (void)worker, (void)context, (void)argument, (void)size;
  usleep(20000);
  return PAWL_OK;
}

static void end(struct pawl_worker *worker, void *context) { (void)worker, (void)context; }

pawl_status linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                        char error[LINEAR_TEXT_MAX]) {
  static const struct pawl_worker_calls calls = {begin, move, move, work, end};
  pawl_status status = pawl_worker_run(session, job, &calls, NULL, timeout_ns);
  if (status) snprintf(error, LINEAR_TEXT_MAX, "%s", pawl_error_text());
  return status;
}
