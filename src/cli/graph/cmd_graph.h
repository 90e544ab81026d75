/* The commands below `pawl graph`. */
#ifndef PWI_CLI_GRAPH_CMD_GRAPH_H
#define PWI_CLI_GRAPH_CMD_GRAPH_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_graph_show, pwi_command_graph_check, pwi_command_graph_optimise;

#endif
