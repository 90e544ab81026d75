#include "cli/train/metric/end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"

static json_t *number(double value) { return pwi_train_json_number(value); }

/* --- an epoch ----------------------------------------------------------------------------------------------------- */

void pwi_train_metric_line(const struct pawl_metric_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char text[32];
  text_out[0] = '\0';
  pwi_train_line_add(text_out, "epoch %" PRIu64 "/%" PRIu64 "  objective %.6g", is->epoch, is->epochs, is->objective);
  if (is->is_undone)
    pwi_train_line_add(text_out, "  undone: the objective rose; rate %.3g from now", is->rate / 2);
  else
    pwi_train_line_add(text_out, "  held-out error %.2f %%  best %.2f %%", 100 * is->error, 100 * is->best_error);
  pwi_train_line_add(text_out, "  %s pairs/s", pwi_train_short(is->pairs_per_s, text));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, text));
}

json_t *pwi_train_metric_json(const struct pawl_metric_progress *is) {
  return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:I, s:o, s:o}", "epoch", (json_int_t)is->epoch,
                   "epochs", (json_int_t)is->epochs, "objective", number(is->objective), "error", number(is->error),
                   "best_error", number(is->best_error), "rate", number(is->rate), "undone", (int)is->is_undone,
                   "seconds", number(is->seconds), "pairs_per_s", number(is->pairs_per_s), "update_bytes",
                   (json_int_t)is->update_bytes, "work_seconds", number(is->work_s), "wait_seconds",
                   number(is->wait_s));
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static json_t *describe(const struct pwi_train_metric_end *end, const struct pawl_metric_about *about) {
  const struct pawl_metric_result *result = end->result;
  return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "model",
                   pwi_json_string(end->output), "rank", (json_int_t)about->rank, "features",
                   (json_int_t)about->features, "rows", (json_int_t)about->rows, "classes", (json_int_t)about->classes,
                   "k", (json_int_t)about->k, "why", result->why, "better", (int)result->is_better, "advice",
                   result->advice ? pwi_json_string(result->advice) : json_null(), "epochs", (json_int_t)result->epochs,
                   "resumed", (json_int_t)result->resumed, "best", (json_int_t)result->best, "undone",
                   (json_int_t)result->undone, "first_objective", number(result->first_objective), "objective",
                   number(result->objective));
}

static json_t *describe_errors(const struct pawl_metric_result *result) {
  return json_pack("{s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I}", "held_out", (json_int_t)result->held, "error",
                   number(result->error), "euclidean_error", number(result->euclid_error), "pca_error",
                   number(result->pca_error), "test_rows", (json_int_t)result->test_judged, "test_error",
                   number(result->test_error), "test_euclidean_error", number(result->test_euclid_error),
                   "test_pca_error", number(result->test_pca_error), "test_unknown_labels",
                   (json_int_t)result->test_unknown_labels);
}

static json_t *describe_more(const struct pwi_train_metric_end *end, const struct pawl_metric_about *about) {
  const struct pawl_metric_result *result = end->result;
  return json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "similar", (json_int_t)result->similar,
                   "dissimilar", (json_int_t)result->dissimilar, "seed", json_sprintf("%" PRIu64, about->seed),
                   "unlabelled", (json_int_t)end->read.unlabelled, "skipped", (json_int_t)end->read.skipped, "threads",
                   (json_int_t)result->threads, "seconds", number(result->seconds), "pairs_per_s",
                   number(result->pairs_per_s), "total_seconds", number(end->seconds));
}

int pwi_train_metric_end_json(const struct pwi_train_metric_end *end) {
  struct pawl_metric_about about;
  pawl_metric_model_about(end->model, &about);
  json_t *object = describe(end, &about), *errors = describe_errors(end->result), *more = describe_more(end, &about);
  bool is_whole = object && errors && more;
  if (is_whole) is_whole = json_object_update(object, errors) == 0 && json_object_update(object, more) == 0;
  if (is_whole && end->shared) pwi_train_matrix_json(&end->options->matrix, &end->options->base, end->shared, object);
  json_decref(errors);
  json_decref(more);
  if (is_whole && pwi_train_json_write(stdout, object)) return PWI_EXIT_OK;
  return pwi_cli_failure(end->options->base.command, "cannot print the result");
}

static const char *reason(const char *why) {
  return strcmp(why, "no better") == 0 ? "done: the held-out error falls no more,"
         : strcmp(why, "epochs") == 0  ? "done"
                                       : why;
}

static void print_errors(const char *name, double metric, double euclid, double pca, uint64_t rows) {
  printf("  %-12s %.2f %% of %" PRIu64 " rows by the metric, %.2f %% by Euclidean distance, %.2f %% by PCA\n", name,
         100 * metric, rows, 100 * euclid, 100 * pca);
}

void pwi_train_metric_end_print(const struct pwi_train_metric_end *end) {
  const struct pawl_metric_result *result = end->result;
  struct pawl_metric_about about;
  char whole[32], speed[32];
  pawl_metric_model_about(end->model, &about);
  printf("%s after %" PRIu64 " epoch%s\n", reason(result->why), result->epochs, result->epochs == 1 ? "" : "s");
  printf("  %-12s rank %" PRIu32 " of %" PRIu64 " features; %" PRIu32 " classes, k = %" PRIu32 "\n", "metric",
         about.rank, about.features, about.classes, about.k);
  printf("  %-12s %" PRIu64 " similar and %" PRIu64 " dissimilar ones\n", "pairs", result->similar, result->dissimilar);
  printf("  %-12s %.6g, of epoch %" PRIu64 "; %.6g by PCA\n", "objective", result->objective, result->best,
         result->first_objective);
  print_errors("held-out", result->error, result->euclid_error, result->pca_error, result->held);
  if (result->test_judged > 0)
    print_errors("test", result->test_error, result->test_euclid_error, result->test_pca_error, result->test_judged);
  if (result->undone) printf("  %-12s %" PRIu64 " epochs, which raised the objective\n", "undone", result->undone);
  if (end->read.unlabelled) printf("  %-12s %" PRIu64 " rows without a label\n", "left out", end->read.unlabelled);
  printf("  %-12s %s, %s pairs/s\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_short(result->pairs_per_s, speed));
  if (end->shared) pwi_train_matrix_print(&end->options->base, end->shared);
  printf("  %-12s %s%s\n", "model", end->output, end->options->base.output ? "" : " (choose another name with -o)");
  printf("\nnext:  pawl predict");
  pwi_train_word_print(end->output);
  printf(" DATA -o classes.txt\n");
}
