/* `pawl train multiclass`: what is its own of a run (cli/train/matrix/run.h). The method is in apps/mlr. */
#include "cli/train/multiclass/run.h"

#include <stdio.h>
#include <string.h>

#include "cli/train/matrix/run.h"
#include "cli/train/multiclass/end.h"
#include "cli/train/multiclass/rows.h"

_Static_assert(PAWL_MLR_TEXT <= PWI_TRAIN_MATRIX_TEXT, "a sentence fits");

struct multiclass_train {
  struct pwi_train_matrix_run train; /* first */
  struct pwi_train_multiclass_options options;
  struct pawl_mlr_rows *rows, *test; /* test NULL: none */
  struct pawl_mlr_model *model;
  struct pawl_mlr_result result;
};

static void progress(void *context, const struct pawl_mlr_progress *is) {
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_multiclass_line(is, line);
  pwi_train_matrix_epoch(context, is->epoch, is->epochs, line, is->unsaved,
                         pwi_train_matrix_wants_log(context) ? pwi_train_multiclass_json(is) : NULL);
}

static int read_rows(struct pwi_train_matrix_run *train, const char *const *paths, size_t count,
                     struct pwi_spool *spool, bool is_test) {
  struct multiclass_train *own = (struct multiclass_train *)train;
  const struct pwi_train_multiclass_options *options = &own->options;
  const struct pwi_train_rows_wanted wanted = {.base = &options->base,
                                               .has_images = train->has_images,
                                               .image_format = options->image_format,
                                               .reading = &options->reading,
                                               .threads = options->mlr.threads};
  return pwi_train_rows_read(&train->run, &wanted, paths, count, spool, is_test ? &own->test : &own->rows);
}

static pawl_status find_costs(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                              struct pawl_matrix_costs *costs_out, char *error) {
  const struct multiclass_train *own = (struct multiclass_train *)train;
  return pawl_mlr_costs(own->rows, &own->options.mlr, sharing, costs_out, error);
}

static pawl_status learn(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                         struct pawl_matrix_shared *shared_out, char *error) {
  struct multiclass_train *own = (struct multiclass_train *)train;
  struct pawl_mlr_options *mlr = &own->options.mlr;
  mlr->progress = progress;
  mlr->stopping = pwi_train_matrix_stopping;
  mlr->context = train;
  if (!sharing) return pawl_mlr_train(own->rows, own->test, mlr, &own->model, &own->result, error);
  return pawl_mlr_train_shared(train->run.session, sharing, own->rows, own->test, mlr, &own->model, &own->result,
                               shared_out, error);
}

static pawl_status write_model(const struct pwi_train_matrix_run *train, const char *path, char *error) {
  return pawl_mlr_model_write(((const struct multiclass_train *)train)->model, path, error);
}

static int judge(struct pwi_train_matrix_run *train) {
  const struct pawl_mlr_result *result = &((struct multiclass_train *)train)->result;
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_matrix_tell_unknown(train, result->test_unknown_labels);
  if (strcmp(result->why, "interrupted") == 0) return pwi_train_matrix_interrupted(train, "the unfinished model");
  if (result->is_guessing) {
    snprintf(
        line, sizeof line,
        "%.200s is NO BETTER THAN GUESSING on the test rows: it is wrong on %.2f %% of them, and the most frequent "
        "class on %.2f %%; try more rows, other features, or a higher --l2",
        train->names.output, 100 * result->test_error, 100 * result->test_guess_error);
    pwi_train_run_reason(&train->run, line);
    return PWI_TRAIN_UNCERTAIN;
  }
  if (result->is_certain) return PWI_EXIT_OK;
  snprintf(line, sizeof line, "%.300s has %s (%s); try %s", train->names.output,
           strcmp(result->why, "diverged") == 0 ? "DIVERGED" : "NOT converged", result->why, result->advice);
  pwi_train_run_reason(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int print_result(const struct pwi_train_matrix_run *train, const struct pawl_matrix_shared *shared) {
  const struct multiclass_train *own = (const struct multiclass_train *)train;
  struct pwi_train_multiclass_end end = {.options = &own->options,
                                         .model = own->model,
                                         .result = &own->result,
                                         .shared = shared,
                                         .output = train->names.output,
                                         .seconds = train->seconds};
  pawl_mlr_rows_info(own->rows, &end.read);
  if (own->options.base.json) return pwi_train_multiclass_end_json(&end);
  if (!own->options.base.quiet) pwi_train_multiclass_end_print(&end);
  return PWI_EXIT_OK;
}

int pwi_train_multiclass_run(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_train_matrix_calls calls = {read_rows, find_costs, learn, write_model, judge, print_result};
  struct multiclass_train own = {.rows = NULL};
  struct pwi_train_multiclass_options *options = &own.options;
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_multiclass_options_read(options, command, argc, argv, &exit_code)) return exit_code;
  options->mlr.resume = options->base.resume;
  own.train = (struct pwi_train_matrix_run){.calls = &calls,
                                            .base = &options->base,
                                            .matrix = &options->matrix,
                                            .test = &options->test,
                                            .has_images = pwi_train_multiclass_has_images(options),
                                            .reading = &options->reading,
                                            .image_format = &options->image_format,
                                            .has_checkpoints = options->has_checkpoints,
                                            .checkpoint = &options->mlr.checkpoint,
                                            .unsaved = own.result.unsaved};
  exit_code = pwi_train_matrix_run(&own.train);
  pawl_mlr_model_destroy(own.model);
  pawl_mlr_rows_destroy(own.rows);
  pawl_mlr_rows_destroy(own.test);
  return exit_code;
}
