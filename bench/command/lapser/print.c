/* The figures of `pawl-bench lapser` as a table and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/command/bench.h"
#include "bench/command/mpi_run.h"
#include "plan.h"

static const char *const titles[] = {
    "table 5.2: seconds of an iteration and error, by way of exchanging rows",
    "figure 5.1: error along time, by way of exchanging rows",
    "figure 5.2: error along time, by way of exchanging rows",
    "figure 5.3: communication and computation",
    "figure 5.4: seconds of an iteration and error, by slack",
    "figure 5.5: seconds of each iteration, by slack",
    "figure 5.6: error after each iteration, by slack",
    "figure 5.7: error along time, by slack",
    "figure 5.8: seconds of an iteration, by number of workers",
};

static const char *transport_of(const struct pwi_lapser_plan *plan) {
  return plan->task.is_simulated ? "simulated" : plan->task.is_tcp ? "tcp" : "shm";
}

void pwi_lapser_print_head(const struct pwi_lapser_plan *plan) {
  const struct bpmf_data *data = &plan->problem->data;
  if (plan->json) return;
  if (!plan->task.is_simulated) pwi_bench_print_machine();
  printf("%s\n%" PRIu32 " users, %" PRIu32 " items, %" PRIu64 " training and %" PRIu64 " test ratings; rank %" PRIu32
         ", %" PRIu32 " iterations, %" PRIu32 " round%s\n",
         titles[plan->figure], data->sides[BPMF_USERS].rows, data->sides[BPMF_ITEMS].rows, data->count,
         data->test_count, plan->task.rank, plan->task.iterations, plan->rounds, plan->rounds == 1 ? "" : "s");
  if (plan->task.is_simulated)
    printf("simulated hosts of %g Gflop/s and %g Gbit/s\n", plan->task.gigaflops, plan->task.gigabits);
  else
    printf("%s\n", plan->task.is_tcp ? "over sockets" : "in shared memory");
  fflush(stdout);
}

/* --- JSON ------------------------------------------------------------------------------------------------- */

static json_t *list(const struct pwi_lapser_figures *figures, size_t offset) {
  json_t *array = json_array();
  for (uint32_t i = 0; i < figures->iterations; i++) {
    const char *step = (const char *)&figures->steps[i];
    json_array_append_new(array, pwi_bench_number(*(const double *)(const void *)(step + offset)));
  }
  return array;
}

static void print_json(const struct pwi_lapser_plan *plan, const struct pwi_lapser_case *one) {
  const struct pwi_lapser_figures *figures = one->figures;
  json_t *object = json_pack(
      "{s:s, s:i, s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bench",
      "lapser", "figure", (int)plan->figure, "way", pwi_lapser_way_name(one->way), "slack", (json_int_t)one->slack,
      "workers", (json_int_t)one->workers, "transport", transport_of(plan), "rank", (json_int_t)plan->task.rank,
      "iterations", (json_int_t)figures->iterations, "rounds", (json_int_t)plan->rounds, "seconds",
      pwi_bench_number(one->all.seconds), "ratio", pwi_bench_number(one->all.ratio), "communication_s",
      pwi_bench_number(one->all.shared), "computation_s", pwi_bench_number(one->all.seconds - one->all.shared), "cpu_s",
      plan->task.is_simulated ? json_null() : pwi_bench_number(one->all.cpu), "rmse",
      pwi_bench_number(figures->steps[figures->iterations - 1].mean), "seconds_by_iteration",
      list(figures, offsetof(struct pwi_lapser_step, seconds)), "communication_by_iteration",
      list(figures, offsetof(struct pwi_lapser_step, shared)), "rmse_of_rows_by_iteration",
      list(figures, offsetof(struct pwi_lapser_step, now)), "rmse_by_iteration",
      list(figures, offsetof(struct pwi_lapser_step, mean)));
  json_dumpf(object, stdout, JSON_COMPACT);
  printf("\n");
  json_decref(object);
}

/* --- the table -------------------------------------------------------------------------------------------- */

static void print_ratio(double ratio) {
  if (isnan(ratio))
    printf(" %8s", "");
  else
    printf(" %8.3f", ratio);
}

static void print_row(const struct pwi_lapser_plan *plan, const struct pwi_lapser_case *one) {
  char name[32];
  const struct pwi_lapser_figures *figures = one->figures;
  pwi_lapser_case_name(one, name, sizeof name);
  printf("%-10s %7" PRIu32 " %12.3f", name, one->workers, 1e3 * one->all.seconds);
  print_ratio(one->all.ratio);
  printf(" %14.3f %12.3f", 1e3 * one->all.shared, 1e3 * (one->all.seconds - one->all.shared));
  if (!plan->task.is_simulated) printf(" %12.3f", 1e3 * one->all.cpu);
  printf(" %9.5f\n", figures->steps[figures->iterations - 1].mean);
}

static void explain(const struct pwi_lapser_plan *plan) {
  printf("\nof %s: the median of the ratios within a round, each of the medians of all iterations but the first.\n"
         "Communication is publishing, waiting for and copying rows and sums, and the mean over the workers;%s\n"
         "the error is the root of the mean squared error of the mean prediction on the test ratings.\n",
         plan->figure >= 4 && plan->figure < 8 ? "slack 0" : "hand",
         plan->task.is_simulated ? "" : " cpu: processor time of\nall workers, with measuring errors;");
  if (!plan->task.is_simulated && (plan->figure < 4 || plan->figure == 8)) pwi_mpi_explain("mpi_bpmf");
}

void pwi_lapser_print(const struct pwi_lapser_plan *plan, const struct pwi_lapser_cases *cases) {
  const char *reference = plan->figure >= 4 && plan->figure < 8 ? "of 0" : "of hand";
  if (!plan->json)
    printf("\n%-10s %7s %12s %8s %14s %12s%s %9s\n", "way", "workers", "ms an iter.", reference, "communication",
           "computation", plan->task.is_simulated ? "" : "          cpu", "RMSE");
  for (size_t i = 0; i < cases->count; i++) {
    if (plan->json)
      print_json(plan, &cases->list[i]);
    else
      print_row(plan, &cases->list[i]);
  }
  if (!plan->json) explain(plan);
}
