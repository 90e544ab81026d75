/* `pawl sim explore`: all orders of a small scenario, or the replay of one of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cmd_sim.h"
#include "cli/taking.h"
#include "sim/explore/explore.h"

#define STATES_MAX 100000000
#define EARLY_MAX 7

enum {
  LETTER_SCENARIO = 257,
  LETTER_SERVERS,
  LETTER_REPLICAS,
  LETTER_CLIENTS,
  LETTER_PUSHES,
  LETTER_CRASH,
  LETTER_RESET,
  LETTER_EARLY,
  LETTER_MERGE,
  LETTER_STATES,
  LETTER_REPLAY,
  LETTER_BUG
};

/* Numbers that were not given are UINT64_MAX. */
struct explore_choice {
  enum pwi_explore_scenario scenario; /* PWI_EXPLORE_SCENARIOS: all */
  uint64_t servers, replicas, clients, pushes, crash, reset, early, states;
  const char *replay; /* NULL: none */
  uint8_t path[PWI_EXPLORE_STEPS];
  uint32_t path_size;
  enum pwi_planted bug;
  bool merge, json;
};

static void configure(const struct explore_choice *choice, enum pwi_explore_scenario scenario,
                      struct pwi_explore_config *config) {
  pwi_explore_config_init(config, scenario, choice->crash == 1);
  if (choice->servers != UINT64_MAX) config->servers = (uint32_t)choice->servers;
  if (choice->replicas != UINT64_MAX) config->replicas = (uint32_t)choice->replicas;
  if (choice->clients != UINT64_MAX) config->clients = (uint32_t)choice->clients;
  if (choice->pushes != UINT64_MAX) config->pushes = (uint32_t)choice->pushes;
  config->resets = choice->reset == 1;
  if (choice->early != UINT64_MAX) config->early = (uint32_t)choice->early;
  if (choice->states != UINT64_MAX) config->states_max = choice->states;
  config->merge = choice->merge;
  config->bug = choice->bug;
}

/* --- texts ---------------------------------------------------------------------------------------------- */

static void describe(const struct pwi_explore_config *config, char *text, size_t size) {
  snprintf(text, size, "%s: %u servers, %u replicas, %u clients, %u pushes, %u crashes, %u resets, %u early timers%s",
           pwi_explore_about(config->scenario)->word, config->servers, config->replicas, config->clients,
           config->pushes, config->crashes, config->resets, config->early, config->merge ? ", merged by effect" : "");
}

static void replay_command(const struct pwi_explore_config *config, const struct pwi_explore_result *result, char *text,
                           size_t size) {
  int length =
      snprintf(text, size,
               "%s sim explore --scenario %s --servers %u --replicas %u --clients %u --pushes %u --crash %u --reset %u "
               "--early %u"
               "%s%s --replay ",
               pwi_planted_can() ? "pawl-planted" : "pawl", pwi_explore_about(config->scenario)->word, config->servers,
               config->replicas, config->clients, config->pushes, config->crashes, config->resets, config->early,
               config->bug ? " --bug " : "", pwi_planted_about(config->bug)->word);
  if (length > 0 && (size_t)length < size)
    pwi_explore_path_text(result->path, result->path_size, text + length, size - (size_t)length);
}

static json_t *result_json(const struct pwi_explore_config *config, const struct pwi_explore_result *result) {
  static char command[8192];
  json_t *object = json_pack(
      "{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "sim",
      "explore", "scenario", pwi_explore_about(config->scenario)->word, "servers", (int)config->servers, "replicas",
      (int)config->replicas, "clients", (int)config->clients, "pushes", (int)config->pushes, "crash",
      (int)config->crashes, "reset", (int)config->resets, "early", (int)config->early, "merge", (int)config->merge,
      "exhausted", (int)result->is_exhausted, "failed", (int)result->has_failed, "states", (json_int_t)result->states,
      "runs", (json_int_t)result->runs, "ends", (json_int_t)result->ends, "crashes", (json_int_t)result->crashes,
      "choices", (json_int_t)result->choices, "depth", (json_int_t)result->depth, "levels", (json_int_t)result->levels,
      "seconds", result->seconds);
  replay_command(config, result, command, sizeof command);
  bool failed = !object;
  if (!failed && result->has_failed)
    failed = json_object_set_new(object, "failure", json_string(result->failure)) ||
             json_object_set_new(object, "replay", json_string(command));
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static void show_line(void *context, const char *line) {
  (void)context;
  printf("  %s\n", line);
  fflush(stdout);
}

/* --- exploring ------------------------------------------------------------------------------------------ */

static void show_progress(void *context, uint64_t states, uint64_t runs) {
  (void)context;
  fprintf(stderr, "\r\033[K  %" PRIu64 " states, %" PRIu64 " runs", states, runs);
}

/* Last, since a replay may end this process as it ended the other. */
static void show_failure(const struct pwi_explore_config *config, const struct pwi_explore_result *result) {
  static char command[8192];
  static struct pwi_explore_result again;
  replay_command(config, result, command, sizeof command);
  printf("    to replay it: %s\n\n", command);
  fflush(stdout);
  if (pwi_explore_replay(config, result->path, result->path_size, show_line, NULL, &again))
    printf("  cannot replay it\n");
  printf("\n");
}

static int explore(const struct pwi_command *command, const struct explore_choice *choice,
                   enum pwi_explore_scenario scenario, const struct pwi_paint *paint) {
  static struct pwi_explore_result result;
  struct pwi_explore_config config;
  char text[128];
  bool shows = isatty(STDERR_FILENO) == 1;
  configure(choice, scenario, &config);
  config.progress = shows ? show_progress : NULL;
  describe(&config, text, sizeof text);
  pawl_status status = pwi_explore(&config, &result);
  if (shows) fprintf(stderr, "\r\033[K");
  if (status == PAWL_INVALID)
    return pwi_cli_failure(command, "%s: does not fit; see 'pawl sim explore --help' for the sizes", text);
  if (status) return pwi_cli_failure(command, "%s: %s", text, pawl_status_text(status));
  int exit_code = result.has_failed ? PWI_EXIT_FAILURE : PWI_EXIT_OK;
  if (choice->json) {
    int printed = pwi_cli_print_json(command, result_json(&config, &result));
    return printed ? printed : exit_code;
  }
  printf("  %s\n"
         "    explored %" PRIu64 " states in %" PRIu64 " runs, %.1f s; %" PRIu64 " ends, %" PRIu64
         " of them with a crash; at most %" PRIu64 " choices\n",
         text, result.states, result.runs, result.seconds, result.ends, result.crashes, result.depth);
  if (result.has_failed)
    printf("    %sfailed%s: %s\n", pwi_paint_ink(paint, PWI_INK_RED), pwi_paint_ink(paint, PWI_INK_PLAIN),
           result.failure);
  else if (result.is_exhausted)
    printf("    %sexhausted%s: %s\n", pwi_paint_ink(paint, PWI_INK_GREEN), pwi_paint_ink(paint, PWI_INK_PLAIN),
           config.merge ? "no other state, as far as effects tell" : "there is no other order");
  else
    printf("    %sbound reached%s, not exhausted: complete for up to %" PRIu64 " choices beyond the first order\n",
           pwi_paint_ink(paint, PWI_INK_YELLOW), pwi_paint_ink(paint, PWI_INK_PLAIN), result.levels);
  if (result.has_failed) show_failure(&config, &result);
  return exit_code;
}

static int replay(const struct pwi_command *command, const struct explore_choice *choice) {
  static struct pwi_explore_result result;
  struct pwi_explore_config config;
  configure(choice, choice->scenario, &config);
  pawl_status status = pwi_explore_replay(&config, choice->path, choice->path_size, show_line, NULL, &result);
  if (status == PAWL_INVALID)
    return pwi_cli_failure(command, "choice %u does not exist, or the sizes do not fit", result.path_size);
  if (status) return pwi_cli_failure(command, "%s", pawl_status_text(status));
  printf("\n  %s\n", result.has_failed ? result.failure : "no invariant was violated");
  return result.has_failed ? PWI_EXIT_FAILURE : PWI_EXIT_OK;
}

/* --- the command ---------------------------------------------------------------------------------------- */

static bool take_word(struct pwi_cli_taking *taking, int letter, const char *value, struct explore_choice *choice) {
  if (letter == LETTER_SCENARIO && (choice->scenario = pwi_explore_named(value)) == PWI_EXPLORE_SCENARIOS) {
    taking->exit_code = pwi_cli_usage(taking->command, "unknown scenario '%s'", value);
    return false;
  }
  if (letter == LETTER_BUG && !(choice->bug = pwi_planted_named(value))) {
    taking->exit_code = pwi_cli_usage(taking->command, "unknown bug '%s'", value);
    return false;
  }
  if (letter == LETTER_REPLAY) {
    choice->replay = value;
    pwi_cli_log_level("debug"); /* a later --log-level overrides it */
    if (!pwi_explore_path_read(value, choice->path, &choice->path_size))
      return pwi_cli_take_none(taking, value, "numbers with commas, as a failed exploration prints them");
  }
  if (letter == LETTER_MERGE) choice->merge = true;
  if (letter == PWI_CLI_LETTER_JSON) choice->json = true;
  return true;
}

static bool take_option(struct pwi_cli_taking *taking, int letter, const char *value, struct explore_choice *choice) {
  switch (letter) {
  case LETTER_SERVERS:
    return pwi_cli_take_number(taking, value, 2, PWI_EXPLORE_SERVERS, &choice->servers);
  case LETTER_REPLICAS:
    return pwi_cli_take_number(taking, value, 0, PWI_EXPLORE_SERVERS - 1, &choice->replicas);
  case LETTER_CLIENTS:
    return pwi_cli_take_number(taking, value, 1, PWI_EXPLORE_CLIENTS, &choice->clients);
  case LETTER_PUSHES:
    return pwi_cli_take_number(taking, value, 1, PWI_EXPLORE_PUSHES, &choice->pushes);
  case LETTER_CRASH:
    return pwi_cli_take_number(taking, value, 0, 1, &choice->crash);
  case LETTER_RESET:
    return pwi_cli_take_number(taking, value, 0, 1, &choice->reset);
  case LETTER_EARLY:
    return pwi_cli_take_number(taking, value, 0, EARLY_MAX, &choice->early);
  case LETTER_STATES:
    return pwi_cli_take_number(taking, value, 1, STATES_MAX, &choice->states);
  default:
    return take_word(taking, letter, value, choice);
  }
}

static int run_all(const struct pwi_command *command, const struct explore_choice *choice) {
  struct pwi_paint paint;
  int exit_code = PWI_EXIT_OK;
  pwi_paint_init(&paint);
  pwi_cli_log_mute(true); /* warnings of the simulated nodes are expected */
  for (int i = 0; i < PWI_EXPLORE_SCENARIOS; i++) {
    if (choice->scenario != PWI_EXPLORE_SCENARIOS && choice->scenario != (enum pwi_explore_scenario)i) continue;
    int code = explore(command, choice, (enum pwi_explore_scenario)i, &paint);
    if (code > exit_code) exit_code = code;
  }
  pwi_cli_log_mute(false);
  return exit_code;
}

static int run_explore(const struct pwi_command *command, int argc, char **argv) {
  static struct explore_choice choice;
  struct pwi_cli_taking taking = {.command = command};
  struct pwi_cli_args args;
  int letter;
  choice = (struct explore_choice){.scenario = PWI_EXPLORE_SCENARIOS,
                                   .servers = UINT64_MAX,
                                   .replicas = UINT64_MAX,
                                   .clients = UINT64_MAX,
                                   .pushes = UINT64_MAX,
                                   .early = UINT64_MAX,
                                   .states = UINT64_MAX};
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take_option(&taking, letter, args.value, &choice)) return taking.exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (choice.bug && !pwi_planted_can())
    return pwi_cli_failure(command,
                           "this program has no planted bugs; use pawl-planted, which is built with the tests");
  if (choice.replay && choice.scenario == PWI_EXPLORE_SCENARIOS)
    return pwi_cli_usage(command, "--replay needs --scenario, and the sizes that belong to it");
  return choice.replay ? replay(command, &choice) : run_all(command, &choice);
}

static const struct pwi_cli_option options[] = {
    {LETTER_SCENARIO, "scenario", "NAME", "handover, move, fill, retire or barrier (default: all of them)"},
    {LETTER_SERVERS, "servers", "NUMBER", "servers, 2 or 3 (default: as few as the scenario needs)"},
    {LETTER_REPLICAS, "replicas", "NUMBER", "replicas, 0 to 2 (default: as few as the scenario needs)"},
    {LETTER_CLIENTS, "clients", "NUMBER", "clients, 1 or 2; barrier needs 2 (default: 2)"},
    {LETTER_PUSHES, "pushes", "NUMBER", "pushes of all clients together, 1 to 6 (default: 3)"},
    {LETTER_CRASH, "crash", "NUMBER", "1: kill one node, at any moment (default: 0)"},
    {LETTER_RESET, "reset", "NUMBER", "1: reset the links of two nodes, at any moment (default: 0)"},
    {LETTER_EARLY, "early", "NUMBER", "timers that may fire while messages are in flight, 0 to 7 (default: 0)"},
    {LETTER_MERGE, "merge", NULL, "take states for the same that have had the same effects"},
    {LETTER_STATES, "states", "NUMBER", "bound of the states that are explored (default: 200000)"},
    {LETTER_REPLAY, "replay", "LIST", "replay one order, and print it and the log of every node"},
    {LETTER_BUG, "bug", "NAME", "plant a bug, to see that it is found (pawl-planted only)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sim_explore = {
    .name = "sim explore",
    .summary = "test a small cluster in every order of its messages",
    .text = "Runs a manager, 2 or 3 servers and clients on the simulated network, in every\n"
            "order in which messages can arrive, and with --crash 1 with a crash at every\n"
            "moment. States that were reached before are not explored again. Checks the\n"
            "invariants at every state, and at every end that each push counted once.\n\n"
            "Prints the number of states, and whether they are all or the bound was\n"
            "reached. Orders that differ least from the order of sending come first. For\n"
            "an order that fails prints its trace and the command that replays it, and\n"
            "exits with 1.\n",
    .options = options,
    .run = run_explore,
};
