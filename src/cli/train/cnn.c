/* `pawl train cnn`: trains in this process. The method is in apps/cnn; this file reads images, shows and logs epochs,
 * and writes the model. */
#include "cli/train/cnn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pawl/session.h>

#include "base/memory.h"
#include "cli/spool.h"
#include "cli/train/cnn_end.h"
#include "cli/train/keep.h"
#include "cli/train/log.h"
#include "cli/train/paths.h"
#include "cli/train/run.h"
#include "host/clock.h"

struct cnn_train {
  struct pwi_train_cnn_options options;
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pawl_images *images, *test;  /* test NULL: none */
  char *output;
  struct pwi_train_show show;
  struct pwi_train_log log;
  int64_t began_ns;
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void record(struct cnn_train *train, const struct pawl_cnn_progress *is) {
  char line[PWI_TRAIN_LINE_MAX];
  if (!train->log.path || pwi_train_log_write(&train->log, pwi_train_cnn_json(is))) return;
  snprintf(line, sizeof line, "stopped writing the log %.300s: %s", train->options.log, strerror(errno));
  pwi_train_show_say(&train->show, line);
}

/* A line for each epoch stays; on a terminal another one shows the progress of the current epoch. */
static void progress(void *context, const struct pawl_cnn_progress *is) {
  struct cnn_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (is->is_epoch_over) record(train, is);
  if (!is->is_epoch_over && !pwi_train_show_is_due(&train->show)) return;
  pwi_train_cnn_line(is, line);
  if (is->is_epoch_over)
    pwi_train_show_say(&train->show, line);
  else
    pwi_train_show_draw(&train->show, line);
}

static bool stopping(void *context) {
  (void)context;
  return pwi_train_run_was_interrupted();
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static int read_images(struct cnn_train *train, const char *const *paths, size_t count, struct pwi_spool *spool,
                       struct pawl_images **images_out) {
  const struct pwi_command *command = train->options.command;
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, train->options.quiet, &exit_code)) return exit_code;
  pawl_status status = pawl_images_read(spool->paths, count, &train->options.reading, images_out);
  return status ? pwi_cli_failure(command, "%s", pawl_error_text()) : PWI_EXIT_OK;
}

static int prepare(struct cnn_train *train) {
  const struct pwi_train_cnn_options *options = &train->options;
  train->output =
      options->output ? pwi_copy_string(options->output) : pwi_train_path_beside(options->data[0], ".model");
  if (!train->output) return pwi_cli_failure(options->command, "out of memory");
  int exit_code = pwi_train_path_output(options->command, train->output);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_images(train, options->data, options->data_count, &train->spool, &train->images);
  if (exit_code == PWI_EXIT_OK && options->test_count > 0)
    exit_code = read_images(train, options->test, options->test_count, &train->test_spool, &train->test);
  return exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_cnn_model_write(context, path, error);
}

static int print_result(const struct cnn_train *train, const struct pawl_cnn_model *model,
                        const struct pawl_cnn_result *result) {
  struct pwi_train_cnn_end end = {
      .options = &train->options, .model = model, .result = result, .output = train->output};
  struct pawl_images_info info = {0};
  if (train->test) pawl_images_info(train->test, &info);
  end.test_images = info.count;
  end.seconds = (double)(pwi_host_now() - train->began_ns) / (double)PWI_HOST_SECOND;
  if (train->options.json) return pwi_train_cnn_end_json(&end);
  if (!train->options.quiet) pwi_train_cnn_end_print(&end);
  return PWI_EXIT_OK;
}

static int keep(struct cnn_train *train, struct pawl_cnn_model *model, const struct pawl_cnn_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "", line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_keep(train->output, write_model, model, error))
    return pwi_cli_failure(train->options.command, "%s", error);
  bool is_interrupted = strcmp(result->why, "interrupted") == 0;
  if (is_interrupted) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s", train->output);
    pwi_train_show_say(&train->show, line);
  }
  int printed = print_result(train, model, result);
  return is_interrupted ? PWI_TRAIN_INTERRUPTED : printed;
}

static int learn(struct cnn_train *train) {
  struct pawl_cnn_options *cnn = &train->options.cnn;
  struct pawl_cnn_model *model = NULL;
  struct pawl_cnn_result result;
  char error[PAWL_CNN_TEXT] = "";
  cnn->progress = progress;
  cnn->stopping = stopping;
  cnn->context = train;
  pawl_status status = pawl_cnn_train(train->images, train->test, cnn, &model, &result, error);
  pwi_train_show_clear(&train->show);
  if (status) return pwi_cli_failure(train->options.command, "%s", *error ? error : pawl_status_text(status));
  int exit_code = keep(train, model, &result);
  pawl_cnn_model_destroy(model);
  return exit_code;
}

int pwi_train_cnn_run(const struct pwi_command *command, int argc, char **argv) {
  struct cnn_train train = {.began_ns = pwi_host_now()};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_cnn_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_show_init(&train.show, train.options.quiet);
  train.log = (struct pwi_train_log){.path = train.options.log};
  exit_code = prepare(&train);
  if (exit_code == PWI_EXIT_OK) {
    pwi_train_run_catch();
    exit_code = learn(&train);
  }
  fflush(stdout);
  pwi_train_log_close(&train.log);
  pawl_images_destroy(train.images);
  pawl_images_destroy(train.test);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_free(train.output);
  return exit_code;
}
