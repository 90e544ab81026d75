/* Figure 5 between processes of this machine: seconds and bytes to an accuracy by reduce, beside servers and beside
 * MPI_Allreduce. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/command/bench.h"
#include "bench/command/mpi_run.h"
#include "real.h"

#define WAYS 4
#define WORD 32

enum way { WAY_COMPLETE, WAY_ROOT, WAY_SERVERS, WAY_MPI };

static const char *const names[WAYS] = {"reduce, complete", "reduce, root", "servers", "MPI_Allreduce"};

bool pwi_asap_run_mpi(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup,
                      struct pwi_asap_outcome *outcome_out) {
  const struct pwi_asap_shape *shape = &plan->shape;
  char words[11][WORD], text[128];
  const char *arguments[14] = {"train", plan->data ? plan->data : "-"};
  double seconds, objective;
  unsigned rounds;
  snprintf(words[0], WORD, "%" PRIu32, shape->examples);
  snprintf(words[1], WORD, "%" PRIu32, shape->features);
  snprintf(words[2], WORD, "%" PRIu32, shape->per_example);
  snprintf(words[3], WORD, "%.17g", shape->noise);
  snprintf(words[4], WORD, "%.17g", plan->problem->lambda);
  snprintf(words[5], WORD, "%" PRIu64, shape->seed);
  snprintf(words[6], WORD, "%" PRIu32, setup->batch);
  snprintf(words[7], WORD, "%.17g", setup->rate);
  snprintf(words[8], WORD, "%" PRIu64, setup->rounds);
  snprintf(words[9], WORD, "%d", PWI_ASAP_LOOK);
  snprintf(words[10], WORD, "%.17g", (1 + setup->tolerance) * plan->problem->optimum);
  for (size_t i = 0; i < 11; i++) arguments[2 + i] = words[i];
  if (!pwi_mpi_run("mpi_allreduce", setup->workers, arguments, text, sizeof text)) return false;
  if (sscanf(text, "%lf %u %lf", &seconds, &rounds, &objective) != 3) return false;
  *outcome_out = (struct pwi_asap_outcome){.seconds = seconds,
                                           .rounds = rounds,
                                           .objective = objective,
                                           .is_reached = objective <= (1 + setup->tolerance) * plan->problem->optimum};
  /* The least that any algorithm can send: each worker sends 2 (N - 1) / N models a round. */
  outcome_out->bytes = (uint64_t)rounds * 2 * (setup->workers - 1) * plan->problem->features * sizeof(float);
  return true;
}

static bool run_way(const struct pwi_asap_plan *plan, enum way way, struct pwi_asap_setup *setup,
                    struct pwi_asap_outcome *outcome) {
  setup->graph = way == WAY_ROOT ? PWI_TOPOLOGY_ROOT : PWI_TOPOLOGY_COMPLETE;
  return pwi_asap_run_real(plan, setup, way == WAY_SERVERS ? PWI_ASAP_SERVERS : PWI_ASAP_REDUCE, outcome);
}

static void print_way(const struct pwi_asap_plan *plan, enum way way, const struct pwi_asap_setup *setup,
                      const struct pwi_asap_outcome *outcome) {
  double excess = outcome->objective / plan->problem->optimum - 1;
  if (plan->json)
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:i, s:b, s:s, s:i, s:i, s:b, s:f, s:I, s:f, s:I, s:I}", "bench", "asap",
                                 "figure", (int)plan->figure, "real", true, "way", names[way], "workers",
                                 (int)setup->workers, "batch", (int)setup->batch, "reached", outcome->is_reached,
                                 "excess", excess, "rounds", (json_int_t)outcome->rounds, "seconds", outcome->seconds,
                                 "bytes", (json_int_t)outcome->bytes, "seed", (json_int_t)setup->seed));
  else
    printf("%-17s %7" PRIu64 " %10.2f ms %9.1f us %10.2f MB%s %8.3f %%%s\n", names[way], outcome->rounds,
           1e3 * outcome->seconds, 1e6 * outcome->seconds / (double)outcome->rounds, (double)outcome->bytes / 1e6,
           way == WAY_MPI ? "*" : " ", 100 * excess, outcome->is_reached ? "" : "   the accuracy was not reached");
  fflush(stdout);
}

static void print_head(const struct pwi_asap_plan *plan, uint32_t workers) {
  const struct pwi_asap_problem *problem = plan->problem;
  if (plan->json) return;
  pwi_bench_print_machine();
  printf("%" PRIu32 " processes; %" PRIu32 " examples, %" PRIu32 " features; until all models are within %g %% of the "
         "optimum\n\n",
         workers, problem->examples, problem->features, 100 * plan->tolerance);
  printf("way                rounds       seconds      a round    bytes of all  above optimum\n");
}

int pwi_asap_beside(const struct pwi_asap_plan *plan) {
  uint32_t workers = plan->workers ? plan->workers : 4;
  struct pwi_asap_setup setup = pwi_asap_setup_of(plan, workers);
  struct pwi_asap_outcome outcomes[WAYS];
  struct pwi_asap_chart chart = {.title = "Milliseconds until all models have reached the accuracy",
                                 .axis = "way of sharing the model",
                                 .series = {"ms"},
                                 .series_count = 1,
                                 .digits = 1};
  bool are_reached = true;
  print_head(plan, workers);
  for (enum way way = WAY_COMPLETE; way < WAYS; way++) {
    if (way == WAY_MPI && !pwi_asap_run_mpi(plan, &setup, &outcomes[way])) {
      if (!plan->json) printf("%-17s not measured\n", names[way]);
      continue;
    }
    if (way != WAY_MPI && !run_way(plan, way, &setup, &outcomes[way])) return PWI_EXIT_FAILURE;
    print_way(plan, way, &setup, &outcomes[way]);
    are_reached = are_reached && outcomes[way].is_reached;
    snprintf(chart.groups[chart.group_count], sizeof chart.groups[0], "%s", names[way]);
    chart.values[chart.group_count++][0] = 1e3 * outcomes[way].seconds;
  }
  if (!plan->json)
    printf("\nbytes: values that workers send to one another, or send to and receive from servers; * the least that an "
           "all-reduce\nmust send.\n");
  if (!plan->json) pwi_mpi_explain("mpi_allreduce");
  return pwi_asap_finish(plan, &chart, are_reached ? PWI_EXIT_OK : PWI_EXIT_FAILURE);
}
