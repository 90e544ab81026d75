/* `pawl sim faults`: campaigns of faults against a simulated cluster, from many seeds, or the replay of one
 * seed. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cmd_sim.h"
#include "sim/campaign/campaign.h"

#define SEEDS_DEFAULT 1000
#define JOBS_MAX 256
#define REPLICAS_MAX 2
#define MANAGERS_MAX 3
#define LOG_S 60 /* seconds between lines of progress, where there is no terminal */

enum { LETTER_SEEDS = 257, LETTER_REPLICAS, LETTER_MANAGERS, LETTER_BUG, LETTER_RELAYS };

struct sim_choice {
  uint64_t first, last;
  bool is_replay;
  int replicas;      /* below 0: drawn from each seed */
  uint32_t managers; /* 0: drawn from each seed */
  unsigned jobs;
  bool relays;
  enum pwi_planted bug;
  bool json;
};

/* --- a seed that failed ----------------------------------------------------------------------------------------------- */

static void replay_command(const struct sim_choice *choice, uint64_t seed, char *text, size_t size) {
  char replicas[32] = "", managers[32] = "";
  if (choice->replicas >= 0) snprintf(replicas, sizeof replicas, " --replicas %d", choice->replicas);
  if (choice->managers) snprintf(managers, sizeof managers, " --managers %u", choice->managers);
  snprintf(text, size, "%s sim faults --seed %" PRIu64 "%s%s%s%s%s", pwi_planted_can() ? "pawl-planted" : "pawl", seed,
           replicas, managers, choice->relays ? " --relays" : "", choice->bug ? " --bug " : "",
           pwi_planted_about(choice->bug)->word);
}

static json_t *failure_json(const struct sim_choice *choice, uint64_t seed, const struct pwi_campaign_result *result) {
  char command[128], hash[24];
  replay_command(choice, seed, command, sizeof command);
  snprintf(hash, sizeof hash, "%016" PRIx64, result->hash);
  return json_pack("{s:s, s:I, s:s, s:f, s:s, s:s}", "sim", "faults", "seed", (json_int_t)seed, "failure",
                   result->failure, "at_s", (double)result->time_ns / 1e9, "hash", hash, "replay", command);
}

static int show_failure(const struct pwi_command *command, const struct sim_choice *choice, uint64_t seed,
                        const struct pwi_campaign_result *result, const struct pwi_paint *paint) {
  char again[128];
  if (choice->json) return pwi_cli_print_json(command, failure_json(choice, seed, result));
  replay_command(choice, seed, again, sizeof again);
  printf("  %sseed %" PRIu64 "%s failed at %.6f s: %s\n"
         "    to replay it: %s\n",
         pwi_paint_ink(paint, PWI_INK_RED), seed, pwi_paint_ink(paint, PWI_INK_PLAIN), (double)result->time_ns / 1e9,
         result->failure, again);
  return PWI_EXIT_OK;
}

/* --- figures ---------------------------------------------------------------------------------------------------------- */

static int add_figures(json_t *object, const struct pwi_campaign_figures *figures) {
  int status = 0;
#define ADD(name, text) status |= json_object_set_new(object, #name, json_integer((json_int_t)figures->name));
  PWI_CAMPAIGN_FIGURE_MAP(ADD)
#undef ADD
  return status;
}

static void print_figures(const struct pwi_campaign_figures *figures) {
#define PRINT(name, text)                                                                                              \
  if (figures->name > 0) printf("  %14" PRIu64 "  %s\n", figures->name, text);
  PWI_CAMPAIGN_FIGURE_MAP(PRINT)
#undef PRINT
}

static json_t *summary_json(const struct sim_choice *choice, const struct pwi_campaigns_result *result) {
  json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f}", "sim", "faults", "first", (json_int_t)choice->first,
                             "last", (json_int_t)choice->last, "seeds", (json_int_t)result->seeds, "failed",
                             (json_int_t)result->failure_count, "seconds", result->seconds, "seeds_per_s",
                             result->seconds > 0 ? (double)result->seeds / result->seconds : 0.0);
  bool failed = !object || add_figures(object, &result->figures);
  if (!failed && choice->replicas >= 0)
    failed = json_object_set_new(object, "replicas", json_integer(choice->replicas)) != 0;
  if (!failed && choice->managers)
    failed = json_object_set_new(object, "managers", json_integer((json_int_t)choice->managers)) != 0;
  if (!failed && choice->bug)
    failed = json_object_set_new(object, "bug", json_string(pwi_planted_about(choice->bug)->word)) != 0;
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

/* --- many seeds ------------------------------------------------------------------------------------------------------- */

struct sim_show {
  const struct sim_choice *choice;
  bool is_terminal;
  time_t shown;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number) {
  (void)number;
  is_interrupted = 1;
}

static time_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static bool show_progress(void *context, uint64_t done, size_t failed) {
  struct sim_show *show = context;
  uint64_t all = show->choice->last - show->choice->first + 1;
  if (!show->is_terminal && now_s() - show->shown < LOG_S) return !is_interrupted;
  show->shown = now_s();
  fprintf(stderr, "%s  %" PRIu64 " of %" PRIu64 " seeds, %zu failed%s", show->is_terminal ? "\r\033[K" : "", done, all,
          failed, show->is_terminal ? "" : "\n");
  return !is_interrupted;
}

/* An interrupt ends the run, and the results so far are printed. A second one ends the command at once. */
static pawl_status run_interruptibly(const struct pwi_campaigns_config *config, struct pwi_campaigns_result *result) {
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}, before[2];
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGTERM, &action, &before[1]);
  pawl_status status = pwi_campaigns_run(config, result);
  sigaction(SIGINT, &before[0], NULL);
  sigaction(SIGTERM, &before[1], NULL);
  return status;
}

/* Seeds that were not run have proven nothing. */
static int conclude(const struct pwi_command *command, const struct sim_choice *choice,
                    const struct pwi_campaigns_result *result) {
  if (result->failure_count) return PWI_EXIT_FAILURE;
  if (result->seeds == choice->last - choice->first + 1) return PWI_EXIT_OK;
  return pwi_cli_failure(command, "interrupted; continue with --seeds %" PRIu64 ":%" PRIu64,
                         choice->first + result->seeds, choice->last);
}

static int run_many(const struct pwi_command *command, const struct sim_choice *choice) {
  static struct pwi_campaigns_result result;
  struct sim_show show = {choice, isatty(STDERR_FILENO) == 1, now_s()};
  struct pwi_campaigns_config config = {.first = choice->first,
                                        .last = choice->last,
                                        .replicas = choice->replicas,
                                        .managers = choice->managers,
                                        .relays = choice->relays,
                                        .jobs = choice->jobs,
                                        .bug = choice->bug,
                                        .progress = show_progress,
                                        .context = &show};
  struct pwi_paint paint;
  pwi_paint_init(&paint);
  pwi_cli_log_mute(true); /* warnings of the simulated nodes are expected */
  pawl_status status = run_interruptibly(&config, &result);
  pwi_cli_log_mute(false);
  if (show.is_terminal) fprintf(stderr, "\r\033[K");
  if (status) return pwi_cli_failure(command, "cannot run campaigns: %s", pawl_status_text(status));
  int printed = PWI_EXIT_OK;
  for (size_t i = 0; i < result.failure_count && !printed; i++)
    printed = show_failure(command, choice, result.failures[i].seed, &result.failures[i].result, &paint);
  if (choice->json && !printed) printed = pwi_cli_print_json(command, summary_json(choice, &result));
  if (printed) return printed;
  if (!choice->json) {
    printf("  %" PRIu64 " seeds in %.1f s: %.0f per second; %s%zu failed%s\n\n"
           "  events\n",
           result.seeds, result.seconds, result.seconds > 0 ? (double)result.seeds / result.seconds : 0,
           pwi_paint_ink(&paint, result.failure_count ? PWI_INK_RED : PWI_INK_GREEN), result.failure_count,
           pwi_paint_ink(&paint, PWI_INK_PLAIN));
    print_figures(&result.figures);
  }
  return conclude(command, choice, &result);
}

/* --- one seed --------------------------------------------------------------------------------------------------------- */

static json_t *replay_json(const struct sim_choice *choice, const struct pwi_campaign_result *result) {
  char hash[24];
  snprintf(hash, sizeof hash, "%016" PRIx64, result->hash);
  json_t *object = json_pack("{s:s, s:I, s:b, s:s, s:f, s:s}", "sim", "faults", "seed", (json_int_t)choice->first,
                             "failed", (int)result->has_failed, "failure", result->failure, "at_s",
                             (double)result->time_ns / 1e9, "hash", hash);
  if (object && !add_figures(object, &result->figures)) return object;
  json_decref(object);
  return NULL;
}

static int run_one(const struct pwi_command *command, const struct sim_choice *choice) {
  struct pwi_campaign_config config;
  struct pwi_campaign_result result;
  struct pwi_paint paint;
  char text[512];
  pwi_paint_init(&paint);
  pwi_planted_set(choice->bug);
  pwi_campaign_draw(choice->first, choice->replicas, &config);
  pwi_campaign_set_managers(choice->managers, &config);
  if (choice->relays) pwi_campaign_set_relays(&config);
  pwi_campaign_describe(&config, text, sizeof text);
  if (!choice->json) printf("  %s\n", text), fflush(stdout);
  pwi_campaign_run(&config, &result);
  int exit_code = result.has_failed ? PWI_EXIT_FAILURE : PWI_EXIT_OK;
  if (choice->json) {
    int printed = pwi_cli_print_json(command, replay_json(choice, &result));
    return printed ? printed : exit_code;
  }
  printf("\n"
         "  trace %016" PRIx64 "\n\n"
         "  events\n",
         result.hash);
  print_figures(&result.figures);
  if (result.has_failed)
    show_failure(command, choice, choice->first, &result, &paint);
  else
    printf("  %sno invariant was violated%s in %.6f s\n", pwi_paint_ink(&paint, PWI_INK_GREEN),
           pwi_paint_ink(&paint, PWI_INK_PLAIN), (double)result.time_ns / 1e9);
  return exit_code;
}

/* --- the command ------------------------------------------------------------------------------------------------------ */

/* "A:B", or "N" for the first N. */
static bool read_seeds(const char *text, struct sim_choice *choice) {
  char first[32];
  const char *colon = strchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : 0;
  if (!colon) {
    choice->first = 1;
    return pwi_cli_number(text, &choice->last) && choice->last > 0;
  }
  if (length >= sizeof first) return false;
  memcpy(first, text, length);
  first[length] = '\0';
  return pwi_cli_number(first, &choice->first) && pwi_cli_number(colon + 1, &choice->last) &&
         choice->first <= choice->last;
}

static unsigned count_cores(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : (unsigned)cores;
}

/* Reads one option. Returns false and sets `*exit_out` if its value is invalid. */
static bool take_option(const struct pwi_command *command, int letter, const char *value, struct sim_choice *choice,
                        int *exit_out) {
  uint64_t number = 0;
  if (letter == LETTER_SEEDS && !read_seeds(value, choice)) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of seeds, or A:B with A <= B");
    return false;
  }
  if ((letter == 's' || letter == 'j' || letter == LETTER_REPLICAS || letter == LETTER_MANAGERS) &&
      !pwi_cli_number(value, &number)) {
    *exit_out = pwi_cli_bad_value(command, value, "a whole number");
    return false;
  }
  if (letter == LETTER_REPLICAS && number > REPLICAS_MAX) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of replicas from 0 to %d", REPLICAS_MAX);
    return false;
  }
  if (letter == LETTER_MANAGERS && (number == 0 || number > MANAGERS_MAX)) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of managers from 1 to %d", MANAGERS_MAX);
    return false;
  }
  if (letter == 'j' && (number == 0 || number > JOBS_MAX)) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of jobs from 1 to %d", JOBS_MAX);
    return false;
  }
  if (letter == LETTER_BUG && !(choice->bug = pwi_planted_named(value))) {
    *exit_out = pwi_cli_usage(command, "unknown bug '%s'", value);
    return false;
  }
  if (letter == 's') {
    choice->is_replay = true;
    choice->first = choice->last = number;
    pwi_cli_log_level("debug"); /* a later --log-level overrides it */
  }
  if (letter == 'j') choice->jobs = (unsigned)number;
  if (letter == LETTER_REPLICAS) choice->replicas = (int)number;
  if (letter == LETTER_MANAGERS) choice->managers = (uint32_t)number;
  if (letter == LETTER_RELAYS) choice->relays = true;
  if (letter == PWI_CLI_LETTER_JSON) choice->json = true;
  return true;
}

static int run_faults(const struct pwi_command *command, int argc, char **argv) {
  struct sim_choice choice = {.first = 1, .last = SEEDS_DEFAULT, .replicas = -1, .jobs = count_cores()};
  struct pwi_cli_args args;
  int letter, exit_code;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take_option(command, letter, args.value, &choice, &exit_code)) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (choice.bug && !pwi_planted_can())
    return pwi_cli_failure(command,
                           "this program has no planted bugs; use pawl-planted, which is built with the tests");
  return choice.is_replay ? run_one(command, &choice) : run_many(command, &choice);
}

static const struct pwi_cli_option options[] = {
    {LETTER_SEEDS, "seeds", "A:B", "run the campaigns of these seeds (default: 1:1000)"},
    {'s', "seed", "NUMBER", "run the campaign of one seed, and print its faults and the log of every node"},
    {LETTER_REPLICAS, "replicas", "NUMBER", "number of replicas in every campaign (default: drawn from its seed)"},
    {LETTER_MANAGERS, "managers", "NUMBER", "number of managers in every campaign (default: drawn from its seed)"},
    {LETTER_RELAYS, "relays", NULL, "let a group push through relays, under the same faults, in every campaign"},
    {'j', "jobs", "NUMBER", "number of campaigns at a time (default: one per core)"},
    {LETTER_BUG, "bug", "NAME", "plant a bug, to see that it is found (pawl-planted only)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sim_faults = {
    .name = "sim faults",
    .summary = "test a simulated cluster under random faults",
    .text = "Runs a manager, servers and workers on the simulated network, one campaign for\n"
            "each seed. Links break, nodes are cut off and paused, workers, servers and the\n"
            "manager are killed and restarted, servers join and leave, arcs move, journals\n"
            "fail. Checks the invariants all the time, and once more after everything has\n"
            "healed: no acknowledged push is lost, no push is applied twice, the views of\n"
            "all nodes form one history, and no node waits without a cause.\n\n"
            "Prints the seeds per second and counts of the events. For a seed that fails,\n"
            "prints the failure, its time and the command that replays it: the same seed\n"
            "gives the same run, event by event. Exits with 1 if any seed failed, or if an\n"
            "interrupt (Ctrl-C) ended the run; it then prints what was found so far.\n",
    .options = options,
    .run = run_faults,
};
