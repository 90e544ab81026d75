/* `pawl train bpmf`: trains in this process, or is the scheduler of workers. The method is in apps/bpmf; this file reads
 * ratings, shows and logs iterations, and writes the model. */
#include "cli/train/bpmf/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <pawl/session.h>

#include "cli/spool.h"
#include "cli/train/bpmf/end.h"
#include "cli/train/keep.h"
#include "cli/train/paths.h"
#include "cli/train/run.h"

struct bpmf_train {
  struct pwi_train_run run; /* without sharing, it has no session */
  struct pwi_train_bpmf_options options;
  struct pwi_spool spool, test_spool;  /* files of a pipe are copied */
  struct pawl_ratings *ratings, *test; /* test NULL: none */
  struct pwi_train_names names;
  double seconds;             /* at the end of training */
  char **paths, **test_paths; /* absolute paths of the ratings, for workers */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) { pwi_train_run_tell(&((struct bpmf_train *)context)->run, line); }
static pawl_status start_worker(void *context) { return pwi_train_run_worker(&((struct bpmf_train *)context)->run); }

static bool is_alone(const struct bpmf_train *train) { return train->options.base.share == PWI_TRAIN_SHARE_NONE; }

/* A line for each iteration would be too many; some stay, and on a terminal the line of the last one is redrawn. */
static bool is_shown(const struct pawl_bpmf_progress *is) {
  uint64_t step = is->iterations <= 20 ? 1 : is->iterations / 10;
  return is->iteration == 1 || is->iteration == is->iterations || is->iteration % step == 0;
}

static void progress(void *context, const struct pawl_bpmf_progress *is) {
  struct bpmf_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  if (!is_alone(train)) pwi_train_run_beat(&train->run);
  pwi_train_run_unsaved(&train->run, is->unsaved);
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_bpmf_json(is));
  if (!is_shown(is) && !pwi_train_show_is_due(&train->run.show, "training")) return;
  pwi_train_bpmf_line(is, line);
  if (is_shown(is))
    pwi_train_show_say(&train->run.show, line);
  else
    pwi_train_show_draw(&train->run.show, line);
}

static bool stopping(void *context) {
  struct bpmf_train *train = context;
  return is_alone(train) ? pwi_train_run_was_interrupted() : pwi_train_run_is_stopping(&train->run);
}

/* --- before ------------------------------------------------------------------------------------------------------- */

/* Tells what was left out. */
static void tell_info(struct bpmf_train *train, const struct pawl_ratings *ratings) {
  struct pawl_ratings_info info;
  char line[PWI_TRAIN_LINE_MAX];
  pawl_ratings_info(ratings, &info);
  if (info.skipped > 0) {
    snprintf(line, sizeof line, "skipped %" PRIu64 " bad line%s, the first: %.400s", info.skipped,
             info.skipped == 1 ? "" : "s", pawl_ratings_first_bad(ratings));
    pwi_train_run_tell(&train->run, line);
  }
  if (info.duplicates > 0) {
    snprintf(line, sizeof line, "%" PRIu64 " duplicate ratings were %s", info.duplicates,
             train->options.reading.duplicates == PAWL_RATINGS_MEAN ? "merged by their mean"
                                                                    : "replaced by later ones");
    pwi_train_run_tell(&train->run, line);
  }
}

static int read_ratings(struct bpmf_train *train, const char *const *paths, size_t count, struct pwi_spool *spool,
                        struct pawl_ratings **ratings_out) {
  const struct pwi_command *command = train->options.base.command;
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, train->options.base.quiet, &exit_code)) return exit_code;
  if (pawl_ratings_read(spool->paths, count, &train->options.reading, ratings_out))
    return pwi_cli_failure(command, "%s", pawl_error_text());
  tell_info(train, *ratings_out);
  return PWI_EXIT_OK;
}

static int name_files(struct bpmf_train *train) {
  struct pwi_train_bpmf_options *options = &train->options;
  options->bpmf.resume = options->base.resume;
  return pwi_train_names_init(&train->names, &options->base, options->has_checkpoints, &options->bpmf.checkpoint,
                              options->test.at, options->test.count);
}

/* Workers read the same files. */
static int name_ratings(struct bpmf_train *train) {
  const struct pwi_train_bpmf_options *options = &train->options;
  train->paths = pwi_train_paths_absolute(train->spool.paths, options->base.data_count);
  if (options->test.count > 0)
    train->test_paths = pwi_train_paths_absolute(train->test_spool.paths, options->test.count);
  return train->paths && (train->test_paths || options->test.count == 0)
             ? PWI_EXIT_OK
             : pwi_cli_failure(options->base.command, "out of memory, or a name is too long");
}

static int prepare(struct bpmf_train *train) {
  const struct pwi_train_bpmf_options *options = &train->options;
  int exit_code = name_files(train);
  if (exit_code == PWI_EXIT_OK)
    exit_code = read_ratings(train, options->base.data, options->base.data_count, &train->spool, &train->ratings);
  if (exit_code == PWI_EXIT_OK && options->test.count > 0)
    exit_code = read_ratings(train, options->test.at, options->test.count, &train->test_spool, &train->test);
  return exit_code != PWI_EXIT_OK || is_alone(train) ? exit_code : name_ratings(train);
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_bpmf_model_write(context, path, error);
}

static int print_result(const struct bpmf_train *train, const struct pawl_bpmf_model *model,
                        const struct pawl_bpmf_result *result) {
  struct pwi_train_bpmf_end end = {.options = &train->options,
                                   .model = model,
                                   .result = result,
                                   .output = train->names.output,
                                   .seconds = train->seconds};
  pawl_ratings_info(train->ratings, &end.read);
  if (train->test) pawl_ratings_info(train->test, &end.test_read);
  if (train->options.base.json) return pwi_train_bpmf_end_json(&end);
  if (!train->options.base.quiet) pwi_train_bpmf_end_print(&end);
  return PWI_EXIT_OK;
}

static void tell_unknown(struct bpmf_train *train, const struct pawl_bpmf_result *result) {
  char line[PWI_TRAIN_LINE_MAX];
  if (result->test_unknown == 0) return;
  snprintf(line, sizeof line, "left out %" PRIu64 " test rating%s of unknown users or items, the first: %.400s",
           result->test_unknown, result->test_unknown == 1 ? "" : "s", result->first_unknown);
  pwi_train_run_tell(&train->run, line);
}

static int keep(struct bpmf_train *train, struct pawl_bpmf_model *model, const struct pawl_bpmf_result *result) {
  char error[PWI_TRAIN_KEEP_TEXT] = "", line[PWI_TRAIN_LINE_MAX];
  if (pwi_train_keep(train->names.output, write_model, model, error))
    return pwi_cli_failure(train->options.base.command, "%s", error);
  bool is_interrupted = strcmp(result->why, "interrupted") == 0;
  if (is_interrupted) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s%s", train->names.output,
             train->options.bpmf.checkpoint && !*result->unsaved ? "; continue with --resume" : "");
    pwi_train_run_reason(&train->run, line);
  }
  tell_unknown(train, result);
  bool is_guessing = strcmp(result->why, "guessing") == 0;
  if (is_guessing) {
    snprintf(line, sizeof line,
             "%.300s is NO BETTER THAN GUESSING the mean rating, whose test RMSE is %.5f; try more ratings, a lower "
             "--rank or a lower --alpha",
             train->names.output, result->plain_test_rmse);
    pwi_train_run_reason(&train->run, line);
  }
  int printed = print_result(train, model, result);
  int exit_code = is_interrupted                          ? PWI_TRAIN_INTERRUPTED
                  : is_guessing && printed == PWI_EXIT_OK ? PWI_TRAIN_UNCERTAIN
                                                          : printed;
  return pwi_train_run_saved(&train->run, result->unsaved, train->names.output, exit_code);
}

static int fail(struct bpmf_train *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED || !pwi_train_run_was_interrupted())
    return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_reason(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

static pawl_status call_method(struct bpmf_train *train, struct pawl_bpmf_model **model_out,
                               struct pawl_bpmf_result *result_out, char error[PAWL_BPMF_TEXT]) {
  struct pawl_bpmf_options *bpmf = &train->options.bpmf;
  struct pawl_bpmf_sharing sharing;
  if (is_alone(train)) return pawl_bpmf_train(train->ratings, train->test, bpmf, model_out, result_out, error);
  pwi_train_bpmf_sharing(&train->options, (const char *const *)train->paths, (const char *const *)train->test_paths,
                         &sharing);
  sharing.tell = tell;
  if (pwi_train_run_has_workers(&train->run)) sharing.start_worker = start_worker;
  return pawl_bpmf_train_shared(train->run.session, &sharing, train->ratings, train->test, bpmf, model_out, result_out,
                                error);
}

static int learn(void *context) {
  struct bpmf_train *train = context;
  struct pawl_bpmf_options *bpmf = &train->options.bpmf;
  struct pawl_bpmf_model *model = NULL;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT] = "";
  bpmf->progress = progress;
  bpmf->stopping = stopping;
  bpmf->context = train;
  pawl_status status = call_method(train, &model, &result, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result);
  pawl_bpmf_model_destroy(model);
  return exit_code;
}

static int run(struct bpmf_train *train) {
  if (pwi_train_run_is_follower(&train->run) && !is_alone(train)) return pwi_train_follow(&train->options.base);
  if (is_alone(train)) pwi_train_run_catch();
  int exit_code = prepare(train);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  return is_alone(train) ? learn(train) : pwi_train_run_session(&train->run, learn, train);
}

int pwi_train_bpmf_run(const struct pwi_command *command, int argc, char **argv) {
  struct bpmf_train train = {.seconds = 0};
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_bpmf_options_read(&train.options, command, argc, argv, &exit_code)) return exit_code;
  pwi_train_run_init(&train.run, &train.options.base);
  train.run.advice = ", so the training cannot go on; to survive such a loss, use --replicas 1, or --share items";
  exit_code = run(&train);
  fflush(stdout);
  exit_code = pwi_train_run_fini(&train.run, exit_code);
  pawl_ratings_destroy(train.ratings);
  pawl_ratings_destroy(train.test);
  pwi_train_paths_free(train.paths, train.options.base.data_count);
  pwi_train_paths_free(train.test_paths, train.options.test.count);
  pwi_spool_fini(&train.spool);
  pwi_spool_fini(&train.test_spool);
  pwi_train_names_fini(&train.names);
  return exit_code;
}
