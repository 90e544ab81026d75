#include "cli/train/figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/train/log.h"

#define STRAGGLES 1.05 /* name the slowest worker only if it is slower than this */

/* --- for people --------------------------------------------------------------------------------------------------- */

static void add_point(char *text, const struct pawl_linear_progress *progress) {
  if (progress->points < 2) return;
  pwi_train_line_add(text, "[%zu/%zu l1=%g l2=%g] ", progress->point + 1, progress->points, progress->l1, progress->l2);
}

static void add_figures(char *text, const struct pawl_linear_progress *progress) {
  char number[32];
  pwi_train_line_add(text, "round %" PRIu64, progress->round);
  if (!isnan(progress->objective)) pwi_train_line_add(text, "  objective %.7g", progress->objective);
  pwi_train_line_add(text, "  nnz %s", pwi_train_short((double)progress->nonzeros, number));
  if (!isnan(progress->valid_loss)) pwi_train_line_add(text, "  valid %.4f", progress->valid_loss);
}

static void add_rates(char *text, const struct pawl_linear_progress *progress) {
  char number[32];
  if (progress->examples_per_s > 0)
    pwi_train_line_add(text, "  %s ex/s", pwi_train_short(progress->examples_per_s, number));
  if (!isnan(progress->wait_pct)) pwi_train_line_add(text, "  wait %.0f%%", progress->wait_pct);
  if (progress->bytes_per_s > 0) pwi_train_line_add(text, "  %sB/s", pwi_train_short(progress->bytes_per_s, number));
  if (progress->slowest >= STRAGGLES)
    pwi_train_line_add(text, "  slowest %.1fx (%.32s:%" PRIu64 ")", progress->slowest,
                       progress->slowest_host ? progress->slowest_host : "", progress->slowest_pid);
}

void pwi_train_figures_line(const struct pawl_linear_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  text_out[0] = '\0';
  add_point(text_out, progress);
  if (strcmp(progress->stage, "training") == 0) {
    add_figures(text_out, progress);
    if (!isnan(progress->left_s)) pwi_train_line_add(text_out, "  left %s", pwi_train_time(progress->left_s, number));
    add_rates(text_out, progress);
    return;
  }
  pwi_train_line_add(text_out, "%s  %u worker%s", progress->stage, progress->workers,
                     progress->workers == 1 ? "" : "s");
  if (progress->rows) pwi_train_line_add(text_out, "  %s rows", pwi_train_short((double)progress->rows, number));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(progress->seconds, number));
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

json_t *pwi_train_figures_json(const struct pawl_linear_progress *is) {
  return json_pack(
      "{s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:s, s:I, s:I}",
      "round", (json_int_t)is->round, "point", (json_int_t)is->point, "l1", is->l1, "l2", is->l2, "seconds",
      is->seconds, "objective", pwi_train_json_number(is->objective), "loss", pwi_train_json_number(is->loss),
      "penalty", pwi_train_json_number(is->penalty), "nnz", (json_int_t)is->nonzeros, "valid_loss",
      pwi_train_json_number(is->valid_loss), "valid_accuracy", pwi_train_json_number(is->valid_accuracy),
      "examples_per_s", pwi_train_json_number(is->examples_per_s), "wait_pct", pwi_train_json_number(is->wait_pct),
      "bytes_per_s", pwi_train_json_number(is->bytes_per_s), "bytes_sent", (json_int_t)is->bytes_sent, "bytes_received",
      (json_int_t)is->bytes_received, "workers", (json_int_t)is->workers, "slowest", pwi_train_json_number(is->slowest),
      "slowest_host", is->slowest_host ? is->slowest_host : "", "slowest_pid", (json_int_t)is->slowest_pid, "skipped",
      (json_int_t)is->skipped);
}

void pwi_train_figures_board(const struct pawl_linear_progress *is,
                             struct pwi_train_scalar scalars_out[PWI_TRAIN_FIGURES]) {
  const struct pwi_train_scalar scalars[PWI_TRAIN_FIGURES] = {
      {"objective", is->objective},       {"nonzeros", (double)is->nonzeros}, {"valid loss", is->valid_loss},
      {"examples/s", is->examples_per_s}, {"wait %", is->wait_pct},           {"bytes/s", is->bytes_per_s}};
  memcpy(scalars_out, scalars, sizeof scalars);
}
