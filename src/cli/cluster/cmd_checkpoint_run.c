/* `pawl checkpoint save` and `load`: checkpoints of a running cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/checkpoint.h>

#include "base/json.h"
#include "cli/cluster/checkpoints.h"
#include "cli/cli.h"
#include "cli/cluster/cluster_whole.h"
#include "cli/role_options.h" /* pwi_role_size */
#include "cli/session_options.h"

enum { LETTER_NAME = 600, LETTER_INCREMENTAL, LETTER_COMPRESS, LETTER_RATE, LETTER_UNVERIFIED, LETTER_LOSE_DATA };

struct checkpoint_choice {
  struct pwi_session_choice session;
  struct pawl_checkpoint_options options;
  bool json, lose_data;
};

/* Shows progress in one line, only on a terminal. */
static void show(void *context, const struct pawl_checkpoint_progress *progress) {
  const struct checkpoint_choice *choice = context;
  if (choice->json || !isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\r%s: %.1f MB, %.0f %%   ", progress->stage, (double)progress->bytes / 1e6, 100 * progress->part);
  fflush(stderr);
}

static void end_line(const struct checkpoint_choice *choice) {
  if (!choice->json && isatty(STDERR_FILENO)) fputc('\n', stderr);
}

static bool read_options(const struct pwi_command *command, int argc, char **argv, struct checkpoint_choice *choice,
                         size_t least_arguments, const char **path_out, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!pwi_session_option(&choice->session, command, letter, args.value, exit_out)) return false;
    if (letter == LETTER_NAME) choice->options.name = args.value;
    if (letter == LETTER_INCREMENTAL) choice->options.incremental = true;
    if (letter == LETTER_COMPRESS) choice->options.compress = true;
    if (letter == LETTER_UNVERIFIED) choice->options.unverified = true;
    if (letter == LETTER_LOSE_DATA) choice->lose_data = true;
    if (letter == PWI_CLI_LETTER_JSON) choice->json = true;
    if (letter == LETTER_RATE && !pwi_role_size(args.value, &choice->options.rate)) {
      *exit_out = pwi_cli_bad_value(command, args.value, "a number of bytes per second, e.g. 200M");
      return false;
    }
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, (int)least_arguments, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  *path_out = args.rest < argc ? argv[args.rest] : NULL;
  return true;
}

static int print(const struct pwi_command *command, const struct checkpoint_choice *choice, const char *what,
                 const char *directory, const struct pawl_checkpoint_info *info) {
  if (choice->json)
    return pwi_cli_print_json(command,
                              json_pack("{s:s, s:o, s:I, s:s, s:I, s:I, s:I}", "checkpoint", info->name, "directory",
                                        pwi_json_string(directory ? directory : ""), "number", (json_int_t)info->number,
                                        "base", info->base, "bytes", (json_int_t)info->bytes, "rows",
                                        (json_int_t)info->rows, "vectors", (json_int_t)info->vectors));
  printf("%s %s%s%s: %" PRIu64 " bytes", what, directory ? directory : "", directory ? "/" : "", info->name,
         info->bytes);
  if (info->rows > 0) printf(", %" PRIu64 " rows of %" PRIu64 " vectors", info->rows, info->vectors);
  if (info->base[0]) printf(", based on %s", info->base);
  putchar('\n');
  return PWI_EXIT_OK;
}

/* --- save ------------------------------------------------------------------------------------------------------------- */

static int run_save(const struct pwi_command *command, int argc, char **argv) {
  struct checkpoint_choice choice = {0};
  struct pawl_checkpoint_info info;
  struct pawl_session *session;
  const char *path;
  char *absolute = NULL;
  int exit_code;
  pwi_session_choice_init(&choice.session, "checkpoint", false);
  pawl_checkpoint_options_init(&choice.options);
  if (!read_options(command, argc, argv, &choice, 0, &path, &exit_code)) return exit_code;
  if (path && path[0] != '/') {
    absolute = realpath(path, NULL);
    if (!absolute)
      return pwi_cli_failure(command, "%s is not a directory on this machine; give an absolute path", path);
    path = absolute;
  }
  choice.options.directory = path;
  choice.options.progress = show;
  choice.options.context = &choice;
  exit_code = pwi_session_start(&choice.session, command, &session);
  if (exit_code == PWI_EXIT_OK) {
    pawl_status status = pawl_checkpoint_save(session, &choice.options, &info);
    end_line(&choice);
    exit_code = status ? pwi_session_failure(command, status) : print(command, &choice, "saved", path, &info);
    pawl_session_close(session, choice.session.timeout_ns);
  }
  free(absolute);
  return exit_code;
}

static const struct pwi_cli_option save_options[] = {
    {LETTER_NAME, "name", "NAME", "name of the checkpoint, a directory in DIR (default: checkpoint-NUMBER)"},
    {LETTER_INCREMENTAL, "incremental", NULL, "save only rows that changed since the newest checkpoint in DIR"},
    {LETTER_COMPRESS, "compress", NULL, "compress blocks with zstd where that makes them smaller"},
    {LETTER_RATE, "rate", "BYTES", "write at most BYTES per second in total, e.g. 200M"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_checkpoint_save = {
    .name = "checkpoint save",
    .arguments = "[DIR]",
    .summary = "save the vectors of a running cluster",
    .text = "Tells the servers to write a checkpoint to DIR while they keep serving, and\n"
            "waits until it is complete. DIR is a path on the manager and on all servers,\n"
            "and must be the same shared directory for all of them. Without DIR, the\n"
            "manager's --checkpoint-dir is used.\n",
    .options = save_options,
    .run = run_save,
};

/* --- load ------------------------------------------------------------------------------------------------------------- */

/* Splits DIR/NAME if there is a manifest in it; otherwise the path is DIR. */
static bool split(const char *path, struct pwi_checkpoint_path *parts, struct pawl_checkpoint_options *options) {
  char manifest[4400];
  snprintf(manifest, sizeof manifest, "%s/" PWI_MANIFEST_FILE, path);
  options->directory = path;
  if (access(manifest, F_OK) != 0) return true;
  if (!pwi_checkpoint_path(path, parts)) return false;
  options->directory = parts->directory;
  options->name = parts->name;
  return true;
}

static pawl_status newest_in(struct pwi_files *files, char name[PWI_CHECKPOINT_NAME_MAX + 1]) {
  struct pwi_saved_list list = {0};
  pawl_status status = pwi_saved_list(files, &list);
  if (status) return status;
  size_t at = list.count;
  while (at > 0 && list.items[at - 1].status) at--;
  if (at > 0) memcpy(name, list.items[at - 1].name, PWI_CHECKPOINT_NAME_MAX + 1);
  pwi_saved_list_fini(&list);
  return at > 0 ? PAWL_OK : PAWL_NOT_FOUND;
}

static pawl_status verify_in(struct pwi_files *files, const char *name, struct pwi_problem *problem) {
  struct pwi_saved saved;
  struct pwi_saved_totals totals;
  pawl_status status = pwi_saved_open(files, name, &saved, problem);
  if (status) return status;
  status = pwi_saved_verify(&saved, &totals, problem);
  pwi_saved_close(&saved);
  return status;
}

/* Verifies the checkpoint before servers are given up for it. The load does not verify it again. */
static int verify_before(const struct pwi_command *command, struct pawl_checkpoint_options *options,
                         char name[PWI_CHECKPOINT_NAME_MAX + 1]) {
  struct pwi_files *files;
  struct pwi_problem problem = {{0}};
  pawl_status status = pwi_files_posix_open(options->directory, &files);
  if (status) return pwi_cli_failure(command, "%s: %s", options->directory, pawl_status_text(status));
  if (!options->name) {
    status = newest_in(files, name);
    options->name = name;
  }
  if (!status && !options->unverified) status = verify_in(files, options->name, &problem);
  pwi_files_posix_close(files);
  options->unverified = true;
  return status ? pwi_checkpoint_failure(command, status, &problem) : PWI_EXIT_OK;
}

static int run_load(const struct pwi_command *command, int argc, char **argv) {
  struct checkpoint_choice choice = {0};
  struct pawl_checkpoint_info info;
  struct pwi_checkpoint_path parts;
  struct pawl_session *session;
  const char *path;
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  int exit_code;
  pwi_session_choice_init(&choice.session, "checkpoint", false);
  choice.session.deals_with_loss = true;
  pawl_checkpoint_options_init(&choice.options);
  if (!read_options(command, argc, argv, &choice, 1, &path, &exit_code)) return exit_code;
  if (!split(path, &parts, &choice.options))
    return pwi_cli_usage(command, "'%s' is not a path of a checkpoint; expected DIR or DIR/NAME", path);
  choice.options.progress = show;
  choice.options.context = &choice;
  exit_code = choice.lose_data ? verify_before(command, &choice.options, name) : PWI_EXIT_OK;
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_session_start(&choice.session, command, &session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = pwi_cluster_await(command, session, choice.session.timeout_ns, choice.lose_data);
  if (exit_code == PWI_EXIT_OK) {
    pawl_status status = pawl_checkpoint_load(session, &choice.options, &info);
    end_line(&choice);
    exit_code = status ? pwi_session_failure(command, status)
                       : print(command, &choice, "loaded", choice.options.directory, &info);
  }
  pawl_session_close(session, choice.session.timeout_ns);
  return exit_code;
}

static const struct pwi_cli_option load_options[] = {
    {LETTER_UNVERIFIED, "unverified", NULL, "skip verifying all checksums before loading"},
    {LETTER_LOSE_DATA, "lose-data", NULL, "give up servers that are down; data that only they had is LOST"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_checkpoint_load = {
    .name = "checkpoint load",
    .arguments = "DIR | DIR/NAME",
    .summary = "load a checkpoint into a cluster of any size",
    .text = "Loads a checkpoint, DIR/NAME or the newest one in DIR: creates or resets all\n"
            "its vectors, then loads their rows. The cluster may have any number of\n"
            "servers. Clients that use these vectors meanwhile learn that they were\n"
            "restored, and pull them again. If all servers were lost and new ones have\n"
            "joined, this one command restores the cluster:\n\n"
            "  pawl checkpoint load /backup --lose-data --cluster HOST:PORT --timeout 60\n",
    .options = load_options,
    .run = run_load,
};
