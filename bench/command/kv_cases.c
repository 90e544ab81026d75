/* The cases of `pawl-bench kv` that measure speed: workers and limit take turns in rounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

#define VECTOR "bench/kv"

/* All rounds of one operation. */
struct rounds {
  double values[PWI_KV_ROUNDS], limits[PWI_KV_ROUNDS];
  double cpu, operations;
  struct pwi_histogram times;
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values) {
  qsort(values, PWI_KV_ROUNDS, sizeof *values, compare);
  return values[PWI_KV_ROUNDS / 2];
}

const char *pwi_kv_op_name(enum pwi_kv_op op) {
  /* the last one is the case `together` */
  static const char *const names[] = {"push", "pull", "pushpull", "push"};
  return names[op];
}

double pwi_kv_units(const struct pwi_kv_job *job, const char **name_out) {
  switch (job->kind) {
  case PWI_KV_DENSE:
    *name_out = "GB/s";
    return (double)job->count * sizeof(float) / 1e9;
  case PWI_KV_ONE:
    *name_out = "us";
    return 1;
  case PWI_KV_MANY:
    *name_out = "kops/s";
    return 1e-3;
  default:
    *name_out = "Mkeys/s";
    return (double)job->count / 1e6;
  }
}

static bool run_round(const struct pwi_kv_options *options, const struct pwi_kv_job *job, struct pwi_kv_crew *crew,
                      struct pwi_kv_limit *limit, enum pwi_kv_op op, int round, struct rounds *rounds) {
  static struct pwi_kv_tally tally;
  double each = options->seconds / PWI_KV_ROUNDS;
  double before = pwi_kv_crew_cpu(crew);
  if (!pwi_kv_crew_run(crew, op, each, &tally)) return false;
  rounds->cpu += pwi_kv_crew_cpu(crew) - before;
  rounds->operations += (double)tally.operations;
  pwi_histogram_merge(&rounds->times, &tally.times);
  bool is_time = job->kind == PWI_KV_ONE;
  rounds->values[round] = is_time ? (double)pwi_histogram_percentile(&tally.times, 50) / 1e3 : tally.per_second;
  rounds->limits[round] = pwi_kv_limit_run(limit, op, each / 4);
  return true;
}

static bool measure(const struct pwi_kv_options *options, const struct pwi_kv_job *job, struct pwi_kv_crew *crew,
                    struct pwi_kv_limit *limit, enum pwi_kv_op op) {
  static struct rounds rounds;
  const char *unit;
  double units = pwi_kv_units(job, &unit);
  for (int i = 0; i < 2; i++) { /* the first round is a warm-up */
    rounds.cpu = rounds.operations = 0;
    pwi_histogram_reset(&rounds.times);
    for (int round = 0; round < (i == 0 ? 1 : PWI_KV_ROUNDS); round++)
      if (!run_round(options, job, crew, limit, op, round, &rounds)) return false;
  }
  bool is_one = job->kind == PWI_KV_ONE || job->kind == PWI_KV_MANY;
  struct pwi_kv_figures figures = {
      .name = job->name,
      .op = pwi_kv_op_name(op),
      .outstanding = job->kind == PWI_KV_MANY ? PWI_KV_OUTSTANDING : job->outstanding,
      .value = units * median(rounds.values),
      .unit = unit,
      .limit = limit ? units * median(rounds.limits) : NAN,
      .p99_us = (double)pwi_histogram_percentile(&rounds.times, 99) / 1e3,
      .cpu_s_per_unit = rounds.cpu / rounds.operations / (is_one ? 1 : units),
  };
  if (job->kind == PWI_KV_RANDOM) {
    figures.what = "placement";
    figures.which = job->ordered ? "ordered" : "mixed";
  }
  pwi_kv_print(options, &figures);
  return true;
}

/* The operations of a case. */
static int ops_of(enum pwi_kv_kind kind) {
  if (kind == PWI_KV_RANDOM) return 1;
  return kind == PWI_KV_DENSE || kind == PWI_KV_CACHED ? 3 : 2;
}

static bool run_ops(const struct pwi_kv_options *options, const struct pwi_kv_job *job, struct pwi_kv_crew *crew,
                    struct pwi_kv_limit *limit) {
  if (!pwi_kv_crew_open(crew, job, VECTOR)) return false;
  bool good = true;
  for (int op = 0; op < ops_of(job->kind) && good; op++) {
    if (options->op && strcmp(options->op, pwi_kv_op_name((enum pwi_kv_op)op)) != 0) continue;
    good = measure(options, job, crew, limit, (enum pwi_kv_op)op);
  }
  return pwi_kv_crew_close(crew) && good;
}

static bool run_job(const struct pwi_kv_options *options, const struct pwi_kv_job *job, struct pwi_kv_crew *crew,
                    struct pwi_kv_limit *limit) {
  struct pawl_session *session = pwi_kv_crew_session(crew);
  struct pawl_vector *vector = NULL;
  if (job->kind == PWI_KV_RANDOM) {
    struct pwi_kv_job ordered = *job;
    ordered.ordered = true;
    return run_ops(options, job, crew, limit) && run_ops(options, &ordered, crew, limit);
  }
  bool good = pwi_kv_fill(session, options, job, VECTOR, &vector) && run_ops(options, job, crew, limit);
  pawl_vector_close(vector);
  pawl_status status = vector ? pawl_vector_delete(session, VECTOR, PWI_KV_PATIENCE) : PAWL_OK;
  return status ? pwi_kv_fail(options, "cannot delete the vector", status) : good;
}

bool pwi_kv_case_speed(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  struct pwi_kv_crew *crew = NULL;
  /* may fork, so it runs before there are threads */
  struct pwi_kv_limit *limit = pwi_kv_limit_open(job, options->tcp);
  bool good = pwi_kv_crew_start(options, options->workers, &crew) && run_job(options, job, crew, limit);
  pwi_kv_crew_stop(crew);
  pwi_kv_limit_close(limit);
  return good;
}
