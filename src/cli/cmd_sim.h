/* The subcommands of `pawl sim`. */
#ifndef PWI_CLI_CMD_SIM_H
#define PWI_CLI_CMD_SIM_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_sim_faults, pwi_command_sim_explore, pwi_command_sim_mlnet,
    pwi_command_sim_osdi, pwi_command_sim_scale;

#endif
