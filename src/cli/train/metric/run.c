/* `pawl train metric`: trains in this process. The method is in apps/dml; this file reads rows or images, shows and
 * logs epochs, and writes the model. */
#include "cli/train/metric/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/keep.h"
#include "cli/train/metric/end.h"
#include "cli/train/multiclass/rows.h"
#include "cli/train/paths.h"

struct metric_train {
  struct pwi_train_run run; /* without a session */
  struct pwi_train_metric_options options;
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pawl_mlr_rows *rows, *test;  /* test NULL: none */
  struct pwi_train_names names;
  double seconds; /* at the end of training */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void progress(void *context, const struct pawl_metric_progress *is) {
  struct metric_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_metric_json(is));
  if (!pwi_train_show_wants_epoch(&train->run.show, is->epoch, is->epochs)) return;
  pwi_train_metric_line(is, line);
  pwi_train_show_epoch(&train->run.show, is->epoch, is->epochs, line);
}

/* On a terminal only, where the line of the first epoch replaces it. */
static void stage(void *context, const char *what) {
  struct metric_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (train->run.show.quiet || !train->run.show.is_terminal) return;
  snprintf(line, sizeof line, "%.200s", what);
  pwi_train_show_draw(&train->run.show, line);
}

static bool stopping(void *context) {
  (void)context;
  return pwi_train_run_was_interrupted();
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static int read_rows(struct metric_train *train, const char *const *paths, size_t count, struct pwi_spool *spool,
                     struct pawl_mlr_rows **rows_out) {
  const struct pwi_train_metric_options *options = &train->options;
  const struct pwi_train_rows_wanted wanted = {.base = &options->base,
                                               .has_images = options->has_images,
                                               .image_format = options->image_format,
                                               .reading = &options->reading,
                                               .threads = options->metric.threads};
  return pwi_train_rows_read(&train->run, &wanted, paths, count, spool, rows_out);
}

static int prepare(struct metric_train *train) {
  const struct pwi_train_metric_options *options = &train->options;
  const char *no_checkpoint = NULL;
  int exit_code = pwi_train_names_init(&train->names, &options->base, false, &no_checkpoint);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_rows(train, options->base.data, options->base.data_count, &train->spool, &train->rows);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_rows(train, options->test.at, options->test.count, &train->test_spool, &train->test);
  return exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_metric_model_write(context, path, error);
}

static int print_result(const struct metric_train *train, const struct pawl_metric_model *model,
                        const struct pawl_metric_result *result) {
  struct pwi_train_metric_end end = {.options = &train->options,
                                     .model = model,
                                     .result = result,
                                     .output = train->names.output,
                                     .seconds = train->seconds};
  pawl_mlr_rows_info(train->rows, &end.read);
  if (train->options.base.json) return pwi_train_metric_end_json(&end);
  if (!train->options.base.quiet) pwi_train_metric_end_print(&end);
  return PWI_EXIT_OK;
}

/* Returns the exit code that the result deserves. */
static int judge(struct metric_train *train, const struct pawl_metric_result *result) {
  char line[PWI_TRAIN_LINE_MAX];
  if (result->test_unknown_labels > 0) {
    snprintf(line, sizeof line, "left out %" PRIu64 " test row%s whose label no training row has",
             result->test_unknown_labels, result->test_unknown_labels == 1 ? "" : "s");
    pwi_train_run_tell(&train->run, line);
  }
  if (strcmp(result->why, "interrupted") == 0) {
    snprintf(line, sizeof line, "the best model so far was saved to %.400s", train->names.output);
    pwi_train_show_say(&train->run.show, line);
    return PWI_TRAIN_INTERRUPTED;
  }
  if (result->is_better) return PWI_EXIT_OK;
  snprintf(line, sizeof line,
           "%.200s is NO BETTER than Euclidean distance on the held-out rows (%.2f %% and %.2f %%); try %s",
           train->names.output, 100 * result->error, 100 * result->euclid_error, result->advice);
  pwi_train_run_tell(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int keep(struct metric_train *train, struct pawl_metric_model *model, const struct pawl_metric_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  if (pwi_train_keep(train->names.output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  int exit_code = judge(train, result), printed = print_result(train, model, result);
  return exit_code ? exit_code : printed;
}

static int fail(struct metric_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED) return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_tell(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static int learn(struct metric_train *train) {
  struct pawl_metric_options *metric = &train->options.metric;
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  char error[PAWL_MLR_TEXT] = "";
  metric->progress = progress;
  metric->stage = stage;
  metric->stopping = stopping;
  metric->context = train;
  pawl_status status = pawl_metric_train(train->rows, train->test, metric, &model, &result, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result);
  pawl_metric_model_destroy(model);
  return exit_code;
}

int pwi_train_metric_run(const struct pwi_command *command, int argc, char **argv) {
  struct metric_train train = {.seconds = 0};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_metric_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_run_init(&train.run, &train.options.base);
  pwi_train_run_catch();
  exit_code = prepare(&train);
  if (exit_code == PWI_EXIT_OK) exit_code = learn(&train);
  fflush(stdout);
  pwi_train_run_fini(&train.run);
  pawl_mlr_rows_destroy(train.rows);
  pawl_mlr_rows_destroy(train.test);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_train_names_fini(&train.names);
  return exit_code;
}
