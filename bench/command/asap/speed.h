/* `pawl-bench reduce`: the time of one reduce, beside memcpy and beside MPI_Allreduce. */
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
  double mpi_us; /* NaN: not measured */
};

/* False if it failed, after a message. */
bool pwi_asap_speed_run(const struct pwi_command *command, const struct pwi_asap_speed *speed,
                        struct pwi_asap_speed_figures *figures_out);

/* One MPI_Allreduce of the same bytes, or NaN. */
double pwi_asap_speed_mpi(const struct pwi_asap_speed *speed);

extern const struct pwi_command pwi_command_bench_reduce;
extern const struct pwi_command pwi_command_bench_collective;

#endif
