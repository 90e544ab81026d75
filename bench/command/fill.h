/* `pawl bench fill`, inside: how fast a server that joins is filled while workers push, what the workers notice of it, and
 * how much is moved for it. */
#ifndef BENCH_COMMAND_FILL_H
#define BENCH_COMMAND_FILL_H

#include "cli/cli.h"

struct pwi_fill_options {
  const struct pwi_command *command;
  uint32_t servers, shards; /* before one more joins */
  uint32_t workers, outstanding, replicas;
  double gigabytes; /* of values, in all, counted once */
  double seconds;   /* for which pushes are measured before */
  double rate;      /* GB/s of pushes, of all workers; 0: as fast as they go */
  bool is_tcp, json;
};

struct pwi_fill_figures {
  double gigabytes;      /* that the new server has */
  double seconds;        /* from the first arc that it is listed for until the last one is its own */
  double before, during; /* GB/s of pushes, of all workers */
  double heads,
      replicas; /* of the ring, that have another head; that have another member behind it. Over the share that the
                              new server ought to have of either; NaN if that is none */
  double longest_pause_ms; /* between two looks at what the workers have done */
};

/* False: it could not be run, and standard error says why. */
bool pwi_fill_run(const struct pwi_fill_options *options, struct pwi_fill_figures *figures_out);

extern const struct pwi_command pwi_command_bench_fill;

#endif
