/* `pawl sim osdi`: its options. */
#include <string.h>
#include <unistd.h>

#include "cli/cmd_sim.h"
#include "cli/osdi/osdi.h"
#include "cli/taking.h"

enum {
  LETTER_FIGURE = 257,
  LETTER_SVG,
  LETTER_TAU,
  LETTER_WORKERS,
  LETTER_BLOCKS,
  LETTER_STEP,
  LETTER_BY_WORKER,
  LETTER_MACHINES,
  LETTER_USERS,
  LETTER_TOKENS,
  LETTER_WORDS,
  LETTER_ROW,
  LETTER_SAMPLING,
  LETTER_SERVERS,
  LETTER_PAIR,
  LETTER_ITEMS,
  LETTER_GAP,
  LETTER_SECONDS,
  LETTER_LINK
};

/* Lists and numbers of machines are 0 until they are given. */
struct osdi_choice {
  struct pwi_cli_taking taking;
  struct pwi_osdi_options options;
  bool has_figure, has_taus;
};

static bool take_figure(struct osdi_choice *choice, const char *value) {
  static const char *const names[] = {"10", "13", "14", "table5"};
  int figure;
  if (!pwi_cli_take_word(&choice->taking, value, names, 4, "10, 13, 14 or table5", &figure)) return false;
  choice->options.figure = (enum pwi_osdi_figure)figure;
  return choice->has_figure = true;
}

static bool take_delay(struct osdi_choice *choice, int letter, const char *value) {
  struct pwi_osdi_options *options = &choice->options;
  struct pwi_cli_taking *taking = &choice->taking;
  switch (letter) {
  case LETTER_TAU:
    choice->has_taus = true;
    return pwi_osdi_read_taus(value, options) ||
           pwi_cli_take_none(taking, value, "up to 32 bounds with commas: numbers up to 1000000, inf or adaptive");
  case LETTER_WORKERS:
    return pwi_cli_take_number32(taking, value, 1, PWI_WAIT_WORKERS_MAX, &options->shape.workers);
  case LETTER_BLOCKS:
    return pwi_cli_take_number32(taking, value, 1, PWI_WAIT_BLOCKS_MAX, &options->shape.blocks);
  case LETTER_STEP:
    return pwi_cli_take_real(taking, value, 0.001, 2, 1, &options->shape.rate);
  default:
    return options->by_worker = true;
  }
}

static bool take_flows(struct osdi_choice *choice, int letter, const char *value) {
  struct pwi_osdi_options *options = &choice->options;
  struct pwi_cli_taking *taking = &choice->taking;
  switch (letter) {
  case LETTER_MACHINES:
    return pwi_cli_take_numbers(taking, value, 2, 20000, options->sizes, PWI_OSDI_SIZES, &options->size_count);
  case LETTER_USERS:
    return pwi_cli_take_real(taking, value, 0.001, 1e6, 1e6, &options->users);
  case LETTER_TOKENS:
    return pwi_cli_take_real(taking, value, 0.1, 1e6, 1, &options->tokens);
  case LETTER_WORDS:
    return pwi_cli_take_real(taking, value, 0.001, 1000, 1e6, &options->words);
  case LETTER_ROW:
    return pwi_cli_take_real(taking, value, 1, 1e6, 1, &options->row_bytes);
  case LETTER_SAMPLING:
    return pwi_cli_take_real(taking, value, 0.001, 1e6, 1e6, &options->rate);
  case LETTER_SERVERS:
    return pwi_cli_take_number32(taking, value, 1, 64, &options->servers);
  case LETTER_PAIR:
    return pwi_cli_take_real(taking, value, 1, 1024, 1, &options->pair_bits);
  case LETTER_ITEMS:
    return pwi_cli_take_real(taking, value, 0.001, 1e6, 1e6, &options->items);
  case LETTER_GAP:
    return pwi_cli_take_real(taking, value, 0, 60, 1, &options->gap_s);
  case LETTER_SECONDS:
    return pwi_cli_take_real(taking, value, 2, 3600, 1, &options->seconds);
  default:
    return pwi_cli_take_real(taking, value, 0.001, 10000, 1, &options->gigabits);
  }
}

static bool take_option(struct osdi_choice *choice, int letter, const char *value) {
  switch (letter) {
  case LETTER_FIGURE:
    return take_figure(choice, value);
  case LETTER_SVG:
    choice->options.svg = value;
    return true;
  case PWI_CLI_LETTER_JSON:
    choice->options.json = true;
    return true;
  case 's':
    return pwi_cli_number(value, &choice->options.seed) || pwi_cli_take_none(&choice->taking, value, "a whole number");
  case LETTER_TAU:
  case LETTER_WORKERS:
  case LETTER_BLOCKS:
  case LETTER_STEP:
  case LETTER_BY_WORKER:
    return take_delay(choice, letter, value);
  default:
    return take_flows(choice, letter, value);
  }
}

/* What the paper uses where nothing was given. */
static void complete(struct osdi_choice *choice) {
  static const uint32_t sizes[] = {1000, 2000, 3000, 4000, 5000, 6000};
  struct pwi_osdi_options *options = &choice->options;
  bool is_table = options->figure == PWI_OSDI_TABLE5;
  options->shape.seed = options->seed;
  options->shows = !options->json && isatty(STDERR_FILENO) == 1;
  if (options->figure == PWI_OSDI_10) options->by_worker = true;
  if (options->figure == PWI_OSDI_10 && !choice->has_taus) {
    options->taus[0] = 8;
    options->tau_count = 1;
  }
  if (options->gigabits == 0) options->gigabits = is_table ? 40 : 10;
  if (options->size_count) return;
  memcpy(options->sizes, sizes, sizeof sizes);
  options->size_count = is_table ? 1 : sizeof sizes / sizeof *sizes;
  if (is_table) options->sizes[0] = 15;
}

static int run_osdi(const struct pwi_command *command, int argc, char **argv) {
  static int (*const figures[])(const struct pwi_command *, const struct pwi_osdi_options *) = {
      pwi_osdi_systems, pwi_osdi_delays, pwi_osdi_topics, pwi_osdi_counts};
  struct osdi_choice choice = {.taking = {.command = command},
                               .options = {.program = "sim",
                                           .name = "osdi",
                                           .seed = 1,
                                           .users = 500e6,
                                           .tokens = 50,
                                           .words = 5e6,
                                           .row_bytes = 4000,
                                           .servers = 6,
                                           .pair_bits = 48.07,
                                           .gap_s = 0.8,
                                           .seconds = 60}};
  struct pwi_cli_args args;
  int letter;
  pwi_osdi_wait_defaults(&choice.options);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take_option(&choice, letter, args.value)) return choice.taking.exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!choice.has_figure) return pwi_cli_usage(command, "--figure is needed: 10, 13, 14 or table5");
  complete(&choice);
  return figures[choice.options.figure](command, &choice.options);
}

static const struct pwi_cli_option options[] = {
    PWI_CLI_HEADING("The figure"),
    {LETTER_FIGURE, "figure", "NAME", "10, 13, 14 or table5"},
    {LETTER_SVG, "svg", "FILE", "draw it into this file as well"},
    PWI_CLI_JSON,
    {'s', "seed", "NUMBER", "draws data, delays and speeds (default: 1)"},
    PWI_CLI_HEADING("Figures 10 and 13: the real roles"),
    {LETTER_TAU, "tau", "LIST",
     "delay bounds; inf: unlimited; adaptive: found on the way, up to 16 (default: 0,1,4,8,16,inf,adaptive; figure "
     "10: 8)"},
    {LETTER_BY_WORKER, "by-worker", NULL, "print computing and waiting of each worker, too; figure 10 always does"},
    {LETTER_WORKERS, "workers", "N", "workers, up to 32 (default: 4)"},
    {LETTER_BLOCKS, "blocks", "N", "blocks of 32 features (default: 64)"},
    {LETTER_STEP, "rate", "R", "step size, up to 2 (default: 0.6)"},
    PWI_CLI_HEADING("Figure 14 and table 5: flows alone"),
    {LETTER_MACHINES, "machines", "LIST",
     "numbers of machines (default: 1000,2000,3000,4000,5000,6000; table 5: 15, of which it uses the first)"},
    {LETTER_LINK, "link", "GBIT/S", "rate of a machine's link (default: 10; table 5: 40)"},
    {LETTER_USERS, "users", "MILLIONS", "figure 14: users, which are the documents (default: 500)"},
    {LETTER_TOKENS, "tokens", "N", "figure 14: tokens of a user (default: 50)"},
    {LETTER_WORDS, "words", "MILLIONS", "figure 14: distinct tokens (default: 5)"},
    {LETTER_ROW, "row-bytes", "N", "figure 14: bytes of a row of topics in a message (default: 4000)"},
    {LETTER_SAMPLING, "sampling", "MILLIONS",
     "figure 14: tokens that a machine samples in a second (default: calibrated)"},
    {LETTER_SERVERS, "servers", "N", "table 5: servers on each machine (default: 6)"},
    {LETTER_PAIR, "pair-bits", "BITS", "table 5: bits of a pair in a message (default: 48.07, as measured)"},
    {LETTER_ITEMS, "items", "MILLIONS", "table 5: items that a server counts in a second (default: calibrated)"},
    {LETTER_GAP, "gap", "SECONDS", "table 5: how long the keys of a killed server have no server (default: 0.8)"},
    {LETTER_SECONDS, "seconds", "S", "table 5: virtual seconds; a server is killed in the middle (default: 60)"},
    {0},
};

const struct pwi_command pwi_command_sim_osdi = {
    .name = "sim osdi",
    .summary = "predict figures of OSDI'14 for many machines",
    .text = "Prints figures of \"Scaling Distributed Machine Learning with the Parameter\n"
            "Server\" (OSDI 2014) in virtual time, so that the same seed gives the same\n"
            "figures on any machine.\n\n"
            "10: computing and waiting of each worker, for L-BFGS (system A), for blocks\n"
            "without delay (system B) and with delay. 13: the same by the bound tau. The\n"
            "roles and the numbers are real; network and time are simulated.\n\n"
            "14: how much faster topic models converge on up to 6,000 machines. table5: the\n"
            "rates of a CountMin sketch on 15 machines with 6 servers each. Both simulate\n"
            "flows alone. Where the paper lacks a number, one is chosen so that one\n"
            "published point holds; the output names it.\n\n"
            "  pawl sim osdi --figure 13\n"
            "  pawl sim osdi --figure 14 --machines 1000,6000 --svg speedup.svg\n"
            "  pawl sim osdi --figure table5 --json\n",
    .options = options,
    .run = run_osdi,
};
