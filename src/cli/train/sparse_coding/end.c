#include "cli/train/sparse_coding/end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"

static json_t *number(double value) { return pwi_train_json_number(value); }

/* --- an epoch ----------------------------------------------------------------------------------------------------- */

void pwi_train_sparse_line(const struct pawl_sparse_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char text[32];
  text_out[0] = '\0';
  pwi_train_line_add(text_out, "epoch %" PRIu64 "/%" PRIu64 "  objective %.8g  gap %.2e", is->epoch, is->epochs,
                     is->objective, is->gap);
  pwi_train_line_add(text_out, "  error %.3f %%  non-zeros %.1f", 100 * is->error, is->nonzeros);
  if (!isnan(is->test_error)) pwi_train_line_add(text_out, "  test error %.3f %%", 100 * is->test_error);
  if (is->unused) pwi_train_line_add(text_out, "  unused atoms %" PRIu32, is->unused);
  if (is->replaced) pwi_train_line_add(text_out, " (%" PRIu32 " replaced)", is->replaced);
  pwi_train_line_add(text_out, "  %s rows/s", pwi_train_short(is->rows_per_s, text));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, text));
}

json_t *pwi_train_sparse_json(const struct pawl_sparse_progress *is) {
  return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o}", "epoch",
                   (json_int_t)is->epoch, "epochs", (json_int_t)is->epochs, "objective", number(is->objective), "gap",
                   number(is->gap), "error", number(is->error), "nonzeros", number(is->nonzeros), "test_error",
                   number(is->test_error), "test_nonzeros", number(is->test_nonzeros), "batch", (json_int_t)is->batch,
                   "unused", (json_int_t)is->unused, "replaced", (json_int_t)is->replaced, "seconds",
                   number(is->seconds), "rows_per_s", number(is->rows_per_s), "update_bytes",
                   (json_int_t)is->update_bytes, "work_seconds", number(is->work_s), "wait_seconds",
                   number(is->wait_s));
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static json_t *describe(const struct pwi_train_sparse_end *end, const struct pawl_sparse_about *about) {
  const struct pawl_sparse_result *result = end->result;
  return json_pack(
      "{s:o, s:I, s:I, s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "model",
      pwi_json_string(end->output), "atoms", (json_int_t)about->atoms, "features", (json_int_t)about->features, "rows",
      (json_int_t)about->rows, "lambda", number(result->lambda), "why", result->why, "converged",
      (int)result->is_certain, "advice", result->advice ? pwi_json_string(result->advice) : json_null(), "objective",
      number(result->objective), "gap", number(result->gap), "error", number(result->error), "nonzeros",
      number(result->nonzeros), "test_error", number(result->test_error), "test_nonzeros",
      number(result->test_nonzeros), "test_rows", (json_int_t)result->test_rows, "epochs", (json_int_t)result->epochs,
      "best", (json_int_t)result->best, "resumed", (json_int_t)result->resumed);
}

static json_t *describe_more(const struct pwi_train_sparse_end *end, const struct pawl_sparse_about *about) {
  const struct pawl_sparse_result *result = end->result;
  return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o}", "unused",
                   (json_int_t)result->unused, "replaced", (json_int_t)result->replaced, "unsolved",
                   (json_int_t)result->unsolved, "batch", (json_int_t)result->batch, "seed",
                   json_sprintf("%" PRIu64, about->seed), "skipped", (json_int_t)end->read.skipped, "centered",
                   (int)about->centered, "unit_rows", (int)about->unit_rows, "threads", (json_int_t)result->threads,
                   "seconds", number(result->seconds), "train_seconds", number(result->train_s), "measure_seconds",
                   number(result->measure_s), "rows_per_s", number(result->rows_per_s), "total_seconds",
                   number(end->seconds));
}

int pwi_train_sparse_end_json(const struct pwi_train_sparse_end *end) {
  struct pawl_sparse_about about;
  pawl_sparse_model_about(end->model, &about);
  json_t *object = describe(end, &about), *more = describe_more(end, &about);
  if (object && more) (void)json_object_update(object, more);
  if (object && end->shared) pwi_train_matrix_json(&end->options->matrix, &end->options->base, end->shared, object);
  json_decref(more);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK
                                              : pwi_cli_failure(end->options->base.command, "cannot print the result");
}

static const char *reason(const char *why) {
  return strcmp(why, "epochs") == 0 ? "NOT converged: reached the limit of epochs" : why;
}

static void print_measured(const struct pawl_sparse_result *result, const struct pawl_sparse_about *about) {
  printf("  %-12s %.10g", "objective", result->objective);
  if (result->best < result->epochs) printf(", of epoch %" PRIu64 ", the best", result->best);
  printf("\n  %-12s neither better codes nor better atoms alone could win more than %.2g %%\n", "gap",
         100 * result->gap);
  printf("  %-12s %.3f %% of the squares of %" PRIu64 " rows\n", "error", 100 * result->error, about->rows);
  printf("  %-12s %.2f non-zeros in a row, %.2f %% of %" PRIu32 "\n", "codes", result->nonzeros,
         100 * result->nonzeros / about->atoms, about->atoms);
  if (result->test_rows > 0 && isnan(result->test_error))
    printf("  %-12s not known: all %" PRIu64 " rows are 0\n", "test error", result->test_rows);
  else if (result->test_rows > 0)
    printf("  %-12s %.3f %% of the squares of %" PRIu64 " rows, %.2f non-zeros in a row\n", "test error",
           100 * result->test_error, result->test_rows, result->test_nonzeros);
  if (result->unused || result->replaced)
    printf("  %-12s %" PRIu32 " at the end; unused atoms were replaced %" PRIu64 " time%s\n", "unused atoms",
           result->unused, result->replaced, result->replaced == 1 ? "" : "s");
}

void pwi_train_sparse_end_print(const struct pwi_train_sparse_end *end) {
  const struct pawl_sparse_result *result = end->result;
  struct pawl_sparse_about about;
  char whole[32], training[32], measuring[32], speed[32];
  pawl_sparse_model_about(end->model, &about);
  printf("%s after %" PRIu64 " epoch%s\n", reason(result->why), result->epochs, result->epochs == 1 ? "" : "s");
  printf("  %-12s %" PRIu32 " atoms of %" PRIu64 " features; lambda %.6g\n", "dictionary", about.atoms, about.features,
         result->lambda);
  if (result->best > 0) print_measured(result, &about);
  printf("  %-12s %s: %s training, %s measuring, %s rows/s\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_time(result->train_s, training), pwi_train_time(result->measure_s, measuring),
         pwi_train_short(result->rows_per_s, speed));
  if (end->shared) pwi_train_matrix_print(&end->options->base, end->shared);
  printf("  %-12s %s%s\n", "model", end->output, end->options->base.output ? "" : " (choose another name with -o)");
  printf("\nnext:  pawl predict");
  pwi_train_word_print(end->output);
  printf(" DATA -o codes.svm\n");
}
