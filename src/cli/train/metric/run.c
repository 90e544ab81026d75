/* `pawl train metric`: what is its own of a run (cli/train/matrix/run.h). The method is in apps/dml. */
#include "cli/train/metric/run.h"

#include <stdio.h>
#include <string.h>

#include "cli/train/matrix/run.h"
#include "cli/train/metric/end.h"
#include "cli/train/multiclass/rows.h"

_Static_assert(PAWL_METRIC_TEXT <= PWI_TRAIN_MATRIX_TEXT, "a sentence fits");

struct metric_train {
  struct pwi_train_matrix_run train; /* first */
  struct pwi_train_metric_options options;
  struct pawl_mlr_rows *rows, *test; /* test NULL: none */
  struct pawl_metric_model *model;
  struct pawl_metric_result result;
};

static void progress(void *context, const struct pawl_metric_progress *is) {
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_metric_line(is, line);
  pwi_train_matrix_epoch(context, is->epoch, is->epochs, line, is->unsaved,
                         pwi_train_matrix_wants_log(context) ? pwi_train_metric_json(is) : NULL);
}

/* On a terminal only, where the line of the first epoch replaces it. */
static void stage(void *context, const char *what) {
  struct pwi_train_show *show = &((struct pwi_train_matrix_run *)context)->run.show;
  char line[PWI_TRAIN_LINE_MAX];
  if (show->quiet || !show->is_terminal) return;
  snprintf(line, sizeof line, "%.200s", what);
  pwi_train_show_draw(show, line);
}

static int read_rows(struct pwi_train_matrix_run *train, const char *const *paths, size_t count,
                     struct pwi_spool *spool, bool is_test) {
  struct metric_train *own = (struct metric_train *)train;
  const struct pwi_train_metric_options *options = &own->options;
  const struct pwi_train_rows_wanted wanted = {.base = &options->base,
                                               .has_images = options->has_images,
                                               .image_format = options->image_format,
                                               .reading = &options->reading,
                                               .threads = options->metric.threads};
  return pwi_train_rows_read(&train->run, &wanted, paths, count, spool, is_test ? &own->test : &own->rows);
}

static pawl_status find_costs(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                              struct pawl_matrix_costs *costs_out, char *error) {
  const struct metric_train *own = (struct metric_train *)train;
  return pawl_metric_costs(own->rows, &own->options.metric, sharing, costs_out, error);
}

static pawl_status learn(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                         struct pawl_matrix_shared *shared_out, char *error) {
  struct metric_train *own = (struct metric_train *)train;
  struct pawl_metric_options *metric = &own->options.metric;
  metric->progress = progress;
  metric->stage = stage;
  metric->stopping = pwi_train_matrix_stopping;
  metric->context = train;
  if (!sharing) return pawl_metric_train(own->rows, own->test, metric, &own->model, &own->result, error);
  return pawl_metric_train_shared(train->run.session, sharing, own->rows, own->test, metric, &own->model, &own->result,
                                  shared_out, error);
}

static pawl_status write_model(const struct pwi_train_matrix_run *train, const char *path, char *error) {
  return pawl_metric_model_write(((const struct metric_train *)train)->model, path, error);
}

static int judge(struct pwi_train_matrix_run *train) {
  const struct pawl_metric_result *result = &((struct metric_train *)train)->result;
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_matrix_tell_unknown(train, result->test_unknown_labels);
  if (strcmp(result->why, "interrupted") == 0) return pwi_train_matrix_interrupted(train, "the best model so far");
  if (result->is_better) return PWI_EXIT_OK;
  bool is_guess = result->error < result->euclid_error;
  snprintf(line, sizeof line, "%.200s is NO BETTER than %s on the held-out rows (%.2f %% and %.2f %%); try %s",
           train->names.output, is_guess ? "guessing" : "Euclidean distance", 100 * result->error,
           100 * (is_guess ? result->guess_error : result->euclid_error), result->advice);
  pwi_train_run_reason(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int print_result(const struct pwi_train_matrix_run *train, const struct pawl_matrix_shared *shared) {
  const struct metric_train *own = (const struct metric_train *)train;
  struct pwi_train_metric_end end = {.options = &own->options,
                                     .model = own->model,
                                     .result = &own->result,
                                     .shared = shared,
                                     .output = train->names.output,
                                     .seconds = train->seconds};
  pawl_mlr_rows_info(own->rows, &end.read);
  if (own->options.base.json) return pwi_train_metric_end_json(&end);
  if (!own->options.base.quiet) pwi_train_metric_end_print(&end);
  return PWI_EXIT_OK;
}

int pwi_train_metric_run(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_train_matrix_calls calls = {read_rows, find_costs, learn, write_model, judge, print_result};
  struct metric_train own = {.rows = NULL};
  struct pwi_train_metric_options *options = &own.options;
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_metric_options_read(options, command, argc, argv, &exit_code)) return exit_code;
  options->metric.resume = options->base.resume;
  own.train = (struct pwi_train_matrix_run){.calls = &calls,
                                            .base = &options->base,
                                            .matrix = &options->matrix,
                                            .test = &options->test,
                                            .has_images = options->has_images,
                                            .reading = &options->reading,
                                            .image_format = &options->image_format,
                                            .has_checkpoints = options->has_checkpoints,
                                            .checkpoint = &options->metric.checkpoint,
                                            .unsaved = own.result.unsaved};
  exit_code = pwi_train_matrix_run(&own.train);
  pawl_metric_model_destroy(own.model);
  pawl_mlr_rows_destroy(own.rows);
  pawl_mlr_rows_destroy(own.test);
  return exit_code;
}
