/* Time to the same objective on the machines of the paper: factors and the whole matrix on 28 machines, and one machine
 * (section 5: 2.46 and 10.77 hours; a speedup of 17.4).
 *
 * The paper does not say how long a machine computes a pair. One number is calibrated: this time, by the speedup of 17.4.
 * How many times longer the whole matrix takes then follows. The table behind it has both for other times. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/command/asap/asap.h"
#include "bench/command/bench.h"
#include "sfb.h"

#define WORKERS 28
#define FLOOR_TIMES 4
#define FLOOR_SPEEDUP 15.7
#define ROW_TIMES 5
#define STEPS 5 /* where only their time is measured */

struct point {
  double row_s;
  struct pwi_sfb_outcome one, many;
  double matrix_s; /* of as many steps as `many` */
};

static double hours(double seconds) { return seconds / 3600; }
static double speedup(const struct point *point) { return point->one.seconds / point->many.seconds; }
static double times(const struct point *point) { return point->matrix_s / point->many.seconds; }

static double simulated_bytes(const struct pwi_sfb_setup *setup, const struct pwi_sfb_shape *shape) {
  return setup->magnify * shape->classes * setup->magnify * shape->features * sizeof(float);
}

/* The same steps, which wait for the slowest worker, and the same delays; then the exchange. */
static double matrix_time(const struct pwi_sfb_setup *setup, const struct pwi_sfb_shape *shape, uint64_t rounds) {
  struct pwi_random delays[PWI_SFB_WORKERS_MAX];
  double exchange = pwi_sfb_exchange_s(setup->workers, simulated_bytes(setup, shape), setup->gigabits), seconds = 0;
  for (uint32_t i = 0; i < setup->workers; i++) pwi_random_init(&delays[i], setup->seed, 100 + i);
  for (uint64_t round = 0; round < rounds; round++) {
    double slowest = 0;
    for (uint32_t i = 0; i < setup->workers; i++)
      slowest = fmax(slowest, 1 + setup->jitter * (2 * pwi_random_unit(&delays[i]) - 1));
    seconds += setup->row_s * setup->batch * slowest + exchange;
  }
  return seconds;
}

static struct pwi_sfb_setup setup_of(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem) {
  struct pwi_sfb_setup many = plan->setup;
  many.workers = plan->workers ? plan->workers : WORKERS;
  many.rate_is_each = true;
  many.target = plan->target * pwi_sfb_start(problem);
  many.look = 1;
  return many;
}

/* One worker looks as often, by rows. */
static bool learn(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem, struct point *point_out) {
  struct pwi_sfb_setup many = setup_of(plan, problem), one = many;
  struct point point = {.row_s = many.row_s};
  one.workers = 1;
  one.rounds *= many.workers;
  one.look = many.workers;
  if (!pwi_sfb_try(plan, problem, &many, &point.many) || !pwi_sfb_try(plan, problem, &one, &point.one)) return false;
  point.matrix_s = matrix_time(&many, &problem->shape, point.many.rounds);
  *point_out = point;
  return true;
}

static void stretch(struct pwi_sfb_outcome *outcome, uint64_t rounds) {
  double times = (double)rounds / (double)outcome->rounds;
  outcome->seconds *= times;
  outcome->compute_s *= times;
  outcome->commit_bytes = (uint64_t)((double)outcome->commit_bytes * times);
  outcome->rounds = rounds;
}

/* In BSP the matrices do not depend on time: some steps show how long each takes, and their number is known. */
static bool measure(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem, const struct point *learned,
                    double row_s, struct point *point_out) {
  struct pwi_sfb_setup many = setup_of(plan, problem), one;
  struct point point = {.row_s = row_s};
  many.row_s = row_s;
  many.look = 0;
  many.rounds = STEPS;
  one = many;
  one.workers = 1;
  if (!pwi_sfb_try(plan, problem, &many, &point.many) || !pwi_sfb_try(plan, problem, &one, &point.one)) return false;
  stretch(&point.many, learned->many.rounds);
  stretch(&point.one, learned->one.rounds);
  point.many.is_reached = point.one.is_reached = learned->many.is_reached && learned->one.is_reached;
  point.matrix_s = matrix_time(&many, &problem->shape, point.many.rounds);
  *point_out = point;
  return true;
}

static void print(const struct pwi_sfb_plan *plan, uint32_t workers, const struct point *point) {
  if (plan->json)
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:b, s:b, s:I}", "bench",
                                 "sfb", "figure", "time", "workers", (int)workers, "row_s", point->row_s, "factors_s",
                                 point->many.seconds, "matrix_s", point->matrix_s, "one_s", point->one.seconds,
                                 "matrix_to_factors", times(point), "speedup", speedup(point), "compute_s",
                                 point->many.compute_s, "steps", (json_int_t)point->many.rounds, "steps_of_one",
                                 (json_int_t)point->one.rounds, "reached",
                                 point->many.is_reached && point->one.is_reached, "identical", point->many.is_same,
                                 "bytes", (json_int_t)((double)point->many.commit_bytes * plan->setup.magnify)));
  else
    printf("%8.0f ms %9.3f h %9.3f h %9.3f h %12.2f %9.2f\n", 1e3 * point->row_s, hours(point->one.seconds),
           hours(point->many.seconds), hours(point->matrix_s), times(point), speedup(point));
  fflush(stdout);
}

static void print_head(const struct pwi_sfb_plan *plan, const struct pwi_sfb_problem *problem, uint32_t workers) {
  const struct pwi_sfb_setup *setup = &plan->setup;
  if (plan->json) return;
  printf("Time to the same objective: %" PRIu32 " machines, K = %" PRIu32 ", %.0f classes, %.0f features, %g Gbit/s, "
         "BSP\n",
         workers, setup->batch, setup->magnify * problem->shape.classes, setup->magnify * problem->shape.features,
         setup->gigabits);
  printf("computed: %" PRIu32 " classes, %" PRIu32 " features, %" PRIu32 " rows; a byte stands for %g; target %.4f "
         "(%g of W = 0)\n\n",
         problem->shape.classes, problem->shape.features, problem->shape.rows, setup->magnify,
         plan->target * pwi_sfb_start(problem), plan->target);
  printf("compute a pair  one machine   factors  whole matrix  matrix/factors  speedup\n");
}

static void conclude(const struct pwi_sfb_plan *plan, uint32_t workers, const struct point *point, double exchange) {
  if (plan->json) return;
  printf("\nsteps: %" PRIu64 " of %" PRIu32 " machines, %" PRIu64 " of one; all machines identical: %s\n",
         point->many.rounds, workers, point->one.rounds, point->many.is_same ? "yes" : "no");
  printf(
      "a step, at %.0f ms a pair: %.2f s with factors, of which %.2f s compute; the matrix takes %.1f s to servers and "
      "back\n",
      1e3 * point->row_s, point->many.seconds / (double)point->many.rounds,
      point->many.compute_s / (double)point->many.rounds, exchange);
  printf("matrix/factors %.2f (floor %d; paper 4.38 and 4.35), speedup %.2f (floor %g; paper 17.4 and 15.7)\n",
         times(point), FLOOR_TIMES, speedup(point), FLOOR_SPEEDUP);
  printf("\nThe paper leaves open: how long a machine computes a pair (here %.0f ms, by the speedup of 17.4), the rows "
         "and "
         "the\nlearning rate until convergence (so hours differ, and quotients count), where the servers are (here a "
         "share of them\non every machine), and how much of the matrix is left out because rows are sparse (here "
         "nothing). Applying pairs\ntakes --apply of the time of computing them (default 0: \"negligible in "
         "practice\", section 4.1).\n",
         1e3 * point->row_s);
}

int pwi_sfb_time(const struct pwi_sfb_plan *plan) {
  static const double shares[ROW_TIMES] = {1, 0.5, 0.75, 1.5, 2};
  struct pwi_sfb_problem problem;
  struct point points[ROW_TIMES];
  uint32_t workers = plan->workers ? plan->workers : WORKERS;
  bool is_fine = true;
  if (!pwi_sfb_open(plan, &problem)) return PWI_EXIT_FAILURE;
  print_head(plan, &problem, workers);
  for (int i = 0; i < ROW_TIMES && is_fine; i++) {
    is_fine = i == 0 ? learn(plan, &problem, &points[0])
                     : measure(plan, &problem, &points[0], shares[i] * plan->setup.row_s, &points[i]);
    if (is_fine) print(plan, workers, &points[i]);
  }
  double exchange = pwi_sfb_exchange_s(workers, simulated_bytes(&plan->setup, &problem.shape), plan->setup.gigabits);
  pwi_sfb_problem_fini(&problem);
  if (!is_fine) return PWI_EXIT_FAILURE;
  conclude(plan, workers, &points[0], exchange);
  bool is_reached = points[0].many.is_reached && points[0].one.is_reached;
  if (!is_reached) pwi_cli_failure(plan->command, "the target was not reached; try more --rounds or another --rate");
  struct pwi_asap_chart chart = {
      .title = "Hours to the same objective",
      .axis = "one machine, and 28",
      .series = {"hours"},
      .series_count = 1,
      .groups = {"one machine", "factors", "whole matrix"},
      .values = {{hours(points[0].one.seconds)}, {hours(points[0].many.seconds)}, {hours(points[0].matrix_s)}},
      .group_count = 3,
      .digits = 2};
  return pwi_sfb_finish(plan, &chart, is_reached ? PWI_EXIT_OK : PWI_EXIT_FAILURE);
}
