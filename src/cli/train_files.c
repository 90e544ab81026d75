#include "cli/train_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define PATTERN "*?["
#define CHECKPOINTS ".checkpoints"

/* --- names -------------------------------------------------------------------------------------------------------- */

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool ends_in(const char *text, size_t length, const char *tail) {
  size_t tail_length = strlen(tail);
  return length > tail_length && strncmp(text + length - tail_length, tail, tail_length) == 0;
}

/* Up to the suffix, and of a pattern up to what is not known. */
static size_t stem_of(const char *base) {
  static const char *const packed[] = {".gz", ".zst"};
  size_t length = strcspn(base, PATTERN);
  for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
    if (ends_in(base, length, packed[i])) length -= strlen(packed[i]);
  for (size_t at = length; at > 1; at--)
    if (base[at - 1] == '.') {
      length = at - 1;
      break;
    }
  while (length > 0 && strchr(".-_", base[length - 1])) length--;
  return length;
}

char *pwi_train_model_name(const char *data, enum linear_format format) {
  const char *suffix = format == LINEAR_FORMAT_NPY         ? ".npy"
                       : format == LINEAR_FORMAT_LIBLINEAR ? ".liblinear"
                                                           : ".model";
  const char *base = base_of(data);
  size_t length = stem_of(base);
  char name[PATH_MAX];
  if (length == 0) {
    base = "pawl";
    length = strlen(base);
  }
  int size = snprintf(name, sizeof name, "%.*s%s", (int)length, base, suffix);
  return size > 0 && (size_t)size < sizeof name ? pwi_copy_string(name) : NULL;
}

char *pwi_train_point_name(const char *output, const char *mark) {
  const char *base = base_of(output), *dot = strrchr(base, '.');
  if (!*mark) return pwi_copy_string(output);
  size_t stem = dot && dot > base ? (size_t)(dot - output) : strlen(output);
  size_t size = strlen(output) + strlen(mark) + 2;
  char *name = pwi_alloc(size);
  if (name) snprintf(name, size, "%.*s.%s%s", (int)stem, output, mark, output + stem);
  return name;
}

static char *absolute(const char *path) {
  char folder[PATH_MAX], whole[2 * PATH_MAX];
  if (*path == '/' || !getcwd(folder, sizeof folder)) return pwi_copy_string(path);
  int size = snprintf(whole, sizeof whole, "%s/%s", folder, path);
  return size > 0 && (size_t)size < sizeof whole ? pwi_copy_string(whole) : NULL;
}

static char **absolute_all(const char *const *paths, size_t count) {
  char **all = pwi_alloc_zero(count + 1, sizeof *all);
  for (size_t i = 0; all && i < count; i++)
    if (!(all[i] = absolute(paths[i]))) {
      while (i-- > 0) pwi_free(all[i]);
      pwi_free(all);
      return NULL;
    }
  return all;
}

static void free_all(char **all, size_t count) {
  for (size_t i = 0; all && i < count; i++) pwi_free(all[i]);
  pwi_free(all);
}

/* Whoever asks for checkpoints without saying where finds them beside the model. */
static bool name_checkpoints(struct pwi_train_files *files, const struct pwi_train_options *options) {
  char beside[PATH_MAX];
  bool wanted = options->checkpoints || options->linear.resume || options->linear.checkpoint_every_s > 0;
  if (!wanted) return true;
  int size = snprintf(beside, sizeof beside, "%s" CHECKPOINTS, files->output);
  if (size < 0 || (size_t)size >= sizeof beside) return false;
  files->checkpoints = absolute(options->checkpoints ? options->checkpoints : beside);
  return files->checkpoints != NULL;
}

static bool make_names(struct pwi_train_files *files, const struct pwi_train_options *options) {
  files->path_count = options->data_count;
  files->valid_count = options->valid_count;
  files->paths = absolute_all(options->data, options->data_count);
  files->valid = absolute_all(options->valid, options->valid_count);
  files->is_named = options->output != NULL;
  files->output = options->output ? pwi_copy_string(options->output)
                                  : pwi_train_model_name(options->data[0],
                                                         options->has_format ? options->format : LINEAR_FORMAT_PAWL);
  if (!files->paths || !files->valid || !files->output) return false;
  files->format = options->has_format ? options->format : linear_format_of(files->output);
  return name_checkpoints(files, options);
}

/* --- what must be there ------------------------------------------------------------------------------------------- */

static int complain(const struct pwi_train_options *options, pawl_status status) {
  const char *text = pawl_error_text();
  return pwi_cli_failure(options->command, "%s", *text ? text : pawl_status_text(status));
}

/* Opens data by the names that were given, and says what is missing. The caller closes it. */
static bool open_data(struct pwi_train_options *options, const char *const *paths, size_t count,
                      struct pawl_data **data_out, int *exit_out) {
  pawl_status status = pawl_data_open(paths, count, &options->linear.reading, data_out);
  if (!status) return true;
  *exit_out =
      status == PAWL_INVALID ? pwi_cli_usage(options->command, "%s", pawl_error_text()) : complain(options, status);
  return false;
}

static bool check_data(struct pwi_train_options *options, int *exit_out) {
  struct pawl_data *data = NULL;
  if (!open_data(options, options->data, options->data_count, &data, exit_out)) return false;
  bool good = pwi_train_classes_weigh(options, data, exit_out);
  pawl_data_close(data);
  if (!good || options->valid_count == 0) return good;
  if (!open_data(options, options->valid, options->valid_count, &data, exit_out)) return false;
  pawl_data_close(data);
  return true;
}

/* An hour of work must not end with a folder that is not there. */
static bool check_output(const struct pwi_train_files *files, const struct pwi_train_options *options, int *exit_out) {
  const char *base = base_of(files->output);
  struct stat about;
  char folder[PATH_MAX] = ".";
  if (base != files->output) snprintf(folder, sizeof folder, "%.*s", (int)(base - files->output), files->output);
  bool is_folder = !*base || (stat(files->output, &about) == 0 && S_ISDIR(about.st_mode));
  if (is_folder)
    *exit_out =
        pwi_cli_failure(options->command, "the model cannot be written to %s, which is a folder", files->output);
  else if (access(folder, W_OK | X_OK) != 0)
    *exit_out = pwi_cli_failure(options->command, "the model cannot be written to %s: %s", folder, strerror(errno));
  else
    return true;
  return false;
}

static bool make_folder(const struct pwi_train_options *options, const char *path, int *exit_out) {
  struct stat about;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode))) return true;
  *exit_out = pwi_cli_failure(options->command, "cannot make the folder %s: %s", path, strerror(errno));
  return false;
}

/* To resume, it has to be there. */
static bool check_checkpoints(const struct pwi_train_files *files, const struct pwi_train_options *options,
                              int *exit_out) {
  if (!files->checkpoints) return true;
  if (!options->linear.resume) return make_folder(options, files->checkpoints, exit_out);
  if (access(files->checkpoints, R_OK | X_OK) == 0) return true;
  *exit_out = pwi_cli_failure(options->command, "nothing to resume from in %s: %s; without --resume it begins anew",
                              files->checkpoints, strerror(errno));
  return false;
}

bool pwi_train_files_init(struct pwi_train_files *files, struct pwi_train_options *options, int *exit_out) {
  *files = (struct pwi_train_files){0};
  if (!make_names(files, options)) {
    *exit_out = pwi_cli_failure(options->command, "out of memory, or a name is too long");
    return false;
  }
  if (!check_data(options, exit_out) || !check_output(files, options, exit_out) ||
      !check_checkpoints(files, options, exit_out))
    return false;
  if (options->board && !make_folder(options, options->board, exit_out)) return false;
  options->linear.paths = (const char *const *)files->paths;
  options->linear.valid_paths = (const char *const *)files->valid;
  options->linear.checkpoints = files->checkpoints;
  return true;
}

void pwi_train_files_fini(struct pwi_train_files *files) {
  free_all(files->paths, files->path_count);
  free_all(files->valid, files->valid_count);
  pwi_free(files->output);
  pwi_free(files->checkpoints);
  *files = (struct pwi_train_files){0};
}
