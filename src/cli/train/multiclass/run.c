/* `pawl train multiclass`: trains in this process. The method is in apps/mlr; this file reads rows or images, shows and
 * logs epochs, and writes the model. */
#include "cli/train/multiclass/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/keep.h"
#include "cli/train/multiclass/end.h"
#include "cli/train/multiclass/rows.h"
#include "cli/train/paths.h"

struct multiclass_train {
  struct pwi_train_run run; /* without a session */
  struct pwi_train_multiclass_options options;
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pawl_mlr_rows *rows, *test;  /* test NULL: none */
  struct pwi_train_names names;
  double seconds; /* at the end of training */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void progress(void *context, const struct pawl_mlr_progress *is) {
  struct multiclass_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_multiclass_json(is));
  if (!pwi_train_show_wants_epoch(&train->run.show, is->epoch, is->epochs)) return;
  pwi_train_multiclass_line(is, line);
  pwi_train_show_epoch(&train->run.show, is->epoch, is->epochs, line);
}

static bool stopping(void *context) {
  (void)context;
  return pwi_train_run_was_interrupted();
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static int read_rows(struct multiclass_train *train, const char *const *paths, size_t count, struct pwi_spool *spool,
                     struct pawl_mlr_rows **rows_out) {
  const struct pwi_train_multiclass_options *options = &train->options;
  const struct pwi_train_rows_wanted wanted = {.base = &options->base,
                                               .has_images = pwi_train_multiclass_has_images(options),
                                               .image_format = options->image_format,
                                               .reading = &options->reading,
                                               .threads = options->mlr.threads};
  return pwi_train_rows_read(&train->run, &wanted, paths, count, spool, rows_out);
}

static int name_files(struct multiclass_train *train) {
  struct pwi_train_multiclass_options *options = &train->options;
  options->mlr.resume = options->base.resume;
  return pwi_train_names_init(&train->names, &options->base, options->has_checkpoints, &options->mlr.checkpoint);
}

static int prepare(struct multiclass_train *train) {
  const struct pwi_train_multiclass_options *options = &train->options;
  int exit_code = name_files(train);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_rows(train, options->base.data, options->base.data_count, &train->spool, &train->rows);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_rows(train, options->test.at, options->test.count, &train->test_spool, &train->test);
  return exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_mlr_model_write(context, path, error);
}

static int print_result(const struct multiclass_train *train, const struct pawl_mlr_model *model,
                        const struct pawl_mlr_result *result) {
  struct pwi_train_multiclass_end end = {.options = &train->options,
                                         .model = model,
                                         .result = result,
                                         .output = train->names.output,
                                         .seconds = train->seconds};
  pawl_mlr_rows_info(train->rows, &end.read);
  if (train->options.base.json) return pwi_train_multiclass_end_json(&end);
  if (!train->options.base.quiet) pwi_train_multiclass_end_print(&end);
  return PWI_EXIT_OK;
}

/* Returns the exit code that the result deserves. */
static int judge(struct multiclass_train *train, const struct pawl_mlr_result *result) {
  char line[PWI_TRAIN_LINE_MAX];
  if (result->test_unknown_labels > 0) {
    snprintf(line, sizeof line, "left out %" PRIu64 " test row%s whose label no training row has",
             result->test_unknown_labels, result->test_unknown_labels == 1 ? "" : "s");
    pwi_train_run_tell(&train->run, line);
  }
  if (strcmp(result->why, "interrupted") == 0) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s%s", train->names.output,
             train->options.mlr.checkpoint ? "; continue with --resume" : "");
    pwi_train_show_say(&train->run.show, line);
    return PWI_TRAIN_INTERRUPTED;
  }
  if (result->is_certain) return PWI_EXIT_OK;
  snprintf(line, sizeof line, "%.300s has %s (%s); try %s", train->names.output,
           strcmp(result->why, "diverged") == 0 ? "DIVERGED" : "NOT converged", result->why, result->advice);
  pwi_train_run_tell(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int keep(struct multiclass_train *train, struct pawl_mlr_model *model, const struct pawl_mlr_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  if (pwi_train_keep(train->names.output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  int exit_code = judge(train, result), printed = print_result(train, model, result);
  return exit_code ? exit_code : printed;
}

static int fail(struct multiclass_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED) return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_tell(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static int learn(struct multiclass_train *train) {
  struct pawl_mlr_options *mlr = &train->options.mlr;
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  char error[PAWL_MLR_TEXT] = "";
  mlr->progress = progress;
  mlr->stopping = stopping;
  mlr->context = train;
  pawl_status status = pawl_mlr_train(train->rows, train->test, mlr, &model, &result, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result);
  pawl_mlr_model_destroy(model);
  return exit_code;
}

int pwi_train_multiclass_run(const struct pwi_command *command, int argc, char **argv) {
  struct multiclass_train train = {.seconds = 0};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_multiclass_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
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
