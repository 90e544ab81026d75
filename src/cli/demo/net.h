/* The network between two nodes on this machine, measured and shown. */
#ifndef PWI_CLI_DEMO_NET_H
#define PWI_CLI_DEMO_NET_H

#include <stdbool.h>

#include "cli/cli.h"

/* A table, or with `json` an object a line. The exit code: a failure if a transport that is there does not work. */
int pwi_demo_net_show(const struct pwi_command *command, const struct pwi_paint *paint, bool json);

#endif
