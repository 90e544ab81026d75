/* A run by MPI: build/bench/mpi_bpmf prints the figures of all ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bench/command/mpi_run.h"
#include "lapser.h"

#define LINE 128

static bool read_figures(const char *text, uint32_t iterations, struct pwi_lapser_figures *figures) {
  int used = 0;
  if (sscanf(text, "%" SCNu64 " %lf%n", &figures->digest, &figures->cpu_s, &used) != 2) return false;
  for (uint32_t i = 0; i < iterations; i++) {
    struct pwi_lapser_step *step = &figures->steps[i];
    text += used;
    if (sscanf(text, " %lf %lf %lf %lf%n", &step->seconds, &step->shared, &step->now, &step->mean, &used) != 4)
      return false;
  }
  figures->iterations = iterations;
  return true;
}

bool pwi_lapser_run_mpi(const struct pwi_command *command, const struct pwi_lapser_task *task,
                        struct pwi_lapser_figures *figures_out) {
  char share[32], rank[16], iterations[16], burn_in[16], seed[24];
  size_t room = (task->iterations + (size_t)2) * LINE;
  char *text = pwi_alloc(room);
  const char *arguments[] = {
      task->way == PWI_LAPSER_PUT ? "put" : "isend", task->path, share, rank, iterations, burn_in, seed, NULL};
  if (!text) return false;
  snprintf(share, sizeof share, "%.17g", task->test_share);
  snprintf(rank, sizeof rank, "%" PRIu32, task->rank);
  snprintf(iterations, sizeof iterations, "%" PRIu32, task->iterations);
  snprintf(burn_in, sizeof burn_in, "%" PRIu32, task->burn_in);
  snprintf(seed, sizeof seed, "%" PRIu64, task->seed);
  if (task->is_tcp) setenv("OMPI_MCA_btl", "tcp,self", 1);
  memset(figures_out, 0, sizeof *figures_out);
  bool is_fine = pwi_mpi_run("mpi_bpmf", task->workers, arguments, text, room) &&
                 read_figures(text, task->iterations, figures_out);
  if (task->is_tcp) unsetenv("OMPI_MCA_btl");
  if (!is_fine) pwi_cli_failure(command, "the run by MPI failed; build/bench/mpi_bpmf prints why");
  pwi_free(text);
  if (is_fine) pwi_lapser_finish(figures_out, task);
  return is_fine;
}
