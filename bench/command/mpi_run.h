/* Runs the programs of bench/mpi, if CMake has found Open MPI and there is an mpirun. */
#ifndef BENCH_COMMAND_MPI_RUN_H
#define BENCH_COMMAND_MPI_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_MPI_WORDS_MAX 24

/* Runs build/bench/NAME in so many processes, with these arguments (the list ends with NULL), and returns what it
 * printed. False if it is not there or fails. */
bool pwi_mpi_run(const char *name, uint32_t ranks, const char *const *arguments, char *text, size_t room);

/* Whether build/bench/NAME and mpirun are there. */
bool pwi_mpi_has(const char *name);

/* Prints a line that says what to install if build/bench/NAME or mpirun is missing. */
void pwi_mpi_explain(const char *name);

#endif
