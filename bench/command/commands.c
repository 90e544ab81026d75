/* `pawl bench`: the list of benchmarks. Each is a command of its own and reads its own options. */
#include <getopt.h>

#include "checkpoint.h"
#include "failover.h"
#include "fill.h"
#include "filters.h"
#include "kv.h"
#include "net.h"
#include "sketch.h"
#include "wait.h"
#include "cli/cli.h"

static int run_net(const struct pwi_command *command, int argc, char **argv) {
  static char name[] = "pawl bench net"; /* getopt begins its own messages with it */
  (void)command;
  argv[0] = name;
  opterr = 1;
  return pwi_cmd_bench_net(argc, argv);
}

static const struct pwi_command command_net = {
    .name = "bench net",
    .summary = "measure the network between two processes of this machine",
    .run = run_net,
};

static const struct pwi_command *const children[] = {&command_net,
                                                     &pwi_command_bench_kv,
                                                     &pwi_command_bench_failover,
                                                     &pwi_command_bench_checkpoint,
                                                     &pwi_command_bench_fill,
                                                     &pwi_command_bench_sketch,
                                                     &pwi_command_bench_filters,
                                                     &pwi_command_bench_wait,
                                                     NULL};

const struct pwi_command pwi_command_bench = {
    .name = "bench",
    .summary = "measure parts of pawl on this machine",
    .text = "A benchmark prints figures beside a baseline that is measured in the same run.\n"
            "With --json it prints one JSON object a line.\n",
    .children = children,
};
