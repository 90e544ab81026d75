#include "cli/models/predict_mlr.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/image_files.h"
#include "cli/spool.h"

#define MATRIX_MAX 4096 /* classes of a confusion matrix: more would need gigabytes */
#define SHOWN_MAX 20    /* classes of a matrix that is printed */
#define PAIRS_MAX 10    /* pairs of classes that are printed instead */

struct predicted_rows {
  struct pawl_mlr_model *model;
  struct pawl_mlr_about about;
  struct pawl_mlr_rows *rows;
  struct pawl_mlr_rows_info info;
  uint32_t *classes;     /* one for each row */
  double *probabilities; /* about.classes for each row; NULL: not wanted */
  uint64_t *confusion;   /* NULL: too many classes */
  struct pawl_mlr_score score;
  char label[24]; /* number of the label's column, from the model */
};

/* --- predictions -------------------------------------------------------------------------------------------------- */

static bool write_lines(const struct predicted_rows *is, FILE *file) {
  for (uint64_t i = 0; i < is->score.rows; i++) {
    fputs(pawl_mlr_model_label(is->model, is->classes[i]), file);
    for (uint32_t k = 0; is->probabilities && k < is->about.classes; k++)
      fprintf(file, " %.6g", is->probabilities[i * is->about.classes + k]);
    if (fputc('\n', file) == EOF) return false;
  }
  return fflush(file) == 0 && !ferror(file);
}

static int write_output(const struct pwi_predict_mlr *predict, const struct predicted_rows *is) {
  bool is_stdout = predict->output && strcmp(predict->output, "-") == 0;
  if (!predict->output) return PWI_EXIT_OK;
  FILE *file = is_stdout ? stdout : fopen(predict->output, "we");
  errno = file ? 0 : errno;
  bool is_fine = file && write_lines(is, file);
  int number = errno;
  if (file && !is_stdout && fclose(file) != 0) is_fine = false;
  if (is_fine) return PWI_EXIT_OK;
  if (is_stdout && number == EPIPE) return PWI_EXIT_FAILURE; /* the reader has had enough */
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(number ? number : EIO));
}

/* --- confusion ---------------------------------------------------------------------------------------------------- */

static uint64_t confused(const struct predicted_rows *is, uint32_t own, uint32_t predicted) {
  return is->confusion[(size_t)own * is->about.classes + predicted];
}

static json_t *confusion_json(const struct predicted_rows *is) {
  json_t *matrix = json_array();
  if (!is->confusion || is->score.judged == 0) {
    json_decref(matrix);
    return json_null();
  }
  for (uint32_t i = 0; i < is->about.classes; i++) {
    json_t *row = json_array();
    for (uint32_t j = 0; j < is->about.classes; j++)
      json_array_append_new(row, json_integer((json_int_t)confused(is, i, j)));
    json_array_append_new(matrix, row);
  }
  return matrix;
}

static json_t *labels_json(const struct predicted_rows *is) {
  json_t *labels = json_array();
  for (uint32_t i = 0; i < is->about.classes; i++)
    json_array_append_new(labels, pwi_json_string(pawl_mlr_model_label(is->model, i)));
  return labels;
}

/* A row for each label, a column for each prediction. */
static void print_matrix(const struct predicted_rows *is, FILE *file) {
  int width = 6;
  for (uint32_t i = 0; i < is->about.classes; i++) {
    int length = (int)strlen(pawl_mlr_model_label(is->model, i));
    width = length > width ? length : width;
  }
  width = width > 12 ? 12 : width;
  fprintf(file, "\n%*s   predicted\n%*s  ", width, "label", width, "");
  for (uint32_t j = 0; j < is->about.classes; j++)
    fprintf(file, " %*.*s", width, width, pawl_mlr_model_label(is->model, j));
  fputc('\n', file);
  for (uint32_t i = 0; i < is->about.classes; i++) {
    fprintf(file, "%*.*s  ", width, width, pawl_mlr_model_label(is->model, i));
    for (uint32_t j = 0; j < is->about.classes; j++) fprintf(file, " %*" PRIu64, width, confused(is, i, j));
    fputc('\n', file);
  }
}

/* The pairs of classes that are confused most. */
static void print_pairs(const struct predicted_rows *is, FILE *file) {
  uint64_t below = UINT64_MAX;
  fprintf(file, "\n%10s  confused most: label, prediction\n", "rows");
  for (int printed = 0; printed < PAIRS_MAX && below > 0;) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < is->about.classes; i++)
      for (uint32_t j = 0; j < is->about.classes; j++)
        if (i != j && confused(is, i, j) < below && confused(is, i, j) > most) most = confused(is, i, j);
    for (uint32_t i = 0; most > 0 && i < is->about.classes; i++)
      for (uint32_t j = 0; j < is->about.classes && printed < PAIRS_MAX; j++)
        if (i != j && confused(is, i, j) == most) {
          fprintf(file, "%10" PRIu64 "  %s, %s\n", most, pawl_mlr_model_label(is->model, i),
                  pawl_mlr_model_label(is->model, j));
          printed++;
        }
    below = most;
  }
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_json(const struct pwi_predict_mlr *predict, const struct predicted_rows *is, double error,
                      FILE *file) {
  const struct pawl_mlr_score *score = &is->score;
  json_t *object = json_pack(
      "{s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "rows", (json_int_t)score->rows, "judged",
      (json_int_t)score->judged, "wrong", (json_int_t)score->wrong, "error", real(error), "accuracy", real(1 - error),
      "log_loss", real(score->loss), "unlabelled", (json_int_t)score->unlabelled, "unknown_labels",
      (json_int_t)score->unknown_labels, "unknown_values", (json_int_t)score->unknown_values, "skipped",
      (json_int_t)is->info.skipped, "labels", labels_json(is), "confusion", confusion_json(is));
  bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
  json_decref(object);
  fputc('\n', file);
  return is_fine ? PWI_EXIT_OK : pwi_cli_failure(predict->command, "cannot print the figures");
}

static void print_text(const struct predicted_rows *is, double error, FILE *file) {
  const struct pawl_mlr_score *score = &is->score;
  fprintf(file, "%-17s %" PRIu64 "\n", "rows", score->rows);
  if (score->judged > 0) {
    fprintf(file, "%-17s %.3f %%\n", "accuracy", 100 * (1 - error));
    fprintf(file, "%-17s %.3f %%: %" PRIu64 " rows are wrong\n", "error", 100 * error, score->wrong);
    fprintf(file, "%-17s %.6g\n", "log-loss", score->loss);
  }
  if (score->unlabelled) fprintf(file, "%-17s %" PRIu64 " rows\n", "without a label", score->unlabelled);
  if (score->unknown_labels) fprintf(file, "%-17s %" PRIu64 " rows\n", "unknown labels", score->unknown_labels);
  if (score->unknown_values) fprintf(file, "%-17s %" PRIu64 " values\n", "unknown features", score->unknown_values);
  if (is->info.skipped)
    fprintf(file, "%-17s %" PRIu64 " rows, the first at %s\n", "skipped", is->info.skipped,
            pawl_mlr_rows_first_bad(is->rows));
  if (score->judged == 0 || !is->confusion) return;
  if (is->about.classes <= SHOWN_MAX)
    print_matrix(is, file);
  else
    print_pairs(is, file);
}

static void warn(const struct pwi_predict_mlr *predict, const struct predicted_rows *is) {
  const struct pawl_mlr_score *score = &is->score;
  if (score->unlabelled == score->rows && !predict->output)
    fprintf(stderr,
            "pawl predict: no row has a label, so the model cannot be evaluated; write its predictions with -o FILE\n");
  else if (score->judged == 0 && score->rows > score->unlabelled)
    fprintf(stderr, "pawl predict: no row has a label of the model, so the model cannot be evaluated\n");
  if (score->unknown_values > is->info.entries / 2)
    fprintf(stderr,
            "pawl predict: %.0f %% of all values belong to features unknown to %s; was it trained on other data?\n",
            100 * (double)score->unknown_values / (double)is->info.entries, predict->model);
}

static int print_figures(const struct pwi_predict_mlr *predict, const struct predicted_rows *is) {
  const struct pawl_mlr_score *score = &is->score;
  double error = score->judged ? (double)score->wrong / (double)score->judged : (double)NAN;
  FILE *file = predict->output && strcmp(predict->output, "-") == 0 ? stderr : stdout;
  warn(predict, is);
  if (predict->json) return print_json(predict, is, error, file);
  print_text(is, error, file);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static pawl_status read_images(const struct pwi_predict_mlr *predict, const struct pwi_spool *spool,
                               struct predicted_rows *is, char error[PAWL_MLR_TEXT]) {
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, predict->count, predict->image_format, true, &images, error);
  if (!status) status = pawl_mlr_rows_of_images(images, &is->rows, error);
  pawl_images_destroy(images);
  return status;
}

/* Rows are read as in training, unless options say otherwise, and may have no labels. */
static void settle_reading(struct pwi_predict_mlr *predict, struct predicted_rows *is) {
  struct pawl_data_options *reading = &predict->reading;
  const struct pawl_mlr_about *about = &is->about;
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

static int read_both(struct pwi_predict_mlr *predict, const struct pwi_spool *spool, struct predicted_rows *is) {
  char error[PAWL_MLR_TEXT] = "";
  if (pawl_mlr_model_read(predict->model, &is->model, error)) return pwi_cli_failure(predict->command, "%s", error);
  pawl_mlr_model_about(is->model, &is->about);
  settle_reading(predict, is);
  pawl_status status = is->about.is_images ? read_images(predict, spool, is, error)
                                           : pawl_mlr_rows_read(spool->paths, predict->count, &predict->reading,
                                                                predict->threads, &is->rows, error);
  if (status) return pwi_cli_failure(predict->command, "%s", error);
  pawl_mlr_rows_info(is->rows, &is->info);
  return PWI_EXIT_OK;
}

static int predict_all(const struct pwi_predict_mlr *predict, struct predicted_rows *is) {
  char error[PAWL_MLR_TEXT] = "";
  size_t rows = (size_t)is->info.rows, classes = is->about.classes;
  is->classes = pwi_alloc_zero(rows + 1, sizeof *is->classes);
  if (predict->probabilities) is->probabilities = pwi_resize_array(NULL, rows + 1, classes * sizeof *is->probabilities);
  if (classes <= MATRIX_MAX) is->confusion = pwi_alloc_zero(classes, classes * sizeof *is->confusion);
  if (!is->classes || (predict->probabilities && !is->probabilities))
    return pwi_cli_failure(predict->command, "out of memory");
  if (pawl_mlr_predict(is->model, is->rows, predict->threads, is->classes, is->probabilities, is->confusion, &is->score,
                       error))
    return pwi_cli_failure(predict->command, "%s: %s", predict->model, error);
  return PWI_EXIT_OK;
}

int pwi_predict_mlr(struct pwi_predict_mlr *predict) {
  struct predicted_rows is = {.model = NULL};
  struct pwi_spool spool = {0};
  int exit_code;
  if (!pwi_spool_init(&spool, predict->command, predict->paths, predict->count, false, &exit_code)) return exit_code;
  exit_code = read_both(predict, &spool, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = predict_all(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = write_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = print_figures(predict, &is);
  pwi_free(is.classes);
  pwi_free(is.probabilities);
  pwi_free(is.confusion);
  pawl_mlr_rows_destroy(is.rows);
  pawl_mlr_model_destroy(is.model);
  pwi_spool_fini(&spool);
  return exit_code;
}
