/* `pawl-bench reduce` and `pawl-bench collective`: the time of one reduce or all-reduce, beside memcpy and beside MPI_Allreduce. */
#ifndef BENCH_COMMAND_ASAP_SPEED_H
#define BENCH_COMMAND_ASAP_SPEED_H

#include "cli/cli.h"

#define PWI_ASAP_SPEED_ROUNDS_MAX 15
#define PWI_ASAP_SPEED_PEERS_MAX 63

struct pwi_asap_speed {
  size_t size;     /* bytes of the tensor, a multiple of 4 */
  uint32_t peers;  /* neighbours of each process */
  double seconds;  /* of one measurement */
  uint32_t rounds; /* reduce and memcpy take turns so many times; medians are reported */
};

struct pwi_asap_speed_figures {
  double reduce_us, copy_us;
  double cpu_us; /* processor time of one process for one operation; NaN: not measured */
  double mpi_us; /* NaN: not measured */
};

/* An operation that is measured. */
struct pwi_asap_speed_case {
  const char *what;    /* the head of its column */
  const char *counted; /* "peers" or "members", as the table and the JSON object name the number of processes */
  struct {
    size_t size;
    uint32_t peers;
  } usual[2]; /* measured if neither --size nor --peers is given */
  /* False if it failed, after a message. */
  bool (*run)(const struct pwi_command *command, const struct pwi_asap_speed *speed,
              struct pwi_asap_speed_figures *figures_out);
};

/* The command line of both: `pawl-bench reduce` and `pawl-bench collective`. */
int pwi_asap_speed_command(const struct pwi_command *command, const struct pwi_asap_speed_case *measured, int argc,
                           char **argv);
extern const struct pwi_cli_option pwi_asap_speed_options[];

bool pwi_asap_speed_run(const struct pwi_command *command, const struct pwi_asap_speed *speed,
                        struct pwi_asap_speed_figures *figures_out);

/* One MPI_Allreduce of the same bytes, or NaN. */
double pwi_asap_speed_mpi(const struct pwi_asap_speed *speed);

extern const struct pwi_command pwi_command_bench_reduce;
extern const struct pwi_command pwi_command_bench_collective;

#endif
