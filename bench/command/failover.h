/* `pawl bench failover`, inside: how long pushes stand still when a server is lost, and whether any is lost with it. */
#ifndef BENCH_COMMAND_FAILOVER_H
#define BENCH_COMMAND_FAILOVER_H

#include "cli/cli.h"
#include "tests/storm/harness/field.h"

#define PWI_FAILOVER_KILLS_MAX 900 /* each brings a server, and a storm has room for so many members */

enum pwi_failover_mode {
  PWI_FAILOVER_KILL,  /* kill -9, and another in its place */
  PWI_FAILOVER_PAUSE, /* SIGSTOP, and SIGCONT after two seconds */
  PWI_FAILOVER_CUT,   /* its cable is cut for two seconds */
};

struct pwi_failover_options {
  const struct pwi_command *command;
  enum pwi_failover_mode mode;
  uint32_t servers, shards, workers, kills;
  int replicas;     /* or PWI_STORM_NO_REPLICAS: whatever the manager takes */
  double gigabytes; /* in each server */
  uint64_t seed;
  bool is_tcp, json;
  const char *folder; /* for journals and logs, to be kept; NULL: none */
};

/* One fault. Times are of CLOCK_MONOTONIC. */
struct pwi_failover_fault {
  int64_t quiet_from, from, whole;
};

struct pwi_failover_figures {
  uint32_t faults;               /* that were done */
  double p50_ms, p99_ms, max_ms; /* of the longest gap around each */
  double quiet_ms;               /* the same while nothing happened: the median */
  double whole_ms;               /* until the cluster was whole again: the median */
  double pushes_per_s;           /* of all workers, over the whole time */
  struct pwi_storm_verdict verdict;
};

/* Runs it. False: it could not be run to its end, and standard error says why; figures of what was done may be there all the
 * same (`faults` > 0). */
bool pwi_failover_run(const struct pwi_failover_options *options, struct pwi_failover_figures *figures_out);

/* Says something about progress to standard error, if that is a terminal or more is to be logged. */
void pwi_failover_progress(const char *format, ...) PAWL_PRINTF(1, 2);

extern const struct pwi_command pwi_command_bench_failover;

#endif
