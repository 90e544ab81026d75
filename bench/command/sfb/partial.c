/* Figure 9: partial broadcasting on 12 machines. Every worker sends its pairs to Q others, on the graphs of `pawl graph
 * optimise`. Without passing commits on, a worker applies the pairs of its in-neighbours only, and the others influence it
 * through them. Otherwise it gets the pairs of all, some of them later. */
#include <inttypes.h>
#include <stdio.h>

#include "bench/command/asap/asap.h"
#include "bench/command/bench.h"
#include "graph/optimise.h"
#include "sfb.h"

#define WORKERS 12
#define DEGREES 7

struct point {
  uint32_t degree;
  uint64_t paths; /* sum of path lengths; 0: everyone to everyone */
  bool forwards;
  struct pwi_sfb_outcome outcome;
};

static bool make_graph(const struct pwi_sfb_plan *plan, uint32_t workers, uint32_t degree,
                       struct pwi_optimised *graph_out) {
  struct pwi_optimise_options options = {.nodes = workers,
                                         .degree = degree,
                                         .is_balanced = true,
                                         .seed = plan->setup.seed,
                                         .steps = pwi_optimise_steps(workers),
                                         .branches = PWI_OPTIMISE_BRANCHES};
  struct pwi_graph_why why = {""};
  pawl_status status = pwi_optimise(&options, &why, graph_out);
  if (status) pwi_cli_failure(plan->command, "no graph of degree %" PRIu32 ": %s", degree, why.text);
  return !status;
}

static bool measure(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem, struct point *point) {
  struct pwi_sfb_setup setup = plan->setup;
  struct pwi_optimised optimised = {0};
  setup.workers = plan->workers ? plan->workers : WORKERS;
  setup.target = plan->target * pwi_sfb_start(problem);
  setup.forwards = point->forwards;
  setup.look = 1;
  if (point->degree + 1 < setup.workers && !make_graph(plan, setup.workers, point->degree, &optimised)) return false;
  setup.graph = optimised.graph;
  point->paths = optimised.sum;
  bool is_fine = pwi_sfb_try(plan, problem, &setup, &point->outcome);
  pwi_graph_destroy(optimised.graph);
  return is_fine;
}

static void print(const struct pwi_sfb_plan *plan, const struct point *point, const struct pwi_sfb_outcome *full) {
  const struct pwi_sfb_outcome *is = &point->outcome;
  double bytes = (double)is->commit_bytes * plan->setup.magnify, rounds = (double)is->rounds / (double)full->rounds;
  if (plan->json)
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:s, s:i, s:b, s:I, s:b, s:f, s:I, s:f, s:f, s:f, s:f}", "bench", "sfb",
                                 "figure", "partial", "degree", (int)point->degree, "forward", point->forwards, "paths",
                                 (json_int_t)point->paths, "reached", is->is_reached, "objective", is->objective,
                                 "steps", (json_int_t)is->rounds, "steps_to_full", rounds, "seconds", is->seconds,
                                 "seconds_to_full", is->seconds / full->seconds, "bytes", bytes));
  else
    printf("%2" PRIu32 " %-10s %6" PRIu64 " %7.3f %10.1f s %7.3f %9.1f GB %9.4f%s\n", point->degree,
           point->forwards ? "forwarded" : "", is->rounds, rounds, is->seconds, is->seconds / full->seconds,
           bytes / 1e9, is->objective, is->is_reached ? "" : "   the target was not reached");
  fflush(stdout);
}

static void add_bar(struct pwi_asap_chart *chart, const struct point *point) {
  size_t group = 0;
  while (group < chart->group_count && chart->values[group][2] != point->degree) group++;
  if (group == chart->group_count) {
    snprintf(chart->groups[group], sizeof chart->groups[group], "Q = %" PRIu32, point->degree);
    chart->values[group][2] = point->degree;
    chart->values[group][1] = point->outcome.seconds;
    chart->group_count++;
  }
  chart->values[group][point->forwards] = point->outcome.seconds;
}

int pwi_sfb_partial(const struct pwi_sfb_plan *plan) {
  static const uint32_t degrees[DEGREES] = {11, 8, 6, 4, 3, 2, 1};
  uint32_t workers = plan->workers ? plan->workers : WORKERS;
  struct pwi_sfb_problem problem;
  struct pwi_sfb_outcome full = {0};
  struct pwi_asap_chart chart = {.title = "Seconds to the same objective of all workers",
                                 .axis = "workers to which each sends",
                                 .series = {"in-neighbours only", "forwarded"},
                                 .series_count = 2,
                                 .digits = 0};
  bool is_fine = true, is_reached = true;
  if (!pwi_sfb_open(plan, &problem)) return PWI_EXIT_FAILURE;
  if (!plan->json) {
    printf("Figure 9: partial broadcasting, %" PRIu32 " machines, K = %" PRIu32 ", %g Gbit/s, BSP; target %.4f\n\n",
           workers, plan->setup.batch, plan->setup.gigabits, plan->target * pwi_sfb_start(&problem));
    printf(" Q             steps  to all         time  to all         sent  objective of the worst worker\n");
  }
  for (int i = 0; i < DEGREES && is_fine; i++)
    for (int forwards = 0; forwards < 2 && is_fine; forwards++) {
      struct point point = {.degree = i == 0 ? workers - 1 : degrees[i], .forwards = forwards};
      if (i == 0 && forwards) continue;
      if (i > 0 && point.degree + 1 >= workers) continue;
      is_fine = measure(plan, &problem, &point);
      if (i == 0) full = point.outcome;
      if (!is_fine) break;
      print(plan, &point, &full);
      add_bar(&chart, &point);
      is_reached = is_reached && (point.outcome.is_reached || (point.degree < 4 && !forwards));
    }
  pwi_sfb_problem_fini(&problem);
  if (!is_fine) return PWI_EXIT_FAILURE;
  if (!plan->json)
    printf(
        "\nThe paper leaves open: the target, the learning rate, whether the pairs of a step are divided by the number "
        "of\nmachines or of those that are heard (here by those heard), and which graphs it used.\n");
  return pwi_sfb_finish(plan, &chart, is_reached ? PWI_EXIT_OK : PWI_EXIT_FAILURE);
}
