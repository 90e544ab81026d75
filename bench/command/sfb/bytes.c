/* Figure 4: the bytes of a step, beside the model of docs/factors.md, for K from 1 to 1000. What the engines sent as commits,
 * and what all packets between the workers had, with heads and confirmations. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/command/bench.h"
#include "peer/factor/pairs.h"
#include "sfb.h"

#define WORKERS 4
#define STEPS 3
#define BOUND 0.1

static double model_of(const struct pwi_sfb_problem *problem, uint32_t workers, uint32_t batch) {
  const struct factor_shape shape = {problem->shape.classes, problem->shape.features, false, FACTOR_F32};
  size_t pair = pwi_factor_vector_bytes(&shape, shape.rows, shape.rows) +
                pwi_factor_vector_bytes(&shape, shape.columns, shape.columns);
  return (double)workers * (workers - 1) * (FACTOR_HEAD_SIZE + (double)pair * batch);
}

int pwi_sfb_bytes(const struct pwi_sfb_plan *plan) {
  static const uint32_t batches[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  struct pwi_sfb_problem problem;
  struct pwi_sfb_setup setup = plan->setup;
  double worst = 0;
  bool is_fine = true;
  setup.workers = plan->workers ? plan->workers : WORKERS;
  setup.rounds = STEPS;
  setup.magnify = 1;
  if (!pwi_sfb_open(plan, &problem)) return PWI_EXIT_FAILURE;
  if (!plan->json)
    printf("Bytes of a step: %" PRIu32 " workers, %" PRIu32 " classes, %" PRIu32 " features, dense floats\n\n"
           "   K        model      commits   to model  all packets   to model  matrix, there and back\n",
           setup.workers, problem.shape.classes, problem.shape.features);
  for (size_t i = 0; i < sizeof batches / sizeof *batches && is_fine; i++) {
    struct pwi_sfb_outcome outcome;
    setup.batch = batches[i];
    is_fine = pwi_sfb_try(plan, &problem, &setup, &outcome);
    if (!is_fine) break;
    double model = model_of(&problem, setup.workers, setup.batch), commits = (double)outcome.commit_bytes / STEPS,
           wire = (double)outcome.wire_bytes / STEPS,
           matrix = 2.0 * setup.workers * problem.shape.classes * problem.shape.features * sizeof(float);
    worst = fmax(worst, fmax(fabs(commits / model - 1), fabs(wire / model - 1)));
    if (plan->json)
      pwi_cli_print_json(plan->command,
                         json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:b}", "bench", "sfb", "figure", "bytes",
                                   "workers", (int)setup.workers, "batch", (int)setup.batch, "model", model, "commits",
                                   commits, "packets", wire, "matrix", matrix, "identical", outcome.is_same));
    else
      printf("%4" PRIu32 " %12.0f %12.0f %10.4f %12.0f %10.4f %12.0f\n", setup.batch, model, commits, commits / model,
             wire, wire / model, matrix);
    fflush(stdout);
  }
  pwi_sfb_problem_fini(&problem);
  if (!is_fine) return PWI_EXIT_FAILURE;
  if (worst > BOUND)
    return pwi_cli_failure(plan->command, "bytes differ by %.1f %% from the model; at most %g %% were expected",
                           100 * worst, 100 * BOUND);
  return PWI_EXIT_OK;
}
