/* What the figures of `pawl-bench sfb` have in common. */
#include <math.h>

#include "bench/command/asap/asap.h"
#include "sfb.h"

bool pwi_sfb_open(const struct pwi_sfb_plan *plan, struct pwi_sfb_problem *problem_out) {
  if (pwi_sfb_generate(&plan->shape, problem_out) == PAWL_OK) return true;
  pwi_cli_failure(plan->command, "not enough memory for the data");
  return false;
}

double pwi_sfb_start(const struct pwi_sfb_problem *problem) { return log(problem->shape.classes); }

bool pwi_sfb_try(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem,
                 const struct pwi_sfb_setup *setup, struct pwi_sfb_outcome *outcome_out) {
  char why[256];
  if (pwi_sfb_simulate(problem, setup, outcome_out, why, sizeof why) == PAWL_OK) return true;
  pwi_cli_failure(plan->command, "the run of %u workers failed: %s", setup->workers, why);
  return false;
}

int pwi_sfb_finish(const struct pwi_sfb_plan *plan, const struct pwi_asap_chart *chart, int exit_code) {
  if (plan->svg && !pwi_asap_draw(plan->svg, chart))
    return pwi_cli_failure(plan->command, "'%s' cannot be written", plan->svg);
  return exit_code;
}
