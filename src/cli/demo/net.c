/* The part of `pawl demo` that measures: two nodes on this machine, and the network between them by each transport. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/command/net.h"
#include "cli/demo/net.h"
#include "net/tcp/tcp.h"

static const char *const transports[] = {"tcp", "tls", "unix", "ucx"};
#define TRANSPORTS (sizeof transports / sizeof *transports)

struct measurement {
  const char *transport;
  int outcome; /* as of pwi_bench_net_quick */
  struct pwi_bench_net_result result;
};

static void measure(struct measurement all[TRANSPORTS]) {
  bool talks = isatty(STDERR_FILENO) == 1;
  fflush(stdout); /* the second process must not inherit what is not yet printed */
  for (size_t i = 0; i < TRANSPORTS; i++) {
    if (talks) fprintf(stderr, "\r\033[K  measuring %s ... ", transports[i]);
    all[i] = (struct measurement){.transport = transports[i]};
    all[i].outcome = pwi_bench_net_quick(transports[i], &all[i].result);
  }
  if (talks) fprintf(stderr, "\r\033[K");
}

static double fastest(const struct measurement all[TRANSPORTS]) {
  double most = 0;
  for (size_t i = 0; i < TRANSPORTS; i++) {
    if (all[i].outcome) continue;
    if (all[i].result.gb_per_s > most) most = all[i].result.gb_per_s;
    if (all[i].result.baseline_gb_per_s > most) most = all[i].result.baseline_gb_per_s;
  }
  return most > 0 ? most : 1;
}

static void print_row(const struct pwi_paint *paint, const struct measurement *one, double most, int cells) {
  const struct pwi_bench_net_result *result = &one->result;
  printf("  %-6s", one->transport);
  if (one->outcome == PWI_BENCH_SKIPPED) {
    printf(" not available here: %s\n",
           strcmp(one->transport, "ucx") == 0 ? pwi_tcp_plane_about(NULL) : "see pawl env");
    return;
  }
  if (one->outcome) {
    printf(" %sfailed%s\n", pwi_paint_ink(paint, PWI_INK_RED), pwi_paint_ink(paint, PWI_INK_PLAIN));
    return;
  }
  pwi_paint_bar(paint, cells, result->gb_per_s / most, result->baseline_gb_per_s / most, PWI_INK_GREEN);
  printf(" %6.2f  %6.2f  %7.1f  %7.1f  %9.2f  %7.2f %%\n", result->gb_per_s, result->baseline_gb_per_s,
         result->rtt64_us, result->baseline_rtt64_us, result->cpu_s_per_gb, result->idle_cpu_pct);
}

static void print_table(const struct pwi_paint *paint, const struct measurement all[TRANSPORTS]) {
  int cells = paint->width - 70;
  if (cells < 8) cells = 8;
  double most = fastest(all);
  printf("%s2. Two nodes on this machine, in two processes, and the network between them%s\n\n",
         pwi_paint_ink(paint, PWI_INK_BOLD), pwi_paint_ink(paint, PWI_INK_PLAIN));
  printf("  %-6s%-*s %6s  %6s  %7s  %7s  %9s  %9s\n", "", cells, "1 MB messages", "GB/s", "plain", "64 B us", "plain",
         "CPU s/GB", "idle CPU");
  for (size_t i = 0; i < TRANSPORTS; i++) print_row(paint, &all[i], most, cells);
  printf("\n  plain, and the mark in the bar: a bare send and receive loop on the same kind of\n"
         "  socket, or for ucx a memcpy through shared memory, measured in the same run.\n"
         "  'pawl bench net' measures at leisure.\n\n");
}

static int print_lines(const struct pwi_command *command, const struct measurement all[TRANSPORTS]) {
  int exit_code = PWI_EXIT_OK;
  for (size_t i = 0; i < TRANSPORTS && exit_code == PWI_EXIT_OK; i++) {
    const struct pwi_bench_net_result *result = &all[i].result;
    if (all[i].outcome) {
      const char *outcome = all[i].outcome == PWI_BENCH_SKIPPED ? "not available" : "failed";
      exit_code = pwi_cli_print_json(
          command, json_pack("{s:s, s:s, s:s}", "demo", "net", "transport", all[i].transport, "outcome", outcome));
      continue;
    }
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "demo", "net", "transport", all[i].transport,
                  "outcome", "measured", "gb_per_s", result->gb_per_s, "baseline_gb_per_s", result->baseline_gb_per_s,
                  "rtt64_us", result->rtt64_us, "baseline_rtt64_us", result->baseline_rtt64_us, "cpu_s_per_gb",
                  result->cpu_s_per_gb, "idle_cpu_pct", result->idle_cpu_pct);
    exit_code = pwi_cli_print_json(command, line);
  }
  return exit_code;
}

int pwi_demo_net_show(const struct pwi_command *command, const struct pwi_paint *paint, bool json) {
  struct measurement all[TRANSPORTS];
  int exit_code = PWI_EXIT_OK;
  measure(all);
  if (json)
    exit_code = print_lines(command, all);
  else
    print_table(paint, all);
  for (size_t i = 0; i < TRANSPORTS; i++)
    if (all[i].outcome && all[i].outcome != PWI_BENCH_SKIPPED) exit_code = PWI_EXIT_FAILURE;
  return exit_code;
}
