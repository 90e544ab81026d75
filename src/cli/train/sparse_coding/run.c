/* `pawl train sparse-coding`: trains in this process. The method is in apps/sparse_coding; this file reads rows or images,
 * shows and logs epochs, and writes the model. */
#include "cli/train/sparse_coding/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/image_files.h"
#include "cli/spool.h"
#include "cli/train/keep.h"
#include "cli/train/paths.h"
#include "cli/train/run.h"
#include "cli/train/sparse_coding/end.h"

#define PATCHES 100000     /* by default */
#define TEST_PATCHES 10000 /* at most */

struct sparse_train {
  struct pwi_train_run run; /* without a session */
  struct pwi_train_sparse_options options;
  struct pwi_spool spool, test_spool;   /* files of a pipe are copied */
  struct pawl_sparse_rows *rows, *test; /* test NULL: none */
  struct pwi_train_names names;
  double seconds; /* at the end of training */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void progress(void *context, const struct pawl_sparse_progress *is) {
  struct sparse_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_sparse_json(is));
  if (!pwi_train_show_wants_epoch(&train->run.show, is->epoch, is->epochs)) return;
  pwi_train_sparse_line(is, line);
  pwi_train_show_epoch(&train->run.show, is->epoch, is->epochs, line);
}

static bool stopping(void *context) {
  (void)context;
  return pwi_train_run_was_interrupted();
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static void tell_rows(struct sparse_train *train, const struct pawl_sparse_rows *rows) {
  struct pawl_sparse_rows_info info;
  char line[PWI_TRAIN_LINE_MAX];
  pawl_sparse_rows_info(rows, &info);
  if (info.skipped > 0) {
    snprintf(line, sizeof line, "skipped %" PRIu64 " bad row%s, the first: %.400s", info.skipped,
             info.skipped == 1 ? "" : "s", pawl_sparse_rows_first_bad(rows));
    pwi_train_run_tell(&train->run, line);
  }
  if (rows == train->test || info.rows >= train->options.sparse.atoms) return;
  snprintf(line, sizeof line, "there are more atoms (%" PRIu32 ") than rows (%" PRIu64 "); some will stay unused",
           train->options.sparse.atoms, info.rows);
  pwi_train_run_tell(&train->run, line);
}

static uint64_t patches_of(const struct pwi_train_sparse_options *options, bool is_test) {
  uint64_t count = options->patches ? options->patches : PATCHES;
  return is_test && count > TEST_PATCHES ? TEST_PATCHES : count;
}

static pawl_status read_images(const struct sparse_train *train, const struct pwi_spool *spool, size_t count,
                               bool is_test, struct pawl_sparse_rows **rows_out, char error[PAWL_SPARSE_TEXT]) {
  const struct pwi_train_sparse_options *options = &train->options;
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, count, options->image_format, true, &images, error);
  if (!status)
    status = pawl_sparse_rows_of_images(images, options->patch, patches_of(options, is_test), options->sparse.seed,
                                        rows_out, error);
  pawl_images_destroy(images);
  return status;
}

static int read_rows(struct sparse_train *train, const char *const *paths, size_t count, bool is_test) {
  const struct pwi_train_sparse_options *options = &train->options;
  const struct pwi_command *command = options->base.command;
  struct pawl_sparse_rows **rows = is_test ? &train->test : &train->rows;
  struct pwi_spool *spool = is_test ? &train->test_spool : &train->spool;
  char error[PAWL_SPARSE_TEXT] = "";
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, options->base.quiet, &exit_code)) return exit_code;
  pawl_status status = options->has_images ? read_images(train, spool, count, is_test, rows, error)
                                           : pawl_sparse_rows_read(spool->paths, count, &options->reading,
                                                                   options->sparse.threads, rows, error);
  if (status) return pwi_cli_failure(command, "%s", error);
  tell_rows(train, *rows);
  return PWI_EXIT_OK;
}

static int prepare(struct sparse_train *train) {
  struct pwi_train_sparse_options *options = &train->options;
  options->sparse.resume = options->base.resume;
  int exit_code =
      pwi_train_names_init(&train->names, &options->base, options->has_checkpoints, &options->sparse.checkpoint);
  if (exit_code == PWI_EXIT_OK) exit_code = read_rows(train, options->base.data, options->base.data_count, false);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_rows(train, options->test.at, options->test.count, true);
  return exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_sparse_model_write(context, path, error);
}

static int print_result(const struct sparse_train *train, const struct pawl_sparse_model *model,
                        const struct pawl_sparse_result *result) {
  struct pwi_train_sparse_end end = {.options = &train->options,
                                     .model = model,
                                     .result = result,
                                     .output = train->names.output,
                                     .seconds = train->seconds};
  pawl_sparse_rows_info(train->rows, &end.read);
  if (train->options.base.json) return pwi_train_sparse_end_json(&end);
  if (!train->options.base.quiet) pwi_train_sparse_end_print(&end);
  return PWI_EXIT_OK;
}

/* Returns the exit code that the result deserves. */
static int judge(struct sparse_train *train, const struct pawl_sparse_result *result) {
  char line[PWI_TRAIN_LINE_MAX];
  if (result->unsolved > 0) {
    snprintf(line, sizeof line, "the codes of %" PRIu64 " rows did not reach their tolerance", result->unsolved);
    pwi_train_run_tell(&train->run, line);
  }
  if (strcmp(result->why, "interrupted") == 0) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s%s", train->names.output,
             train->options.sparse.checkpoint ? "; continue with --resume" : "");
    pwi_train_show_say(&train->run.show, line);
    return PWI_TRAIN_INTERRUPTED;
  }
  if (result->is_certain) return PWI_EXIT_OK;
  snprintf(line, sizeof line, "%.300s has NOT converged (%s); try %s", train->names.output, result->why,
           result->advice);
  pwi_train_run_tell(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int keep(struct sparse_train *train, struct pawl_sparse_model *model, const struct pawl_sparse_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  if (pwi_train_keep(train->names.output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  int exit_code = judge(train, result), printed = print_result(train, model, result);
  return exit_code ? exit_code : printed;
}

static int fail(struct sparse_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED) return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_tell(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static int learn(struct sparse_train *train) {
  struct pawl_sparse_options *sparse = &train->options.sparse;
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  sparse->progress = progress;
  sparse->stopping = stopping;
  sparse->context = train;
  pawl_status status = pawl_sparse_train(train->rows, train->test, sparse, &model, &result, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result);
  pawl_sparse_model_destroy(model);
  return exit_code;
}

int pwi_train_sparse_run(const struct pwi_command *command, int argc, char **argv) {
  struct sparse_train train = {.seconds = 0};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_sparse_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_run_init(&train.run, &train.options.base);
  pwi_train_run_catch();
  exit_code = prepare(&train);
  if (exit_code == PWI_EXIT_OK) exit_code = learn(&train);
  fflush(stdout);
  pwi_train_run_fini(&train.run);
  pawl_sparse_rows_destroy(train.rows);
  pawl_sparse_rows_destroy(train.test);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_train_names_fini(&train.names);
  return exit_code;
}
