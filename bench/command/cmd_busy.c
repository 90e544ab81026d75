/* `pawl-bench busy`: push and pull beside busy loops, compared with a blocking send/recv loop beside the same
 * loops.
 *
 * A worker and a server that take turns lose to other processes at every hand-over, because the process that is
 * woken waits for a core. The blocking loop has the fewest hand-overs that a request and its answer can have. The
 * two take turns in rounds. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "busy.h"
#include "kv.h"
#include "net.h"

#define VECTOR "bench/busy"
#define ROUNDS 5
#define LOOPS_MAX 64
#define LEVELS_MAX 8
#define PINGS 200
#define PING_SIZE 64

enum { LETTER_LOOPS = 300, LETTER_TRANSPORT, LETTER_SECONDS };

struct busy_options {
  struct pwi_kv_options kv;
  uint32_t levels[LEVELS_MAX]; /* numbers of loops per core */
  size_t level_count;
};

/* --- loops ---------------------------------------------------------------------------------------------- */

struct loops {
  pid_t children[LOOPS_MAX];
  size_t count;
};

/* All loops are made at the beginning, before there are threads, and stand still. */
static void start_loops(struct loops *loops, size_t count) {
  for (loops->count = 0; loops->count < count; loops->count++) {
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      raise(SIGSTOP);
      for (volatile uint64_t turns = 0;; turns++) continue;
    }
    waitpid(child, NULL, WUNTRACED);
    loops->children[loops->count] = child;
  }
}

static void run_loops(const struct loops *loops, size_t running) {
  for (size_t i = 0; i < loops->count; i++) kill(loops->children[i], i < running ? SIGCONT : SIGSTOP);
}

static void end_loops(struct loops *loops) {
  for (size_t i = 0; i < loops->count; i++) {
    kill(loops->children[i], SIGKILL);
    waitpid(loops->children[i], NULL, 0);
  }
}

/* --- measuring ------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double values[ROUNDS]) {
  qsort(values, ROUNDS, sizeof *values, compare);
  return values[ROUNDS / 2];
}

/* GB/s of exchanges, one after another. */
static double exchange(struct pwi_baseline *baseline, bool is_pull, size_t size, double seconds) {
  double begin = pwi_bench_now(), times = 0;
  do {
    pwi_baseline_exchange(baseline, is_pull);
    times++;
  } while (pwi_bench_now() - begin < seconds);
  return times * (double)size / (pwi_bench_now() - begin) / 1e9;
}

static void print(const struct busy_options *options, uint32_t loops, const struct pwi_kv_job *job, enum pwi_kv_op op,
                  double value, double blocking) {
  bool is_time = job->kind == PWI_KV_ONE;
  const char *unit, *name = pwi_kv_op_name(op), *transport = options->kv.tcp ? "tcp" : "auto";
  pwi_kv_units(job, &unit);
  double ratio = is_time ? blocking / value : value / blocking;
  if (options->kv.json)
    pwi_cli_print_json(options->kv.command,
                       json_pack("{s:s, s:i, s:s, s:s, s:s, s:f, s:s, s:f, s:f}", "bench", "busy", "loops_per_core",
                                 (int)loops, "case", job->name, "op", name, "transport", transport, "value", value,
                                 "unit", unit, "blocking", blocking, "speed_ratio", ratio));
  else
    printf("%5u  %-8s %-5s %-5s %10.3f %-5s %10.3f %8.2f\n", loops, job->name, name, transport, value, unit, blocking,
           ratio);
  fflush(stdout);
}

static bool measure(const struct busy_options *options, uint32_t loops, const struct pwi_kv_job *job, enum pwi_kv_op op,
                    struct pwi_kv_crew *crew, struct pwi_baseline *baseline) {
  static struct pwi_kv_tally tally;
  double values[ROUNDS], blocking[ROUNDS], each = options->kv.seconds / ROUNDS;
  const char *unit;
  double units = pwi_kv_units(job, &unit);
  bool is_time = job->kind == PWI_KV_ONE;
  for (int i = -1; i < ROUNDS; i++) { /* round -1 is a warm-up */
    int round = i < 0 ? 0 : i;
    if (!pwi_kv_crew_run(crew, op, each, &tally)) return false;
    values[round] = is_time ? (double)pwi_histogram_percentile(&tally.times, 50) / 1e3 : units * tally.per_second;
    blocking[round] = is_time ? pwi_baseline_rtt(baseline, PINGS, 0)
                              : exchange(baseline, op == PWI_KV_PULL, (size_t)job->count * sizeof(float), each);
  }
  print(options, loops, job, op, median(values), median(blocking));
  return true;
}

static bool run_case(const struct busy_options *options, const char *name, const struct loops *loops, size_t cores) {
  const struct pwi_kv_options *kv = &options->kv;
  struct pwi_kv_job job;
  struct pwi_kv_crew *crew = NULL;
  struct pawl_vector *vector = NULL;
  pwi_kv_find_job(kv, name, &job);
  size_t size = job.kind == PWI_KV_ONE ? PING_SIZE : (size_t)job.count * sizeof(float);
  struct pwi_baseline *baseline = pwi_baseline_start("tcp", size); /* forks, so it comes first */
  bool good = baseline && pwi_kv_crew_start(kv, 1, &crew) &&
              pwi_kv_fill(pwi_kv_crew_session(crew), kv, &job, VECTOR, &vector) && pwi_kv_crew_open(crew, &job, VECTOR);
  for (size_t i = 0; good && i < options->level_count; i++) {
    run_loops(loops, options->levels[i] * cores);
    for (int op = PWI_KV_PUSH; good && op <= PWI_KV_PULL; op++)
      good = measure(options, options->levels[i], &job, (enum pwi_kv_op)op, crew, baseline);
    run_loops(loops, 0);
  }
  if (vector) pawl_vector_close(vector);
  pwi_kv_crew_stop(crew);
  pwi_baseline_stop(baseline);
  return good;
}

/* --- the command ---------------------------------------------------------------------------------------- */

static bool read_levels(const char *text, struct busy_options *options) {
  char part[8];
  options->level_count = 0;
  while (*text) {
    size_t size = strcspn(text, ",");
    if (size == 0 || size >= sizeof part || options->level_count == LEVELS_MAX) return false;
    memcpy(part, text, size);
    part[size] = '\0';
    if (!pwi_bench_count(part, 0, 16, &options->levels[options->level_count++])) return false;
    text += size;
    if (*text == ',' && *++text == '\0') return false;
  }
  return options->level_count > 0;
}

static bool read_option(void *context, int letter, const char *value) {
  struct busy_options *options = context;
  switch (letter) {
  case LETTER_LOOPS:
    return read_levels(value, options);
  case LETTER_TRANSPORT:
    return pwi_bench_transport(value, &options->kv.tcp);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, 600, &options->kv.seconds);
  default:
    options->kv.json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  static const char *const cases[] = {"dense4m", "onekey"};
  struct busy_options options = {
      .kv = {.command = command, .workers = 1, .servers = 1, .shards = 1, .tcp = true, .quick = false, .seconds = 2},
      .levels = {0, 1, 2, 4},
      .level_count = 4};
  struct loops loops;
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  size_t most = 0;
  for (size_t i = 0; i < options.level_count; i++)
    if (options.levels[i] * (size_t)cores > most) most = options.levels[i] * (size_t)cores;
  if (most > LOOPS_MAX) return pwi_cli_usage(command, "--loops: more than %d loops on %ld cores", LOOPS_MAX, cores);
  start_loops(&loops, most);
  bool good = loops.count == most;
  if (!good) pwi_cli_failure(command, "cannot start %zu busy loops", most);
  if (!options.kv.json) {
    pwi_bench_print_machine();
    printf("\nloops  case     op    by         value unit    blocking   faster\n");
  }
  for (size_t i = 0; good && i < sizeof cases / sizeof *cases; i++)
    good = run_case(&options, cases[i], &loops, (size_t)cores);
  end_loops(&loops);
  return good ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}

static const struct pwi_cli_option options[] = {
    {LETTER_LOOPS, "loops", "LIST", "busy loops per core (default: 0,1,2,4)"},
    {LETTER_TRANSPORT, "transport", "KIND", "tcp, or auto: shared memory (default: tcp)"},
    {LETTER_SECONDS, "seconds", "S", "seconds per operation (default: 2)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_busy = {
    .name = "busy",
    .summary = "measure push and pull on a machine that others use",
    .text = "Starts busy loops on every core, a server and a worker. Pushes and pulls 4 MB, and\n"
            "single keys, beside the loops. Prints each figure beside that of a blocking\n"
            "send/recv loop over TCP in the same run. Values are medians of five rounds; the\n"
            "last column is above 1 where pawl is faster.\n\n"
            "  pawl-bench busy\n"
            "  pawl-bench busy --loops 0,2 --transport auto --json\n",
    .options = options,
    .run = run,
};
