/* MPI_Allreduce as `pawl-bench asap --real` and `pawl-bench reduce` use reduce.
 *
 *   mpirun -np N mpi_allreduce speed SIZE SECONDS ROUNDS
 *     prints the median of the microseconds of one MPI_Allreduce of SIZE bytes of floats
 *
 *   mpirun -np N mpi_allreduce train FILE EXAMPLES FEATURES PER_EXAMPLE NOISE LAMBDA SEED BATCH RATE ROUNDS LOOK TARGET
 *     trains as a worker of pawl-bench does, with an average over all ranks after each batch, and prints
 *     `seconds rounds objective`: of the first look at which the objective is at most TARGET, else of the last.
 *     FILE `-`: the data is generated
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/asap/asap.h"

#define ROUNDS_MAX 15
#define SAMPLES_MAX 1000000

static int rank, ranks;

static void *room_for(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

/* --- speed ---------------------------------------------------------------------------------------------- */

/* Rank 0 decides when it is enough; all ranks make the same calls. */
static double repeat(float *from, float *to, int count, double seconds) {
  static double samples[SAMPLES_MAX];
  size_t done = 0;
  int more = 1;
  double end = MPI_Wtime() + seconds;
  while (more) {
    for (int i = 0; i < 16 && done < SAMPLES_MAX; i++) {
      double begin = MPI_Wtime();
      MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      samples[done++] = (MPI_Wtime() - begin) * 1e6;
    }
    more = MPI_Wtime() < end && done < SAMPLES_MAX;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  return median(samples, done);
}

static int measure_speed(char **words) {
  int count = (int)(strtoull(words[0], NULL, 10) / sizeof(float)), rounds = atoi(words[2]);
  double seconds = strtod(words[1], NULL), figures[ROUNDS_MAX];
  float *from = room_for((size_t)count, sizeof *from), *to = room_for((size_t)count, sizeof *to);
  if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
  for (int i = 0; i < rounds; i++) figures[i] = repeat(from, to, count, seconds);
  if (rank == 0) printf("%.6g\n", median(figures, (size_t)rounds));
  free(to);
  free(from);
  return 0;
}

/* --- training ------------------------------------------------------------------------------------------- */

struct run {
  struct pwi_asap_problem *problem;
  struct pwi_asap_learner learner;
  uint32_t batch, rounds, look;
  double target;
  float *weights, *copies;
  double *seconds;
};

static void train(struct run *run) {
  uint32_t features = run->problem->features;
  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  for (uint32_t round = 1; round <= run->rounds; round++) {
    pwi_asap_learn(&run->learner, run->batch, run->weights);
    MPI_Allreduce(MPI_IN_PLACE, run->weights, (int)features, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (uint32_t i = 0; i < features; i++) run->weights[i] /= (float)ranks;
    if (round % run->look != 0) continue;
    size_t at = round / run->look - 1;
    memcpy(run->copies + at * features, run->weights, features * sizeof(float));
    run->seconds[at] = MPI_Wtime() - began;
  }
}

/* All ranks have the same model. */
static void report(const struct run *run) {
  uint32_t looks = run->rounds / run->look;
  for (uint32_t at = 0; at < looks; at++) {
    double objective = pwi_asap_objective(run->problem, run->copies + (size_t)at * run->problem->features);
    if (objective > run->target && at + 1 < looks) continue;
    printf("%.9g %u %.17g\n", run->seconds[at], (at + 1) * run->look, objective);
    return;
  }
}

static int measure_training(char **words) {
  struct pwi_asap_shape shape = {.examples = (uint32_t)strtoul(words[1], NULL, 10),
                                 .features = (uint32_t)strtoul(words[2], NULL, 10),
                                 .per_example = (uint32_t)strtoul(words[3], NULL, 10),
                                 .topics = 1,
                                 .noise = strtod(words[4], NULL),
                                 .lambda = strtod(words[5], NULL),
                                 .seed = strtoull(words[6], NULL, 10)};
  struct run run = {.batch = (uint32_t)strtoul(words[7], NULL, 10),
                    .rounds = (uint32_t)strtoul(words[9], NULL, 10),
                    .look = (uint32_t)strtoul(words[10], NULL, 10),
                    .target = strtod(words[11], NULL)};
  if (run.look == 0 || (strcmp(words[0], "-") != 0 ? pwi_asap_load(words[0], shape.lambda, &run.problem)
                                                   : pwi_asap_generate(&shape, &run.problem)))
    return 1;
  if (pwi_asap_learner_init(&run.learner, run.problem, (uint32_t)rank, (uint32_t)ranks, strtod(words[8], NULL),
                            shape.seed))
    return 1;
  size_t looks = run.rounds / run.look;
  run.weights = room_for(run.problem->features, sizeof(float));
  run.copies = room_for(looks * run.problem->features, sizeof(float));
  run.seconds = room_for(looks, sizeof(double));
  memset(run.copies, 1, looks * run.problem->features * sizeof(float)); /* no page faults while time runs */
  train(&run);
  if (rank == 0) report(&run);
  return 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int failed = argc == 5 && strcmp(argv[1], "speed") == 0    ? measure_speed(argv + 2)
               : argc == 14 && strcmp(argv[1], "train") == 0 ? measure_training(argv + 2)
                                                             : 2;
  if (failed) {
    if (rank == 0) fprintf(stderr, "usage: see the beginning of bench/mpi/allreduce.c\n");
    MPI_Abort(MPI_COMM_WORLD, failed);
  }
  MPI_Finalize();
  return 0;
}
