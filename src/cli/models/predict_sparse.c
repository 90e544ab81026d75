#include "cli/models/predict_sparse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/image_files.h"
#include "cli/spool.h"

struct coded_rows {
  struct pawl_sparse_model *model;
  struct pawl_sparse_about about;
  struct pawl_sparse_rows *rows;
  struct pawl_sparse_rows_info info;
  struct pawl_sparse_score score;
  FILE *file;     /* of the codes; NULL: none */
  int problem;    /* errno of writing */
  char label[24]; /* number of the label's column, from the model */
};

/* --- codes -------------------------------------------------------------------------------------------------------- */

static bool write_code(void *context, const struct pawl_sparse_code *code) {
  struct coded_rows *is = context;
  const char *label = pawl_sparse_rows_label(is->rows, code->row);
  if (!is->file) return true;
  errno = 0;
  fputs(label ? label : "0", is->file);
  for (uint32_t i = 0; i < code->count; i++)
    fprintf(is->file, " %" PRIu32 ":%.9g", code->atoms[i] + 1, code->values[i]);
  if (fputc('\n', is->file) != EOF && !ferror(is->file)) return true;
  is->problem = errno ? errno : EIO;
  return false;
}

/* Closes the file of the codes. Returns PWI_EXIT_OK, or prints why it cannot be written. */
static int end_output(const struct pwi_predict_sparse *predict, struct coded_rows *is) {
  bool is_stdout = is->file == stdout;
  if (!is->file) return PWI_EXIT_OK;
  if (!is->problem && fflush(is->file) != 0) is->problem = errno;
  if (!is_stdout && fclose(is->file) != 0 && !is->problem) is->problem = errno;
  is->file = NULL;
  if (!is->problem) return PWI_EXIT_OK;
  if (is_stdout && is->problem == EPIPE) return PWI_EXIT_FAILURE; /* the reader has had enough */
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(is->problem));
}

static int open_output(const struct pwi_predict_sparse *predict, struct coded_rows *is) {
  if (!predict->output) return PWI_EXIT_OK;
  is->file = strcmp(predict->output, "-") == 0 ? stdout : fopen(predict->output, "we");
  if (is->file) return PWI_EXIT_OK;
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(errno));
}

static int encode(const struct pwi_predict_sparse *predict, struct coded_rows *is) {
  char error[PAWL_SPARSE_TEXT] = "";
  pawl_status status = pawl_sparse_encode(is->model, is->rows, predict->threads, write_code, is, &is->score, error);
  int exit_code = end_output(predict, is);
  if (exit_code != PWI_EXIT_OK || !status) return exit_code;
  return pwi_cli_failure(predict->command, "%s: %s", predict->model, error);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_json(const struct pwi_predict_sparse *predict, const struct coded_rows *is, FILE *file) {
  const struct pawl_sparse_score *score = &is->score;
  double rows = (double)score->rows;
  json_t *object = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "rows", (json_int_t)score->rows,
                             "error", real(score->error), "objective", real(score->objective), "gap", real(score->gap),
                             "nonzeros", real((double)score->nonzeros / rows), "nonzero_share",
                             real((double)score->nonzeros / rows / is->about.atoms), "empty", (json_int_t)score->empty,
                             "unsolved", (json_int_t)score->unsolved, "unknown_values",
                             (json_int_t)score->unknown_values, "skipped", (json_int_t)is->info.skipped);
  bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
  json_decref(object);
  fputc('\n', file);
  return is_fine ? PWI_EXIT_OK : pwi_cli_failure(predict->command, "cannot print the figures");
}

static void print_text(const struct coded_rows *is, FILE *file) {
  const struct pawl_sparse_score *score = &is->score;
  double nonzeros = (double)score->nonzeros / (double)score->rows;
  fprintf(file, "%-17s %" PRIu64 "\n", "rows", score->rows);
  if (!isnan(score->error)) fprintf(file, "%-17s %.3f %% of the squares\n", "error", 100 * score->error);
  fprintf(file, "%-17s %.2f in a row, %.2f %% of %" PRIu32 " atoms\n", "non-zeros", nonzeros,
          100 * nonzeros / is->about.atoms, is->about.atoms);
  fprintf(file, "%-17s %.10g\n", "objective", score->objective);
  if (score->empty) fprintf(file, "%-17s %" PRIu64 " rows\n", "codes without any", score->empty);
  if (score->unsolved) fprintf(file, "%-17s %" PRIu64 " rows\n", "not exact", score->unsolved);
  if (score->unknown_values) fprintf(file, "%-17s %" PRIu64 " values\n", "unknown features", score->unknown_values);
  if (is->info.skipped)
    fprintf(file, "%-17s %" PRIu64 " rows, the first at %s\n", "skipped", is->info.skipped,
            pawl_sparse_rows_first_bad(is->rows));
}

static int print_figures(const struct pwi_predict_sparse *predict, const struct coded_rows *is) {
  const struct pawl_sparse_score *score = &is->score;
  FILE *file = predict->output && strcmp(predict->output, "-") == 0 ? stderr : stdout;
  if (score->unknown_values > is->info.entries / 2)
    fprintf(stderr,
            "pawl predict: %.0f %% of all values belong to features unknown to %s; was it trained on other data?\n",
            100 * (double)score->unknown_values / (double)is->info.entries, predict->model);
  if (score->empty == score->rows)
    fprintf(stderr,
            "pawl predict: every code is 0, because no row is longer than the model's lambda %g along an atom\n",
            is->about.lambda);
  if (predict->json) return print_json(predict, is, file);
  print_text(is, file);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* Rows are read as in training, unless options say otherwise, and may have no labels. */
static void settle_reading(struct pwi_predict_sparse *predict, struct coded_rows *is) {
  struct pawl_data_options *reading = &predict->reading;
  const struct pawl_sparse_about *about = &is->about;
  if (!predict->has_hash_bits && about->hash_bits) reading->hash_bits = about->hash_bits;
  reading->binary = predict->binary < 0 ? about->binary : predict->binary;
  reading->labels_optional = true;
  reading->columns = about->columns;
  reading->label_column = about->label_column;
  if (reading->label || !about->label_column) return;
  snprintf(is->label, sizeof is->label, "%" PRIu64, about->label_column);
  reading->label = is->label;
}

static pawl_status read_images(const struct pwi_predict_sparse *predict, const struct pwi_spool *spool,
                               struct coded_rows *is, char error[PAWL_SPARSE_TEXT]) {
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, predict->count, predict->image_format, true, &images, error);
  if (!status) status = pawl_sparse_rows_of_images(images, is->about.shape.patch, 0, 0, &is->rows, error);
  pawl_images_destroy(images);
  return status;
}

static int read_both(struct pwi_predict_sparse *predict, const struct pwi_spool *spool, struct coded_rows *is) {
  char error[PAWL_SPARSE_TEXT] = "";
  if (pawl_sparse_model_read(predict->model, &is->model, error)) return pwi_cli_failure(predict->command, "%s", error);
  pawl_sparse_model_about(is->model, &is->about);
  settle_reading(predict, is);
  pawl_status status = is->about.shape.channels ? read_images(predict, spool, is, error)
                                                : pawl_sparse_rows_read(spool->paths, predict->count, &predict->reading,
                                                                        predict->threads, &is->rows, error);
  if (status) return pwi_cli_failure(predict->command, "%s", error);
  pawl_sparse_rows_info(is->rows, &is->info);
  return PWI_EXIT_OK;
}

int pwi_predict_sparse(struct pwi_predict_sparse *predict) {
  struct coded_rows is = {.model = NULL};
  struct pwi_spool spool = {0};
  int exit_code;
  if (!pwi_spool_init(&spool, predict->command, predict->paths, predict->count, false, &exit_code)) return exit_code;
  exit_code = read_both(predict, &spool, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = open_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = encode(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = print_figures(predict, &is);
  pawl_sparse_rows_destroy(is.rows);
  pawl_sparse_model_destroy(is.model);
  pwi_spool_fini(&spool);
  return exit_code;
}
