/* Measures the network between two processes of this machine, and its limit.
 *
 * Each figure is printed beside a baseline measured in the same run: a plain blocking send/recv loop on
 * the same kind of socket, or for ucx a memcpy out of a shared mapping.
 */
#ifndef BENCH_COMMAND_NET_H
#define BENCH_COMMAND_NET_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#include "cli/cli.h"

#define PWI_BENCH_SKIPPED 77

struct pwi_bench_net_options {
  const char *transport; /* tcp, tls, unix or ucx */
  size_t size;           /* message size in bytes */
  double seconds;        /* per measurement */
  int idle_pings;        /* round trips between sleeping sides */
  int rounds;            /* how often pawl and the baseline take turns; medians are reported */
  bool private_memory;   /* send from ordinary memory instead of a region */
};

struct pwi_bench_net_result {
  double gb_per_s, baseline_gb_per_s;
  double rtt64_us, baseline_rtt64_us;           /* both sides busy */
  double rtt64_idle_us, baseline_rtt64_idle_us; /* both sides asleep before each round trip */
  double cpu_s_per_gb;                          /* of both processes */
  double idle_cpu_pct;                          /* of the busier process, while idle */
};

void pwi_bench_net_options_init(struct pwi_bench_net_options *options);

/* 0; PWI_BENCH_SKIPPED if this build or machine lacks the transport; 1 after an error, which was printed. */
int pwi_bench_net(const struct pwi_bench_net_options *options, struct pwi_bench_net_result *result_out);

/* The baseline: bench/command/baseline.c. Stopping it ends the child that it started. */
struct pwi_baseline;
struct pwi_baseline *pwi_baseline_start(const char *transport, size_t size);
double pwi_baseline_rate(struct pwi_baseline *baseline, double seconds);            /* GB/s */
double pwi_baseline_rtt(struct pwi_baseline *baseline, int count, double pause_us); /* us, median */
/* One message to the child and one byte back; `is_fetch`: a small request, and one message back. Sockets only. */
void pwi_baseline_exchange(struct pwi_baseline *baseline, bool is_fetch);
void pwi_baseline_stop(struct pwi_baseline *baseline);

extern const struct pwi_command pwi_command_bench_net;

#endif
