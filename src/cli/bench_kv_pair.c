/* `--case replicas`: what replicas cost. Pushes into two clusters that live at the same time, one with replicas and one
 * without and with as many servers, in rounds that take turns, so that whatever else the machine does meets both. The one
 * whose turn it is not has nothing to do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_kv.h"

#define VECTOR "bench/kv"
#define ROUNDS 11
#define OUTSTANDING 8

enum { WITH, WITHOUT, BOTH };

static const char *const parts[] = {"dense4m", "cached1e6", "cached1e5", "fresh1e6"};

/* What came of one cluster. */
struct side {
  struct pwi_kv_options options;
  struct pwi_kv_crew *crew;
  struct pawl_vector *vector;
  double values[ROUNDS];
  double cpu, operations;
  struct pwi_histogram times;
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double values[ROUNDS]) {
  qsort(values, ROUNDS, sizeof *values, compare);
  return values[ROUNDS / 2];
}

static bool run_side(struct side *side, double seconds, int round) {
  static struct pwi_kv_tally tally;
  double before = pwi_kv_crew_cpu(side->crew);
  if (!pwi_kv_crew_run(side->crew, PWI_KV_PUSH, seconds, &tally)) return false;
  side->cpu += pwi_kv_crew_cpu(side->crew) - before;
  side->operations += (double)tally.operations;
  pwi_histogram_merge(&side->times, &tally.times);
  side->values[round] = tally.per_second;
  return true;
}

/* First the one, then the other, and the other way round the next time. */
static bool run_rounds(struct side sides[BOTH], double seconds, int rounds) {
  bool good = true;
  for (int i = 0; i < BOTH; i++) {
    sides[i].cpu = sides[i].operations = 0;
    pwi_histogram_reset(&sides[i].times);
  }
  for (int round = 0; round < rounds && good; round++)
    for (int i = 0; i < BOTH && good; i++) good = run_side(&sides[(i + round) % BOTH], seconds, round);
  return good;
}

static void print(struct side sides[BOTH], const struct pwi_kv_job *job) {
  struct side *with = &sides[WITH], *without = &sides[WITHOUT];
  const char *unit;
  double units = pwi_kv_units(job, &unit), ratios[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) ratios[i] = with->values[i] / without->values[i];
  struct pwi_kv_figures figures = {.name = "replicas",
                                   .op = pwi_kv_op_name(PWI_KV_PUSH),
                                   .what = "of",
                                   .which = job->name,
                                   .outstanding = job->outstanding,
                                   .value = units * median(with->values),
                                   .unit = unit,
                                   .limit = units * median(without->values),
                                   .p99_us = (double)pwi_histogram_percentile(&with->times, 99) / 1e3,
                                   .cpu_s_per_unit = with->cpu / with->operations / units,
                                   .ratio = median(ratios)};
  pwi_kv_print(&with->options, &figures);
}

static bool open_side(struct side *side, const struct pwi_kv_job *job) {
  return pwi_kv_fill(pwi_kv_crew_session(side->crew), &side->options, job, VECTOR, &side->vector) &&
         pwi_kv_crew_open(side->crew, job, VECTOR);
}

static bool close_side(struct side *side) {
  bool good = pwi_kv_crew_close(side->crew);
  pawl_vector_close(side->vector);
  if (side->vector && pawl_vector_delete(pwi_kv_crew_session(side->crew), VECTOR, PWI_KV_PATIENCE)) good = false;
  side->vector = NULL;
  return good;
}

static bool measure(struct side sides[BOTH], const struct pwi_kv_job *job) {
  double each = sides[WITH].options.seconds / PWI_KV_ROUNDS;
  bool good = open_side(&sides[WITH], job) && open_side(&sides[WITHOUT], job);
  good = good && run_rounds(sides, each, 1) && run_rounds(sides, each, ROUNDS); /* once to warm up */
  if (good) print(sides, job);
  for (int i = 0; i < BOTH; i++) good &= close_side(&sides[i]);
  return good;
}

/* Clusters of their own for each part, so that none finds what another has left. */
static bool run_part(struct side sides[BOTH], const char *name) {
  const struct pwi_kv_options *options[BOTH] = {&sides[WITH].options, &sides[WITHOUT].options};
  struct pwi_kv_crew *crews[BOTH];
  struct pwi_kv_job job;
  pwi_kv_find_job(options[WITH], name, &job);
  if (!pwi_kv_crew_start_pair(options, options[WITH]->workers, crews)) return false;
  for (int i = 0; i < BOTH; i++) sides[i].crew = crews[i];
  bool good = measure(sides, &job);
  for (int i = 0; i < BOTH; i++) pwi_kv_crew_stop(crews[i]);
  return good;
}

bool pwi_kv_case_pair(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  static struct side sides[BOTH];
  struct pwi_kv_options with = *options;
  (void)job;
  if (options->cluster) {
    pwi_cli_failure(options->command, "the case replicas starts clusters of its own");
    return false;
  }
  if (with.replicas == 0) with.replicas = 1;
  if (with.servers <= with.replicas) with.servers = with.replicas + 1;
  if (with.outstanding == 0) with.outstanding = OUTSTANDING;
  sides[WITH].options = sides[WITHOUT].options = with;
  sides[WITHOUT].options.replicas = 0;
  bool good = true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && good; i++) good = run_part(sides, parts[i]);
  return good;
}
