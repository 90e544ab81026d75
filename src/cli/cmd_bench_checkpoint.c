/* `pawl bench checkpoint`: how fast a checkpoint is saved and loaded, and what pushes notice of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pawl/checkpoint.h>
#include <pawl/session.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/bench_checkpoint.h"
#include "cli/role_options.h"
#include "host/clock.h"
#include "role/saved.h"

enum { LETTER_SERVERS = 300, LETTER_GIGABYTES, LETTER_RATE, LETTER_DIR, LETTER_SECONDS };

#define VECTOR "bench/checkpoint"
#define PATIENCE (300 * PAWL_SECOND)
#define PUSH_KEYS ((uint64_t)1 << 18) /* of one push: a megabyte */
#define OUTSTANDING 8

struct bench {
  const struct pwi_command *command;
  uint32_t servers;
  double gigabytes, seconds;
  uint64_t rate;
  const char *directory;
  bool json;

  struct pawl_session *session;
  struct pawl_vector *vector;
  uint64_t keys;
  float *values;
};

struct figures {
  double save_gbps, load_gbps;
  double quiet_gbps, saving_gbps; /* of pushes */
  uint64_t bytes;
};

static bool failed(const struct bench *bench, const char *what) {
  pwi_cli_failure(bench->command, "%s: %s", what, pawl_error_text());
  return false;
}

static double seconds_since(int64_t began) { return (double)(pwi_host_now() - began) / 1e9; }

/* --- pushes ----------------------------------------------------------------------------------------------------------- */

/* Pushes a megabyte at a time, some under way, until `until` or, if that is 0, once over all keys. The bytes. */
static bool push(struct bench *bench, int64_t until, uint64_t *bytes_out) {
  struct pawl_task *tasks[OUTSTANDING] = {0};
  uint64_t count = 0, bytes = 0;
  bool good = true;
  for (uint64_t at = 0; good && (until ? pwi_host_now() < until : at < bench->keys); count++) {
    struct pawl_task **task = &tasks[count % OUTSTANDING];
    if (*task) good = pawl_task_finish(*task, PATIENCE) == PAWL_OK;
    *task = NULL;
    good = good && pawl_vector_push(bench->vector, pawl_at_range(at, at + PUSH_KEYS), bench->values, task) == PAWL_OK;
    bytes += PUSH_KEYS * sizeof(float);
    at += PUSH_KEYS;
    if (until && at >= bench->keys) at = 0;
  }
  for (size_t i = 0; i < OUTSTANDING; i++)
    if (tasks[i] && pawl_task_finish(tasks[i], PATIENCE)) good = false;
  *bytes_out = bytes;
  return good ? true : failed(bench, "push");
}

static bool measure_pushes(struct bench *bench, double seconds, double *gbps_out) {
  uint64_t bytes;
  int64_t began = pwi_host_now();
  if (!push(bench, began + (int64_t)(seconds * 1e9), &bytes)) return false;
  *gbps_out = (double)bytes / 1e9 / seconds_since(began);
  return true;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------------- */

static void remove_saved(const struct bench *bench, const char *name) {
  struct pwi_files *files;
  if (pwi_files_posix_open(bench->directory, &files)) return;
  if (pwi_saved_remove(files, name)) fprintf(stderr, "%s/%s stays behind\n", bench->directory, name);
  pwi_files_posix_close(files);
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

struct slow {
  struct bench *bench;
  pawl_status status;
};

/* In a thread of its own: a checkpoint that is saved slowly. */
static void *save_slowly(void *argument) {
  struct slow *slow = argument;
  struct pawl_checkpoint_options options;
  pawl_checkpoint_options_init(&options);
  options.directory = slow->bench->directory;
  options.name = "bench-slow";
  options.rate = slow->bench->rate;
  slow->status = pawl_checkpoint_save(slow->bench->session, &options, NULL);
  return NULL;
}

static bool measure_slowdown(struct bench *bench, struct figures *figures) {
  struct slow slow = {.bench = bench};
  pthread_t thread;
  double warm;
  if (!measure_pushes(bench, 1, &warm) || !measure_pushes(bench, bench->seconds, &figures->quiet_gbps)) return false;
  if (pthread_create(&thread, NULL, save_slowly, &slow) != 0) return failed(bench, "a thread");
  usleep(300000);
  bool good = measure_pushes(bench, bench->seconds, &figures->saving_gbps);
  pthread_join(thread, NULL);
  if (slow.status)
    pwi_cli_failure(bench->command, "the slow checkpoint: %s", pawl_status_text(slow.status));
  else
    remove_saved(bench, "bench-slow");
  return good && !slow.status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

static bool open_bench(struct bench *bench) {
  struct pawl_session_options options;
  struct pawl_vector_options vector;
  pawl_session_options_init(&options);
  options.servers = bench->servers;
  options.timeout_ns = PATIENCE;
  if (pawl_session_open(&options, &bench->session)) return failed(bench, "cannot start a cluster");
  pawl_vector_options_init(&vector);
  bench->keys = (uint64_t)(bench->gigabytes * 1e9 / sizeof(float)) / PUSH_KEYS * PUSH_KEYS;
  if (bench->keys == 0) bench->keys = PUSH_KEYS;
  vector.size = bench->keys;
  vector.layout = PAWL_LAYOUT_DENSE;
  if (pawl_vector_create(bench->session, VECTOR, &vector, PATIENCE, &bench->vector)) return failed(bench, "create");
  if (pawl_buffer_create(bench->session, PUSH_KEYS * sizeof(float), (void **)&bench->values))
    return failed(bench, "buffer");
  for (uint64_t i = 0; i < PUSH_KEYS; i++) bench->values[i] = (float)i;
  uint64_t bytes;
  return push(bench, 0, &bytes);
}

static int print(const struct bench *bench, const struct figures *figures) {
  double slowdown = figures->quiet_gbps > 0 ? 1 - figures->saving_gbps / figures->quiet_gbps : 0;
  if (bench->json)
    return pwi_cli_print_json(bench->command,
                              json_pack("{s:s, s:i, s:I, s:f, s:f, s:I, s:f, s:f, s:f}", "bench", "checkpoint",
                                        "servers", (int)bench->servers, "bytes", (json_int_t)figures->bytes,
                                        "save_gbps", figures->save_gbps, "load_gbps", figures->load_gbps, "rate",
                                        (json_int_t)bench->rate, "push_gbps", figures->quiet_gbps, "push_gbps_saving",
                                        figures->saving_gbps, "slowdown", slowdown));
  printf("saved %.2f GB at %.2f GB/s, loaded at %.2f GB/s\n", (double)figures->bytes / 1e9, figures->save_gbps,
         figures->load_gbps);
  printf("pushes: %.2f GB/s, and %.2f GB/s while a checkpoint is saved at %.0f MB/s: %.1f %% slower\n",
         figures->quiet_gbps, figures->saving_gbps, (double)bench->rate / 1e6, 100 * slowdown);
  return PWI_EXIT_OK;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct bench bench = {
      .command = command, .servers = 2, .gigabytes = 1, .seconds = 3, .rate = 200000000, .directory = "/dev/shm"};
  struct figures figures = {0};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_FAILURE;
  uint64_t number;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    bool good = true;
    if (letter == LETTER_SERVERS) {
      good = pwi_cli_number(args.value, &number) && number > 0 && number <= 64;
      bench.servers = (uint32_t)number;
    }
    if (letter == LETTER_GIGABYTES) good = (bench.gigabytes = atof(args.value)) > 0;
    if (letter == LETTER_SECONDS) good = (bench.seconds = atof(args.value)) > 0;
    if (letter == LETTER_RATE) good = pwi_role_size(args.value, &bench.rate);
    if (letter == LETTER_DIR) good = (bench.directory = args.value)[0] == '/';
    if (letter == PWI_CLI_LETTER_JSON) bench.json = true;
    if (!good) return pwi_cli_usage(command, "'%s' is not what the option takes", args.value);
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (open_bench(&bench) && measure_save(&bench, &figures) && measure_slowdown(&bench, &figures))
    exit_code = print(&bench, &figures);
  if (bench.values) pawl_buffer_destroy(bench.session, bench.values);
  if (bench.session) pawl_session_close(bench.session, PATIENCE);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_SERVERS, "servers", "N", "server processes (default: 2)"},
    {LETTER_GIGABYTES, "gigabytes", "N", "of the vector that is saved (default: 1)"},
    {LETTER_RATE, "rate", "BYTES", "a second, of the checkpoint that is saved beside pushes (default: 200 MB)"},
    {LETTER_DIR, "dir", "DIR", "where to save, an absolute path (default: /dev/shm)"},
    {LETTER_SECONDS, "seconds", "N", "of pushing, without and with a checkpoint (default: 3)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_checkpoint = {
    .name = "bench checkpoint",
    .summary = "measure saving and loading, and what pushes notice of it",
    .text = "Starts a cluster on this machine, saves a vector as fast as it goes and loads it\n"
            "again; then pushes without pause, alone and while a checkpoint is saved at a\n"
            "limited rate.\n",
    .options = options,
    .run = run,
};
