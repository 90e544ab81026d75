/* `pawl-bench relay`: pushes of a group, with or without relays on the way. */
#ifndef BENCH_COMMAND_RELAY_H
#define BENCH_COMMAND_RELAY_H

#include "cli/cli.h"

extern const struct pwi_command pwi_command_bench_relay;

#endif
