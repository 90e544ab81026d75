/* The commands of pawl-bench. */
#include "commands.h"

#include "asap/asap.h"
#include "asap/speed.h"
#include "busy.h"
#include "checkpoint.h"
#include "failover.h"
#include "fill.h"
#include "filters.h"
#include "kv.h"
#include "lapser/plan.h"
#include "net.h"
#include "relay.h"
#include "sfb/sfb.h"
#include "sketch.h"
#include "wait.h"
#include "cli/cli.h"

static const struct pwi_command *const children[] = {
    &pwi_command_bench_net,    &pwi_command_bench_kv,     &pwi_command_bench_failover, &pwi_command_bench_checkpoint,
    &pwi_command_bench_fill,   &pwi_command_bench_sketch, &pwi_command_bench_filters,  &pwi_command_bench_wait,
    &pwi_command_bench_busy,   &pwi_command_bench_asap,   &pwi_command_bench_reduce,   &pwi_command_bench_collective,
    &pwi_command_bench_lapser, &pwi_command_bench_sfb,    &pwi_command_bench_relay,    NULL};

const struct pwi_command pwi_bench_root = {
    .name = "",
    .summary = "measure parts of pawl on this machine",
    .text = "A benchmark prints figures beside a baseline measured in the same run.\n"
            "With --json it prints one JSON object a line.\n",
    .children = children,
};

const char pwi_cli_program[] = "pawl-bench";
