/* `pawl-bench checkpoint`: how fast a checkpoint is saved and loaded, and how much it slows pushes down. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/checkpoint.h>
#include <pawl/session.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#include "base/memory.h"
#include "bench.h"
#include "checkpoint.h"
#include "cpu.h"
#include "cli/role_options.h"
#include "host/clock.h"

enum { LETTER_SERVERS = 300, LETTER_GIGABYTES, LETTER_RATE, LETTER_DIR, LETTER_SECONDS, LETTER_ROUNDS };

#define VECTOR "bench/checkpoint"
#define PATIENCE (300 * PAWL_SECOND)
#define PUSH_KEYS ((uint64_t)1 << 18) /* keys per push: a megabyte */
#define OUTSTANDING 8
#define SLOW "bench-slow"
#define ROUNDS_MAX 100

struct bench {
  const struct pwi_command *command;
  uint32_t servers, rounds;
  double gigabytes, seconds;
  uint64_t rate;
  const char *directory;
  bool json;

  struct pawl_session *session;
  struct pawl_vector *vector;
  uint64_t keys;
  float *values;
};

/* A period of pushing. */
struct pushed {
  double gbps;
  double cost; /* processor seconds per gigabyte, of all processes */
};

/* A checkpoint beside pushes, compared with the periods before and after it. */
struct round {
  double quiet_gbps, saving_gbps;
  double slowdown;
  /* additional processor time per pushed gigabyte, relative to periods without a checkpoint */
  double extra_cpu;
  double rate; /* the actual rate of the checkpoint */
};

struct figures {
  double save_gbps, load_gbps;
  uint64_t bytes;
  struct round median;
};

static bool failed(const struct bench *bench, const char *what) {
  pwi_cli_failure(bench->command, "%s: %s", what, pawl_error_text());
  return false;
}

static double seconds_since(int64_t began) { return (double)(pwi_host_now() - began) / 1e9; }

/* --- pushes --------------------------------------------------------------------------------------------- */

/* When to stop: at a time, or when `is_over` is set; if both are 0: after one push to each key. */
struct until {
  int64_t time;
  const atomic_bool *is_over;
};

static bool goes_on(const struct bench *bench, const struct until *until, uint64_t count) {
  if (until->is_over) return !atomic_load_explicit(until->is_over, memory_order_acquire);
  return until->time ? pwi_host_now() < until->time : count * PUSH_KEYS < bench->keys;
}

/* Pushes a megabyte at a time, several under way, over all keys repeatedly. Counts the bytes. */
static bool push(struct bench *bench, const struct until *until, uint64_t *bytes_out) {
  struct pawl_task *tasks[OUTSTANDING] = {0};
  uint64_t count = 0;
  bool good = true;
  for (; good && goes_on(bench, until, count); count++) {
    struct pawl_task **task = &tasks[count % OUTSTANDING];
    uint64_t at = count * PUSH_KEYS % bench->keys;
    if (*task) good = pawl_task_finish(*task, PATIENCE) == PAWL_OK;
    *task = NULL;
    good = good && pawl_vector_push(bench->vector, pawl_at_range(at, at + PUSH_KEYS), bench->values, task) == PAWL_OK;
  }
  for (size_t i = 0; i < OUTSTANDING; i++)
    if (tasks[i] && pawl_task_finish(tasks[i], PATIENCE)) good = false;
  *bytes_out = count * PUSH_KEYS * sizeof(float);
  return good ? true : failed(bench, "push");
}

static bool measure_pushes(struct bench *bench, const struct until *until, struct pushed *pushed_out) {
  uint64_t bytes;
  double cpu = pwi_bench_cpu();
  int64_t began = pwi_host_now();
  if (!push(bench, until, &bytes)) return false;
  double seconds = seconds_since(began), gigabytes = (double)bytes / 1e9;
  *pushed_out = (struct pushed){.gbps = gigabytes / seconds, .cost = (pwi_bench_cpu() - cpu) / gigabytes};
  return true;
}

static bool measure_quiet(struct bench *bench, struct pushed *pushed_out) {
  struct until until = {.time = pwi_host_now() + (int64_t)(bench->seconds * 1e9)};
  return measure_pushes(bench, &until, pushed_out);
}

/* A vector with a value in each row. */
static bool make_vector(struct bench *bench, double gigabytes) {
  struct pawl_vector_options options;
  struct until once = {0};
  uint64_t bytes;
  pawl_vector_options_init(&options);
  bench->keys = (uint64_t)(gigabytes * 1e9 / sizeof(float)) / PUSH_KEYS * PUSH_KEYS;
  if (bench->keys == 0) bench->keys = PUSH_KEYS;
  options.size = bench->keys;
  options.layout = PAWL_LAYOUT_DENSE;
  if (pawl_vector_create(bench->session, VECTOR, &options, PATIENCE, &bench->vector)) return failed(bench, "create");
  return push(bench, &once, &bytes);
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */

static void remove_saved(const struct bench *bench, const char *name) {
  if (pawl_checkpoint_remove(bench->directory, name))
    fprintf(stderr, "%s/%s was not removed\n", bench->directory, name);
}

static bool measure_save(struct bench *bench, struct figures *figures) {
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  pawl_checkpoint_options_init(&options);
  options.directory = bench->directory;
  options.name = "bench-fast";
  int64_t began = pwi_host_now();
  if (pawl_checkpoint_save(bench->session, &options, &info)) return failed(bench, "save");
  figures->bytes = info.bytes;
  figures->save_gbps = (double)info.bytes / 1e9 / seconds_since(began);
  began = pwi_host_now();
  options.unverified = true;
  if (pawl_checkpoint_load(bench->session, &options, &info)) return failed(bench, "load");
  figures->load_gbps = (double)info.bytes / 1e9 / seconds_since(began);
  remove_saved(bench, options.name);
  return true;
}

/* --- effect on pushes ----------------------------------------------------------------------------------- */

struct slow {
  struct bench *bench;
  atomic_bool is_over;
  pawl_status status;
  double rate; /* the rate that it reached */
};

/* In a thread of its own: saves a checkpoint slowly. */
static void *save_slowly(void *argument) {
  struct slow *slow = argument;
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info = {0};
  int64_t began = pwi_host_now();
  pawl_checkpoint_options_init(&options);
  options.directory = slow->bench->directory;
  options.name = SLOW;
  options.rate = slow->bench->rate;
  slow->status = pawl_checkpoint_save(slow->bench->session, &options, &info);
  slow->rate = (double)info.bytes / seconds_since(began);
  atomic_store_explicit(&slow->is_over, true, memory_order_release);
  return NULL;
}

/* From the request to the manifest, including the cuts, which come in bursts. */
static bool measure_saving(struct bench *bench, struct pushed *pushed_out, double *rate_out) {
  struct slow slow = {.bench = bench};
  struct until until = {.is_over = &slow.is_over};
  pthread_t thread;
  if (pthread_create(&thread, NULL, save_slowly, &slow) != 0) return failed(bench, "a thread");
  bool good = measure_pushes(bench, &until, pushed_out);
  pthread_join(thread, NULL);
  if (slow.status) {
    pwi_cli_failure(bench->command, "the slow checkpoint: %s", pawl_status_text(slow.status));
    return false;
  }
  remove_saved(bench, SLOW);
  *rate_out = slow.rate;
  return good;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* The median of one field over all rounds. */
static double median(const struct round *rounds, size_t count, size_t field) {
  double values[ROUNDS_MAX];
  for (size_t i = 0; i < count; i++) memcpy(&values[i], (const char *)&rounds[i] + field, sizeof *values);
  qsort(values, count, sizeof *values, compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Each checkpoint is compared with the periods right before and after it, so slow changes of the machine's
 * speed do not matter. The median of all rounds ignores disturbed ones. */
static bool measure_round(struct bench *bench, struct pushed *quiet, struct round *round_out) {
  struct pushed before = *quiet, saving;
  if (!measure_saving(bench, &saving, &round_out->rate) || !measure_quiet(bench, quiet)) return false;
  round_out->quiet_gbps = (before.gbps + quiet->gbps) / 2;
  round_out->saving_gbps = saving.gbps;
  round_out->slowdown = 1 - saving.gbps / round_out->quiet_gbps;
  round_out->extra_cpu = 2 * saving.cost / (before.cost + quiet->cost) - 1;
  return true;
}

static bool measure_slowdown(struct bench *bench, struct figures *figures) {
  struct round rounds[ROUNDS_MAX];
  struct pushed quiet;
  size_t count = bench->rounds;
  /* the first one is a warm-up */
  if (!measure_quiet(bench, &quiet) || !measure_quiet(bench, &quiet)) return false;
  for (size_t i = 0; i < count; i++)
    if (!measure_round(bench, &quiet, &rounds[i])) return false;
  figures->median = (struct round){
      .quiet_gbps = median(rounds, count, offsetof(struct round, quiet_gbps)),
      .saving_gbps = median(rounds, count, offsetof(struct round, saving_gbps)),
      .slowdown = median(rounds, count, offsetof(struct round, slowdown)),
      .extra_cpu = median(rounds, count, offsetof(struct round, extra_cpu)),
      .rate = median(rounds, count, offsetof(struct round, rate)),
  };
  return true;
}

/* A checkpoint contains all vectors: deletes the large one and creates another that can be saved in about
 * a second. */
static bool change_vector(struct bench *bench) {
  pawl_vector_close(bench->vector);
  if (pawl_vector_delete(bench->session, VECTOR, PATIENCE)) return failed(bench, "delete");
  return make_vector(bench, bench->gigabytes / 4);
}

/* --- the benchmark -------------------------------------------------------------------------------------- */

static bool open_bench(struct bench *bench) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.servers = bench->servers;
  options.timeout_ns = PATIENCE;
  if (pawl_session_open(&options, &bench->session)) return failed(bench, "cannot start a cluster");
  if (pawl_buffer_create(bench->session, PUSH_KEYS * sizeof(float), (void **)&bench->values))
    return failed(bench, "buffer");
  for (uint64_t i = 0; i < PUSH_KEYS; i++) bench->values[i] = (float)i;
  return make_vector(bench, bench->gigabytes);
}

static int print(const struct bench *bench, const struct figures *figures) {
  const struct round *median = &figures->median;
  if (bench->json)
    return pwi_cli_print_json(
        bench->command,
        json_pack("{s:s, s:i, s:I, s:f, s:f, s:I, s:I, s:i, s:o, s:o, s:o, s:o}", "bench", "checkpoint", "servers",
                  (int)bench->servers, "bytes", (json_int_t)figures->bytes, "save_gbps", figures->save_gbps,
                  "load_gbps", figures->load_gbps, "rate", (json_int_t)bench->rate, "rate_reached",
                  (json_int_t)median->rate, "rounds", (int)bench->rounds, "push_gbps",
                  pwi_bench_number(median->quiet_gbps), "push_gbps_saving", pwi_bench_number(median->saving_gbps),
                  "slowdown", pwi_bench_number(median->slowdown), "extra_cpu", pwi_bench_number(median->extra_cpu)));
  printf("saved %.2f GB at %.2f GB/s, loaded at %.2f GB/s\n", (double)figures->bytes / 1e9, figures->save_gbps,
         figures->load_gbps);
  printf("pushes: %.2f GB/s alone, %.2f GB/s while a checkpoint is saved at %.0f MB/s\n", median->quiet_gbps,
         median->saving_gbps, median->rate / 1e6);
  printf("  %.1f %% slower, at %.1f %% more processor time, in the median of %u rounds\n", 100 * median->slowdown,
         100 * median->extra_cpu, bench->rounds);
  return PWI_EXIT_OK;
}

static bool read_option(void *context, int letter, const char *value) {
  struct bench *bench = context;
  switch (letter) {
  case LETTER_SERVERS:
    return pwi_bench_count(value, 1, 64, &bench->servers);
  case LETTER_ROUNDS:
    return pwi_bench_count(value, 1, ROUNDS_MAX, &bench->rounds);
  case LETTER_GIGABYTES:
    return (bench->gigabytes = atof(value)) > 0;
  case LETTER_SECONDS:
    return (bench->seconds = atof(value)) > 0;
  case LETTER_RATE:
    return pwi_role_size(value, &bench->rate);
  case LETTER_DIR:
    return (bench->directory = value)[0] == '/';
  default:
    bench->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct bench bench = {.command = command,
                        .servers = 2,
                        .rounds = 7,
                        .gigabytes = 1,
                        .seconds = 0.5,
                        .rate = 200000000,
                        .directory = "/dev/shm"};
  struct figures figures = {0};
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &bench, &exit_code)) return exit_code;
  exit_code = PWI_EXIT_FAILURE;
  if (open_bench(&bench) && measure_save(&bench, &figures) && change_vector(&bench) &&
      measure_slowdown(&bench, &figures))
    exit_code = print(&bench, &figures);
  if (bench.values) pawl_buffer_destroy(bench.session, bench.values);
  if (bench.session) pawl_session_close(bench.session, PATIENCE);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_SERVERS, "servers", "N", "server processes (default: 2)"},
    {LETTER_GIGABYTES, "gigabytes", "N", "size of the vector in GB (default: 1)"},
    {LETTER_RATE, "rate", "BYTES", "bytes/s of checkpoints saved beside pushes (default: 200 MB)"},
    {LETTER_DIR, "dir", "DIR", "absolute path to save to (default: /dev/shm)"},
    {LETTER_ROUNDS, "rounds", "N", "checkpoints saved beside pushes (default: 7)"},
    {LETTER_SECONDS, "seconds", "N", "seconds of pushing alone between them (default: 0.5)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_checkpoint = {
    .name = "checkpoint",
    .summary = "measure saving and loading, and how much pushes slow down",
    .text = "Starts a cluster on this machine, saves a vector at full speed and loads it\n"
            "again; then pushes continuously, alone and while a checkpoint is saved at a\n"
            "limited rate, in turns. The slowdown is the median of all turns.\n",
    .options = options,
    .run = run,
};
