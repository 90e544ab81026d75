#include "cli/train/matrix/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/train/keep.h"

static bool is_alone(const struct pwi_train_matrix_run *train) { return train->base->share == PWI_TRAIN_SHARE_NONE; }

/* --- what methods call -------------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) {
  pwi_train_run_tell(&((struct pwi_train_matrix_run *)context)->run, line);
}
static pawl_status start_worker(void *context) {
  return pwi_train_run_worker(&((struct pwi_train_matrix_run *)context)->run);
}

bool pwi_train_matrix_stopping(void *context) {
  struct pwi_train_matrix_run *train = context;
  return is_alone(train) ? pwi_train_run_was_interrupted() : pwi_train_run_is_stopping(&train->run);
}

bool pwi_train_matrix_wants_log(struct pwi_train_matrix_run *train) { return pwi_train_run_has_log(&train->run); }

void pwi_train_matrix_epoch(struct pwi_train_matrix_run *train, uint64_t epoch, uint64_t epochs, const char *line,
                            const char *unsaved, json_t *object) {
  pwi_train_run_unsaved(&train->run, unsaved);
  if (!is_alone(train)) pwi_train_run_beat(&train->run);
  if (object) pwi_train_run_log(&train->run, object);
  if (pwi_train_show_wants_epoch(&train->run.show, epoch, epochs))
    pwi_train_show_epoch(&train->run.show, epoch, epochs, line);
}

void pwi_train_matrix_tell_unknown(struct pwi_train_matrix_run *train, uint64_t count) {
  char line[PWI_TRAIN_LINE_MAX];
  if (count == 0) return;
  snprintf(line, sizeof line, "left out %" PRIu64 " test row%s whose label no training row has", count,
           count == 1 ? "" : "s");
  tell(train, line);
}

int pwi_train_matrix_interrupted(struct pwi_train_matrix_run *train, const char *what) {
  char line[PWI_TRAIN_LINE_MAX];
  snprintf(line, sizeof line, "%s was saved to %.400s%s", what, train->names.output,
           *train->checkpoint && !*train->unsaved ? "; continue with --resume" : "");
  pwi_train_run_reason(&train->run, line);
  return PWI_TRAIN_INTERRUPTED;
}

static int fail(struct pwi_train_matrix_run *train, pawl_status status, const char *error) {
  if (status != PAWL_CANCELLED || !pwi_train_run_was_interrupted())
    return pwi_train_run_explain(&train->run, status, error);
  pwi_train_run_reason(&train->run, "interrupted before there was a model; no model was written");
  return PWI_TRAIN_INTERRUPTED;
}

/* --- before ------------------------------------------------------------------------------------------------------- */

static void choose_sharing(const struct pwi_train_matrix_run *train, struct pawl_matrix_sharing *sharing) {
  pwi_train_matrix_sharing(train->matrix, train->base, (const char *const *)train->paths,
                           train->has_images ? NULL : train->reading, *train->image_format, sharing);
}

/* What workers need: the files, and a way to share. */
static int prepare_sharing(struct pwi_train_matrix_run *train) {
  const struct pwi_command *command = train->base->command;
  struct pawl_matrix_sharing sharing;
  struct pawl_matrix_costs costs;
  char error[PWI_TRAIN_MATRIX_TEXT] = "";
  train->paths = pwi_train_paths_absolute(train->spool.paths, train->base->data_count);
  if (!train->paths) return pwi_cli_failure(command, "out of memory, or a name is too long");
  choose_sharing(train, &sharing);
  pawl_status status = train->calls->costs(train, &sharing, &costs, error);
  if (status) return fail(train, status, error);
  pwi_train_matrix_choose(train->matrix, &train->run, &costs);
  return PWI_EXIT_OK;
}

static int prepare(struct pwi_train_matrix_run *train) {
  const struct pwi_train_base *base = train->base;
  int exit_code = pwi_train_names_init(&train->names, base, train->has_checkpoints, train->checkpoint, train->test->at,
                                       train->test->count);
  if (exit_code == PWI_EXIT_OK)
    exit_code = train->calls->read(train, base->data, base->data_count, &train->spool, false);
  if (exit_code == PWI_EXIT_OK && train->test->count > 0)
    exit_code = train->calls->read(train, train->test->at, train->test->count, &train->test_spool, true);
  return exit_code == PWI_EXIT_OK && !is_alone(train) ? prepare_sharing(train) : exit_code;
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(void *context, const char *path, bool is_rescue, char error[PWI_TRAIN_KEEP_TEXT]) {
  struct pwi_train_matrix_run *train = context;
  (void)is_rescue;
  return train->calls->write(train, path, error);
}

static int keep(struct pwi_train_matrix_run *train, const struct pawl_matrix_shared *shared) {
  char error[PWI_TRAIN_KEEP_TEXT] = "";
  if (pwi_train_keep(train->names.output, write_model, train, error))
    return pwi_cli_failure(train->base->command, "%s", error);
  int exit_code = train->calls->judge(train), printed = train->calls->print(train, is_alone(train) ? NULL : shared);
  return pwi_train_run_saved(&train->run, train->unsaved, train->names.output, exit_code ? exit_code : printed);
}

static int learn(void *context) {
  struct pwi_train_matrix_run *train = context;
  struct pawl_matrix_sharing sharing;
  struct pawl_matrix_shared shared = {.each = NULL};
  char error[PWI_TRAIN_MATRIX_TEXT] = "";
  choose_sharing(train, &sharing);
  sharing.tell = tell;
  if (!is_alone(train) && pwi_train_run_has_workers(&train->run)) sharing.start_worker = start_worker;
  pawl_status status = train->calls->train(train, is_alone(train) ? NULL : &sharing, &shared, error);
  train->seconds = pwi_train_run_conclude(&train->run, error);
  int exit_code = status ? fail(train, status, error) : keep(train, &shared);
  pawl_matrix_shared_fini(&shared);
  return exit_code;
}

static int run(struct pwi_train_matrix_run *train) {
  if (pwi_train_run_is_follower(&train->run) && !is_alone(train)) return pwi_train_follow(train->base);
  pwi_train_run_catch();
  int exit_code = prepare(train);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  return is_alone(train) ? learn(train) : pwi_train_run_session(&train->run, learn, train);
}

int pwi_train_matrix_run(struct pwi_train_matrix_run *train) {
  pwi_train_run_init(&train->run, train->base);
  train->run.advice = ", so the training cannot go on; to survive such a loss, use --replicas 1, or --share factors";
  int exit_code = run(train);
  fflush(stdout);
  exit_code = pwi_train_run_fini(&train->run, exit_code);
  pwi_train_paths_free(train->paths, train->base->data_count);
  pwi_spool_fini(&train->spool);
  pwi_spool_fini(&train->test_spool);
  pwi_train_names_fini(&train->names);
  return exit_code;
}
