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

static void run_point(const struct linear_options *options, size_t point, struct linear_result *result) {
  uint64_t rounds = options->rounds ? options->rounds : 20;
  const char *why = "rounds";
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
    usleep(20000);
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
}

pawl_status linear_train(struct pawl_session *session, const struct linear_options *options,
                         struct linear_result *result_out, char error[LINEAR_TEXT_MAX]) {
  uint64_t ids[] = {1, 2, 3};
  double weights[] = {0.5, -0.5, 0.25};
  struct linear_model model = {
      .loss = options->loss, .labels = {-1, 1}, .features = 10, .count = 3, .ids = ids, .weights = weights};
  (void)session;
  for (uint32_t i = 0; i < options->workers && options->start_worker; i++)
    if (options->start_worker(options->context)) {
      snprintf(error, LINEAR_TEXT_MAX, "no worker could be started");
      return PAWL_NODE_GONE;
    }
  if (options->tell) options->tell(options->context, "the method is not here yet: this is a rehearsal");
  for (size_t point = 0; point < options->point_count; point++) {
    run_point(options, point, result_out);
    pawl_status status = options->found ? options->found(options->context, point, &model, result_out) : PAWL_OK;
    if (status) return status;
    if (strcmp(result_out->why, "interrupted") == 0) break;
  }
  return PAWL_OK;
}

pawl_status linear_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                        char error[LINEAR_TEXT_MAX]) {
  (void)session, (void)job, (void)timeout_ns, (void)error;
  usleep(200000);
  return PAWL_OK;
}
