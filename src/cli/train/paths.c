#include "cli/train/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pawl/session.h>

#include "base/memory.h"
#include "cli/apart.h"

#define PATTERN "*?["
#define CHECKPOINTS ".checkpoints"

/* --- names -------------------------------------------------------------------------------------------------------- */

const char *pwi_train_path_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool ends_in(const char *text, size_t length, const char *tail) {
  size_t tail_length = strlen(tail);
  return length > tail_length && strncmp(text + length - tail_length, tail, tail_length) == 0;
}

/* The part of a name before its suffix, and of a pattern before its first wildcard. */
static size_t stem_of(const char *base) {
  static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2"};
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

char *pwi_train_path_beside(const char *data, const char *suffix) {
  const char *base = pwi_train_path_base(data);
  size_t length = stem_of(base);
  char name[PATH_MAX];
  if (length == 0) {
    base = "pawl";
    length = strlen(base);
  }
  int size = snprintf(name, sizeof name, "%.*s%s", (int)length, base, suffix);
  return size > 0 && (size_t)size < sizeof name ? pwi_copy_string(name) : NULL;
}

char *pwi_train_path_absolute(const char *path) {
  char folder[PATH_MAX], whole[2 * PATH_MAX];
  if (*path == '/' || !getcwd(folder, sizeof folder)) return pwi_copy_string(path);
  int size = snprintf(whole, sizeof whole, "%s/%s", folder, path);
  return size > 0 && (size_t)size < sizeof whole ? pwi_copy_string(whole) : NULL;
}

char **pwi_train_paths_absolute(const char *const *paths, size_t count) {
  char **all = pwi_alloc_zero(count + 1, sizeof *all);
  for (size_t i = 0; all && i < count; i++)
    if (!(all[i] = pwi_train_path_absolute(paths[i]))) {
      pwi_train_paths_free(all, i);
      return NULL;
    }
  return all;
}

void pwi_train_paths_free(char **paths, size_t count) {
  for (size_t i = 0; paths && i < count; i++) pwi_free(paths[i]);
  pwi_free(paths);
}

/* --- what must be there ------------------------------------------------------------------------------------------- */

int pwi_train_path_data(const struct pwi_command *command, const char *const *paths, size_t count,
                        const struct pawl_data_options *reading, struct pawl_data **data_out) {
  pawl_status status = pawl_data_open(paths, count, reading, data_out);
  const char *text = pawl_error_text();
  if (!status) return PWI_EXIT_OK;
  if (status == PAWL_INVALID) return pwi_cli_usage(command, "%s", text);
  return pwi_cli_failure(command, "%s", *text ? text : pawl_status_text(status));
}

/* Creates and removes a file beside `output`. Detects names that are too long, a lack of inodes, and
 * quotas. */
static int try_draft(const struct pwi_command *command, const char *what, const char *output) {
  char draft[PATH_MAX + 32];
  struct stat about;
  if (stat(output, &about) == 0 && !S_ISREG(about.st_mode)) return PWI_EXIT_OK; /* /dev/null is written in place */
  snprintf(draft, sizeof draft, "%s.new-%ld", output, (long)getpid());
  int file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return pwi_cli_failure(command, "cannot write the %s to %s: %s", what, output, strerror(errno));
  close(file);
  unlink(draft);
  return PWI_EXIT_OK;
}

static int try_output(const struct pwi_command *command, const char *what, const char *output) {
  const char *base = pwi_train_path_base(output);
  struct stat about;
  char folder[PATH_MAX] = ".";
  if (base != output) snprintf(folder, sizeof folder, "%.*s", (int)(base - output), output);
  if (!*base || (stat(output, &about) == 0 && S_ISDIR(about.st_mode)))
    return pwi_cli_failure(command, "cannot write the %s to %s: it is a folder", what, output);
  if (access(folder, W_OK | X_OK) != 0)
    return pwi_cli_failure(command, "cannot write the %s to %s: %s", what, folder, strerror(errno));
  return try_draft(command, what, output);
}

int pwi_train_path_output(const struct pwi_command *command, const char *output) {
  return try_output(command, "model", output);
}

/* Whatever is no regular file is not opened here: a pipe would tell its reader that the log has ended. */
static bool can_log(const char *path) {
  struct stat about;
  bool exists = stat(path, &about) == 0;
  errno = exists && S_ISDIR(about.st_mode) ? EISDIR : 0;
  if (exists && !S_ISREG(about.st_mode)) return errno == 0 && access(path, W_OK) == 0;
  int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  close(file);
  if (!exists) unlink(path);
  return true;
}

int pwi_train_path_log(const struct pwi_command *command, const char *path) {
  return can_log(path) ? PWI_EXIT_OK : pwi_cli_failure(command, "cannot write the log %s: %s", path, strerror(errno));
}

int pwi_train_path_folder(const struct pwi_command *command, const char *path) {
  struct stat about;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode)))
    return PWI_EXIT_OK;
  return pwi_cli_failure(command, "cannot create the folder %s: %s", path, strerror(errno));
}

int pwi_train_path_checkpoints(const struct pwi_train_base *base, const char *given, const char *output,
                               char **folder_out) {
  char beside[PATH_MAX];
  int size = snprintf(beside, sizeof beside, "%s" CHECKPOINTS, output);
  *folder_out = size > 0 && (size_t)size < sizeof beside ? pwi_train_path_absolute(given ? given : beside) : NULL;
  if (!*folder_out) return pwi_cli_failure(base->command, "out of memory, or a name is too long");
  if (!base->resume) return pwi_train_path_folder(base->command, *folder_out);
  if (access(*folder_out, R_OK | X_OK) == 0) return PWI_EXIT_OK;
  return pwi_cli_failure(base->command, "cannot resume from %s: %s; to start over, omit --resume", *folder_out,
                         strerror(errno));
}

/* --- files that are written, and files that are read -------------------------------------------------------------- */

int pwi_train_path_apart(const struct pwi_train_base *base, const char *output, const char *checkpoint,
                         const char *const *more, size_t more_count) {
  const struct {
    const char *what, *path;
  } files[] = {{"model", output}, {"checkpoint", checkpoint}, {"log", base->log}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    for (size_t j = 0; files[i].path && j < i; j++)
      if (files[j].path && pwi_cli_is_same_file(files[i].path, files[j].path))
        return pwi_cli_usage(base->command, "the %s and the %s cannot both be %s", files[j].what, files[i].what,
                             files[i].path);
    int exit_code = pwi_cli_apart(base->command, files[i].what, files[i].path, base->data, base->data_count);
    if (exit_code == PWI_EXIT_OK)
      exit_code = pwi_cli_apart(base->command, files[i].what, files[i].path, more, more_count);
    if (exit_code == PWI_EXIT_OK)
      exit_code = pwi_cli_apart(base->command, files[i].what, files[i].path, &base->graph, 1);
    if (exit_code != PWI_EXIT_OK) return exit_code;
  }
  return PWI_EXIT_OK;
}

/* --- the files that a run of this process alone writes ------------------------------------------------------------ */

int pwi_train_names_init(struct pwi_train_names *names, const struct pwi_train_base *base, bool has_checkpoints,
                         const char **checkpoint, const char *const *more, size_t more_count) {
  names->output = base->output ? pwi_copy_string(base->output) : pwi_train_path_beside(base->data[0], ".model");
  if (!names->output) return pwi_cli_failure(base->command, "out of memory");
  int size = snprintf(names->checkpoint, sizeof names->checkpoint, "%s.checkpoint", names->output);
  if (size < 0 || (size_t)size >= sizeof names->checkpoint)
    return pwi_cli_failure(base->command, "the name of the model is too long");
  if (!*checkpoint && (base->resume || has_checkpoints)) *checkpoint = names->checkpoint;
  int exit_code = pwi_train_path_apart(base, names->output, *checkpoint, more, more_count);
  if (exit_code == PWI_EXIT_OK) exit_code = try_output(base->command, "model", names->output);
  return exit_code == PWI_EXIT_OK && *checkpoint ? try_output(base->command, "checkpoint", *checkpoint) : exit_code;
}

void pwi_train_names_fini(struct pwi_train_names *names) { pwi_free(names->output); }
