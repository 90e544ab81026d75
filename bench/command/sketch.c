#include "sketch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "store/sketch.h"

#define SKETCH "bench/sketch"
#define CHUNK ((size_t)1 << 16) /* things per call */
#define RUNS 3
#define PEAK_S 0.1

bool pwi_bench_sketch_fail(const struct pwi_bench_sketch *bench, const char *what, pawl_status status) {
  const char *text = pawl_error_text();
  pwi_cli_failure(bench->command, "%s: %s", what, *text ? text : pawl_status_text(status));
  return false;
}

/* --- streams -------------------------------------------------------------------------------------------- */

/* things^u is at most k with probability log k / log things, so thing k has log(1 + 1 / k) of it, which is
 * nearly 1 / k. */
uint64_t *pwi_stream_zipf(uint64_t things, uint64_t seed) {
  uint64_t *stream = pwi_alloc(PWI_STREAM_LENGTH * sizeof *stream);
  struct pwi_random random;
  double scale = log((double)things);
  pwi_random_init(&random, seed, 1);
  for (size_t i = 0; stream && i < PWI_STREAM_LENGTH; i++)
    stream[i] = (uint64_t)exp(pwi_random_unit(&random) * scale) - 1;
  return stream;
}

uint64_t *pwi_stream_uniform(uint64_t seed) {
  uint64_t *stream = pwi_alloc(PWI_STREAM_LENGTH * sizeof *stream);
  struct pwi_random random;
  pwi_random_init(&random, seed, 2);
  for (size_t i = 0; stream && i < PWI_STREAM_LENGTH; i++) stream[i] = pwi_random_u64(&random);
  return stream;
}

/* --- in memory ------------------------------------------------------------------------------------------ */

/* The same sketch, filled by one thread in memory. */
static double run_memory(const uint64_t *stream, double seconds) {
  struct pwi_sketch_bank bank;
  struct pawl_sketch_options options;
  pawl_sketch_options_init(&options);
  pwi_sketch_bank_init(&bank, 4, options.columns, false);
  uint64_t *rows = pwi_alloc_zero((size_t)options.banks * pwi_sketch_bank_width(&bank), sizeof *rows), added = 0;
  if (!rows) return 0;
  double begin = pwi_bench_now(), time;
  do {
    pwi_sketch_add_numbers(&bank, rows, options.banks, stream + added % PWI_STREAM_LENGTH, CHUNK);
    added += CHUNK;
  } while ((time = pwi_bench_now() - begin) < seconds);
  uint64_t total = 0; /* so that the compiler cannot remove the work */
  for (uint32_t i = 0; i < options.banks; i++) total += rows[i * (size_t)pwi_sketch_bank_width(&bank) + 1];
  pwi_free(rows);
  return total == added ? (double)added / time : 0;
}

/* --- through a server ----------------------------------------------------------------------------------- */

struct speed {
  const char *name;
  bool is_uniform, no_aggregate, has_all; /* has_all: names and registers, too */
};

struct speed_figures {
  double per_second, bits_per_pair, bits_per_thing, merged;
  double peak; /* things per second, in the best PEAK_S (OSDI'14, table 5) */
};

/* The best of short stretches. */
struct peak {
  double since, best;
  uint64_t things; /* since then */
};

static void count_peak(struct peak *peak, uint64_t things) {
  double now = pwi_bench_now(), took = now - peak->since;
  peak->things += things;
  if (took < PEAK_S) return;
  double rate = (double)peak->things / took;
  if (rate > peak->best) peak->best = rate;
  peak->since = now;
  peak->things = 0;
}

static bool pour(const struct pwi_bench_sketch *bench, struct pawl_sketch *sketch, const struct speed *speed,
                 const uint64_t *stream, struct speed_figures *figures_out) {
  struct pawl_sketch_writer_options options = {.struct_size = sizeof options, .no_aggregate = speed->no_aggregate};
  struct pawl_sketch_writer *writer;
  struct pawl_sketch_figures is;
  pawl_status status = pawl_sketch_writer_open(sketch, &options, &writer);
  if (status) return pwi_bench_sketch_fail(bench, "writer", status);
  double begin = pwi_bench_now();
  struct peak peak = {.since = begin};
  for (uint64_t added = 0; !status && pwi_bench_now() - begin < bench->seconds; added += CHUNK) {
    status = pawl_sketch_add_numbers(writer, stream + added % PWI_STREAM_LENGTH, CHUNK, 1);
    count_peak(&peak, CHUNK);
  }
  if (!status) status = pawl_sketch_flush(writer, PWI_SKETCH_PATIENCE);
  double time = pwi_bench_now() - begin;
  pawl_sketch_figures(writer, &is);
  if (status) pwi_bench_sketch_fail(bench, "insert", status);
  pawl_sketch_writer_close(writer);
  *figures_out =
      (struct speed_figures){(double)is.added / time, 8 * (double)is.bytes / (double)is.pairs,
                             8 * (double)is.bytes / (double)is.added, (double)is.merged / (double)is.added, peak.best};
  return !status;
}

/* A new sketch for each run. Checks that it counted what was added. */
static bool run_sketch(const struct pwi_bench_sketch *bench, struct pawl_session *session, const struct speed *speed,
                       const uint64_t *stream, struct speed_figures *figures_out) {
  struct pawl_sketch_options options;
  struct pawl_sketch *sketch;
  pawl_sketch_options_init(&options);
  options.no_top = options.no_distinct = !speed->has_all;
  pawl_status status = pawl_sketch_create(session, SKETCH, &options, PWI_SKETCH_PATIENCE, &sketch);
  if (status) return pwi_bench_sketch_fail(bench, "create", status);
  bool good = pour(bench, sketch, speed, stream, figures_out);
  pawl_sketch_close(sketch);
  status = pawl_sketch_drop(session, SKETCH, PWI_SKETCH_PATIENCE);
  return good && (!status || pwi_bench_sketch_fail(bench, "drop", status));
}

/* --- comparisons ---------------------------------------------------------------------------------------- */

/* 0: not measured */
struct run {
  struct speed_figures is;
  double memory, incr; /* things per second, measured right before */
};

struct line {
  const struct speed *speed;
  struct speed_figures is; /* of the median run */
  double memory;           /* the best of all runs */
  double incr_ratio;       /* the median */
};

static json_t *number_or_null(double value) { return value > 0 ? json_real(value) : json_null(); }

static void print_line(const struct pwi_bench_sketch *bench, const struct line *line) {
  double beside = line->memory > 0 ? line->is.per_second / line->memory : 0;
  if (bench->json) {
    pwi_cli_print_json(bench->command,
                       json_pack("{s:s, s:s, s:b, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:f}", "bench", "sketch", "case",
                                 line->speed->name, "aggregate", !line->speed->no_aggregate, "per_second",
                                 line->is.per_second, "peak_per_second", number_or_null(line->is.peak),
                                 "memory_per_second", number_or_null(line->memory), "memory_ratio",
                                 number_or_null(beside), "incr_ratio", number_or_null(line->incr_ratio),
                                 "bits_per_pair", line->is.bits_per_pair, "bits_per_thing", line->is.bits_per_thing,
                                 "merged", line->is.merged));
    return;
  }
  printf("  %-10s %7.1f million/s, at most %.1f, %4.1f bits per pair, %4.1f bits per thing", line->speed->name,
         line->is.per_second / 1e6, line->is.peak / 1e6, line->is.bits_per_pair, line->is.bits_per_thing);
  if (beside > 0) printf("; %.2f of %.1f in memory", beside, line->memory / 1e6);
  if (line->incr_ratio > 0) printf("; %.0f times INCR", line->incr_ratio);
  printf("\n");
}

static void print_redis(const struct pwi_bench_sketch *bench, double incr, double hincrby) {
  if (bench->json)
    pwi_cli_print_json(bench->command,
                       json_pack("{s:s, s:s, s:o, s:o}", "bench", "sketch", "case", "redis", "incr_per_second",
                                 number_or_null(incr), "hincrby4_per_second", number_or_null(hincrby)));
  else if (incr > 0)
    printf("  %-10s %7.2f million INCR/s, %.2f million/s with four HINCRBY each\n", "redis", incr / 1e6, hincrby / 1e6);
}

static bool start_redis(const struct pwi_bench_sketch *bench, struct pwi_redis **redis_out) {
  bool is_missing;
  *redis_out = NULL;
  if (pwi_redis_start(bench->command, redis_out, &is_missing)) return true;
  if (is_missing) fprintf(stderr, "pawl-bench sketch: redis-server is not installed; measured without it\n");
  return is_missing;
}

/* Without Redis both are 0. */
static bool run_redis(const struct pwi_bench_sketch *bench, struct pwi_redis *redis, const uint64_t *stream) {
  double incr = redis ? pwi_redis_run(redis, PWI_REDIS_INCR, stream, bench->seconds) : 0;
  double hincrby = redis ? pwi_redis_run(redis, PWI_REDIS_HINCRBY4, stream, bench->seconds) : 0;
  print_redis(bench, incr, hincrby);
  return !redis || (incr > 0 && hincrby > 0);
}

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double ratio_of(const struct run *run) { return run->incr > 0 ? run->is.per_second / run->incr : 0; }

static void sum_up(const struct run runs[RUNS], struct line *line) {
  double speeds[RUNS], ratios[RUNS];
  for (int i = 0; i < RUNS; i++) {
    speeds[i] = runs[i].is.per_second;
    ratios[i] = ratio_of(&runs[i]);
    if (runs[i].memory > line->memory) line->memory = runs[i].memory;
  }
  qsort(speeds, RUNS, sizeof *speeds, compare);
  qsort(ratios, RUNS, sizeof *ratios, compare);
  for (int i = 0; i < RUNS; i++)
    if (runs[i].is.per_second == speeds[RUNS / 2]) line->is = runs[i].is;
  line->incr_ratio = ratios[RUNS / 2];
}

/* Several runs, each right after the one that it is compared with, because a shared machine changes over
 * minutes. */
static bool run_line(const struct pwi_bench_sketch *bench, struct pawl_session *session, struct pwi_redis *redis,
                     const uint64_t *stream, struct line *line) {
  struct run runs[RUNS] = {0};
  for (int i = 0; i < RUNS; i++) {
    if (line->speed->is_uniform)
      runs[i].memory = run_memory(stream, bench->seconds / 2);
    else if (redis && (runs[i].incr = pwi_redis_run(redis, PWI_REDIS_INCR, stream, bench->seconds / 2)) <= 0)
      return false;
    if (!run_sketch(bench, session, line->speed, stream, &runs[i].is)) return false;
  }
  sum_up(runs, line);
  print_line(bench, line);
  fflush(stdout);
  return true;
}

static bool run_lines(const struct pwi_bench_sketch *bench, struct pawl_session *session, struct pwi_redis *redis,
                      const uint64_t *zipf, const uint64_t *uniform) {
  static const struct speed speeds[] = {
      {"zipf", false, false, false},
      {"zipf_all", false, false, true},
      {"zipf_raw", false, true, false},
      {"uniform", true, true, false},
  };
  bool good = run_redis(bench, redis, zipf);
  for (size_t i = 0; good && i < sizeof speeds / sizeof *speeds; i++) {
    struct line line = {.speed = &speeds[i]};
    good = run_line(bench, session, redis, speeds[i].is_uniform ? uniform : zipf, &line);
  }
  return good;
}

bool pwi_bench_sketch_speed(const struct pwi_bench_sketch *bench) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  struct pwi_redis *redis = NULL;
  uint64_t *zipf = pwi_stream_zipf(bench->things, bench->seed), *uniform = pwi_stream_uniform(bench->seed);
  bool good = zipf && uniform;
  if (!good) pwi_cli_failure(bench->command, "out of memory");
  good = good && start_redis(bench, &redis);
  pawl_session_options_init(&options);
  options.servers = options.shards = 1;
  options.tcp_only = bench->is_tcp;
  pawl_status status = good ? pawl_session_open(&options, &session) : PAWL_OK;
  if (status) good = pwi_bench_sketch_fail(bench, "cluster", status);
  good = good && run_lines(bench, session, redis, zipf, uniform);
  pawl_session_close(session, PWI_SKETCH_PATIENCE);
  pwi_redis_stop(redis);
  pwi_free(zipf);
  pwi_free(uniform);
  return good;
}
