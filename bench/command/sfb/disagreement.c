/* Theorem 1: with staleness and a falling rate, the matrices of all workers approach one another. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/command/bench.h"
#include "sfb.h"

#define WORKERS 12
#define ROUNDS 128
#define ROUNDING 1e-12 /* of the mean of equal matrices */

static void print(const struct pwi_sfb_plan *plan, const char *mode, const struct pwi_sfb_outcome *outcome) {
  json_t *values = json_array();
  for (uint32_t i = 0; i < outcome->marks; i++) json_array_append_new(values, json_real(outcome->disagreement[i]));
  if (plan->json) {
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:s, s:s, s:I, s:f, s:b, s:o}", "bench", "sfb", "figure", "disagreement",
                                 "mode", mode, "rounds", (json_int_t)outcome->rounds, "objective", outcome->objective,
                                 "identical", outcome->is_same, "disagreement", values));
    return;
  }
  printf("%-6s", mode);
  for (uint32_t i = 0; i < outcome->marks; i++) printf(" %9.2e", outcome->disagreement[i]);
  printf("  %9.4f\n", outcome->objective);
  json_decref(values);
}

/* Of async the theorem says nothing. */
static bool falls(const struct pwi_sfb_outcome *is) {
  return is->marks < 5 || is->disagreement[is->marks - 1] <= fmax(ROUNDING, is->disagreement[1] / 2);
}

int pwi_sfb_disagreement(const struct pwi_sfb_plan *plan) {
  static const char *const names[] = {"BSP", "SSP", "async"};
  struct pwi_sfb_problem problem;
  bool is_fine = true, has_fallen = true;
  if (!pwi_sfb_open(plan, &problem)) return PWI_EXIT_FAILURE;
  if (!plan->json) {
    printf("Largest distance of a worker's matrix to the mean of all, by the length of the mean; staleness %" PRIu64
           "\n\nclock ",
           plan->setup.staleness);
    for (int i = 0; i < PWI_SFB_MARKS; i++) printf(" %9d", 1 << i);
    printf("  objective of the worst\n");
  }
  for (int mode = 0; mode < 3 && is_fine; mode++) {
    struct pwi_sfb_setup setup = plan->setup;
    struct pwi_sfb_outcome outcome;
    setup.workers = plan->workers ? plan->workers : WORKERS;
    setup.mode = (enum pawl_factor_mode)mode;
    setup.staleness = mode == PAWL_FACTOR_SSP ? plan->setup.staleness : 0;
    setup.falls = true;
    setup.look = 1;
    setup.rounds = plan->setup.rounds < ROUNDS ? plan->setup.rounds : ROUNDS;
    setup.jitter = mode == PAWL_FACTOR_BSP ? plan->setup.jitter : 0.9; /* so that workers drift apart */
    is_fine = pwi_sfb_try(plan, &problem, &setup, &outcome);
    if (!is_fine) break;
    print(plan, names[mode], &outcome);
    if (mode != PAWL_FACTOR_ASYNC) has_fallen &= falls(&outcome);
  }
  pwi_sfb_problem_fini(&problem);
  if (!is_fine) return PWI_EXIT_FAILURE;
  return has_fallen ? PWI_EXIT_OK : pwi_cli_failure(plan->command, "the matrices do not approach one another");
}
