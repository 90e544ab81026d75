/* `pawl train logistic`, `svm` and `linear`. This process is the scheduler. <pawl/linear_model.h> trains; this
 * file shows and logs the rounds, and writes the models, even after an interrupt or a failure. */
#include "cli/train/methods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/train/end.h"
#include "cli/train/figures.h"
#include "cli/train/run.h"

struct linear_train {
  struct pwi_train_run run;
  struct pwi_train_options options;
  struct pwi_train_files files;
  struct pwi_train_end end;
  struct pawl_linear_model *start; /* NULL: none */
  size_t logged_point;
  uint64_t logged_round;
  bool has_logged;
  char write_error[PAWL_LINEAR_TEXT]; /* error of writing a model; "" if none */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) { pwi_train_run_tell(&((struct linear_train *)context)->run, line); }
static bool stopping(void *context) { return pwi_train_run_is_stopping(&((struct linear_train *)context)->run); }
static pawl_status start_worker(void *context) { return pwi_train_run_worker(&((struct linear_train *)context)->run); }

/* Once a round. */
static void record(struct linear_train *train, const struct pawl_linear_progress *progress) {
  char mark[PWI_TRAIN_MARK_MAX];
  struct pwi_train_scalar scalars[PWI_TRAIN_FIGURES];
  if (strcmp(progress->stage, "training") != 0) return;
  if (train->has_logged && train->logged_point == progress->point && train->logged_round == progress->round) return;
  train->has_logged = true;
  train->logged_point = progress->point;
  train->logged_round = progress->round;
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_figures_json(progress));
  pwi_train_figures_board(progress, scalars);
  pwi_train_run_board(&train->run, pwi_train_mark(&train->options, progress->point, mark), progress->round, scalars,
                      PWI_TRAIN_FIGURES);
}

static void progress(void *context, const struct pawl_linear_progress *is) {
  struct linear_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_run_beat(&train->run);
  pwi_train_run_unsaved(&train->run, is->unsaved);
  record(train, is);
  if (!pwi_train_show_is_due(&train->run.show, is->stage)) return;
  pwi_train_figures_line(is, line);
  pwi_train_show_draw(&train->run.show, line);
}

static pawl_status found(void *context, size_t point, const struct pawl_linear_model *model,
                         const struct pawl_linear_result *result) {
  struct linear_train *train = context;
  char line[PWI_TRAIN_LINE_MAX], mark[PWI_TRAIN_MARK_MAX], error[PAWL_LINEAR_TEXT] = "";
  pawl_status status = pwi_train_end_found(&train->end, point, model, result, error);
  if (status) {
    memcpy(train->write_error, error, sizeof error);
  } else if (train->options.linear.point_count > 1) {
    snprintf(line, sizeof line, "%s: objective %.8g, %llu non-zeros, in %.300s",
             pwi_train_mark(&train->options, point, mark), result->objective, (unsigned long long)result->nonzeros,
             train->end.found[point].path);
    tell(train, line);
  }
  return status;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* Reports a run whose models, all of them, are no better than guessing: of a path, some are meant to be too simple. */
static int judge_guesses(struct linear_train *train) {
  char line[PWI_TRAIN_LINE_MAX];
  const struct pwi_train_found *last = &train->end.found[train->end.last];
  const struct pawl_linear_result *result = &last->result;
  for (size_t i = 0; i < train->options.linear.point_count; i++)
    if (!train->end.found[i].path || !train->end.found[i].result.is_guessing) return PWI_EXIT_OK;
  line[0] = '\0';
  pwi_train_line_add(line, "%.200s is NO BETTER THAN GUESSING on the validation rows: ", last->path);
  if (isnan(result->valid_accuracy))
    pwi_train_line_add(line, "its mean squared error is %.5g, and that of their mean %.5g", result->valid_loss,
                       result->valid_guess);
  else
    pwi_train_line_add(line, "it is right on %.2f %% of them, and the more frequent class on %.2f %%",
                       100 * result->valid_accuracy, 100 * result->valid_guess);
  pwi_train_line_add(line, "; try more rows, other features, or a larger penalty");
  pwi_train_run_reason(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

/* Reports models that have not converged. Returns the exit code. */
static int judge(struct linear_train *train) {
  char line[PWI_TRAIN_LINE_MAX], mark[PWI_TRAIN_MARK_MAX];
  int exit_code = judge_guesses(train);
  for (size_t i = 0; i < train->options.linear.point_count; i++) {
    const struct pwi_train_found *found = &train->end.found[i];
    if (!found->path || found->result.is_certain) continue;
    pwi_train_mark(&train->options, i, mark);
    exit_code = PWI_TRAIN_UNCERTAIN;
    snprintf(line, sizeof line, "%s%s%.300s has %s (%s); try %s", mark, *mark ? ": " : "", found->path,
             strcmp(found->why, "diverged") == 0 ? "DIVERGED" : "NOT converged", found->why,
             found->result.advice ? found->result.advice : "again");
    pwi_train_run_reason(&train->run, line);
  }
  return exit_code;
}

/* Prints the result. Returns the exit code. */
static int conclude(struct linear_train *train, pawl_status status, const char *error, const char *unsaved) {
  const struct pwi_train_base *base = &train->options.base;
  const struct pwi_train_found *last = &train->end.found[train->end.last];
  bool is_interrupted = pwi_train_run_was_interrupted() && (status || strcmp(last->why, "interrupted") == 0);
  int exit_code = PWI_EXIT_OK;
  if (status && (!is_interrupted || train->write_error[0]))
    exit_code = pwi_train_run_explain(&train->run, status, train->write_error[0] ? train->write_error : error);
  if (is_interrupted) exit_code = PWI_TRAIN_INTERRUPTED;
  if (!train->end.has_found) {
    if (is_interrupted && !train->write_error[0])
      pwi_train_run_reason(&train->run, "interrupted before there was a model; no model was written");
    return exit_code;
  }
  if (exit_code != PWI_EXIT_OK) {
    char line[PWI_TRAIN_LINE_MAX];
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s", last->path);
    pwi_train_run_reason(&train->run, line);
  }
  if (exit_code == PWI_EXIT_OK) exit_code = judge(train);
  int printed = PWI_EXIT_OK;
  if (base->json)
    printed = pwi_train_end_json(&train->end);
  else if (!base->quiet)
    pwi_train_end_print(&train->end);
  return pwi_train_run_saved(&train->run, unsaved, last->path, exit_code ? exit_code : printed);
}

static int learn(void *context) {
  struct linear_train *train = context;
  struct pawl_linear_options *linear = &train->options.linear;
  struct pawl_linear_result result = {.why = ""};
  char error[PAWL_LINEAR_TEXT] = "";
  if (pwi_train_run_has_workers(&train->run)) linear->start_worker = start_worker;
  linear->progress = progress;
  linear->tell = tell;
  linear->stopping = stopping;
  linear->found = found;
  linear->context = train;
  pawl_status status = pawl_linear_train(train->run.session, linear, NULL, &result, error);
  train->end.seconds = pwi_train_run_conclude(&train->run, error);
  train->end.can_resume = result.can_resume && !*result.unsaved;
  return conclude(train, status, error, result.unsaved);
}

/* Checks everything that can be checked before the run starts. */
static bool prepare(struct linear_train *train, int *exit_out) {
  struct pwi_train_options *options = &train->options;
  char error[PAWL_LINEAR_TEXT] = "";
  if (!pwi_train_files_init(&train->files, options, exit_out)) return false;
  if (options->start && pawl_linear_model_read(options->start, &train->start, error) != PAWL_OK) {
    *exit_out = pwi_cli_failure(options->base.command, "%s", error);
    return false;
  }
  if (options->start) options->linear.start = train->start;
  if (!pawl_linear_check(&options->linear, error)) { /* again, with the model to start from */
    *exit_out = pwi_cli_usage(options->base.command, "%s", error);
    return false;
  }
  if (!pwi_train_end_init(&train->end, options, &train->files)) {
    *exit_out = pwi_cli_failure(options->base.command, "out of memory");
    return false;
  }
  train->run.advice =
      options->linear.checkpoints
          ? ", so no model can be saved; continue from the last checkpoint with --resume"
          : ", so no model can be saved; to survive such a loss, use --replicas 1 or --checkpoint-every 60";
  return true;
}

int pwi_train_linear_run(const struct pwi_command *command, enum pwi_train_kind kind, int argc, char **argv) {
  struct linear_train train = {.has_logged = false};
  int exit_code = PWI_EXIT_OK;
  bool good = pwi_train_options_read(&train.options, command, kind, argc, argv, &exit_code);
  pwi_train_run_init(&train.run, &train.options.base);
  if (good && pwi_train_run_is_follower(&train.run))
    exit_code = pwi_train_follow(&train.options.base);
  else if (good && prepare(&train, &exit_code))
    exit_code = pwi_train_run_session(&train.run, learn, &train);
  exit_code = pwi_train_run_fini(&train.run, exit_code);
  pwi_train_end_fini(&train.end);
  pawl_linear_model_destroy(train.start);
  pwi_train_files_fini(&train.files);
  pwi_train_options_fini(&train.options);
  return exit_code;
}
