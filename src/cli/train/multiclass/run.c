/* `pawl train multiclass`: trains in this process, or is the scheduler of workers. The method is in apps/mlr; this file reads
 * rows or images, shows and logs epochs, and writes the model. */
#include "cli/train/multiclass/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/keep.h"
#include "cli/train/multiclass/end.h"
#include "cli/train/multiclass/rows.h"
#include "cli/train/paths.h"

struct multiclass_train {
  struct pwi_train_run run; /* without sharing, it has no session */
  struct pwi_train_multiclass_options options;
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pawl_mlr_rows *rows, *test;  /* test NULL: none */
  struct pwi_train_names names;
  double seconds; /* at the end of training */
  char **paths;   /* absolute paths of the rows, for workers */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) {
  pwi_train_run_tell(&((struct multiclass_train *)context)->run, line);
}
static pawl_status start_worker(void *context) {
  return pwi_train_run_worker(&((struct multiclass_train *)context)->run);
}

static bool is_alone(const struct multiclass_train *train) { return train->options.base.share == PWI_TRAIN_SHARE_NONE; }

static void progress(void *context, const struct pawl_mlr_progress *is) {
  struct multiclass_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (!is_alone(train)) pwi_train_run_beat(&train->run);
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_multiclass_json(is));
  if (!pwi_train_show_wants_epoch(&train->run.show, is->epoch, is->epochs)) return;
  pwi_train_multiclass_line(is, line);
  pwi_train_show_epoch(&train->run.show, is->epoch, is->epochs, line);
}

static bool stopping(void *context) {
  struct multiclass_train *train = context;
  return is_alone(train) ? pwi_train_run_was_interrupted() : pwi_train_run_is_stopping(&train->run);
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

static void choose_sharing(const struct multiclass_train *train, struct pawl_matrix_sharing *sharing) {
  const struct pwi_train_multiclass_options *options = &train->options;
  pwi_train_matrix_sharing(&options->matrix, &options->base, (const char *const *)train->paths,
                           pwi_train_multiclass_has_images(options) ? NULL : &options->reading, options->image_format,
                           sharing);
}

/* What workers need: the files, and a way to share. */
static int prepare_sharing(struct multiclass_train *train) {
  const struct pwi_command *command = train->options.base.command;
  struct pawl_matrix_sharing sharing;
  struct pawl_matrix_costs costs;
  char error[PAWL_MLR_TEXT] = "";
  train->paths = pwi_train_paths_absolute(train->spool.paths, train->options.base.data_count);
  if (!train->paths) return pwi_cli_failure(command, "out of memory, or a name is too long");
  choose_sharing(train, &sharing);
  if (pawl_mlr_costs(train->rows, &train->options.mlr, &sharing, &costs, error))
    return pwi_cli_failure(command, "%s", error);
  pwi_train_matrix_choose(&train->options.matrix, &train->run, &costs);
  return PWI_EXIT_OK;
}

static int prepare(struct multiclass_train *train) {
  const struct pwi_train_multiclass_options *options = &train->options;
  int exit_code = name_files(train);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_rows(train, options->base.data, options->base.data_count, &train->spool, &train->rows);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_rows(train, options->test.at, options->test.count, &train->test_spool, &train->test);
  return exit_code == PWI_EXIT_OK && !is_alone(train) ? prepare_sharing(train) : exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_mlr_model_write(context, path, error);
}

static int print_result(const struct multiclass_train *train, const struct pawl_mlr_model *model,
                        const struct pawl_mlr_result *result, const struct pawl_matrix_shared *shared) {
  struct pwi_train_multiclass_end end = {.options = &train->options,
                                         .model = model,
                                         .result = result,
                                         .shared = is_alone(train) ? NULL : shared,
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

static int keep(struct multiclass_train *train, struct pawl_mlr_model *model, const struct pawl_mlr_result *result,
                const struct pawl_matrix_shared *shared) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  if (pwi_train_keep(train->names.output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  int exit_code = judge(train, result), printed = print_result(train, model, result, shared);
  return exit_code ? exit_code : printed;
}

static int fail(struct multiclass_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED || !pwi_train_run_was_interrupted())
    return pwi_train_run_explain(&train->run, status, error);
  tell(train, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static pawl_status call_method(struct multiclass_train *train, struct pawl_mlr_model **model_out,
                               struct pawl_mlr_result *result_out, struct pawl_matrix_shared *shared_out,
                               char error[PAWL_MLR_TEXT]) {
  const struct pawl_mlr_options *mlr = &train->options.mlr;
  struct pawl_matrix_sharing sharing;
  if (is_alone(train)) return pawl_mlr_train(train->rows, train->test, mlr, model_out, result_out, error);
  choose_sharing(train, &sharing);
  sharing.tell = tell;
  if (pwi_train_run_has_workers(&train->run)) sharing.start_worker = start_worker;
  return pawl_mlr_train_shared(train->run.session, &sharing, train->rows, train->test, mlr, model_out, result_out,
                               shared_out, error);
}

static int learn(void *context) {
  struct multiclass_train *train = context;
  struct pawl_mlr_options *mlr = &train->options.mlr;
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result result;
  struct pawl_matrix_shared shared = {.each = NULL};
  char error[PAWL_MLR_TEXT] = "";
  mlr->progress = progress;
  mlr->stopping = stopping;
  mlr->context = train;
  pawl_status status = call_method(train, &model, &result, &shared, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result, &shared);
  pawl_matrix_shared_fini(&shared);
  pawl_mlr_model_destroy(model);
  return exit_code;
}

static int run(struct multiclass_train *train) {
  if (pwi_train_run_is_follower(&train->run) && !is_alone(train)) return pwi_train_follow(&train->options.base);
  pwi_train_run_catch();
  int exit_code = prepare(train);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  return is_alone(train) ? learn(train) : pwi_train_run_session(&train->run, learn, train);
}

int pwi_train_multiclass_run(const struct pwi_command *command, int argc, char **argv) {
  struct multiclass_train train = {.seconds = 0};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_multiclass_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_run_init(&train.run, &train.options.base);
  train.run.advice = ", so the training cannot go on; to survive such a loss, use --replicas 1, or --share factors";
  exit_code = run(&train);
  fflush(stdout);
  pwi_train_run_fini(&train.run);
  pawl_mlr_rows_destroy(train.rows);
  pawl_mlr_rows_destroy(train.test);
  pwi_train_paths_free(train.paths, train.options.base.data_count);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_train_names_fini(&train.names);
  return exit_code;
}
