/* `pawl-bench fill`, inside: how fast a joining server is filled while workers push, how much the workers
 * are slowed down, and how much data moves. */
#ifndef BENCH_COMMAND_FILL_H
#define BENCH_COMMAND_FILL_H

#include "cli/cli.h"

struct pwi_fill_options {
  const struct pwi_command *command;
  uint32_t servers, shards; /* before the new server joins */
  uint32_t workers, outstanding, replicas;
  double gigabytes; /* of values in total, without replicas */
  double seconds;   /* duration of the measurement before the join */
  double rate;      /* GB/s of pushes of all workers; 0: unlimited */
  bool is_tcp, json;
};

struct pwi_fill_figures {
  double gigabytes;      /* that the new server holds at the end */
  double seconds;        /* from the first arc that lists it until it owns its last arc */
  double before, during; /* GB/s of pushes, of all workers */
  double heads,
      /* parts of the ring with another head, and with another replica, relative to the new server's fair
       * share of either; NaN if that is zero */
      replicas;
  double longest_pause_ms; /* longest time without progress of the workers */
};

/* False: it could not be run, and the reason was printed to standard error. */
bool pwi_fill_run(const struct pwi_fill_options *options, struct pwi_fill_figures *figures_out);

extern const struct pwi_command pwi_command_bench_fill;

#endif
