#include "cli/train/bpmf/end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"

/* --- an iteration ------------------------------------------------------------------------------------------------- */

void pwi_train_bpmf_line(const struct pawl_bpmf_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  text_out[0] = '\0';
  pwi_train_line_add(text_out, "iteration %" PRIu64 "/%" PRIu64 "%s", is->iteration, is->iterations,
                     is->is_burn_in ? " (burn-in)" : "");
  if (!isnan(is->train_rmse)) pwi_train_line_add(text_out, "  train RMSE %.4f", is->train_rmse);
  if (!isnan(is->test_rmse)) pwi_train_line_add(text_out, "  test RMSE %.4f", is->test_rmse);
  if (!isnan(is->mean_test_rmse)) pwi_train_line_add(text_out, ", of the mean %.4f", is->mean_test_rmse);
  pwi_train_line_add(text_out, "  %s ratings/s", pwi_train_short(is->ratings_per_s, number));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, number));
}

json_t *pwi_train_bpmf_json(const struct pawl_bpmf_progress *is) {
  return json_pack("{s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "iteration", (json_int_t)is->iteration,
                   "iterations", (json_int_t)is->iterations, "burn_in", (int)is->is_burn_in, "train_rmse",
                   pwi_train_json_number(is->train_rmse), "test_rmse", pwi_train_json_number(is->test_rmse),
                   "mean_train_rmse", pwi_train_json_number(is->mean_train_rmse), "mean_test_rmse",
                   pwi_train_json_number(is->mean_test_rmse), "seconds", pwi_train_json_number(is->seconds),
                   "ratings_per_s", pwi_train_json_number(is->ratings_per_s));
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static void add_reading(const struct pwi_train_bpmf_end *end, json_t *object) {
  const struct pawl_bpmf_result *result = end->result;
  json_t *more =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "skipped", (json_int_t)end->read.skipped, "duplicates",
                (json_int_t)end->read.duplicates, "test_skipped", (json_int_t)end->test_read.skipped, "test_duplicates",
                (json_int_t)end->test_read.duplicates, "test_unknown", (json_int_t)result->test_unknown, "resumed",
                (json_int_t)result->resumed, "threads", (json_int_t)result->threads, "kernel", result->kernel,
                "total_seconds", pwi_train_json_number(end->seconds));
  (void)json_object_update(object, more);
  json_decref(more);
}

static void add_workers(const struct pwi_train_bpmf_end *end, json_t *object) {
  const struct pawl_bpmf_result *result = end->result;
  const struct pwi_train_bpmf_options *options = end->options;
  bool has_items = options->base.share == PWI_TRAIN_SHARE_ITEMS;
  json_t *more =
      json_pack("{s:s, s:s?, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I}", "share",
                pwi_train_share_name(options->base.share), "variant",
                !has_items                            ? NULL
                : options->variant == PAWL_ITEMS_PULL ? "pull"
                                                      : "push",
                "slack", (json_int_t)options->slack, "workers", (json_int_t)result->workers, "workers_lost",
                (json_int_t)result->workers_lost, "repeated", (json_int_t)result->repeated, "wait_seconds",
                pwi_train_json_number(result->wait_s), "work_seconds", pwi_train_json_number(result->work_s),
                "bytes_sent", (json_int_t)result->bytes_sent, "bytes_received", (json_int_t)result->bytes_received);
  (void)json_object_update(object, more);
  json_decref(more);
}

static void print_workers(const struct pwi_train_bpmf_end *end) {
  const struct pawl_bpmf_result *result = end->result;
  char sent[32], received[32], waiting[32], working[32];
  if (end->options->base.share == PWI_TRAIN_SHARE_NONE) return;
  printf("  %-12s %" PRIu32 " finished, %" PRIu32 " lost; shared by %s", "workers", result->workers,
         result->workers_lost, pwi_train_share_name(end->options->base.share));
  if (result->repeated > 0)
    printf("; %" PRIu64 " iteration%s repeated", result->repeated, result->repeated == 1 ? " was" : "s were");
  printf("\n  %-12s %s computing, %s getting rows of others; of all workers together\n", "",
         pwi_train_time(result->work_s, working), pwi_train_time(result->wait_s, waiting));
  printf("  %-12s %sB sent, %sB received by workers\n", "network", pwi_train_short((double)result->bytes_sent, sent),
         pwi_train_short((double)result->bytes_received, received));
}

int pwi_train_bpmf_end_json(const struct pwi_train_bpmf_end *end) {
  const struct pawl_bpmf_result *result = end->result;
  struct pawl_bpmf_about about;
  pawl_bpmf_model_about(end->model, &about);
  json_t *object = json_pack(
      "{s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
      "model", pwi_json_string(end->output), "rank", (json_int_t)about.rank, "users", (json_int_t)about.users, "items",
      (json_int_t)about.items, "ratings", (json_int_t)about.ratings, "test_ratings", (json_int_t)about.test_ratings,
      "why", result->why, "iterations", (json_int_t)result->iterations, "burn_in", (json_int_t)about.burn_in, "samples",
      (json_int_t)result->samples, "kept", (json_int_t)about.samples, "train_rmse",
      pwi_train_json_number(result->train_rmse), "test_rmse", pwi_train_json_number(result->test_rmse),
      "mean_train_rmse", pwi_train_json_number(result->mean_train_rmse), "mean_test_rmse",
      pwi_train_json_number(result->mean_test_rmse), "plain_test_rmse", pwi_train_json_number(result->plain_test_rmse),
      "seconds", pwi_train_json_number(result->seconds), "sample_seconds", pwi_train_json_number(result->sample_s),
      "ratings_per_s", pwi_train_json_number(result->ratings_per_s), "alpha", pwi_train_json_number(about.alpha),
      "seed", json_sprintf("%" PRIu64, about.seed));
  if (object) add_reading(end, object);
  if (object && end->options->base.share != PWI_TRAIN_SHARE_NONE) add_workers(end, object);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK
                                              : pwi_cli_failure(end->options->base.command, "cannot print the result");
}

static void print_rmse(const char *name, double mean, double now, uint64_t ratings) {
  if (isnan(now)) return;
  printf("  %-12s ", name);
  if (isnan(mean))
    printf("%.5f, of the last iteration; there is no sample yet\n", now);
  else
    printf("%.5f, of the mean of all samples; %.5f of the last one alone; %" PRIu64 " ratings\n", mean, now, ratings);
}

void pwi_train_bpmf_end_print(const struct pwi_train_bpmf_end *end) {
  const struct pawl_bpmf_result *result = end->result;
  struct pawl_bpmf_about about;
  char whole[32], sampling[32], speed[32];
  pawl_bpmf_model_about(end->model, &about);
  const char *how = strcmp(result->why, "iterations") == 0 ? "done"
                    : strcmp(result->why, "guessing") == 0 ? "NO BETTER THAN GUESSING"
                                                           : result->why;
  printf("%s after %" PRIu64 " iteration%s\n", how, result->iterations, result->iterations == 1 ? "" : "s");
  printf("  %-12s rank %" PRIu32 " for %" PRIu32 " users and %" PRIu32 " items; %" PRIu32 " of %" PRIu64
         " samples kept\n",
         "rows", about.rank, about.users, about.items, about.samples, result->samples);
  print_rmse("train RMSE", result->mean_train_rmse, result->train_rmse, about.ratings);
  print_rmse("test RMSE", result->mean_test_rmse, result->test_rmse, about.test_ratings);
  if (!isnan(result->plain_test_rmse))
    printf("  %-12s %.5f, if the mean rating %.5g is the prediction of all\n", "", result->plain_test_rmse, about.mean);
  printf("  %-12s %s: %s sampling with %" PRIu32 " thread%s, %s ratings/s\n", "time",
         pwi_train_time(end->seconds, whole), pwi_train_time(result->sample_s, sampling), result->threads,
         result->threads == 1 ? "" : "s", pwi_train_short(result->ratings_per_s, speed));
  print_workers(end);
  printf("  %-12s %s%s\n", "model", end->output, end->options->base.output ? "" : " (choose another name with -o)");
  printf("\nnext:  pawl recommend");
  pwi_train_word_print(end->output);
  printf(" USER\n");
}
