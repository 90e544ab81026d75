/* Programs beside pawl-bench that it runs, and what they print. */
#ifndef BENCH_COMMAND_CHILD_H
#define BENCH_COMMAND_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* The path of NAME beside pawl-bench, such as "pawl" or "bench/mpi_bpmf". False if there is no such program. */
bool pwi_child_find(const char *name, char *path, size_t room);

/* Runs a program that is found in PATH unless it has a slash, with these words (the list ends with NULL), and reads what it
 * printed. Its error output goes to the file `errors`. Returns its exit code, or -1 if it could not be run or was killed. */
int pwi_child_run(const char *const *words, const char *errors, char *text, size_t room);

#endif
