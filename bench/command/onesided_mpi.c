/* Runs the MPI program that does the same (bench/mpi/onesided.c), if it was built and there is an mpirun. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_run.h"
#include "onesided.h"

double pwi_onesided_mpi(const struct pwi_onesided_options *options) {
  char size[32], seconds[32], rounds[16], text[64], *end;
  const char *const arguments[] = {pwi_onesided_name(options->op), size, seconds, rounds, NULL};
  snprintf(size, sizeof size, "%zu", options->size);
  snprintf(seconds, sizeof seconds, "%g", options->seconds);
  snprintf(rounds, sizeof rounds, "%d", options->rounds);
  if (!pwi_mpi_run("mpi_onesided", options->peers + 1, arguments, text, sizeof text)) return (double)NAN;
  double figure = strtod(text, &end);
  return end == text ? (double)NAN : figure;
}
