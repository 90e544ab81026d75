#include "cli/models/predict_metric.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/image_files.h"
#include "cli/spool.h"

struct nearest_rows {
  struct pawl_metric_model *model;
  struct pawl_metric_about about;
  struct pawl_mlr_rows *rows;
  struct pawl_mlr_rows_info info;
  uint32_t *classes; /* one for each row */
  struct pawl_metric_score score;
  FILE *file;     /* of the predictions; NULL: none */
  char label[24]; /* number of the label's column, from the model */
};

/* --- predictions -------------------------------------------------------------------------------------------------- */

/* Before the work begins. */
static int open_output(const struct pwi_predict_metric *predict, struct nearest_rows *is) {
  if (!predict->output) return PWI_EXIT_OK;
  is->file = strcmp(predict->output, "-") == 0 ? stdout : fopen(predict->output, "we");
  if (is->file) return PWI_EXIT_OK;
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(errno));
}

static bool write_lines(const struct nearest_rows *is) {
  for (uint64_t i = 0; i < is->score.rows; i++)
    if (fprintf(is->file, "%s\n", pawl_metric_model_label(is->model, is->classes[i])) < 0) return false;
  return fflush(is->file) == 0;
}

static int write_output(const struct pwi_predict_metric *predict, struct nearest_rows *is) {
  bool is_stdout = is->file == stdout;
  if (!is->file) return PWI_EXIT_OK;
  errno = 0;
  bool is_fine = write_lines(is);
  int number = errno;
  if (!is_stdout && fclose(is->file) != 0 && is_fine) {
    is_fine = false;
    number = errno;
  }
  is->file = NULL;
  if (is_fine) return PWI_EXIT_OK;
  if (is_stdout && number == EPIPE) return PWI_EXIT_FAILURE; /* the reader has had enough */
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(number ? number : EIO));
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_json(const struct pwi_predict_metric *predict, const struct nearest_rows *is, double error,
                      FILE *file) {
  const struct pawl_metric_score *score = &is->score;
  json_t *object = json_pack("{s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I}", "rows", (json_int_t)score->rows, "judged",
                             (json_int_t)score->judged, "wrong", (json_int_t)score->wrong, "error", real(error),
                             "accuracy", real(1 - error), "unlabelled", (json_int_t)score->unlabelled, "unknown_labels",
                             (json_int_t)score->unknown_labels, "unknown_values", (json_int_t)score->unknown_values,
                             "skipped", (json_int_t)is->info.skipped);
  bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
  json_decref(object);
  fputc('\n', file);
  return is_fine ? PWI_EXIT_OK : pwi_cli_failure(predict->command, "cannot print the figures");
}

static void print_text(const struct nearest_rows *is, double error, FILE *file) {
  const struct pawl_metric_score *score = &is->score;
  fprintf(file, "%-17s %" PRIu64 "\n", "rows", score->rows);
  if (score->judged > 0) {
    fprintf(file, "%-17s %.3f %%\n", "accuracy", 100 * (1 - error));
    fprintf(file, "%-17s %.3f %%: %" PRIu64 " rows are wrong\n", "error", 100 * error, score->wrong);
  }
  if (score->unlabelled) fprintf(file, "%-17s %" PRIu64 " rows\n", "without a label", score->unlabelled);
  if (score->unknown_labels) fprintf(file, "%-17s %" PRIu64 " rows\n", "unknown labels", score->unknown_labels);
  if (score->unknown_values) fprintf(file, "%-17s %" PRIu64 " values\n", "unknown features", score->unknown_values);
  if (is->info.skipped)
    fprintf(file, "%-17s %" PRIu64 " rows, the first at %s\n", "skipped", is->info.skipped,
            pawl_mlr_rows_first_bad(is->rows));
}

static int print_figures(const struct pwi_predict_metric *predict, const struct nearest_rows *is) {
  const struct pawl_metric_score *score = &is->score;
  double error = score->judged ? (double)score->wrong / (double)score->judged : (double)NAN;
  FILE *file = predict->output && strcmp(predict->output, "-") == 0 ? stderr : stdout;
  if (score->judged == 0 && !predict->output)
    fprintf(stderr, "pawl predict: no row has a label of the model, so the model cannot be evaluated; write its "
                    "predictions with -o FILE\n");
  if (score->unknown_values > is->info.entries / 2)
    fprintf(stderr,
            "pawl predict: %.0f %% of all values belong to features unknown to %s; was it trained on other data?\n",
            100 * (double)score->unknown_values / (double)is->info.entries, predict->model);
  if (predict->json) return print_json(predict, is, error, file);
  print_text(is, error, file);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* Rows are read as in training, unless options say otherwise, and may have no labels. */
static void settle_reading(struct pwi_predict_metric *predict, struct nearest_rows *is) {
  struct pawl_data_options *reading = &predict->reading;
  const struct pawl_metric_about *about = &is->about;
  if (!predict->has_hash_bits && about->hash_bits) reading->hash_bits = about->hash_bits;
  reading->binary = predict->binary < 0 ? about->binary : predict->binary;
  reading->unit_rows = predict->unit_rows < 0 ? about->unit_rows : predict->unit_rows;
  reading->labels_optional = true;
  reading->columns = about->columns;
  reading->label_column = about->label_column;
  if (reading->label || !about->label_column) return;
  snprintf(is->label, sizeof is->label, "%" PRIu64, about->label_column);
  reading->label = is->label;
}

static pawl_status read_images(const struct pwi_predict_metric *predict, const struct pwi_spool *spool,
                               struct nearest_rows *is, char error[PAWL_METRIC_TEXT]) {
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, predict->count, predict->image_format, true, &images, error);
  if (!status) status = pawl_mlr_rows_of_images(images, &is->rows, error);
  pawl_images_destroy(images);
  return status;
}

static int read_both(struct pwi_predict_metric *predict, const struct pwi_spool *spool, struct nearest_rows *is) {
  char error[PAWL_METRIC_TEXT] = "";
  if (pawl_metric_model_read(predict->model, &is->model, error)) return pwi_cli_failure(predict->command, "%s", error);
  pawl_metric_model_about(is->model, &is->about);
  settle_reading(predict, is);
  pawl_status status = is->about.is_images ? read_images(predict, spool, is, error)
                                           : pawl_mlr_rows_read(spool->paths, predict->count, &predict->reading,
                                                                predict->threads, &is->rows, error);
  if (status) return pwi_cli_failure(predict->command, "%s", error);
  pawl_mlr_rows_info(is->rows, &is->info);
  return PWI_EXIT_OK;
}

static int predict_all(const struct pwi_predict_metric *predict, struct nearest_rows *is) {
  char error[PAWL_METRIC_TEXT] = "";
  is->classes = pwi_alloc_zero((size_t)is->info.rows + 1, sizeof *is->classes);
  if (!is->classes) return pwi_cli_failure(predict->command, "out of memory");
  if (pawl_metric_predict(is->model, is->rows, predict->threads, is->classes, &is->score, error))
    return pwi_cli_failure(predict->command, "%s: %s", predict->model, error);
  return PWI_EXIT_OK;
}

int pwi_predict_metric(struct pwi_predict_metric *predict) {
  struct nearest_rows is = {.model = NULL};
  struct pwi_spool spool = {0};
  int exit_code;
  if (!pwi_spool_init(&spool, predict->command, predict->paths, predict->count, false, &exit_code)) return exit_code;
  exit_code = read_both(predict, &spool, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = open_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = predict_all(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = write_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = print_figures(predict, &is);
  if (is.file && is.file != stdout) fclose(is.file);
  pwi_free(is.classes);
  pawl_mlr_rows_destroy(is.rows);
  pawl_metric_model_destroy(is.model);
  pwi_spool_fini(&spool);
  return exit_code;
}
