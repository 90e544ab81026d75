/* `pawl train lda`. This process is the scheduler. The method is in apps/lda; this file shows and logs its
 * rounds and writes the model. The directory of the run is removed after success, and kept for --resume
 * otherwise. */
#include "cli/train/methods.h"

#include <stdio.h>
#include <string.h>

#include "cli/train/keep.h"
#include "cli/train/lda_end.h"
#include "cli/train/lda_show.h"
#include "cli/train/run.h"
#include "host/clock.h"

#define PLAIN_NS (5 * PWI_HOST_SECOND) /* between lines where there is no terminal */

struct lda_train {
  struct pwi_train_run run;
  struct pwi_train_lda_options options;
  struct pwi_train_lda_files files;
  uint64_t logged_sweep;
  bool has_logged;
  bool can_resume;     /* the directory has state to resume from */
  char said_stage[32]; /* stage of the last plain line */
  int64_t said_ns;
  bool is_done; /* the model is written, and the directory is no longer needed */
};

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) { pwi_train_run_tell(&((struct lda_train *)context)->run, line); }
static bool stopping(void *context) { return pwi_train_run_is_stopping(&((struct lda_train *)context)->run); }
static pawl_status start_worker(void *context) { return pwi_train_run_worker(&((struct lda_train *)context)->run); }

/* Only Gibbs sampling keeps state to resume from. */
static bool is_gibbs(const struct lda_train *train) { return train->options.lda.method == PAWL_LDA_GIBBS; }

/* Once a round. */
static void record(struct lda_train *train, const struct pawl_lda_progress *is) {
  struct pwi_train_scalar scalars[PWI_TRAIN_LDA_SCALARS];
  if (strcmp(is->stage, "sampling") != 0 || is->sweep == 0) return;
  if (train->has_logged && train->logged_sweep == is->sweep) return;
  train->has_logged = true;
  train->logged_sweep = is->sweep;
  if (pwi_train_run_has_log(&train->run)) pwi_train_run_log(&train->run, pwi_train_lda_json(is));
  pwi_train_lda_board(is, scalars);
  pwi_train_run_board(&train->run, "", is->sweep, scalars, PWI_TRAIN_LDA_SCALARS);
}

/* Without a terminal, prints a line at every new stage and every PLAIN_NS: a run may take a night. */
static void say_plainly(struct lda_train *train, const struct pawl_lda_progress *is) {
  char line[PWI_TRAIN_LINE_MAX];
  int64_t now = pwi_host_now();
  bool is_new = strncmp(train->said_stage, is->stage, sizeof train->said_stage - 1) != 0;
  if (!is_new && now - train->said_ns < PLAIN_NS) return;
  snprintf(train->said_stage, sizeof train->said_stage, "%s", is->stage);
  train->said_ns = now;
  pwi_train_lda_line(is, line);
  pwi_train_show_say(&train->run.show, line);
}

static void progress(void *context, const struct pawl_lda_progress *is) {
  struct lda_train *train = context;
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_run_beat(&train->run);
  if (is_gibbs(train)) pwi_train_run_unsaved(&train->run, is->unsaved);
  train->can_resume |= is_gibbs(train) && strcmp(is->stage, "sampling") == 0 && is->sweep > 0;
  record(train, is);
  if (!train->run.show.is_terminal) say_plainly(train, is);
  if (!pwi_train_show_is_due(&train->run.show, is->stage)) return;
  pwi_train_lda_line(is, line);
  pwi_train_show_draw(&train->run.show, line);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* Tells how to resume after a run that did not succeed. */
static void advise(struct lda_train *train) {
  char line[PWI_TRAIN_LINE_MAX];
  if (!train->can_resume) return;
  snprintf(line, sizeof line, "the state of sampling is kept in %.400s; continue with the same command and --resume",
           train->files.directory);
  tell(train, line);
}

static int report(struct lda_train *train, const struct pawl_lda_model *model, const struct pawl_lda_result *result,
                  double seconds) {
  const struct pwi_train_base *base = &train->options.base;
  struct pwi_train_lda_end end = {&train->options, &train->files, model, result, seconds};
  if (base->json) return pwi_train_lda_end_json(&end);
  if (!base->quiet) pwi_train_lda_end_print(&end);
  return PWI_EXIT_OK;
}

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  (void)is_rescue;
  return pawl_lda_model_write(context, path, error);
}

/* Writes the model and prints the result. Returns the exit code. */
static int keep(struct lda_train *train, struct pawl_lda_model *model, const struct pawl_lda_result *result,
                double seconds) {
  bool is_interrupted = result->why && strcmp(result->why, "interrupted") == 0;
  const char *unsaved = is_gibbs(train) && (is_interrupted || !train->files.goes) ? result->unsaved : "";
  char error[PAWL_LDA_TEXT] = "", line[PWI_TRAIN_LINE_MAX];
  pawl_status status = pwi_train_keep(train->files.output, write_model, model, error);
  if (status) {
    int exit_code = pwi_train_run_explain(&train->run, status, error);
    advise(train);
    return exit_code;
  }
  train->is_done = !is_interrupted || !is_gibbs(train);
  if (is_interrupted) {
    snprintf(line, sizeof line, "the unfinished model was saved to %.400s", train->files.output);
    pwi_train_run_reason(&train->run, line);
    if (!*unsaved) advise(train);
  }
  int printed = report(train, model, result, seconds);
  return pwi_train_run_saved(&train->run, unsaved, train->files.output,
                             is_interrupted ? PWI_TRAIN_INTERRUPTED : printed);
}

static int fail(struct lda_train *train, pawl_status status, const char *error) {
  int exit_code = PWI_TRAIN_INTERRUPTED;
  if (pwi_train_run_was_interrupted())
    pwi_train_run_reason(&train->run, "interrupted before there was a model; no model was written");
  else
    exit_code = pwi_train_run_explain(&train->run, status, error);
  advise(train);
  return exit_code;
}

static int learn(void *context) {
  struct lda_train *train = context;
  struct pawl_lda_options *lda = &train->options.lda;
  struct pawl_lda_model *model = NULL;
  struct pawl_lda_result result = {.why = ""};
  char error[PAWL_LDA_TEXT] = "";
  if (pwi_train_run_has_workers(&train->run)) lda->start_worker = start_worker;
  lda->progress = progress;
  lda->tell = tell;
  lda->stopping = stopping;
  lda->context = train;
  pawl_status status = pawl_lda_train(train->run.session, lda, &model, &result, error);
  double seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, model, &result, seconds);
  pawl_lda_model_destroy(model);
  return exit_code;
}

/* Removes the directory if it is not needed. Workers have ended and no longer write to it. */
static void clear_up(const struct lda_train *train) {
  if (train->is_done)
    pwi_train_lda_files_clear(&train->files);
  else if (!train->can_resume)
    pwi_train_lda_files_undo(&train->files);
}

int pwi_train_lda_run(const struct pwi_command *command, int argc, char **argv) {
  struct lda_train train = {.has_logged = false};
  int exit_code = PWI_EXIT_OK;
  bool good = pwi_train_lda_options_read(&train.options, command, argc, argv, &exit_code);
  pwi_train_run_init(&train.run, &train.options.base);
  if (good && pwi_train_run_is_follower(&train.run)) {
    exit_code = pwi_train_follow(&train.options.base);
  } else if (good && pwi_train_lda_files_init(&train.files, &train.options, &exit_code)) {
    train.run.advice = is_gibbs(&train) ? "; continue from the last sample with the same command and --resume; to "
                                          "survive such a loss, use --replicas 1"
                                        : ", so no model can be saved; to survive such a loss, use --replicas 1";
    exit_code = pwi_train_run_session(&train.run, learn, &train);
    clear_up(&train);
  }
  exit_code = pwi_train_run_fini(&train.run, exit_code);
  pwi_train_lda_files_fini(&train.files);
  return exit_code;
}
