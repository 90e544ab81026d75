/* `pawl-bench failover`, inside: how long pushes pause when a server is lost, and whether any push is
 * lost. */
#ifndef BENCH_COMMAND_FAILOVER_H
#define BENCH_COMMAND_FAILOVER_H

#include "cli/cli.h"
#include "tests/storm/harness/field.h"

/* each kill starts a new server, and a storm has room for this many members */
#define PWI_FAILOVER_KILLS_MAX 900

enum pwi_failover_mode {
  PWI_FAILOVER_KILL,  /* kill -9, and a new server replaces it */
  PWI_FAILOVER_PAUSE, /* SIGSTOP, and SIGCONT after two seconds */
  PWI_FAILOVER_CUT,   /* its network is cut for two seconds */
  PWI_FAILOVER_NONE,  /* nothing happens for a second: every change of a chain is a false alarm */
};

struct pwi_failover_options {
  const struct pwi_command *command;
  enum pwi_failover_mode mode;
  uint32_t servers, shards, workers, kills;
  int replicas;     /* or PWI_STORM_NO_REPLICAS: the manager's default */
  double gigabytes; /* held by each server */
  uint64_t seed;
  bool is_tcp, json;
  const char *folder; /* for journals and logs, which are kept; NULL: none */
};

/* One fault. Times are of CLOCK_MONOTONIC. */
struct pwi_failover_fault {
  int64_t quiet_from, from, whole;
};

struct pwi_failover_figures {
  uint32_t faults;               /* number of faults that happened */
  double p50_ms, p99_ms, max_ms; /* of the longest gap around each fault */
  double quiet_ms;               /* the median of the longest gaps without a fault */
  double whole_ms;               /* median time until the cluster was complete again */
  double pushes_per_s;           /* of all workers, over the whole run */
  uint64_t views;                /* changes of the view between the first and the last fault */
  struct pwi_storm_verdict verdict;
};

/* Runs the benchmark. False: it did not finish, and the reason was printed to standard error; figures may
 * still be available (`faults` > 0). */
bool pwi_failover_run(const struct pwi_failover_options *options, struct pwi_failover_figures *figures_out);

/* Prints progress to standard error, if that is a terminal or the log level asks for it. */
void pwi_failover_progress(const char *format, ...) PAWL_PRINTF(1, 2);

extern const struct pwi_command pwi_command_bench_failover;

#endif
