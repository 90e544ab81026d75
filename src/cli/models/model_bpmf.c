#include "cli/models/model_bpmf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <pawl/bpmf.h>

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *model_json(const struct pawl_bpmf_about *about) {
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", "bpmf",
                   "rank", (json_int_t)about->rank, "users", (json_int_t)about->users, "items",
                   (json_int_t)about->items, "ratings", (json_int_t)about->ratings, "test_ratings",
                   (json_int_t)about->test_ratings, "samples", (json_int_t)about->samples, "iterations",
                   (json_int_t)about->iterations, "burn_in", (json_int_t)about->burn_in, "alpha", real(about->alpha),
                   "mean", real(about->mean), "lowest", real(about->lowest), "highest", real(about->highest), "seed",
                   json_sprintf("%" PRIu64, about->seed), "train_rmse", real(about->train_rmse), "test_rmse",
                   real(about->test_rmse));
}

static void print_model(const struct pawl_bpmf_about *about) {
  printf("%-12s rank %" PRIu32 ", for %" PRIu32 " users and %" PRIu32 " items\n", "rows", about->rank, about->users,
         about->items);
  printf("%-12s %" PRIu64 " for training, %" PRIu64 " for test; from %g to %g, mean %.6g\n", "ratings", about->ratings,
         about->test_ratings, about->lowest, about->highest, about->mean);
  printf("%-12s %" PRIu64 " iterations, %" PRIu64 " of them burn-in; alpha %g, seed %" PRIu64 "\n", "trained",
         about->iterations, about->burn_in, about->alpha, about->seed);
  printf("%-12s %" PRIu32 "\n", "samples", about->samples);
  if (!isnan(about->train_rmse)) printf("%-12s %.5f\n", "train RMSE", about->train_rmse);
  if (!isnan(about->test_rmse)) printf("%-12s %.5f\n", "test RMSE", about->test_rmse);
}

int pwi_model_bpmf_show(const struct pwi_command *command, const char *path, bool json) {
  struct pawl_bpmf_model *model;
  struct pawl_bpmf_about about;
  char error[PAWL_BPMF_TEXT];
  if (pawl_bpmf_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_bpmf_model_about(model, &about);
  pawl_bpmf_model_destroy(model);
  if (json) return pwi_cli_print_json(command, model_json(&about));
  print_model(&about);
  return PWI_EXIT_OK;
}
