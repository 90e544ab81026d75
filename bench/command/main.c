/* The program pawl-bench. */
#include "commands.h"

static int run(int argc, char **argv) { return pwi_cli_run(&pwi_bench_root, argc, argv); }

int main(int argc, char **argv) { return pwi_cli_main(run, argc, argv); }
