/* `pawl-bench asap --real`: figures 5 and 8 between processes of this machine. */
#ifndef BENCH_COMMAND_ASAP_REAL_H
#define BENCH_COMMAND_ASAP_REAL_H

#include "asap.h"

/* How the workers of one run share their model. */
enum pwi_asap_way {
  PWI_ASAP_REDUCE,  /* <pawl/reduce.h>, by the graph and the mode of the setup */
  PWI_ASAP_SERVERS, /* pushes that are aggregated (pawl_group_pushpull): the average of all models */
};

/* One run between processes: `rounds` steps of every worker. If the setup has `seconds`, steps are counted instead
 * for so long, and a step computes for as long as in the simulator by sleeping, so that a machine with few
 * processors shows the same. The figures are those of the first look at which all models were good. */
bool pwi_asap_run_real(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup, enum pwi_asap_way way,
                       struct pwi_asap_outcome *outcome_out);

/* The same steps with MPI_Allreduce (bench/mpi/allreduce.c). False: it was not built, or there is no mpirun. */
bool pwi_asap_run_mpi(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup,
                      struct pwi_asap_outcome *outcome_out);

/* The steps between two looks at the models of a real run. */
#define PWI_ASAP_LOOK 10

/* beside.c */
int pwi_asap_beside(const struct pwi_asap_plan *plan);

#endif
