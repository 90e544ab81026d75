/* `pawl sim`: running nodes on a simulated network. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cmd_sim.h"
#include "cli/demo/sim.h"

#define LETTER_BUG 257

static int run_demo(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_demo_sim_options options = {.seed = PWI_DEMO_SEED};
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == 's' && !pwi_cli_number(args.value, &options.seed))
      return pwi_cli_usage(command, "the seed must be a whole number, not '%s'", args.value);
    if (letter == LETTER_BUG) options.careless = true;
    if (letter == PWI_CLI_LETTER_JSON) options.json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  return pwi_demo_sim_show(command, &options);
}

static const struct pwi_cli_option demo_options[] = {
    {'s', "seed", "NUMBER", "another schedule of faults, and another run"},
    {LETTER_BUG, "bug", NULL, "let the store acknowledge writes before it has stored them"},
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command_demo = {
    .name = "sim demo",
    .summary = "replay one schedule of faults against a store and its clients",
    .text = "Runs a store and three clients on the simulated network for six seconds of\n"
            "virtual time, while nodes are killed and paused and links cut and broken, all\n"
            "of it drawn from the seed. Shows a line of time for each node, what went\n"
            "wrong, and whether every write that was acknowledged is still there. It runs\n"
            "twice: the same seed gives the same events, one by one, which the hash of the\n"
            "trace shows.\n\n"
            "Exit code 1 if a write was lost. With --bug that is to be expected, for some\n"
            "seeds.\n",
    .options = demo_options,
    .run = run_demo,
};

static const struct pwi_command *const children[] = {&command_demo, &pwi_command_sim_faults, NULL};

const struct pwi_command pwi_command_sim = {
    .name = "sim",
    .summary = "run nodes on a simulated network",
    .text = "The simulator runs a whole cluster in one thread and in virtual time. Delays,\n"
            "losses, cuts, crashes and disks that forget are drawn from a seed, and the\n"
            "same seed gives the same run.\n",
    .children = children,
};
