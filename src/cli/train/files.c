#include "cli/train/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/train/paths.h"

/* --- names -------------------------------------------------------------------------------------------------------- */

char *pwi_train_model_name(const char *data, enum pawl_linear_format format) {
  const char *suffix = format == PAWL_LINEAR_FORMAT_NPY         ? ".npy"
                       : format == PAWL_LINEAR_FORMAT_LIBLINEAR ? ".liblinear"
                                                                : ".model";
  return pwi_train_path_beside(data, suffix);
}

char *pwi_train_point_name(const char *output, const char *mark) {
  const char *base = pwi_train_path_base(output), *dot = strrchr(base, '.');
  if (!*mark) return pwi_copy_string(output);
  size_t stem = dot && dot > base ? (size_t)(dot - output) : strlen(output);
  size_t size = strlen(output) + strlen(mark) + 2;
  char *name = pwi_alloc(size);
  if (name) snprintf(name, size, "%.*s.%s%s", (int)stem, output, mark, output + stem);
  return name;
}

static bool make_names(struct pwi_train_files *files, const struct pwi_train_options *options) {
  files->path_count = options->base.data_count;
  files->valid_count = options->valid.count;
  files->paths = pwi_train_paths_absolute(files->spool.paths, options->base.data_count);
  files->valid = pwi_train_paths_absolute(files->valid_spool.paths, options->valid.count);
  files->is_named = options->base.output != NULL;
  files->output = options->base.output
                      ? pwi_copy_string(options->base.output)
                      : pwi_train_model_name(options->base.data[0],
                                             options->has_format ? options->format : PAWL_LINEAR_FORMAT_PAWL);
  if (!files->paths || !files->valid || !files->output) return false;
  files->format = options->has_format ? options->format : pawl_linear_format_of(files->output);
  return true;
}

/* --- what must be there ------------------------------------------------------------------------------------------- */

/* Opens data by the given names, and reports missing files. The caller closes it. */
static bool open_data(struct pwi_train_options *options, const char *const *paths, size_t count,
                      struct pawl_data **data_out, int *exit_out) {
  *exit_out = pwi_train_path_data(options->base.command, paths, count, &options->linear.reading, data_out);
  return *exit_out == PWI_EXIT_OK;
}

static bool check_data(const struct pwi_train_files *files, struct pwi_train_options *options, int *exit_out) {
  struct pawl_data *data = NULL;
  if (!open_data(options, files->spool.paths, options->base.data_count, &data, exit_out)) return false;
  bool good = pwi_train_classes_weigh(options, data, exit_out);
  pawl_data_close(data);
  if (!good || options->valid.count == 0) return good;
  if (!open_data(options, files->valid_spool.paths, options->valid.count, &data, exit_out)) return false;
  pawl_data_close(data);
  return true;
}

static bool make_folder(const struct pwi_train_options *options, const char *path, int *exit_out) {
  *exit_out = pwi_train_path_folder(options->base.command, path);
  return *exit_out == PWI_EXIT_OK;
}

static bool check_checkpoints(struct pwi_train_files *files, const struct pwi_train_options *options, int *exit_out) {
  bool wanted = options->checkpoints || options->base.resume || options->linear.checkpoint_every_s > 0;
  if (!wanted) return true;
  *exit_out = pwi_train_path_checkpoints(&options->base, options->checkpoints, files->output, &files->checkpoints);
  return *exit_out == PWI_EXIT_OK;
}

bool pwi_train_files_init(struct pwi_train_files *files, struct pwi_train_options *options, int *exit_out) {
  *files = (struct pwi_train_files){0};
  if (!pwi_spool_init(&files->spool, options->base.command, options->base.data, options->base.data_count,
                      options->base.quiet, exit_out) ||
      !pwi_spool_init(&files->valid_spool, options->base.command, options->valid.at, options->valid.count,
                      options->base.quiet, exit_out))
    return false;
  if (!make_names(files, options)) {
    *exit_out = pwi_cli_failure(options->base.command, "out of memory, or a name is too long");
    return false;
  }
  if (!check_data(files, options, exit_out)) return false;
  *exit_out = pwi_train_path_apart(&options->base, files->output, NULL, options->valid.at, options->valid.count);
  if (*exit_out == PWI_EXIT_OK) *exit_out = pwi_train_path_output(options->base.command, files->output);
  if (*exit_out != PWI_EXIT_OK || !check_checkpoints(files, options, exit_out)) return false;
  if (options->base.board && !make_folder(options, options->base.board, exit_out)) return false;
  options->linear.paths = (const char *const *)files->paths;
  options->linear.valid_paths = (const char *const *)files->valid;
  options->linear.checkpoints = files->checkpoints;
  return true;
}

void pwi_train_files_fini(struct pwi_train_files *files) {
  pwi_train_paths_free(files->paths, files->path_count);
  pwi_train_paths_free(files->valid, files->valid_count);
  pwi_spool_fini(&files->spool);
  pwi_spool_fini(&files->valid_spool);
  pwi_free(files->output);
  pwi_free(files->checkpoints);
  *files = (struct pwi_train_files){0};
}
