/* `pawl checkpoint export`: one vector as a file that other programs read. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cluster/checkpoints.h"
#include "cli/cli.h"

#define LETTER_FORMAT 300
#define NAME_SIZE 300 /* of a file name with its suffix */

enum format { FORMAT_NPY, FORMAT_SAFETENSORS };

struct export {
  const struct pwi_command *command;
  const char *path, *vector_name, *output;
  enum format format;
  bool json;
  struct pwi_checkpoint checkpoint;
  const struct pwi_manifest_vector *vector;
  struct pwi_checkpoint_path place; /* directory and name of the output */
  struct pwi_files *files;
  char names[2][NAME_SIZE];  /* file of the values; file of the keys, or "" if there is none */
  char drafts[2][NAME_SIZE]; /* names of the files until they are complete */
  struct pwi_file *open[2];
};

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), more = strlen(end);
  return length > more && strcmp(text + length - more, end) == 0;
}

/* w.npy has its keys in w.keys.npy. */
static void choose_names(struct export *export) {
  const char *name = export->place.name;
  bool two = export->format == FORMAT_NPY && export->vector->is.layout == PAWL_LAYOUT_SPARSE;
  size_t stem = strlen(name) - (ends_with(name, ".npy") ? strlen(".npy") : 0);
  snprintf(export->names[0], NAME_SIZE, "%s", name);
  if (two) snprintf(export->names[1], NAME_SIZE, "%.*s.keys.npy", (int)stem, name);
  for (int i = 0; i < 2; i++) snprintf(export->drafts[i], NAME_SIZE, "%.290s.new", export->names[i]);
}

static pawl_status write_files(struct export *export, struct pwi_problem *problem) {
  const struct pwi_saved *saved = &export->checkpoint.saved;
  for (int i = 0; i < 2 && export->names[i][0]; i++) {
    pawl_status status = pwi_files_open(export->files, export->drafts[i],
                                        PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE, &export->open[i]);
    if (status != PAWL_OK) return status;
  }
  if (export->format == FORMAT_NPY)
    return pwi_saved_export_npy(saved, export->vector, export->open[0], export->open[1], problem);
  return pwi_saved_export_safetensors(saved, export->vector, export->open[0], problem);
}

/* The file of keys is renamed first: where there are values, there are keys. */
static pawl_status name_files(struct export *export) {
  pawl_status status = PAWL_OK;
  for (int i = 1; i >= 0 && status == PAWL_OK; i--)
    if (export->names[i][0]) status = pwi_files_rename(export->files, export->drafts[i], export->names[i]);
  return status == PAWL_OK ? pwi_files_sync_directory(export->files, ".") : status;
}

static int print_result(const struct export *export) {
  const char *vector = export->vector->name, *keys = export->names[1];
  if (export->json)
    return pwi_cli_print_json(export->command,
                              json_pack("{s:s, s:o, s:o}", "vector", vector, "file", pwi_json_string(export->names[0]),
                                        "keys_file", keys[0] ? pwi_json_string(keys) : json_null()));
  printf("wrote %s to %s", vector, export->output);
  if (keys[0]) printf(", its keys to %s/%s", export->place.directory, keys);
  putchar('\n');
  return PWI_EXIT_OK;
}

static int export_vector(struct export *export) {
  struct pwi_problem problem = {""};
  choose_names(export);
  pawl_status status = write_files(export, &problem);
  for (int i = 0; i < 2; i++) pwi_file_close(export->open[i]);
  if (status == PAWL_OK) status = name_files(export);
  if (status == PAWL_OK) return print_result(export);
  for (int i = 0; i < 2; i++) {
    pawl_status ignored = export->names[i][0] ? pwi_files_remove(export->files, export->drafts[i]) : PAWL_OK;
    (void)ignored;
  }
  if (problem.text[0]) return pwi_checkpoint_failure(export->command, status, &problem);
  return pwi_cli_failure(export->command, "cannot write %s: %s", export->output, pawl_status_text(status));
}

static int find_vector(struct export *export) {
  export->vector = pwi_manifest_named(pwi_saved_newest(&export->checkpoint.saved), export->vector_name);
  if (export->vector) return PWI_EXIT_OK;
  return pwi_cli_failure(export->command, "vector %s not found in %s; list its vectors with 'pawl checkpoint list %s'",
                         export->vector_name, export->path, export->path);
}

static int open_output(struct export *export) {
  if (!pwi_checkpoint_path(export->output, &export->place))
    return pwi_cli_usage(export->command, "'%s' is not a file name", export->output);
  pawl_status status = pwi_files_posix_open(export->place.directory, &export->files);
  if (status == PAWL_OK) return PWI_EXIT_OK;
  return pwi_cli_failure(export->command, "%s: %s", export->place.directory, pawl_status_text(status));
}

static int export_checkpoint(struct export *export) {
  int exit_code = pwi_checkpoint_open(export->command, export->path, &export->checkpoint);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = find_vector(export);
  if (exit_code == PWI_EXIT_OK) exit_code = open_output(export);
  if (exit_code == PWI_EXIT_OK) exit_code = export_vector(export);
  pwi_files_posix_close(export->files);
  pwi_checkpoint_close(&export->checkpoint);
  return exit_code;
}

/* Chooses the format from --format, or from the suffix of the file if `word` is NULL. */
static bool choose_format(struct export *export, const char *word) {
  const char *npy = word ? "npy" : ".npy", *safetensors = word ? "safetensors" : ".safetensors";
  bool is_npy = word ? strcmp(word, npy) == 0 : ends_with(export->output, npy);
  bool is_safetensors = word ? strcmp(word, safetensors) == 0 : ends_with(export->output, safetensors);
  export->format = is_npy ? FORMAT_NPY : FORMAT_SAFETENSORS;
  return is_npy || is_safetensors;
}

static int run_export(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct export export = {.command = command};
  const char *format = NULL;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == LETTER_FORMAT) format = args.value;
    if (letter == PWI_CLI_LETTER_JSON) export.json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 3, 3)) return args.exit_code;
  export.path = argv[args.rest];
  export.vector_name = argv[args.rest + 1];
  export.output = argv[args.rest + 2];
  if (!choose_format(&export, format))
    return pwi_cli_usage(
        command, "unknown output format; name FILE .npy or .safetensors, or give --format npy or --format safetensors");
  return export_checkpoint(&export);
}

static const struct pwi_cli_option options[] = {
    {LETTER_FORMAT, "format", "NAME", "output format: npy or safetensors (default: from FILE's suffix)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_checkpoint_export = {
    .name = "checkpoint export",
    .arguments = "DIR/NAME SPACE/NAME FILE",
    .summary = "export a vector as .npy or safetensors",
    .text = "Writes one vector to FILE. A dense vector becomes an array [keys, width]. A\n"
            "sparse vector becomes two arrays: its keys and their rows. In safetensors\n"
            "these are the tensors SPACE/NAME.keys and SPACE/NAME.values; as .npy they are\n"
            "two files, w.npy and w.keys.npy. With mixed placement, the keys are in no\n"
            "particular order.\n\n"
            "  pawl checkpoint export backup/nightly-5 ads/weights w.npy\n"
            "  python3 -c 'import numpy; print(numpy.load(\"w.npy\"))'\n",
    .options = options,
    .run = run_export,
};
