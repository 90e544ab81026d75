/* `--case replicas` and `--case together`: the cost of replicas. Pushes to clusters that exist at the same
 * time: one with replicas, one without and with as many servers, and for `replicas` one with a single
 * server. They take turns in rounds, so that disturbances of the machine affect all of them. Clusters
 * whose turn it is not are idle.
 *
 * In `together` the servers of the cluster with replicas aggregate the workers' pushes; the other cluster
 * gets plain pushes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv.h"

#define VECTOR "bench/kv"
#define ROUNDS 11
#define OUTSTANDING 8
#define REPORT_US 1500000 /* time in which every server reports */

enum { WITH, WITHOUT, SINGLE, SIDES };

/* The results of one cluster. */
struct side {
  struct pwi_kv_options options;
  enum pwi_kv_op op;
  struct pwi_kv_crew *crew;
  struct pawl_vector *vector;
  double values[ROUNDS];
  double cpu, operations;
  double pushed, passed; /* bytes before the measurement; later the difference */
  struct pwi_histogram times;
};

/* The clusters that take turns; `together` has no single server. */
struct contest {
  const char *name;
  int count;
  uint32_t aggregate; /* of the job */
  struct side sides[SIDES];
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
  if (!pwi_kv_crew_run(side->crew, side->op, seconds, &tally)) return false;
  side->cpu += pwi_kv_crew_cpu(side->crew) - before;
  side->operations += (double)tally.operations;
  pwi_histogram_merge(&side->times, &tally.times);
  side->values[round] = tally.per_second;
  return true;
}

/* Adds up the servers' reports, which come once a second. */
static bool count_bytes(const struct side *side, double *pushed_out, double *passed_out) {
  struct pwi_kv_totals totals;
  usleep(REPORT_US);
  if (!pwi_kv_look(&side->options, pwi_kv_crew_session(side->crew), &totals)) return false;
  *pushed_out = totals.bytes_in;
  *passed_out = totals.bytes_passed;
  return true;
}

/* The order changes each time. */
static bool run_rounds(struct contest *contest, double seconds, int rounds) {
  struct side *sides = contest->sides;
  int count = contest->count;
  bool good = true;
  for (int i = 0; i < count; i++) {
    sides[i].cpu = sides[i].operations = 0;
    pwi_histogram_reset(&sides[i].times);
  }
  for (int round = 0; round < rounds && good; round++)
    for (int i = 0; i < count && good; i++) good = run_side(&sides[(i + round) % count], seconds, round);
  return good;
}

/* The ratio of neighbouring rounds, which the machine treats alike. */
static double ratio_of(const struct side *side, const struct side *other) {
  double ratios[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) ratios[i] = side->values[i] / other->values[i];
  return median(ratios);
}

static void print(struct contest *contest, const struct pwi_kv_job *job) {
  struct side *with = &contest->sides[WITH], *without = &contest->sides[WITHOUT];
  struct side *single = contest->count > SINGLE ? &contest->sides[SINGLE] : NULL;
  const char *unit;
  double units = pwi_kv_units(job, &unit);
  struct pwi_kv_figures figures = {.name = contest->name,
                                   .op = pwi_kv_op_name(PWI_KV_PUSH),
                                   .what = "of",
                                   .which = job->name,
                                   .outstanding = job->outstanding,
                                   .unit = unit,
                                   .ratio = ratio_of(with, without)};
  if (single) figures.single_ratio = ratio_of(with, single);
  figures.has_replicas = with->pushed > 0;
  figures.passed_ratio = with->pushed > 0 ? with->passed / with->pushed : 0;
  figures.value = units * median(with->values); /* sorts the values, so ratios are computed before */
  figures.limit = units * median(without->values);
  if (single) figures.single = units * median(single->values);
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

static bool measure(struct contest *contest, const struct pwi_kv_job *job) {
  double each = contest->sides[WITH].options.seconds / PWI_KV_ROUNDS;
  bool good = true;
  for (int i = 0; i < contest->count && good; i++) good = open_side(&contest->sides[i], job);
  struct side *with = &contest->sides[WITH];
  double pushed = 0, passed = 0;
  good = good && run_rounds(contest, each, 1); /* the first round is a warm-up */
  good = good && count_bytes(with, &pushed, &passed);
  good = good && run_rounds(contest, each, ROUNDS);
  good = good && count_bytes(with, &with->pushed, &with->passed);
  with->pushed -= pushed;
  with->passed -= passed;
  if (good) print(contest, job);
  for (int i = 0; i < contest->count; i++) good &= close_side(&contest->sides[i]);
  return good;
}

/* Each part has clusters of its own, so that parts do not influence one another. */
static bool run_part(struct contest *contest, const char *name) {
  const struct pwi_kv_options *options[SIDES];
  struct pwi_kv_crew *crews[SIDES];
  struct pwi_kv_job job;
  for (int i = 0; i < contest->count; i++) options[i] = &contest->sides[i].options;
  pwi_kv_find_job(options[WITH], name, &job);
  job.aggregate = contest->aggregate;
  if (!pwi_kv_crew_start_all(options, (size_t)contest->count, options[WITH]->workers, crews)) return false;
  for (int i = 0; i < contest->count; i++) contest->sides[i].crew = crews[i];
  bool good = measure(contest, &job);
  for (int i = 0; i < contest->count; i++) pwi_kv_crew_stop(crews[i]);
  return good;
}

/* Sets replicas and enough servers; false if the case cannot be run that way. */
static bool prepare(struct contest *contest, const struct pwi_kv_options *options, uint32_t outstanding) {
  struct pwi_kv_options with = *options;
  if (options->cluster) {
    pwi_cli_failure(options->command, "the case %s starts its own clusters", contest->name);
    return false;
  }
  if (with.replicas == 0) with.replicas = 1;
  if (with.servers <= with.replicas) with.servers = with.replicas + 1;
  with.outstanding = outstanding;
  for (int i = 0; i < contest->count; i++) {
    contest->sides[i].options = with;
    contest->sides[i].op = PWI_KV_PUSH;
    if (i != WITH) contest->sides[i].options.replicas = 0;
  }
  return true;
}

bool pwi_kv_case_replicas(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  static const char *const parts[] = {"dense4m", "cached1e6", "cached1e5", "fresh1e6"};
  static struct contest contest = {.name = "replicas", .count = SIDES};
  (void)job;
  if (!prepare(&contest, options, options->outstanding ? options->outstanding : OUTSTANDING)) return false;
  contest.sides[SINGLE].options.servers = 1;
  bool good = true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && good; i++) good = run_part(&contest, parts[i]);
  return good;
}

/* One push of a worker at a time on both sides, as in a tick. */
bool pwi_kv_case_aggregate(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  static struct contest contest = {.name = "together", .count = SINGLE};
  (void)job;
  if (!prepare(&contest, options, 1)) return false;
  contest.sides[WITH].op = PWI_KV_AGGREGATE;
  contest.aggregate = options->workers;
  return run_part(&contest, "dense4m") && run_part(&contest, "cached1e6");
}
