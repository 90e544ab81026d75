/* `pawl sketch`: its subcommands; and create, list and drop. */
#include <inttypes.h>
#include <stdio.h>

#include <pawl/session.h>

#include "cli/sketch/run.h"

/* Parses the options and at most one argument, of which at least `least` are required. Returns NULL if there
 * is none. */
static bool begin(struct pwi_sketch_run *run, const struct pwi_command *command, int argc, char **argv, int least,
                  const char **name_out, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  *exit_out = PWI_EXIT_OK;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!pwi_sketch_run_option(run, letter, args.value, exit_out)) return false;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, least, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  *name_out = args.rest < argc ? argv[args.rest] : NULL;
  return pwi_sketch_run_settle(run, exit_out);
}

static int say(const struct pwi_sketch_run *run, const char *what, const char *name) {
  if (run->json) return pwi_cli_print_json(run->command, json_pack("{s:s}", what, name));
  printf("%s %s\n", what, name);
  return PWI_EXIT_OK;
}

/* --- create ----------------------------------------------------------------------------------------------------------------- */

static int run_create(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  const char *name;
  int exit_code;
  pwi_sketch_run_init(&run, command, false);
  if (!begin(&run, command, argc, argv, 1, &name, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pawl_sketch_create(run.session, name, &run.options, run.choice.timeout_ns, &run.sketch);
  if (status == PAWL_EXISTS)
    exit_code = pwi_cli_failure(command, "a sketch or vector %s already exists", name);
  else
    exit_code = status ? pwi_sketch_run_fail(&run, status) : say(&run, "created", name);
  return pwi_sketch_run_close(&run, exit_code);
}

static const struct pwi_cli_option create_options[] = {PWI_SKETCH_MAKING, PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_command command_create = {
    .name = "sketch create",
    .arguments = "SPACE/NAME",
    .summary = "create a sketch",
    .text = "Creates a sketch of banks * depth * columns cells of 8 bytes, by default 2 MB.\n"
            "With --window it keeps --windows such tables, one for each of the last time\n"
            "windows. The estimate of a CountMin sketch exceeds the true count by at most\n"
            "2.72 / columns / banks of the total, by default 0.004 %.\n\n"
            "  pawl sketch create web/words\n"
            "  pawl sketch create web/pages --window 60s --windows 10\n",
    .options = create_options,
    .run = run_create,
};

/* --- list and drop ---------------------------------------------------------------------------------------------------------- */

static const char *kind_name(enum pawl_sketch_kind kind) {
  return kind == PAWL_SKETCH_COUNTSKETCH ? "countsketch" : "countmin";
}

static int print_info(const struct pwi_sketch_run *run, const struct pawl_sketch_info *info) {
  const struct pawl_sketch_options *is = &info->options;
  if (run->json)
    return pwi_cli_print_json(
        run->command, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:b, s:b}", "sketch", info->name, "kind",
                                kind_name(is->kind), "banks", (json_int_t)is->banks, "depth", (json_int_t)is->depth,
                                "columns", (json_int_t)is->columns, "windows", (json_int_t)is->windows, "window_s",
                                is->window_s, "top", !is->no_top, "distinct", !is->no_distinct));
  char windows[48] = "none";
  if (is->windows) snprintf(windows, sizeof windows, "%" PRIu32 " of %g s", is->windows, is->window_s);
  printf("%-32s %-11s %5" PRIu32 " %5" PRIu32 " %7" PRIu32 "  %-14s %s%s\n", info->name, kind_name(is->kind), is->banks,
         is->depth, is->columns, windows, is->no_top ? "" : "top ", is->no_distinct ? "" : "distinct");
  return PWI_EXIT_OK;
}

static int run_list(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  struct pawl_sketch_info *infos = NULL;
  size_t count = 0;
  const char *space;
  int exit_code;
  pwi_sketch_run_init(&run, command, true);
  if (!begin(&run, command, argc, argv, 0, &space, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pawl_sketch_list(run.session, space, run.choice.timeout_ns, &infos, &count);
  if (status) exit_code = pwi_sketch_run_fail(&run, status);
  if (!status && !run.json)
    printf("%-32s %-11s %5s %5s %7s  %-14s %s\n", "sketch", "kind", "banks", "depth", "columns", "windows", "also");
  for (size_t i = 0; i < count && exit_code == PWI_EXIT_OK; i++) exit_code = print_info(&run, &infos[i]);
  pawl_sketch_list_free(infos);
  return pwi_sketch_run_close(&run, exit_code);
}

static int run_drop(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  const char *name;
  int exit_code;
  pwi_sketch_run_init(&run, command, false);
  if (!begin(&run, command, argc, argv, 1, &name, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pawl_sketch_drop(run.session, name, run.choice.timeout_ns);
  if (status == PAWL_NOT_FOUND)
    exit_code = pwi_cli_failure(command, "sketch %s not found; list the sketches with 'pawl sketch list'", name);
  else
    exit_code = status ? pwi_sketch_run_fail(&run, status) : say(&run, "dropped", name);
  return pwi_sketch_run_close(&run, exit_code);
}

static const struct pwi_cli_option session_options[] = {PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_command command_list = {
    .name = "sketch list",
    .arguments = "[SPACE]",
    .summary = "list the sketches",
    .text = "Lists the sketches of a space, or all sketches that the key in use may see.\n",
    .options = session_options,
    .run = run_list,
};

static const struct pwi_command command_drop = {
    .name = "sketch drop",
    .arguments = "SPACE/NAME",
    .summary = "delete a sketch",
    .text = "Deletes a sketch and all its counts, for all users.\n",
    .options = session_options,
    .run = run_drop,
};

static const struct pwi_command *const children[] = {&command_create,
                                                     &pwi_command_sketch_insert,
                                                     &pwi_command_sketch_query,
                                                     &pwi_command_sketch_top,
                                                     &pwi_command_sketch_distinct,
                                                     &command_list,
                                                     &command_drop,
                                                     NULL};

const struct pwi_command pwi_command_sketch = {
    .name = "sketch",
    .summary = "count many keys in bounded memory",
    .text = "A sketch estimates how often each key occurs, which keys occur most, and how\n"
            "many distinct keys there are, in memory that does not grow with the number of\n"
            "keys. docs/sketches.md explains the methods and their accuracy.\n",
    .children = children,
};
