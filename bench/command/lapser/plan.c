/* Which runs a figure has, and running them in rounds: other work on the machine then disturbs all ways alike, and
 * ratios are taken within a round. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bench/command/bench.h"
#include "bench/command/mpi_run.h"
#include "plan.h"

static const uint32_t slacks[] = {0, 1, 2, 4, 8};

const char *pwi_lapser_way_name(enum pwi_lapser_way way) {
  static const char *const names[] = {"hand", "push", "pull", "MPI isend", "MPI put"};
  return names[way];
}

void pwi_lapser_case_name(const struct pwi_lapser_case *one, char *name, size_t room) {
  if (one->way == PWI_LAPSER_PUSH || one->way == PWI_LAPSER_PULL)
    snprintf(name, room, "%s %" PRIu32, pwi_lapser_way_name(one->way), one->slack);
  else
    snprintf(name, room, "%s", pwi_lapser_way_name(one->way));
}

/* --- cases ------------------------------------------------------------------------------------------------ */

static void add(struct pwi_lapser_cases *cases, enum pwi_lapser_way way, uint32_t slack, uint32_t workers,
                size_t reference) {
  cases->list[cases->count++] =
      (struct pwi_lapser_case){.way = way, .slack = slack, .workers = workers, .reference = reference};
}

/* Table 5.2 and figures 5.1 to 5.3. */
static void list_ways(struct pwi_lapser_cases *cases, uint32_t workers, bool has_mpi, bool has_slack) {
  size_t first = cases->count;
  add(cases, PWI_LAPSER_HAND, 0, workers, first);
  if (has_mpi) add(cases, PWI_LAPSER_ISEND, 0, workers, first);
  if (has_mpi) add(cases, PWI_LAPSER_PUT, 0, workers, first);
  add(cases, PWI_LAPSER_PULL, 0, workers, first);
  if (has_slack) add(cases, PWI_LAPSER_PULL, 4, workers, first);
  add(cases, PWI_LAPSER_PUSH, 0, workers, first);
  if (has_slack) add(cases, PWI_LAPSER_PUSH, 4, workers, first);
}

/* Figures 5.4 to 5.7. */
static void list_slacks(struct pwi_lapser_cases *cases, uint32_t workers) {
  for (int way = PWI_LAPSER_PUSH; way <= PWI_LAPSER_PULL; way++) {
    size_t first = cases->count;
    for (size_t i = 0; i < sizeof slacks / sizeof slacks[0]; i++)
      add(cases, (enum pwi_lapser_way)way, slacks[i], workers, first);
  }
}

/* Figure 5.8. */
static void list_workers(struct pwi_lapser_cases *cases, uint32_t most, bool has_mpi) {
  for (uint32_t workers = 1; workers <= most; workers *= 2) list_ways(cases, workers, has_mpi, workers > 1);
}

static void list_cases(const struct pwi_lapser_plan *plan, struct pwi_lapser_cases *cases) {
  bool is_simulated = plan->task.is_simulated, has_mpi = !is_simulated && pwi_mpi_has("mpi_bpmf");
  uint32_t workers = plan->workers ? plan->workers : is_simulated ? 16 : 2;
  if (plan->figure == 8)
    list_workers(cases, plan->workers ? plan->workers : is_simulated ? 16 : 4, has_mpi);
  else if (plan->figure >= 4)
    list_slacks(cases, workers);
  else
    list_ways(cases, workers, has_mpi, true);
}

/* --- runs ------------------------------------------------------------------------------------------------- */

static bool run_case(const struct pwi_lapser_plan *plan, struct pwi_lapser_case *one) {
  struct pwi_lapser_task task = plan->task;
  char why[256];
  task.way = one->way;
  task.slack = one->slack;
  task.workers = one->workers;
  if (one->way >= PWI_LAPSER_ISEND) return pwi_lapser_run_mpi(plan->command, &task, one->figures);
  if (!task.is_simulated) return pwi_lapser_run_real(plan->command, &task, one->figures);
  if (!pwi_lapser_simulate(&task, one->figures, why, sizeof why)) return true;
  pwi_cli_failure(plan->command, "the simulation failed: %s", why);
  return false;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median(double *values, size_t count) {
  if (count == 0) return (double)NAN;
  qsort(values, count, sizeof *values, compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The first iteration makes links and page faults. */
static struct pwi_lapser_summary summarise(const struct pwi_lapser_figures *figures) {
  double seconds[PWI_LAPSER_ITERATIONS_MAX], shared[PWI_LAPSER_ITERATIONS_MAX];
  size_t count = 0;
  for (uint32_t i = figures->iterations > 1 ? 1 : 0; i < figures->iterations; i++, count++) {
    seconds[count] = figures->steps[i].seconds;
    shared[count] = figures->steps[i].shared;
  }
  return (struct pwi_lapser_summary){.seconds = median(seconds, count),
                                     .shared = median(shared, count),
                                     .cpu = figures->cpu_s / figures->iterations,
                                     .ratio = (double)NAN};
}

static void sum_up(struct pwi_lapser_case *one, uint32_t rounds) {
  double values[4][PWI_LAPSER_ROUNDS_MAX];
  for (uint32_t i = 0; i < rounds; i++) {
    values[0][i] = one->rounds[i].seconds;
    values[1][i] = one->rounds[i].shared;
    values[2][i] = one->rounds[i].cpu;
    values[3][i] = one->rounds[i].ratio;
  }
  one->all = (struct pwi_lapser_summary){median(values[0], rounds), median(values[1], rounds),
                                         median(values[2], rounds), median(values[3], rounds)};
}

static bool run_round(const struct pwi_lapser_plan *plan, struct pwi_lapser_cases *cases, uint32_t round) {
  for (size_t i = 0; i < cases->count; i++) {
    struct pwi_lapser_case *one = &cases->list[i];
    if (!run_case(plan, one)) return false;
    one->rounds[round] = summarise(one->figures);
    if (one->reference != i)
      one->rounds[round].ratio = one->rounds[round].seconds / cases->list[one->reference].rounds[round].seconds;
  }
  return true;
}

/* Without slack all ways and all numbers of workers compute the same samples. */
static bool are_equal(const struct pwi_lapser_plan *plan, const struct pwi_lapser_cases *cases) {
  const struct pwi_lapser_case *first = NULL;
  char name[32], other[32];
  for (size_t i = 0; i < cases->count; i++) {
    const struct pwi_lapser_case *one = &cases->list[i];
    if (one->slack > 0) continue;
    if (!first) first = one;
    if (one->figures->digest == first->figures->digest) continue;
    pwi_lapser_case_name(one, name, sizeof name);
    pwi_lapser_case_name(first, other, sizeof other);
    pwi_cli_failure(plan->command, "'%s' with %" PRIu32 " workers has other samples than '%s' with %" PRIu32, name,
                    one->workers, other, first->workers);
    return false;
  }
  return true;
}

int pwi_lapser_carry_out(const struct pwi_lapser_plan *plan) {
  struct pwi_lapser_cases *cases = pwi_alloc_zero(1, sizeof *cases);
  bool is_fine = cases != NULL;
  if (!is_fine) return pwi_cli_failure(plan->command, "not enough memory");
  list_cases(plan, cases);
  for (size_t i = 0; i < cases->count && is_fine; i++) {
    cases->list[i].figures = pwi_alloc_zero(1, sizeof *cases->list[i].figures);
    is_fine = cases->list[i].figures != NULL;
  }
  if (!is_fine) pwi_cli_failure(plan->command, "not enough memory");
  if (is_fine) pwi_lapser_print_head(plan);
  for (uint32_t round = 0; round < plan->rounds && is_fine; round++) is_fine = run_round(plan, cases, round);
  is_fine = is_fine && are_equal(plan, cases);
  if (is_fine) {
    for (size_t i = 0; i < cases->count; i++) sum_up(&cases->list[i], plan->rounds);
    pwi_lapser_print(plan, cases);
    if (plan->svg && !pwi_lapser_draw(plan, cases)) {
      pwi_cli_failure(plan->command, "cannot write '%s'", plan->svg);
      is_fine = false;
    }
  }
  for (size_t i = 0; i < cases->count; i++) pwi_free(cases->list[i].figures);
  pwi_free(cases);
  return is_fine ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}
