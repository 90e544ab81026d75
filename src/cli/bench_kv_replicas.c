/* `--case replicas`: what replicas cost. Pushes into clusters that live at the same time, one with replicas, one without and
 * with as many servers, one with a single server, in rounds that take turns, so that whatever else the machine does meets all
 * of them. Those whose turn it is not have nothing to do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_kv.h"

#define VECTOR "bench/kv"
#define ROUNDS 11
#define OUTSTANDING 8

enum { WITH, WITHOUT, SINGLE, SIDES };

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

/* Another one goes first each time. */
static bool run_rounds(struct side sides[SIDES], double seconds, int rounds) {
  bool good = true;
  for (int i = 0; i < SIDES; i++) {
    sides[i].cpu = sides[i].operations = 0;
    pwi_histogram_reset(&sides[i].times);
  }
  for (int round = 0; round < rounds && good; round++)
    for (int i = 0; i < SIDES && good; i++) good = run_side(&sides[(i + round) % SIDES], seconds, round);
  return good;
}

/* Of neighbouring rounds, which the machine treats alike. */
static double ratio_of(const struct side *side, const struct side *other) {
  double ratios[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) ratios[i] = side->values[i] / other->values[i];
  return median(ratios);
}

static void print(struct side sides[SIDES], const struct pwi_kv_job *job) {
  struct side *with = &sides[WITH], *without = &sides[WITHOUT], *single = &sides[SINGLE];
  const char *unit;
  double units = pwi_kv_units(job, &unit);
  struct pwi_kv_figures figures = {.name = "replicas",
                                   .op = pwi_kv_op_name(PWI_KV_PUSH),
                                   .what = "of",
                                   .which = job->name,
                                   .outstanding = job->outstanding,
                                   .unit = unit,
                                   .ratio = ratio_of(with, without),
                                   .single_ratio = ratio_of(with, single)};
  figures.value = units * median(with->values); /* sorts them: ratios come first */
  figures.limit = units * median(without->values);
  figures.single = units * median(single->values);
  figures.p99_us = (double)pwi_histogram_percentile(&with->times, 99) / 1e3;
  figures.cpu_s_per_unit = with->cpu / with->operations / units;
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

static bool measure(struct side sides[SIDES], const struct pwi_kv_job *job) {
  double each = sides[WITH].options.seconds / PWI_KV_ROUNDS;
  bool good = true;
  for (int i = 0; i < SIDES && good; i++) good = open_side(&sides[i], job);
  good = good && run_rounds(sides, each, 1) && run_rounds(sides, each, ROUNDS); /* once to warm up */
  if (good) print(sides, job);
  for (int i = 0; i < SIDES; i++) good &= close_side(&sides[i]);
  return good;
}

/* Clusters of their own for each part, so that none finds what another has left. */
static bool run_part(struct side sides[SIDES], const char *name) {
  const struct pwi_kv_options *options[SIDES];
  struct pwi_kv_crew *crews[SIDES];
  struct pwi_kv_job job;
  for (int i = 0; i < SIDES; i++) options[i] = &sides[i].options;
  pwi_kv_find_job(options[WITH], name, &job);
  if (!pwi_kv_crew_start_all(options, SIDES, options[WITH]->workers, crews)) return false;
  for (int i = 0; i < SIDES; i++) sides[i].crew = crews[i];
  bool good = measure(sides, &job);
  for (int i = 0; i < SIDES; i++) pwi_kv_crew_stop(crews[i]);
  return good;
}

bool pwi_kv_case_replicas(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  static struct side sides[SIDES];
  struct pwi_kv_options with = *options;
  (void)job;
  if (options->cluster) {
    pwi_cli_failure(options->command, "the case replicas starts clusters of its own");
    return false;
  }
  if (with.replicas == 0) with.replicas = 1;
  if (with.servers <= with.replicas) with.servers = with.replicas + 1;
  if (with.outstanding == 0) with.outstanding = OUTSTANDING;
  for (int i = 0; i < SIDES; i++) sides[i].options = with;
  sides[WITHOUT].options.replicas = sides[SINGLE].options.replicas = 0;
  sides[SINGLE].options.servers = 1;
  bool good = true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && good; i++) good = run_part(sides, parts[i]);
  return good;
}
