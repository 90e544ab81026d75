/* `pawl train cnn`: trains in this process, or is the scheduler of workers. The method is in apps/cnn; this file reads
 * images, shows and logs epochs, and writes the model. */
#include "cli/train/methods.h"

#include <stdio.h>
#include <string.h>

#include <pawl/session.h>

#include "base/memory.h"
#include "cli/spool.h"
#include "cli/train/cnn_end.h"
#include "cli/train/keep.h"
#include "cli/train/paths.h"
#include "cli/train/run.h"

struct cnn_train {
  struct pwi_train_run run; /* without sharing, it has no session */
  struct pwi_train_cnn_options options;
  struct pwi_spool spool, test_spool; /* files of a pipe are copied */
  struct pawl_images *images, *test;  /* test NULL: none */
  char *output;
  double seconds;              /* at the end of training */
  char **paths;                /* absolute paths of the training images, for workers */
  char *folder;                /* of checkpoints; NULL: none */
  struct pawl_cnn_costs costs; /* with workers */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) { pwi_train_run_tell(&((struct cnn_train *)context)->run, line); }
static pawl_status start_worker(void *context) { return pwi_train_run_worker(&((struct cnn_train *)context)->run); }

static bool is_alone(const struct cnn_train *train) { return train->options.base.share == PWI_TRAIN_SHARE_NONE; }

/* A line for each epoch stays; on a terminal another one shows the progress of the current epoch. */
static void progress(void *context, const struct pawl_cnn_progress *is) {
  struct cnn_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (!is_alone(train)) pwi_train_run_beat(&train->run);
  pwi_train_run_unsaved(&train->run, is->unsaved);
  if (is->is_epoch_over && pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_cnn_json(is));
  if (!is->is_epoch_over && !pwi_train_show_is_due(&train->run.show, "training")) return;
  pwi_train_cnn_line(is, line);
  if (is->is_epoch_over)
    pwi_train_show_say(&train->run.show, line);
  else
    pwi_train_show_draw(&train->run.show, line);
}

static bool stopping(void *context) {
  struct cnn_train *train = context;
  return is_alone(train) ? pwi_train_run_was_interrupted() : pwi_train_run_is_stopping(&train->run);
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static int read_images(struct cnn_train *train, const char *const *paths, size_t count, struct pwi_spool *spool,
                       struct pawl_images **images_out) {
  const struct pwi_command *command = train->options.base.command;
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, train->options.base.quiet, &exit_code)) return exit_code;
  pawl_status status = pawl_images_read(spool->paths, count, &train->options.reading, images_out);
  return status ? pwi_cli_failure(command, "%s", pawl_error_text()) : PWI_EXIT_OK;
}

/* What workers need: the files, and a way to share. */
static int prepare_sharing(struct cnn_train *train) {
  struct pwi_train_base *base = &train->options.base;
  struct pawl_cnn_sharing sharing;
  char error[PAWL_CNN_TEXT] = "", line[PWI_TRAIN_LINE_MAX], factors[32], servers[32];
  train->paths = pwi_train_paths_absolute(train->spool.paths, base->data_count);
  if (!train->paths) return pwi_cli_failure(base->command, "out of memory, or a name is too long");
  pwi_train_cnn_sharing(&train->options, (const char *const *)train->paths, &sharing);
  if (pawl_cnn_costs(train->images, &train->options.cnn, &sharing, &train->costs, error))
    return pwi_cli_failure(base->command, "%s", error);
  if (base->share != PWI_TRAIN_SHARE_CHOOSE) return PWI_EXIT_OK;
  bool is_factors = train->costs.factors <= train->costs.servers;
  base->share = is_factors ? PWI_TRAIN_SHARE_FACTORS : PWI_TRAIN_SHARE_SERVERS;
  if (is_factors) base->servers = base->replicas = 0; /* they are for the other way */
  snprintf(line, sizeof line, "--share auto: %s; a step of %u worker%s sends %sB as factors and %sB by servers",
           pwi_train_share_name(base->share), base->least, base->least == 1 ? "" : "s",
           pwi_train_short(train->costs.factors, factors), pwi_train_short(train->costs.servers, servers));
  tell(train, line);
  return PWI_EXIT_OK;
}

static int prepare(struct cnn_train *train) {
  const struct pwi_train_cnn_options *options = &train->options;
  train->output = options->base.output ? pwi_copy_string(options->base.output)
                                       : pwi_train_path_beside(options->base.data[0], ".model");
  if (!train->output) return pwi_cli_failure(options->base.command, "out of memory");
  int exit_code = pwi_train_path_apart(&options->base, train->output, NULL, options->test.at, options->test.count);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_train_path_output(options->base.command, train->output);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_images(train, options->base.data, options->base.data_count, &train->spool, &train->images);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_images(train, options->test.at, options->test.count, &train->test_spool, &train->test);
  if (exit_code == PWI_EXIT_OK && pwi_train_cnn_has_checkpoints(options))
    exit_code = pwi_train_path_checkpoints(&options->base, options->checkpoints, train->output, &train->folder);
  return exit_code == PWI_EXIT_OK && !is_alone(train) ? prepare_sharing(train) : exit_code;
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
  end.seconds = train->seconds;
  end.costs = train->costs;
  if (train->options.base.json) return pwi_train_cnn_end_json(&end);
  if (!train->options.base.quiet) pwi_train_cnn_end_print(&end);
  return PWI_EXIT_OK;
}

static void say_guessing(struct cnn_train *train, const struct pawl_cnn_result *result) {
  char line[PWI_TRAIN_LINE_MAX];
  if (result->guesses_test)
    snprintf(
        line, sizeof line,
        "%.200s is NO BETTER THAN GUESSING on the test images: it is wrong on %.2f %% of them, and the most frequent "
        "class on %.2f %%; try more or other images, or a lower --rate than %g",
        train->output, 100 * result->test_error, 100 * result->test_guess_error, result->rate);
  else
    snprintf(line, sizeof line,
             "%.300s is NO BETTER THAN GUESSING, whose loss is %.4f; try a lower --rate than %g, more --epochs, or "
             "other images",
             train->output, result->guess_loss, result->rate);
  pwi_train_run_reason(&train->run, line);
}

static int keep(struct cnn_train *train, struct pawl_cnn_model *model, const struct pawl_cnn_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "", line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_keep(train->output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  bool is_interrupted = strcmp(result->why, "interrupted") == 0;
  if (is_interrupted) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s%s", train->output,
             train->folder && !*result->unsaved ? "; continue with --resume" : "");
    pwi_train_run_reason(&train->run, line);
  }
  bool is_guessing = strcmp(result->why, "guessing") == 0;
  if (is_guessing) say_guessing(train, result);
  int printed = print_result(train, model, result);
  int exit_code = is_interrupted                          ? PWI_TRAIN_INTERRUPTED
                  : is_guessing && printed == PWI_EXIT_OK ? PWI_TRAIN_UNCERTAIN
                                                          : printed;
  return pwi_train_run_saved(&train->run, result->unsaved, train->output, exit_code);
}

static int fail(struct cnn_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED || !pwi_train_run_was_interrupted())
    return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_reason(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static pawl_status call_method(struct cnn_train *train, struct pawl_cnn_model **model_out,
                               struct pawl_cnn_result *result_out, char error[PAWL_CNN_TEXT]) {
  struct pawl_cnn_options *cnn = &train->options.cnn;
  struct pawl_cnn_sharing sharing;
  if (is_alone(train)) return pawl_cnn_train(train->images, train->test, cnn, model_out, result_out, error);
  pwi_train_cnn_sharing(&train->options, (const char *const *)train->paths, &sharing);
  sharing.checkpoints = train->folder;
  sharing.tell = tell;
  if (pwi_train_run_has_workers(&train->run)) sharing.start_worker = start_worker;
  return pawl_cnn_train_shared(train->run.session, &sharing, train->images, train->test, cnn, model_out, result_out,
                               error);
}

static int learn(void *context) {
  struct cnn_train *train = context;
  struct pawl_cnn_options *cnn = &train->options.cnn;
  struct pawl_cnn_model *model = NULL;
  struct pawl_cnn_result result;
  char error[PAWL_CNN_TEXT] = "";
  cnn->progress = progress;
  cnn->stopping = stopping;
  cnn->context = train;
  pawl_status status = call_method(train, &model, &result, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result);
  pawl_cnn_model_destroy(model);
  return exit_code;
}

static int run(struct cnn_train *train) {
  if (pwi_train_run_is_follower(&train->run) && !is_alone(train)) return pwi_train_follow(&train->options.base);
  int exit_code = prepare(train);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (!is_alone(train)) return pwi_train_run_session(&train->run, learn, train);
  pwi_train_run_catch();
  return learn(train);
}

int pwi_train_cnn_run(const struct pwi_command *command, int argc, char **argv) {
  struct cnn_train train = {.output = NULL};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_cnn_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_run_init(&train.run, &train.options.base);
  train.run.advice = ", so no model can be saved; to survive such a loss, use --replicas 1";
  exit_code = run(&train);
  fflush(stdout);
  exit_code = pwi_train_run_fini(&train.run, exit_code);
  pawl_images_destroy(train.images);
  pawl_images_destroy(train.test);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_train_paths_free(train.paths, train.options.base.data_count);
  pwi_free(train.output);
  pwi_free(train.folder);
  return exit_code;
}
