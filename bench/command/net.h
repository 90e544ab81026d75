/* How fast is the network between two processes of this machine, and how fast could it be?
 *
 * Each figure stands beside a baseline that is measured in the same run: a plain blocking send/recv loop on the same
 * kind of socket, or for ucx a memcpy out of a shared mapping.
 */
#ifndef BENCH_COMMAND_NET_H
#define BENCH_COMMAND_NET_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

#define PWI_BENCH_SKIPPED 77

struct pwi_bench_net_options {
  const char *transport; /* tcp, tls, unix or ucx */
  size_t size;           /* bytes of a message */
  double seconds;        /* of each measurement */
  int idle_pings;        /* round trips between sleeping sides */
  int rounds;            /* ours and the baseline take turns so often; the medians are reported */
  bool private_memory;   /* send from ordinary memory instead of a region */
};

struct pwi_bench_net_result {
  double gb_per_s, baseline_gb_per_s;
  double rtt64_us, baseline_rtt64_us;           /* both sides busy */
  double rtt64_idle_us, baseline_rtt64_idle_us; /* both sides asleep before each round trip */
  double cpu_s_per_gb;                          /* of both processes */
  double idle_cpu_pct;                          /* of the busier process while nothing is sent */
};

void pwi_bench_net_options_init(struct pwi_bench_net_options *options);

/* 0; PWI_BENCH_SKIPPED if this build or machine does not have the transport; 1 after an error, which was printed. */
int pwi_bench_net(const struct pwi_bench_net_options *options, struct pwi_bench_net_result *result_out);

/* The same in about two seconds, for a first impression. */
int pwi_bench_net_quick(const char *transport, struct pwi_bench_net_result *result_out);

/* The baseline: bench/command/baseline.c. Ends with the child that it starts. */
struct pwi_baseline;
struct pwi_baseline *pwi_baseline_start(const char *transport, size_t size);
double pwi_baseline_rate(struct pwi_baseline *baseline, double seconds);            /* GB/s */
double pwi_baseline_rtt(struct pwi_baseline *baseline, int count, double pause_us); /* us, median */
void pwi_baseline_stop(struct pwi_baseline *baseline);

/* `pawl bench net`. */
int pwi_cmd_bench_net(int argc, char **argv);

#endif
