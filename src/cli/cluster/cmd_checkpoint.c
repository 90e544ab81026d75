/* `pawl checkpoint list` and `verify`: checkpoints on disk, without a cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "cli/cluster/checkpoints.h"
#include "cli/cli.h"
#include "cli/cluster/values.h"

static void format_time(int64_t seconds, char *text, size_t size) {
  time_t time = (time_t)seconds;
  struct tm parts;
  if (!gmtime_r(&time, &parts) || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) snprintf(text, size, "?");
}

/* Parses the command line of a command with --json and one argument. If it returns false, return
 * `*exit_out`. */
static bool read_one(const struct pwi_command *command, int argc, char **argv, bool *json_out, const char **path_out,
                     int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  *json_out = false;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) *json_out = true;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  *path_out = argv[args.rest];
  return true;
}

/* --- list --------------------------------------------------------------------------------------------------------- */

static int print_item(const struct pwi_command *command, const struct pwi_saved_item *item, bool json) {
  char when[32];
  if (item->status != PAWL_OK) {
    if (json)
      return pwi_cli_print_json(command,
                                json_pack("{s:s, s:s}", "name", item->name, "error", pawl_status_text(item->status)));
    printf("%-24s cannot be read: %s\n", item->name, pawl_status_text(item->status));
    return PWI_EXIT_OK;
  }
  format_time(item->time_s, when, sizeof when);
  if (json)
    return pwi_cli_print_json(command,
                              json_pack("{s:s, s:I, s:s, s:s?, s:I, s:I, s:I}", "name", item->name, "number",
                                        (json_int_t)item->number, "time", when, "base",
                                        item->base[0] ? item->base : NULL, "vectors", (json_int_t)item->vectors,
                                        "files", (json_int_t)item->files, "bytes", (json_int_t)item->bytes));
  printf("%-24s %7" PRIu64 "  %s %8zu %6zu %15" PRIu64 "  %s\n", item->name, item->number, when, item->vectors,
         item->files, item->bytes, item->base[0] ? item->base : "-");
  return PWI_EXIT_OK;
}

static int list_directory(const struct pwi_command *command, struct pwi_files *files, bool json) {
  struct pwi_saved_list list = {0};
  int exit_code = PWI_EXIT_OK;
  pawl_status status = pwi_saved_list(files, &list);
  if (status != PAWL_OK) return pwi_cli_failure(command, "%s", pawl_status_text(status));
  if (!json && list.count > 0)
    printf("%-24s %7s  %-20s %8s %6s %15s  %s\n", "checkpoint", "number", "time", "vectors", "files", "bytes", "base");
  for (size_t i = 0; i < list.count && exit_code == PWI_EXIT_OK; i++)
    exit_code = print_item(command, &list.items[i], json);
  if (list.unfinished > 0)
    fprintf(stderr, "pawl checkpoint list: ignored %zu unfinished checkpoint%s (in progress or abandoned)\n",
            list.unfinished, list.unfinished == 1 ? "" : "s");
  pwi_saved_list_fini(&list);
  return exit_code;
}

static int print_vector(const struct pwi_command *command, const struct pwi_manifest_vector *vector, bool json) {
  char size[32];
  const struct pawl_vector_options *is = &vector->is;
  snprintf(size, sizeof size, "%" PRIu64, is->size);
  if (json)
    return pwi_cli_print_json(
        command,
        json_pack("{s:s, s:I, s:I, s:s, s:I, s:s, s:s, s:s, s:s}", "vector", vector->name, "id", (json_int_t)vector->id,
                  "incarnation", (json_int_t)vector->incarnation, "type", pwi_value_type_name(is->type), "width",
                  (json_int_t)is->width, "size", size, "function", pwi_value_function_text(is), "placement",
                  pwi_value_placement_name(is->placement), "layout", pwi_value_layout_name(is->layout)));
  printf("%-32s %-4s %7" PRIu32 " %20s %-8s %-9s %s\n", vector->name, pwi_value_type_name(is->type), is->width,
         is->size == PAWL_KEY_END ? "64 bits" : size, pwi_value_function_text(is),
         pwi_value_placement_name(is->placement), pwi_value_layout_name(is->layout));
  return PWI_EXIT_OK;
}

static int list_vectors(const struct pwi_command *command, const char *path, bool json) {
  struct pwi_checkpoint checkpoint;
  int exit_code = pwi_checkpoint_open(command, path, &checkpoint);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  const struct pwi_manifest *manifest = pwi_saved_newest(&checkpoint.saved);
  if (!json)
    printf("%-32s %-4s %7s %20s %-8s %-9s %s\n", "vector", "type", "width", "keys", "function", "placement", "layout");
  for (size_t i = 0; i < manifest->vector_count && exit_code == PWI_EXIT_OK; i++)
    exit_code = print_vector(command, &manifest->vectors[i], json);
  pwi_checkpoint_close(&checkpoint);
  return exit_code;
}

static int run_list(const struct pwi_command *command, int argc, char **argv) {
  bool json, is_checkpoint;
  const char *path;
  int exit_code;
  struct pwi_files *files;
  if (!read_one(command, argc, argv, &json, &path, &exit_code)) return exit_code;
  pawl_status status = pwi_files_posix_open(path, &files);
  if (status == PAWL_OK) {
    status = pwi_files_exists(files, PWI_MANIFEST_FILE, &is_checkpoint);
    exit_code = status == PAWL_OK && !is_checkpoint ? list_directory(command, files, json) : PWI_EXIT_OK;
    pwi_files_posix_close(files);
  }
  if (status != PAWL_OK) return pwi_cli_failure(command, "%s: %s", path, pawl_status_text(status));
  return is_checkpoint ? list_vectors(command, path, json) : exit_code;
}

static const struct pwi_cli_option json_options[] = {PWI_CLI_JSON, {0}};

static const struct pwi_command command_list = {
    .name = "checkpoint list",
    .arguments = "DIR | DIR/NAME",
    .summary = "list checkpoints, or the vectors of one",
    .text = "Lists the checkpoints in DIR, oldest first, or the vectors in one checkpoint.\n"
            "Reads only manifests; 'pawl checkpoint verify' reads all the data.\n",
    .options = json_options,
    .run = run_list,
};

/* --- verify ------------------------------------------------------------------------------------------------------- */

static int run_verify(const struct pwi_command *command, int argc, char **argv) {
  bool json;
  const char *path;
  int exit_code;
  struct pwi_checkpoint checkpoint;
  struct pwi_saved_totals totals;
  struct pwi_problem problem;
  if (!read_one(command, argc, argv, &json, &path, &exit_code)) return exit_code;
  exit_code = pwi_checkpoint_open(command, path, &checkpoint);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pwi_saved_verify(&checkpoint.saved, &totals, &problem);
  size_t layers = checkpoint.saved.layer_count;
  pwi_checkpoint_close(&checkpoint);
  if (status != PAWL_OK) return pwi_checkpoint_failure(command, status, &problem);
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:o, s:I, s:I, s:I, s:I}", "checkpoint", pwi_json_string(path),
                                                 "layers", (json_int_t)layers, "files", (json_int_t)totals.files,
                                                 "bytes", (json_int_t)totals.bytes, "rows", (json_int_t)totals.rows));
  printf("%s is intact: %" PRIu64 " files, %" PRIu64 " bytes, %" PRIu64 " rows", path, totals.files, totals.bytes,
         totals.rows);
  if (layers > 1) printf(", including the %zu checkpoint%s it is based on", layers - 1, layers > 2 ? "s" : "");
  putchar('\n');
  return PWI_EXIT_OK;
}

static const struct pwi_command command_verify = {
    .name = "checkpoint verify",
    .arguments = "DIR/NAME",
    .summary = "verify the checksums of a checkpoint",
    .text = "Reads every file of a checkpoint, and of the checkpoints it is based on, and\n"
            "compares it with the manifest and the checksums. If a file is damaged, names\n"
            "the file and the damage, and exits with 1.\n",
    .options = json_options,
    .run = run_verify,
};

/* --- checkpoint --------------------------------------------------------------------------------------------------- */

static const struct pwi_command *const children[] = {&pwi_command_checkpoint_save,
                                                     &pwi_command_checkpoint_load,
                                                     &command_list,
                                                     &command_verify,
                                                     &pwi_command_checkpoint_export,
                                                     NULL};

const struct pwi_command pwi_command_checkpoint = {
    .name = "checkpoint",
    .summary = "save, load and inspect checkpoints of a cluster",
    .text = "A checkpoint is a directory DIR/NAME with a manifest and at least one file\n"
            "from each server. A directory without a manifest is not a checkpoint.\n",
    .children = children,
};
