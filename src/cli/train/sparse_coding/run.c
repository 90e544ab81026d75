/* `pawl train sparse-coding`: what is its own of a run (cli/train/matrix/run.h). The method is in apps/sparse_coding. */
#include "cli/train/sparse_coding/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/image_files.h"
#include "cli/train/matrix/run.h"
#include "cli/train/sparse_coding/end.h"

#define PATCHES 100000     /* by default */
#define TEST_PATCHES 10000 /* at most */

_Static_assert(PAWL_SPARSE_TEXT <= PWI_TRAIN_MATRIX_TEXT, "a sentence fits");

struct sparse_train {
  struct pwi_train_matrix_run train; /* first */
  struct pwi_train_sparse_options options;
  struct pawl_sparse_rows *rows, *test; /* test NULL: none */
  struct pawl_sparse_model *model;
  struct pawl_sparse_result result;
};

static void progress(void *context, const struct pawl_sparse_progress *is) {
  char line[PWI_TRAIN_LINE_MAX];
  pwi_train_sparse_line(is, line);
  pwi_train_matrix_epoch(context, is->epoch, is->epochs, line, is->unsaved,
                         pwi_train_matrix_wants_log(context) ? pwi_train_sparse_json(is) : NULL);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void tell_rows(struct sparse_train *own, const struct pawl_sparse_rows *rows) {
  struct pwi_train_run *run = &own->train.run;
  struct pawl_sparse_rows_info info;
  char line[PWI_TRAIN_LINE_MAX];
  pawl_sparse_rows_info(rows, &info);
  if (info.skipped > 0) {
    snprintf(line, sizeof line, "skipped %" PRIu64 " bad row%s, the first: %.400s", info.skipped,
             info.skipped == 1 ? "" : "s", pawl_sparse_rows_first_bad(rows));
    pwi_train_run_tell(run, line);
  }
  if (rows == own->test || info.rows >= own->options.sparse.atoms) return;
  snprintf(line, sizeof line, "there are more atoms (%" PRIu32 ") than rows (%" PRIu64 "); some will stay unused",
           own->options.sparse.atoms, info.rows);
  pwi_train_run_tell(run, line);
}

static uint64_t patches_of(const struct pwi_train_sparse_options *options, bool is_test) {
  uint64_t count = options->patches ? options->patches : PATCHES;
  return is_test && count > TEST_PATCHES ? TEST_PATCHES : count;
}

static pawl_status read_images(const struct pwi_train_sparse_options *options, const struct pwi_spool *spool,
                               size_t count, bool is_test, struct pawl_sparse_rows **rows_out,
                               char error[PAWL_SPARSE_TEXT]) {
  struct pawl_images *images = NULL;
  pawl_status status = pwi_image_files_read(spool->paths, count, options->image_format, true, &images, error);
  if (!status)
    status = pawl_sparse_rows_of_images(images, options->patch, patches_of(options, is_test), options->sparse.seed,
                                        rows_out, error);
  pawl_images_destroy(images);
  return status;
}

static int read_rows(struct pwi_train_matrix_run *train, const char *const *paths, size_t count,
                     struct pwi_spool *spool, bool is_test) {
  struct sparse_train *own = (struct sparse_train *)train;
  const struct pwi_train_sparse_options *options = &own->options;
  const struct pwi_command *command = options->base.command;
  struct pawl_sparse_rows **rows = is_test ? &own->test : &own->rows;
  char error[PAWL_SPARSE_TEXT] = "";
  int exit_code;
  if (!pwi_spool_init(spool, command, paths, count, options->base.quiet, &exit_code)) return exit_code;
  pawl_status status = options->has_images ? read_images(options, spool, count, is_test, rows, error)
                                           : pawl_sparse_rows_read(spool->paths, count, &options->reading,
                                                                   options->sparse.threads, rows, error);
  if (status) return pwi_cli_failure(command, "%s", error);
  tell_rows(own, *rows);
  return PWI_EXIT_OK;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* What both calls of the library need. */
static void prepare(struct sparse_train *own) {
  struct pawl_sparse_options *sparse = &own->options.sparse;
  sparse->progress = progress;
  sparse->stopping = pwi_train_matrix_stopping;
  sparse->context = &own->train;
}

static pawl_status find_costs(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                              struct pawl_matrix_costs *costs_out, char *error) {
  struct sparse_train *own = (struct sparse_train *)train;
  prepare(own);
  return pawl_sparse_costs(own->rows, &own->options.sparse, sharing, costs_out, error);
}

static pawl_status learn(struct pwi_train_matrix_run *train, const struct pawl_matrix_sharing *sharing,
                         struct pawl_matrix_shared *shared_out, char *error) {
  struct sparse_train *own = (struct sparse_train *)train;
  struct pawl_sparse_options *sparse = &own->options.sparse;
  prepare(own);
  if (!sharing) return pawl_sparse_train(own->rows, own->test, sparse, &own->model, &own->result, error);
  return pawl_sparse_train_shared(train->run.session, sharing, own->rows, own->test, sparse, &own->model, &own->result,
                                  shared_out, error);
}

/* --- after -------------------------------------------------------------------------------------------------------- */

static pawl_status write_model(const struct pwi_train_matrix_run *train, const char *path, char *error) {
  return pawl_sparse_model_write(((const struct sparse_train *)train)->model, path, error);
}

static int judge(struct pwi_train_matrix_run *train) {
  const struct pawl_sparse_result *result = &((struct sparse_train *)train)->result;
  char line[PWI_TRAIN_LINE_MAX];
  if (result->unsolved > 0) {
    snprintf(line, sizeof line, "the codes of %" PRIu64 " rows did not reach their tolerance", result->unsolved);
    pwi_train_run_tell(&train->run, line);
  }
  if (strcmp(result->why, "interrupted") == 0) return pwi_train_matrix_interrupted(train, "the unfinished model");
  if (result->is_certain) return PWI_EXIT_OK;
  snprintf(line, sizeof line, "%.300s has NOT converged (%s); try %s", train->names.output, result->why,
           result->advice);
  pwi_train_run_reason(&train->run, line);
  return PWI_TRAIN_UNCERTAIN;
}

static int print_result(const struct pwi_train_matrix_run *train, const struct pawl_matrix_shared *shared) {
  const struct sparse_train *own = (const struct sparse_train *)train;
  struct pwi_train_sparse_end end = {.options = &own->options,
                                     .model = own->model,
                                     .result = &own->result,
                                     .shared = shared,
                                     .output = train->names.output,
                                     .seconds = train->seconds};
  pawl_sparse_rows_info(own->rows, &end.read);
  if (own->options.base.json) return pwi_train_sparse_end_json(&end);
  if (!own->options.base.quiet) pwi_train_sparse_end_print(&end);
  return PWI_EXIT_OK;
}

int pwi_train_sparse_run(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_train_matrix_calls calls = {read_rows, find_costs, learn, write_model, judge, print_result};
  struct sparse_train own = {.rows = NULL};
  struct pwi_train_sparse_options *options = &own.options;
  int exit_code = PWI_EXIT_OK;
  if (!pwi_train_sparse_options_read(options, command, argc, argv, &exit_code)) return exit_code;
  options->sparse.resume = options->base.resume;
  own.train = (struct pwi_train_matrix_run){.calls = &calls,
                                            .base = &options->base,
                                            .matrix = &options->matrix,
                                            .test = &options->test,
                                            .has_images = options->has_images,
                                            .reading = &options->reading,
                                            .image_format = &options->image_format,
                                            .has_checkpoints = options->has_checkpoints,
                                            .checkpoint = &options->sparse.checkpoint,
                                            .unsaved = own.result.unsaved};
  exit_code = pwi_train_matrix_run(&own.train);
  pawl_sparse_model_destroy(own.model);
  pawl_sparse_rows_destroy(own.rows);
  pawl_sparse_rows_destroy(own.test);
  return exit_code;
}
