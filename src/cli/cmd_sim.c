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
      return pwi_cli_bad_value(command, args.value, "a whole number");
    if (letter == LETTER_BUG) options.careless = true;
    if (letter == PWI_CLI_LETTER_JSON) options.json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  return pwi_demo_sim_show(command, &options);
}

static const struct pwi_cli_option demo_options[] = {
    {'s', "seed", "NUMBER", "seed of the schedule of faults and of the run"},
    {LETTER_BUG, "bug", NULL, "plant a bug: acknowledge writes before they are stored"},
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command_demo = {
    .name = "sim demo",
    .summary = "run a store and clients under one schedule of faults",
    .text = "Runs a store and three clients on the simulated network for six seconds of\n"
            "virtual time, while nodes are killed and paused and links are cut and broken.\n"
            "The seed determines all faults. Prints a timeline of each node, the faults,\n"
            "and whether any acknowledged write was lost. Runs twice to show that the same\n"
            "seed gives the same events: the hashes of both traces are equal.\n\n"
            "Exits with 1 if a write was lost. With --bug this is expected for some seeds.\n",
    .options = demo_options,
    .run = run_demo,
};

static const struct pwi_command *const children[] = {&command_demo,
                                                     &pwi_command_sim_faults,
                                                     &pwi_command_sim_explore,
                                                     &pwi_command_sim_mlnet,
                                                     &pwi_command_sim_osdi,
                                                     &pwi_command_sim_scale,
                                                     NULL};

const struct pwi_command pwi_command_sim = {
    .name = "sim",
    .summary = "run nodes on a simulated network",
    .text = "The simulator runs a whole cluster in one thread and in virtual time. It draws\n"
            "delays, losses, cuts, crashes and disks that lose writes from a seed. The same\n"
            "seed gives the same run.\n",
    .children = children,
};
