/* `pawl predict`: predicts data with a model, and evaluates the model. Convolutional nets are in predict_cnn.c,
 * factorised ratings in predict_bpmf.c, multiclass models in predict_mlr.c, dictionaries in predict_sparse.c, metrics in
 * predict_metric.c. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/bpmf.h>
#include <pawl/cnn.h>
#include <pawl/session.h>
#include <pawl/sparse_coding.h>

#include "cli/apart.h"
#include "cli/cli.h"
#include "cli/models/predict_bpmf.h"
#include "cli/models/predict_cnn.h"
#include "cli/models/predict_metric.h"
#include "cli/models/predict_mlr.h"
#include "cli/models/predict_run.h"
#include "cli/models/predict_sparse.h"
#include "cli/reading.h"
#include "cli/spool.h"

enum {
  LETTER_SCORES = 300,
  LETTER_PROBABILITIES,
  LETTER_FORMAT,
  LETTER_LABEL,
  LETTER_HASH_BITS,
  LETTER_BINARY,
  LETTER_NO_BINARY,
  LETTER_UNIT_ROWS,
  LETTER_NO_UNIT_ROWS,
  LETTER_THREADS,
  LETTER_SKIP_BAD,
  LETTER_L1,
  LETTER_L2,
  LETTER_SEPARATOR,
};

#define SKIP_BAD_MAX UINT32_MAX
#define THREADS_MAX 1024
#define MOSTLY 2 /* warn if more than one in so many entries is unknown to the model */

struct predict_run {
  const struct pwi_command *command;
  const char *model_path, *output;
  enum pwi_predict_what what;
  struct pawl_data_options reading; /* options of the model, overridden by those given */
  bool has_hash_bits;
  int binary, unit_rows; /* -1: as the model says */
  uint64_t threads;
  double l1, l2; /* NAN: as the model says */
  bool json;
  enum pawl_images_format image_format; /* AUTO: none was given */
  bool has_row_options;                 /* an option was given that images do not have */
  bool has_other_options;               /* an option was given that ratings do not have */
  enum pawl_ratings_format ratings_format;
  struct pawl_linear_model *model; /* NULL before it is read */
  struct pawl_linear_about about;  /* of the model */
  struct pawl_linear_point penalty;
  struct pawl_data *data;
  struct pwi_spool spool;
  char label[24]; /* number of the label's column, from the model */
  struct pwi_predict predict;
};

/* --- options -------------------------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, uint64_t least, uint64_t most, uint64_t *count_out) {
  return pwi_cli_number(text, count_out) && *count_out >= least && *count_out <= most;
}

static bool read_penalty(const char *text, double *value_out) {
  char *end;
  *value_out = strtod(text, &end);
  return end != text && *end == 0 && isfinite(*value_out) && *value_out >= 0;
}

/* Reads an option with a value. Returns the expected value, or NULL if it is valid. */
static const char *take_value(struct predict_run *run, int letter, const char *value) {
  uint64_t count;
  switch (letter) {
  case LETTER_FORMAT:
    if (!pawl_images_format_parse(value, &run->image_format)) return NULL;
    if (!pawl_ratings_format_parse(value, &run->ratings_format) && run->ratings_format != PAWL_RATINGS_CSV) return NULL;
    return pawl_data_format_parse(value, &run->reading.format)
               ? "libsvm, vw, criteo, csv, ldac, uci, text or cache; idx or cifar for images; csv, triples or mtx for "
                 "ratings"
               : NULL;
  case LETTER_HASH_BITS:
    if (!read_count(value, 1, 62, &count)) return "a number from 1 to 62";
    run->reading.hash_bits = (uint32_t)count;
    run->has_hash_bits = true;
    return NULL;
  case LETTER_THREADS:
    return read_count(value, 1, THREADS_MAX, &run->threads) ? NULL : "a number from 1 to 1024";
  case LETTER_SKIP_BAD:
    return read_count(value, 0, SKIP_BAD_MAX, &run->reading.skip_bad) ? NULL : "a number of rows";
  case LETTER_L1:
    return read_penalty(value, &run->l1) ? NULL : "a number, at least 0";
  case LETTER_L2:
    return read_penalty(value, &run->l2) ? NULL : "a number, at least 0";
  case LETTER_SEPARATOR:
    return pwi_separator_read(value, &run->reading) ? NULL : PWI_SEPARATOR_WANTED;
  case LETTER_LABEL:
    run->reading.label = value;
    return NULL;
  default:
    run->output = value;
    return NULL;
  }
}

/* Reads an option without a value. Returns false if it is not one. */
static bool take_switch(struct predict_run *run, int letter) {
  switch (letter) {
  case LETTER_SCORES:
    run->what = PWI_PREDICT_SCORES;
    return true;
  case LETTER_PROBABILITIES:
    run->what = PWI_PREDICT_PROBABILITIES;
    return true;
  case LETTER_BINARY:
  case LETTER_NO_BINARY:
    run->binary = letter == LETTER_BINARY;
    return true;
  case LETTER_UNIT_ROWS:
  case LETTER_NO_UNIT_ROWS:
    run->unit_rows = letter == LETTER_UNIT_ROWS;
    return true;
  case PWI_CLI_LETTER_JSON:
    run->json = true;
    return true;
  default:
    return false;
  }
}

static bool read_options(struct predict_run *run, struct pwi_cli_args *args, int *exit_out) {
  int letter;
  while ((letter = pwi_cli_next(args)) >= 0) {
    enum pwi_predict_what before = run->what;
    const char *wanted = take_switch(run, letter) ? NULL : take_value(run, letter, args->value);
    run->has_row_options |= letter != 'o' && letter != PWI_CLI_LETTER_JSON && letter != LETTER_PROBABILITIES &&
                            !(letter == LETTER_FORMAT && run->image_format);
    run->has_other_options |= letter != 'o' && letter != PWI_CLI_LETTER_JSON && letter != LETTER_SKIP_BAD &&
                              !(letter == LETTER_FORMAT && run->ratings_format);
    if (wanted) *exit_out = pwi_cli_bad_value(run->command, args->value, "%s", wanted);
    if (before && run->what != before)
      *exit_out = pwi_cli_usage(run->command, "--scores and --probabilities exclude each other");
    if (*exit_out != PWI_EXIT_OK) return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(args, 2, INT_MAX)) {
    *exit_out = args->exit_code;
    return false;
  }
  if (run->what && !run->output) {
    *exit_out = pwi_cli_usage(run->command, "no output file given; name one with -o FILE, or -o - for standard output");
    return false;
  }
  return true;
}

/* --- before ----------------------------------------------------------------------------------------------------------------- */

static int open_model(struct predict_run *run) {
  char error[PAWL_LINEAR_TEXT];
  if (pawl_linear_model_read(run->model_path, &run->model, error)) return pwi_cli_failure(run->command, "%s", error);
  const struct pawl_linear_about *about = &run->about;
  pawl_linear_model_about(run->model, &run->about);
  run->penalty = (struct pawl_linear_point){isnan(run->l1) ? about->l1 : run->l1, isnan(run->l2) ? about->l2 : run->l2};
  if (!isnan(run->l1) || !isnan(run->l2)) run->predict.penalty = &run->penalty;
  if (run->what == PWI_PREDICT_PROBABILITIES && (about->loss != PAWL_LINEAR_LOGISTIC || about->is_regression))
    return pwi_cli_failure(run->command, "%s was trained with the %s loss; only logistic models have probabilities",
                           run->model_path, pawl_linear_loss_name(about->loss));
  if (run->has_hash_bits && about->hash_bits && run->reading.hash_bits != about->hash_bits)
    return pwi_cli_failure(run->command, "%s was trained on names hashed to %" PRIu32 " bits, not to %" PRIu32,
                           run->model_path, about->hash_bits, run->reading.hash_bits);
  return PWI_EXIT_OK;
}

static int fail_reading(const struct predict_run *run, pawl_status status) {
  const char *text = pawl_error_text();
  return pwi_cli_failure(run->command, "%s", text[0] ? text : pawl_status_text(status));
}

/* An id stands for a hashed name in one of the two and for a number in the other, so predictions would be
 * meaningless. The origin of a cache is unknown, so --hash-bits overrides the refusal, and the opposite case
 * is only a warning. */
static int compare_formats(const struct predict_run *run) {
  struct pawl_data_info info;
  pawl_data_info(run->data, &info);
  bool names = info.format == PAWL_DATA_VW || info.format == PAWL_DATA_CRITEO || info.format == PAWL_DATA_TEXT;
  if (names && run->about.hash_bits == 0 && !run->has_hash_bits)
    return pwi_cli_failure(run->command,
                           "features in %s data are hashed names, but %s was trained on numbered features, so on other "
                           "data; if the names were hashed in training, give the same --hash-bits",
                           pawl_data_format_name(info.format), run->model_path);
  if (info.format == PAWL_DATA_LIBSVM && run->about.hash_bits)
    fprintf(stderr,
            "pawl predict: %s was trained on hashed names, but libsvm data has numbered features; was it trained on "
            "other data?\n",
            run->model_path);
  return PWI_EXIT_OK;
}

/* Warns if the columns may be in another order than in training. */
static void compare_columns(const struct predict_run *run) {
  const struct pawl_linear_about *about = &run->about;
  struct pawl_data_info info;
  char name[sizeof about->label_name];
  pawl_data_info(run->data, &info);
  if (!info.columns || !about->columns) return;
  if (info.columns != about->columns)
    fprintf(stderr,
            "pawl predict: the data has %" PRIu64 " columns, but %s was trained on %" PRIu64
            "; features may be numbered differently\n",
            info.columns, run->model_path, about->columns);
  else if (info.label_column && info.label_column != about->label_column)
    fprintf(stderr,
            "pawl predict: the label is in column %" PRIu64 " here, but was in column %" PRIu64
            " in training; is the order of columns different?\n",
            info.label_column, about->label_column);
  else if (info.label_column && about->label_name[0] &&
           pawl_data_column_name(run->data, info.label_column, name, sizeof name) &&
           strcmp(name, about->label_name) != 0)
    fprintf(
        stderr,
        "pawl predict: the label's column is called %s here, but %s in training; is the order of columns different?\n",
        name, about->label_name);
}

/* Rows may have no labels, and a csv file may have no column of labels. Otherwise the column is that of
 * training. */
static void expect_labels(struct predict_run *run) {
  const struct pawl_linear_about *about = &run->about;
  run->reading.labels_optional = true;
  run->reading.columns = about->columns;
  run->reading.label_column = about->label_column;
  if (run->reading.label || !about->label_column) return;
  snprintf(run->label, sizeof run->label, "%" PRIu64, about->label_column);
  run->reading.label = run->label;
}

static int open_data(struct predict_run *run, char **paths, size_t count) {
  const struct pawl_linear_about *about = &run->about;
  if (!run->has_hash_bits && about->hash_bits) run->reading.hash_bits = about->hash_bits;
  run->reading.binary = run->binary < 0 ? about->binary : run->binary;
  run->reading.unit_rows = run->unit_rows < 0 ? about->unit_rows : run->unit_rows;
  expect_labels(run);
  int exit_code;
  if (!pwi_spool_init(&run->spool, run->command, (const char *const *)paths, count, false, &exit_code))
    return exit_code;
  pawl_status status = pawl_data_open(run->spool.paths, count, &run->reading, &run->data);
  if (status) return fail_reading(run, status);
  compare_columns(run);
  return compare_formats(run);
}

static int open_output(struct predict_run *run) {
  struct pwi_predict_lines *lines = &run->predict.lines;
  lines->what = run->what;
  if (!run->output) return PWI_EXIT_OK;
  lines->file = strcmp(run->output, "-") == 0 ? stdout : fopen(run->output, "w");
  if (lines->file) return PWI_EXIT_OK;
  return pwi_cli_failure(run->command, "cannot write %s: %s", run->output, strerror(errno));
}

/* --- after ------------------------------------------------------------------------------------------------------------------ */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *make_json(const struct predict_run *run, const struct pawl_linear_figures *figures) {
  const struct pawl_linear_about *about = &run->about;
  json_t *object =
      json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "rows", (json_int_t)figures->rows,
                "accuracy", real(figures->accuracy), "auc", real(figures->auc), "log_loss", real(figures->log_loss),
                "objective", real(figures->objective), "loss", real(figures->loss), "penalty", real(figures->penalty),
                "nnz", (json_int_t)about->nonzeros, "features", (json_int_t)pawl_linear_width(about), "unlabelled",
                (json_int_t)figures->unlabelled, "unknown_labels", (json_int_t)figures->unknown, "unknown_features",
                (json_int_t)run->predict.strangers.ids.count, "skipped", (json_int_t)pawl_data_skipped(run->data));
  if (object && about->is_regression) {
    json_object_set_new(object, "rmse", real(figures->rmse));
    json_object_set_new(object, "r2", real(figures->r2));
  }
  return object;
}

static void print_figure(FILE *file, const char *name, double value) {
  if (!isnan(value)) fprintf(file, "%-17s %.6g\n", name, value);
}

/* Prints the figures as text. Unknown values are omitted. */
static void print_figures(const struct predict_run *run, const struct pawl_linear_figures *figures, FILE *file) {
  const struct pawl_linear_about *about = &run->about;
  uint64_t skipped = pawl_data_skipped(run->data);
  fprintf(file, "%-17s %" PRIu64 "\n", "rows", figures->rows);
  if (!isnan(figures->accuracy)) fprintf(file, "%-17s %.3f %%\n", "accuracy", 100 * figures->accuracy);
  print_figure(file, "AUC", figures->auc);
  print_figure(file, "log-loss", figures->log_loss);
  print_figure(file, "RMSE", figures->rmse);
  print_figure(file, "R2", figures->r2);
  if (!isnan(figures->objective))
    fprintf(file, "%-17s %.10g: loss %.10g, penalty %.10g\n", "objective", figures->objective, figures->loss,
            figures->penalty);
  else if (!isnan(figures->loss))
    fprintf(file, "%-17s %.10g (%s loss; the weight of the penalty is unknown, give it with --l1 or --l2)\n", "loss",
            figures->loss, pawl_linear_loss_name(about->loss));
  fprintf(file, "%-17s %zu of %" PRIu64 " features%s\n", "weights", about->nonzeros, pawl_linear_width(about),
          about->has_bias ? ", and a bias" : "");
  if (figures->unlabelled) fprintf(file, "%-17s %" PRIu64 " rows\n", "without a label", figures->unlabelled);
  if (figures->unknown) fprintf(file, "%-17s %" PRIu64 " rows\n", "unknown labels", figures->unknown);
  if (run->predict.strangers.entries)
    fprintf(file, "%-17s %s%zu\n", "unknown features",
            run->predict.strangers.ids.count == PWI_PREDICT_STRANGERS_MAX ? "more than " : "",
            run->predict.strangers.ids.count);
  if (skipped)
    fprintf(file, "%-17s %" PRIu64 " rows, the first at %s\n", "skipped", skipped, pawl_data_first_bad(run->data));
}

static void warn(const struct predict_run *run, const struct pawl_linear_figures *figures) {
  const struct pwi_predict_strangers *strangers = &run->predict.strangers;
  const struct pawl_linear_about *about = &run->about;
  if (strangers->entries > strangers->all_entries / MOSTLY)
    fprintf(stderr,
            "pawl predict: %.0f %% of all values belong to features unknown to %s; was it trained on other data?\n",
            100 * (double)strangers->entries / (double)strangers->all_entries, run->model_path);
  if (strangers->has_zero && !about->hash_bits)
    fprintf(stderr,
            "pawl predict: the data has features with id 0, but those of %s begin at 1; features may be numbered "
            "differently\n",
            run->model_path);
  if (figures->rows > 0 && figures->unlabelled == figures->rows && !run->output)
    fprintf(stderr,
            "pawl predict: no row has a label, so the model cannot be evaluated; write its predictions with -o FILE\n");
  if (figures->rows > 0 && figures->unknown == figures->rows)
    fprintf(stderr, "pawl predict: no row has a label of the model (%g or %g), so the model cannot be evaluated\n",
            about->labels[0], about->labels[1]);
}

/* Prints more digits than other commands, because objectives are compared to many digits. */
static int print_json(const struct predict_run *run, const struct pawl_linear_figures *figures, FILE *file) {
  json_t *object = make_json(run, figures);
  bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
  json_decref(object);
  fputc('\n', file);
  return is_fine ? PWI_EXIT_OK : pwi_cli_failure(run->command, "cannot print the figures");
}

static int print_result(const struct predict_run *run) {
  struct pawl_linear_figures figures;
  pawl_status status = pawl_linear_metrics_figures(run->predict.metrics, &figures);
  if (status) return pwi_cli_failure(run->command, "%s", pawl_status_text(status));
  FILE *file = run->predict.lines.file == stdout ? stderr : stdout; /* standard output may have the predictions */
  warn(run, &figures);
  if (run->json) return print_json(run, &figures, file);
  print_figures(run, &figures, file);
  return PWI_EXIT_OK;
}

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

/* Checks that all predictions were written, or prints an error. A reader that closed the pipe is not an
 * error. */
static bool end_lines(const struct predict_run *run) {
  const struct pwi_predict_lines *lines = &run->predict.lines;
  int problem = lines->problem;
  if (lines->file && !problem && fflush(lines->file) != 0) problem = errno;
  if (!problem) return true;
  clearerr(lines->file); /* main checks the stream again */
  __fpurge(lines->file);
  if (problem != EPIPE) pwi_cli_failure(run->command, "cannot write %s: %s", run->output, strerror(problem));
  return false;
}

static int predict(struct predict_run *run) {
  run->predict.model = run->model;
  pawl_status status = pwi_predict_run(&run->predict, run->data, (uint32_t)run->threads);
  if (!end_lines(run)) return PWI_EXIT_FAILURE;
  return status ? fail_reading(run, status) : print_result(run);
}

static void close_all(struct predict_run *run) {
  FILE *file = run->predict.lines.file;
  if (file && file != stdout) fclose(file);
  pwi_predict_lines_fini(&run->predict.lines);
  pwi_predict_strangers_fini(&run->predict.strangers);
  pawl_linear_scorer_destroy(run->predict.scorer);
  pawl_linear_metrics_destroy(run->predict.metrics);
  pawl_data_close(run->data);
  pawl_linear_model_destroy(run->model);
  pwi_spool_fini(&run->spool);
}

static int predict_images(const struct predict_run *run, char **paths, size_t count) {
  if (run->has_row_options)
    return pwi_cli_usage(run->command,
                         "%s is a convolutional net; of the options only -o, --probabilities, --json and "
                         "--format idx or cifar apply to it",
                         run->model_path);
  struct pwi_predict_cnn predict = {.command = run->command,
                                    .model = run->model_path,
                                    .output = run->output,
                                    .probabilities = run->what == PWI_PREDICT_PROBABILITIES,
                                    .format = run->image_format,
                                    .paths = (const char *const *)paths,
                                    .count = count,
                                    .json = run->json};
  return pwi_predict_cnn(&predict);
}

static int predict_ratings(const struct predict_run *run, char **paths, size_t count) {
  if (run->has_other_options)
    return pwi_cli_usage(run->command,
                         "%s predicts ratings; of the options only -o, --json, --skip-bad and --format csv, triples or "
                         "mtx apply to it",
                         run->model_path);
  struct pwi_predict_bpmf predict = {.command = run->command,
                                     .model = run->model_path,
                                     .output = run->output,
                                     .format = run->ratings_format,
                                     .skip_bad = run->reading.skip_bad,
                                     .paths = (const char *const *)paths,
                                     .count = count,
                                     .json = run->json};
  return pwi_predict_bpmf(&predict);
}

static int predict_classes(const struct predict_run *run, char **paths, size_t count) {
  if (run->what == PWI_PREDICT_SCORES || !isnan(run->l1) || !isnan(run->l2) || run->ratings_format)
    return pwi_cli_usage(run->command,
                         "%s is a multiclass model; --scores, --l1, --l2 and formats of ratings do not apply to it",
                         run->model_path);
  struct pwi_predict_mlr predict = {.command = run->command,
                                    .model = run->model_path,
                                    .output = run->output,
                                    .probabilities = run->what == PWI_PREDICT_PROBABILITIES,
                                    .image_format = run->image_format,
                                    .reading = run->reading,
                                    .has_hash_bits = run->has_hash_bits,
                                    .binary = run->binary,
                                    .unit_rows = run->unit_rows,
                                    .threads = (uint32_t)run->threads,
                                    .paths = (const char *const *)paths,
                                    .count = count,
                                    .json = run->json};
  return pwi_predict_mlr(&predict);
}

static int predict_by_neighbours(const struct predict_run *run, char **paths, size_t count) {
  if (run->what || !isnan(run->l1) || !isnan(run->l2) || run->ratings_format)
    return pwi_cli_usage(
        run->command, "%s is a metric; --scores, --probabilities, --l1, --l2 and formats of ratings do not apply to it",
        run->model_path);
  struct pwi_predict_metric predict = {.command = run->command,
                                       .model = run->model_path,
                                       .output = run->output,
                                       .image_format = run->image_format,
                                       .reading = run->reading,
                                       .has_hash_bits = run->has_hash_bits,
                                       .binary = run->binary,
                                       .unit_rows = run->unit_rows,
                                       .threads = (uint32_t)run->threads,
                                       .paths = (const char *const *)paths,
                                       .count = count,
                                       .json = run->json};
  return pwi_predict_metric(&predict);
}

static int predict_codes(const struct predict_run *run, char **paths, size_t count) {
  if (run->what || !isnan(run->l1) || !isnan(run->l2) || run->ratings_format || run->unit_rows >= 0)
    return pwi_cli_usage(
        run->command,
        "%s is a dictionary; --scores, --probabilities, --l1, --l2, --unit-rows and formats of ratings "
        "do not apply to it",
        run->model_path);
  struct pwi_predict_sparse predict = {.command = run->command,
                                       .model = run->model_path,
                                       .output = run->output,
                                       .image_format = run->image_format,
                                       .reading = run->reading,
                                       .has_hash_bits = run->has_hash_bits,
                                       .binary = run->binary,
                                       .threads = (uint32_t)run->threads,
                                       .paths = (const char *const *)paths,
                                       .count = count,
                                       .json = run->json};
  return pwi_predict_sparse(&predict);
}

/* A format of ratings, for a model of another kind. */
static bool is_ratings_format(const struct predict_run *run) {
  return run->ratings_format == PAWL_RATINGS_TRIPLES || run->ratings_format == PAWL_RATINGS_MTX;
}

static int run_predict(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct predict_run run = {.command = command, .binary = -1, .unit_rows = -1, .l1 = (double)NAN, .l2 = (double)NAN};
  int exit_code = PWI_EXIT_OK;
  pawl_data_options_init(&run.reading);
  pwi_cli_begin(&args, command, argc, argv);
  if (!read_options(&run, &args, &exit_code)) return exit_code;
  run.model_path = argv[args.rest];
  exit_code =
      pwi_cli_apart(command, "output", run.output, (const char *const *)argv + args.rest, (size_t)(argc - args.rest));
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (pawl_cnn_model_is(run.model_path))
    return predict_images(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (pawl_bpmf_model_is(run.model_path))
    return predict_ratings(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (pawl_mlr_model_is(run.model_path))
    return predict_classes(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (pawl_metric_model_is(run.model_path))
    return predict_by_neighbours(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (pawl_sparse_model_is(run.model_path))
    return predict_codes(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (is_ratings_format(&run))
    return pwi_cli_usage(command, "triples and mtx are formats of ratings, but %s does not predict ratings",
                         run.model_path);
  if (run.image_format)
    return pwi_cli_usage(command, "idx and cifar are formats of images, but %s is not a convolutional net",
                         run.model_path);
  exit_code = open_model(&run);
  if (exit_code == PWI_EXIT_OK) exit_code = open_data(&run, argv + args.rest + 1, (size_t)(argc - args.rest - 1));
  if (exit_code == PWI_EXIT_OK) exit_code = open_output(&run);
  if (exit_code == PWI_EXIT_OK) exit_code = predict(&run);
  close_all(&run);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {'o', "output", "FILE",
     "write the prediction of each row to FILE, one per line; with - to standard output, and the figures to standard "
     "error"},
    {LETTER_SCORES, "scores", NULL, "write scores instead of labels"},
    {LETTER_PROBABILITIES, "probabilities", NULL,
     "write the label and the probability of the model's second label (logistic models); of a multiclass model or a "
     "convolutional net: the label and the probabilities of all classes"},
    {LETTER_FORMAT, "format", "NAME",
     "format of the data: libsvm, vw, criteo, csv, ldac, uci, text or cache; of images: idx or cifar; of ratings: csv, "
     "triples or mtx (default: detected)"},
    {LETTER_LABEL, "label", "COLUMN",
     "csv: column of the label, by name or by number from 1 (default: as in training, else 1)"},
    {LETTER_SEPARATOR, "separator", "C",
     "csv: separator of columns: a character, or comma, semicolon, tab, space or bar (default: detected from the first "
     "lines)"},
    {LETTER_HASH_BITS, "hash-bits", "N", "number of bits of hashed names (default: as in training)"},
    {LETTER_BINARY, "binary", NULL, "set every value to 1 (default: as in training)"},
    {LETTER_NO_BINARY, "no-binary", NULL, "leave values unchanged (default: as in training)"},
    {LETTER_UNIT_ROWS, "unit-rows", NULL, "scale every row to length 1 (default: as in training)"},
    {LETTER_NO_UNIT_ROWS, "no-unit-rows", NULL, "leave rows unchanged (default: as in training)"},
    {LETTER_SKIP_BAD, "skip-bad", "N", "skip up to N rows that cannot be parsed (default: 0)"},
    {LETTER_THREADS, "threads", "N", "number of threads that read (default: the number of processors)"},
    {LETTER_L1, "l1", "X", "weight of the l1 penalty in the objective (default: as in training)"},
    {LETTER_L2, "l2", "X", "weight of the l2 penalty in the objective (default: as in training)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_predict = {
    .name = "predict",
    .arguments = "MODEL DATA...",
    .summary = "predict data with a model, and evaluate the model",
    .text = "Reads data with the options used in training and prints how well the model\n"
            "fits it: accuracy, the area under the ROC curve, log-loss, and the objective.\n"
            "With -o writes the predictions, one per line, in the order of the data. Rows\n"
            "without labels are predicted too. DATA may be - for standard input. MODEL is\n"
            "in pawl's own format, LIBLINEAR's or .npy. With a convolutional net, DATA are\n"
            "images, with or without their labels; a multiclass model also prints which\n"
            "classes it confuses. With a model of 'pawl train bpmf', DATA\n"
            "are pairs of user and item, with or without ratings; a prediction is the\n"
            "expected rating and its standard deviation. With a dictionary of 'pawl train\n"
            "sparse-coding' a prediction is the row's code in LIBSVM's format, with the\n"
            "row's label, or 0 if it has none. With a metric it is the class of the row's\n"
            "nearest neighbours.\n\n"
            "  pawl predict spam.model test.svm.zst\n"
            "  pawl predict spam.model 'day*.vw.gz' -o - --probabilities\n"
            "  pawl predict movies.model pairs.csv -o -\n",
    .options = options,
    .run = run_predict,
};
