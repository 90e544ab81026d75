/* What the figures of `pawl-bench asap` have in common: the setup of a run, and printing. */
#include <inttypes.h>
#include <stdio.h>

#include "asap.h"
#include "bench/command/bench.h"

#define STEP_NS 1000000
#define JITTER 0.1
#define LOOK 5
#define BATCH 20

const char *pwi_asap_mode_name(enum pawl_reduce_mode mode) {
  return mode == PAWL_REDUCE_NOTIFY_ACK ? "notify-ack" : mode == PAWL_REDUCE_BSP ? "bsp" : "async";
}

struct pwi_asap_setup pwi_asap_setup_of(const struct pwi_asap_plan *plan, uint32_t workers) {
  double bits = 8.0 * sizeof(float) * plan->problem->features;
  return (struct pwi_asap_setup){.workers = workers,
                                 .batch = plan->batch ? plan->batch : BATCH,
                                 .rate = plan->rate,
                                 .tolerance = plan->tolerance,
                                 .look = LOOK,
                                 .rounds = plan->rounds,
                                 .step_ns = STEP_NS,
                                 .jitter = JITTER,
                                 .put_ns = (int64_t)(bits / plan->gigabits),
                                 .slow = 1,
                                 .seed = plan->seed};
}

bool pwi_asap_try(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup,
                  struct pwi_asap_outcome *outcome_out) {
  char why[256];
  if (pwi_asap_simulate(plan->problem, setup, outcome_out, why, sizeof why) == PAWL_OK) return true;
  pwi_cli_failure(plan->command, "the run on the %s graph in mode %s failed: %s", pwi_topology_info(setup->graph)->name,
                  pwi_asap_mode_name(setup->mode), why);
  return false;
}

void pwi_asap_print_head(const struct pwi_asap_plan *plan, const char *title) {
  const struct pwi_asap_problem *problem = plan->problem;
  struct pwi_asap_setup setup = pwi_asap_setup_of(plan, 1);
  if (plan->json) return;
  printf("Figure %" PRIu32 ": %s\n", plan->figure, title);
  printf("%" PRIu32 " examples, %" PRIu32 " features, lambda %g; optimum %.6f (duality gap %.1e); accuracy %g %%\n",
         problem->examples, problem->features, problem->lambda, problem->optimum, problem->gap, 100 * plan->tolerance);
  if (plan->is_real) {
    pwi_bench_print_machine();
    printf("a step sleeps for %g ms +- %g %%\n\n", STEP_NS / 1e6, 100 * JITTER);
    return;
  }
  printf("virtual time: a step computes for %g ms +- %g %%, a card moves a model in %.1f us (%g Gbit/s), a message "
         "takes 20 to 60 us\n\n",
         STEP_NS / 1e6, 100 * JITTER, (double)setup.put_ns / 1e3, plan->gigabits);
}

void pwi_asap_print_json(const struct pwi_asap_plan *plan, const char *scene, const struct pwi_asap_setup *setup,
                         const struct pwi_asap_outcome *outcome) {
  bool counts = setup->seconds > 0;
  json_t *used = json_array(), *current = json_array();
  for (uint32_t i = 0; i < setup->workers; i++) {
    json_array_append_new(used, json_integer((json_int_t)outcome->by_used[i]));
    json_array_append_new(current, json_integer((json_int_t)outcome->by_current[i]));
  }
  json_t *object = json_pack(
      "{s:s, s:i, s:b, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:o, s:o, s:I}",
      "bench", "asap", "figure", (int)plan->figure, "real", plan->is_real, "graph",
      pwi_topology_info(setup->graph)->name, "mode", pwi_asap_mode_name(setup->mode), "scene", scene, "workers",
      (int)setup->workers, "batch", (int)setup->batch, "reached",
      counts ? json_null() : json_boolean(outcome->is_reached), "excess",
      counts ? json_null() : json_real(outcome->objective / plan->problem->optimum - 1), "rounds",
      (json_int_t)outcome->rounds, "steps", (json_int_t)outcome->steps, "seconds", outcome->seconds, "steps_per_s",
      (double)outcome->steps / outcome->seconds, "bytes", (json_int_t)outcome->bytes, "inputs",
      (json_int_t)outcome->expected, "used", (json_int_t)outcome->used, "current", (json_int_t)outcome->current,
      "by_used", used, "by_current", current, "seed", (json_int_t)setup->seed);
  pwi_cli_print_json(plan->command, object);
}

int pwi_asap_finish(const struct pwi_asap_plan *plan, const struct pwi_asap_chart *chart, int exit_code) {
  if (plan->svg && !pwi_asap_draw(plan->svg, chart))
    return pwi_cli_failure(plan->command, "'%s' cannot be written", plan->svg);
  return exit_code;
}
