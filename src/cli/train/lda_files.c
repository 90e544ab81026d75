#include "cli/train/lda_files.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/reading.h"
#include "cli/train/paths.h"

#define RUN ".run"
#define OPEN_FOLDERS 16

/* --- names -------------------------------------------------------------------------------------------------------- */

/* NULL stays NULL. */
static bool name(const char *given, char **path_out) {
  *path_out = given ? pwi_train_path_absolute(given) : NULL;
  return !given || *path_out;
}

static bool name_directory(struct pwi_train_lda_files *files, const struct pwi_train_lda_options *options) {
  char beside[PATH_MAX];
  int size = snprintf(beside, sizeof beside, "%s" RUN, files->output);
  if (size < 0 || (size_t)size >= sizeof beside) return false;
  files->goes = !options->directory && !options->keep_directory;
  return name(options->directory ? options->directory : beside, &files->directory);
}

static bool make_names(struct pwi_train_lda_files *files, const struct pwi_train_lda_options *options) {
  const char *output = options->base.output;
  files->path_count = options->base.data_count;
  files->held_out_count = options->held_out.count;
  files->paths = pwi_train_paths_absolute(files->spool.paths, options->base.data_count);
  files->held_out = pwi_train_paths_absolute(files->held_out_spool.paths, options->held_out.count);
  files->is_named = output != NULL;
  files->output = output ? pwi_copy_string(output) : pwi_train_path_beside(options->base.data[0], ".model");
  return files->paths && files->held_out && files->output && name(options->vocabulary, &files->vocabulary) &&
         name(options->stop, &files->stop) && name(options->start, &files->start) && name_directory(files, options);
}

static void hand_over(const struct pwi_train_lda_files *files, struct pawl_lda_options *lda) {
  lda->paths = (const char *const *)files->paths;
  lda->path_count = files->path_count;
  lda->heldout = (const char *const *)files->held_out;
  lda->heldout_count = files->held_out_count;
  lda->vocabulary = files->vocabulary;
  lda->building.stop = files->stop;
  lda->start = files->start;
  lda->directory = files->directory;
}

/* --- what must be there ------------------------------------------------------------------------------------------- */

static int check_kind(const struct pwi_train_lda_options *options, enum pawl_data_format format) {
  const struct pwi_command *command = options->base.command;
  bool is_document = format == PAWL_DATA_LDAC || format == PAWL_DATA_UCI || format == PAWL_DATA_TEXT;
  if (!is_document && format != PAWL_DATA_CACHE)
    return pwi_cli_failure(command,
                           "%s looks like %s, which has labelled rows, not documents; if it is something else, give "
                           "--format ldac, uci or text",
                           options->base.data[0], pawl_data_format_name(format));
  if (options->has_building && format != PAWL_DATA_TEXT)
    return pwi_cli_usage(command,
                         "--min-documents, --max-share, --max-words, --min-length and --stop-words select the "
                         "vocabulary of text; the words of %s already have numbers",
                         pawl_data_format_name(format));
  return PWI_EXIT_OK;
}

static int check_data(const struct pwi_train_lda_files *files, struct pwi_train_lda_options *options) {
  const struct pwi_command *command = options->base.command;
  struct pawl_data_options *reading = &options->lda.reading;
  struct pawl_data_info info;
  struct pawl_data *data = NULL;
  pwi_reading_text(files->spool.paths, options->base.data_count, false, reading);
  int exit_code = pwi_train_path_data(command, files->spool.paths, options->base.data_count, reading, &data);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_data_info(data, &info);
  pawl_data_close(data);
  exit_code = check_kind(options, info.format);
  if (exit_code != PWI_EXIT_OK || options->held_out.count == 0) return exit_code;
  exit_code = pwi_train_path_data(command, files->held_out_spool.paths, options->held_out.count, reading, &data);
  if (exit_code == PWI_EXIT_OK) pawl_data_close(data);
  return exit_code;
}

static int check_words(const struct pwi_command *command, const char *path) {
  struct pawl_words *words = NULL;
  if (!path) return PWI_EXIT_OK;
  pawl_status status = pawl_words_read(path, &words);
  pawl_words_release(words);
  if (!status) return PWI_EXIT_OK;
  if (*pawl_error_text()) return pwi_cli_failure(command, "%s", pawl_error_text());
  return pwi_cli_failure(command, "%s: %s", path, pawl_status_text(status));
}

/* With --start and without --topics, uses the number of topics of the model. */
static int check_start(struct pwi_train_lda_options *options) {
  struct pawl_lda_model *model = NULL;
  struct pawl_lda_about about;
  char error[PAWL_LDA_TEXT] = "";
  if (!options->start) return PWI_EXIT_OK;
  pawl_status status = pawl_lda_model_read(options->start, &model, error);
  if (status) return pwi_cli_failure(options->base.command, "%s", *error ? error : pawl_status_text(status));
  pawl_lda_model_about(model, &about);
  pawl_lda_model_destroy(model);
  if (options->has_topics && about.topics != options->lda.topics)
    return pwi_cli_failure(options->base.command, "%s has %u topics, but --topics is %u", options->start, about.topics,
                           options->lda.topics);
  options->lda.topics = about.topics;
  return PWI_EXIT_OK;
}

/* Returns false if the directory does not exist; sets `*is_empty_out`. */
static bool look_into(const char *path, bool *is_empty_out) {
  DIR *list = opendir(path);
  size_t count = 0;
  if (!list) return false;
  for (struct dirent *entry; (entry = readdir(list));)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(list);
  *is_empty_out = count == 0;
  return true;
}

/* Refuses to overwrite the state of an earlier run. */
static int check_directory(struct pwi_train_lda_files *files, const struct pwi_train_lda_options *options) {
  const struct pwi_command *command = options->base.command;
  bool is_empty = true;
  files->is_directory = look_into(files->directory, &is_empty);
  if (!files->is_directory && errno != ENOENT)
    return pwi_cli_failure(command, "cannot keep the run in %s: %s", files->directory, strerror(errno));
  if (options->base.resume && is_empty)
    return pwi_cli_failure(command, "nothing to resume in %s; to start over, omit --resume", files->directory);
  if (!options->base.resume && !is_empty)
    return pwi_cli_failure(
        command,
        "%s is not empty; continue its run with --resume, or to start over, remove it or choose another with --dir",
        files->directory);
  files->is_ours = is_empty;
  return PWI_EXIT_OK;
}

static int check_apart(const struct pwi_train_lda_files *files, const struct pwi_train_lda_options *options) {
  const char *const words[] = {files->vocabulary, files->stop};
  int exit_code = pwi_train_path_apart(&options->base, files->output, NULL, words, 2);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  return pwi_train_path_apart(&options->base, files->output, NULL, options->held_out.at, options->held_out.count);
}

static int check(struct pwi_train_lda_files *files, struct pwi_train_lda_options *options) {
  const struct pwi_command *command = options->base.command;
  char error[PAWL_LDA_TEXT] = "";
  int exit_code = check_start(options);
  if (exit_code == PWI_EXIT_OK && !pawl_lda_check(&options->lda, error))
    exit_code = pwi_cli_usage(command, "%s", error);
  if (exit_code == PWI_EXIT_OK) exit_code = check_data(files, options);
  if (exit_code == PWI_EXIT_OK) exit_code = check_words(command, options->vocabulary);
  if (exit_code == PWI_EXIT_OK) exit_code = check_words(command, options->stop);
  if (exit_code == PWI_EXIT_OK) exit_code = check_apart(files, options);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_train_path_output(command, files->output);
  if (exit_code == PWI_EXIT_OK) exit_code = check_directory(files, options);
  if (exit_code == PWI_EXIT_OK && options->base.board) exit_code = pwi_train_path_folder(command, options->base.board);
  return exit_code;
}

bool pwi_train_lda_files_init(struct pwi_train_lda_files *files, struct pwi_train_lda_options *options, int *exit_out) {
  *files = (struct pwi_train_lda_files){.is_named = false};
  if (!pwi_spool_init(&files->spool, options->base.command, options->base.data, options->base.data_count,
                      options->base.quiet, exit_out) ||
      !pwi_spool_init(&files->held_out_spool, options->base.command, options->held_out.at, options->held_out.count,
                      options->base.quiet, exit_out))
    return false;
  if (!make_names(files, options)) {
    *exit_out = pwi_cli_failure(options->base.command, "out of memory, or a name is too long");
    return false;
  }
  hand_over(files, &options->lda);
  *exit_out = check(files, options);
  return *exit_out == PWI_EXIT_OK;
}

void pwi_train_lda_files_fini(struct pwi_train_lda_files *files) {
  pwi_train_paths_free(files->paths, files->path_count);
  pwi_train_paths_free(files->held_out, files->held_out_count);
  pwi_spool_fini(&files->spool);
  pwi_spool_fini(&files->held_out_spool);
  pwi_free(files->vocabulary);
  pwi_free(files->stop);
  pwi_free(files->start);
  pwi_free(files->directory);
  pwi_free(files->output);
  *files = (struct pwi_train_lda_files){.is_named = false};
}

/* --- at the end --------------------------------------------------------------------------------------------------- */

/* Files that cannot be removed are ignored. */
static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
  (void)about;
  (void)kind;
  if (place->level > 0) (void)!remove(path);
  return 0;
}

static void empty(const char *directory) {
  (void)!nftw(directory, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void pwi_train_lda_files_clear(const struct pwi_train_lda_files *files) {
  if (!files->goes) return;
  empty(files->directory);
  rmdir(files->directory);
}

void pwi_train_lda_files_undo(const struct pwi_train_lda_files *files) {
  if (!files->is_ours) return;
  empty(files->directory);
  if (!files->is_directory) rmdir(files->directory);
}
