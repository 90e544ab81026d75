#include "cli/train/multiclass/end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"

/* --- an epoch ----------------------------------------------------------------------------------------------------- */

void pwi_train_multiclass_line(const struct pawl_mlr_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  text_out[0] = '\0';
  pwi_train_line_add(text_out, "epoch %" PRIu64 "/%" PRIu64 "  objective %.8g", is->epoch, is->epochs, is->objective);
  if (!isnan(is->gap)) pwi_train_line_add(text_out, "  gap %.2e", is->gap);
  pwi_train_line_add(text_out, "  train error %.2f %%", 100 * is->train_error);
  if (!isnan(is->test_error)) pwi_train_line_add(text_out, "  test error %.2f %%", 100 * is->test_error);
  pwi_train_line_add(text_out, "  %s rows/s", pwi_train_short(is->rows_per_s, number));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, number));
}

json_t *pwi_train_multiclass_json(const struct pawl_mlr_progress *is) {
  return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "epoch", (json_int_t)is->epoch,
                   "epochs", (json_int_t)is->epochs, "objective", pwi_train_json_number(is->objective), "gap",
                   pwi_train_json_number(is->gap), "train_error", pwi_train_json_number(is->train_error), "test_error",
                   pwi_train_json_number(is->test_error), "rate", pwi_train_json_number(is->rate), "seconds",
                   pwi_train_json_number(is->seconds), "rows_per_s", pwi_train_json_number(is->rows_per_s),
                   "train_seconds", pwi_train_json_number(is->train_s), "update_bytes", (json_int_t)is->update_bytes,
                   "work_seconds", pwi_train_json_number(is->work_s), "wait_seconds",
                   pwi_train_json_number(is->wait_s));
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text) { return text ? pwi_json_string(text) : json_null(); }

static json_t *describe(const struct pwi_train_multiclass_end *end) {
  const struct pawl_mlr_result *result = end->result;
  struct pawl_mlr_about about;
  pawl_mlr_model_about(end->model, &about);
  return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}",
                   "model", pwi_json_string(end->output), "method", pawl_mlr_method_name(about.method), "classes",
                   (json_int_t)about.classes, "features", (json_int_t)about.features, "rows", (json_int_t)about.rows,
                   "entries", (json_int_t)end->read.entries, "why", result->why, "converged",
                   (int)(strcmp(result->why, "converged") == 0), "advice", text_or_null(result->advice), "objective",
                   pwi_train_json_number(result->objective), "gap", pwi_train_json_number(result->gap), "train_error",
                   pwi_train_json_number(result->train_error), "test_error", pwi_train_json_number(result->test_error),
                   "test_loss", pwi_train_json_number(result->test_loss), "test_rows", (json_int_t)result->test_judged,
                   "test_unknown_labels", (json_int_t)result->test_unknown_labels, "epochs", (json_int_t)result->epochs,
                   "resumed", (json_int_t)result->resumed);
}

static void add_more(const struct pwi_train_multiclass_end *end, json_t *object) {
  const struct pawl_mlr_result *result = end->result;
  struct pawl_mlr_about about;
  pawl_mlr_model_about(end->model, &about);
  bool is_sgd = about.method == PAWL_MLR_SGD;
  json_t *more = json_pack(
      "{s:o, s:b, s:o, s:b, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "test_guess_error",
      pwi_train_json_number(result->test_guess_error), "guessing", (int)result->is_guessing, "l2",
      pwi_train_json_number(about.l2), "bias", (int)about.has_bias, "rate",
      is_sgd ? pwi_train_json_number(result->rate) : json_null(), "batch",
      is_sgd ? json_integer((json_int_t)result->batch) : json_null(), "seed", json_sprintf("%" PRIu64, about.seed),
      "skipped", (json_int_t)end->read.skipped, "threads", (json_int_t)result->threads, "seconds",
      pwi_train_json_number(result->seconds), "train_seconds", pwi_train_json_number(result->train_s), "rows_per_s",
      pwi_train_json_number(result->rows_per_s), "total_seconds", pwi_train_json_number(end->seconds));
  (void)json_object_update(object, more);
  json_decref(more);
}

int pwi_train_multiclass_end_json(const struct pwi_train_multiclass_end *end) {
  json_t *object = describe(end);
  if (object) add_more(end, object);
  if (object && end->shared) pwi_train_matrix_json(&end->options->matrix, &end->options->base, end->shared, object);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK
                                              : pwi_cli_failure(end->options->base.command, "cannot print the result");
}

static const char *reason(const char *why, bool is_certain) {
  if (strcmp(why, "epochs") == 0) return is_certain ? "done" : "NOT converged: reached the limit of epochs";
  if (strcmp(why, "diverged") == 0) return "DIVERGED: the model is no better than weights of zero";
  return why;
}

static void print_errors(const struct pawl_mlr_result *result, const struct pawl_mlr_about *about) {
  printf("  %-12s %.3f %% of %" PRIu64 " rows\n", "train error", 100 * result->train_error, about->rows);
  if (!isnan(result->test_error))
    printf("  %-12s %.3f %% of %" PRIu64 " rows, mean loss %.6g%s\n", "test error", 100 * result->test_error,
           result->test_judged, result->test_loss, result->is_guessing ? "; NO BETTER THAN GUESSING" : "");
}

void pwi_train_multiclass_end_print(const struct pwi_train_multiclass_end *end) {
  const struct pawl_mlr_result *result = end->result;
  struct pawl_mlr_about about;
  char whole[32], training[32], speed[32];
  pawl_mlr_model_about(end->model, &about);
  printf("%s after %" PRIu64 " epoch%s of %s\n", reason(result->why, result->is_certain), result->epochs,
         result->epochs == 1 ? "" : "s", pawl_mlr_method_name(about.method));
  printf("  %-12s %" PRIu32 " classes, %" PRIu64 " features%s\n", "weights", about.classes, about.features,
         about.has_bias ? " and a constant" : "");
  printf("  %-12s %.10g\n", "objective", result->objective);
  if (result->gap < 0.5) printf("  %-12s at most %.2g %% above the optimum\n", "distance", 100 * result->gap);
  print_errors(result, &about);
  if (about.method == PAWL_MLR_SGD)
    printf("  %-12s %.4g at first, batches of %" PRIu64 " rows\n", "rate", result->rate, result->batch);
  printf("  %-12s %s: %s training, %s rows/s\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_time(result->train_s, training), pwi_train_short(result->rows_per_s, speed));
  if (end->shared) pwi_train_matrix_print(&end->options->base, end->shared);
  printf("  %-12s %s%s\n", "model", end->output, end->options->base.output ? "" : " (choose another name with -o)");
  printf("\nnext:  pawl predict");
  pwi_train_word_print(end->output);
  printf(" DATA\n");
}
