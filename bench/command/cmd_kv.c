/* `pawl-bench kv`: push and pull against servers in other processes, compared with the limits of the
 * machine. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "kv.h"

enum {
  LETTER_CASE = 300,
  LETTER_OP,
  LETTER_WORKERS,
  LETTER_SERVERS,
  LETTER_SHARDS,
  LETTER_TRANSPORT,
  LETTER_SECONDS,
  LETTER_QUICK,
  LETTER_CLUSTER,
  LETTER_KEYS,
  LETTER_REPLICAS,
  LETTER_OUTSTANDING,
};

#define PROCESSES_MAX 64
#define SECONDS_MAX 600
#define REPLICAS_MAX 5

/* --- the cases ------------------------------------------------------------------------------------------ */

#define MILLION UINT64_C(1000000)

struct kv_case {
  struct pwi_kv_job job;
  uint64_t quick; /* divisor of sizes in quick runs */
  bool (*run)(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
};

static const struct kv_case cases[] = {
    {{"dense4m", PWI_KV_DENSE, MILLION, MILLION, MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"dense16m", PWI_KV_DENSE, 4 * MILLION, 4 * MILLION, 4 * MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"cached1e5", PWI_KV_CACHED, MILLION / 10, MILLION, 100 * MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"cached1e6", PWI_KV_CACHED, MILLION, 10 * MILLION, 100 * MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"fresh1e6", PWI_KV_FRESH, MILLION, 10 * MILLION, 100 * MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"random1e6", PWI_KV_RANDOM, MILLION, MILLION, PAWL_KEY_END, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"onekey", PWI_KV_ONE, 1, MILLION, MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"onekey64", PWI_KV_MANY, 1, MILLION, MILLION, false, 1, 0, 0}, 100, pwi_kv_case_speed},
    {{"balance", PWI_KV_BALANCE, 1, MILLION, MILLION, false, 1, 0, 0}, 100, pwi_kv_case_balance},
    {{"memory", PWI_KV_MEMORY, MILLION, 100 * MILLION, 0, false, 1, 0, 0}, 100, pwi_kv_case_memory},
    {{"replicas", PWI_KV_BESIDE, 1, 1, 1, false, 1, 0, 0}, 1, pwi_kv_case_replicas},
    {{"together", PWI_KV_BESIDE, 1, 1, 1, false, 1, 0, 8}, 1, pwi_kv_case_aggregate},
};
#define CASES (sizeof cases / sizeof *cases)

static struct pwi_kv_job job_of(const struct pwi_kv_options *options, const struct kv_case *which) {
  struct pwi_kv_job job = which->job;
  bool is_one = job.kind == PWI_KV_ONE || job.kind == PWI_KV_MANY;
  if (options->quick) {
    if (job.span == job.rows) job.span /= which->quick;
    job.rows /= which->quick;
    if (job.count > 1) job.count /= which->quick;
  }
  if (!is_one && job.kind != PWI_KV_RANDOM && options->outstanding) job.outstanding = options->outstanding;
  return job;
}

void pwi_kv_find_job(const struct pwi_kv_options *options, const char *name, struct pwi_kv_job *job_out) {
  size_t i = 0;
  while (strcmp(cases[i].job.name, name) != 0) i++;
  *job_out = job_of(options, &cases[i]);
}

static bool run_case(const struct pwi_kv_options *options, const struct kv_case *which) {
  struct pwi_kv_options settled = *options;
  struct pwi_kv_job job = job_of(options, which);
  if (settled.workers == 0) settled.workers = job.aggregate ? job.aggregate : 1;
  return which->run(&settled, &job);
}

/* --- printing ------------------------------------------------------------------------------------------- */

/* Unknown for a cluster that was not started here. */
static json_t *size_of(const struct pwi_kv_options *options, uint32_t count) {
  return options->cluster ? json_null() : json_integer((json_int_t)count);
}

static void print_json(const struct pwi_kv_options *options, const struct pwi_kv_figures *figures) {
  json_t *outstanding = figures->outstanding ? json_integer(figures->outstanding) : json_null();
  json_t *object = json_pack(
      "{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o, s:o, s:o}", "bench", "kv", "case", figures->name,
      "op", figures->op, "workers", (int)options->workers, "servers", size_of(options, options->servers), "shards",
      size_of(options, options->shards), "replicas", size_of(options, options->replicas), "outstanding", outstanding,
      "transport", options->tcp ? "tcp" : "auto", "value", pwi_bench_number(figures->value), "unit", figures->unit,
      "limit", pwi_bench_number(figures->limit), "p99", pwi_bench_number(figures->p99_us), "cpu_s_per_unit",
      pwi_bench_number(figures->cpu_s_per_unit));
  if (figures->ratio > 0) json_object_set_new(object, "ratio", json_real(figures->ratio));
  if (figures->single > 0) {
    json_object_set_new(object, "single", json_real(figures->single));
    json_object_set_new(object, "single_ratio", json_real(figures->single_ratio));
  }
  if (figures->has_replicas) {
    json_object_set_new(object, "passed_ratio", json_real(figures->passed_ratio));
  }
  if (figures->what) json_object_set_new(object, figures->what, json_string(figures->which));
  if (figures->part) json_object_set_new(object, "of", json_string(figures->part));
  pwi_cli_print_json(options->command, object);
}

static void print_head(void) {
  printf("%-10s %-9s %-17s %10s %-8s %10s %8s %12s %12s\n", "case", "op", "", "value", "unit", "limit", "of limit",
         "p99 us", "cpu s/unit");
}

/* `digits` behind the point; below 0: three significant ones. */
static void print_cell(int width, int digits, double value) {
  if (!isfinite(value))
    printf(" %*s", width, "-");
  else if (digits < 0)
    printf(" %*.3g", width, value);
  else
    printf(" %*.*f", width, digits, value);
}

static void print_row(const struct pwi_kv_figures *figures) {
  char more[32] = "";
  if (figures->what) snprintf(more, sizeof more, "%s %s", figures->which, figures->part ? figures->part : "");
  printf("%-10s %-9s %-17s", figures->name, figures->op, more);
  print_cell(10, 3, figures->value);
  printf(" %-8s", figures->unit);
  print_cell(10, 3, figures->limit);
  print_cell(8, 2, figures->ratio > 0 ? figures->ratio : figures->value / figures->limit);
  print_cell(12, 1, figures->p99_us);
  print_cell(12, -1, figures->cpu_s_per_unit);
  putchar('\n');
}

void pwi_kv_print(const struct pwi_kv_options *options, const struct pwi_kv_figures *figures) {
  if (options->json)
    print_json(options, figures);
  else
    print_row(figures);
  fflush(stdout);
}

static void print_machine(const struct pwi_kv_options *options) {
  if (!options->json) {
    pwi_bench_print_machine();
    print_head();
    return;
  }
  json_t *object = json_pack("{s:s}", "bench", "machine"), *machine = pwi_bench_machine_json();
  json_object_update(object, machine);
  json_decref(machine);
  pwi_cli_print_json(options->command, object);
}

void pwi_kv_progress(const struct pwi_kv_options *options, const char *format, ...) {
  va_list arguments;
  if (options->quick) return;
  va_start(arguments, format);
  fprintf(stderr, "pawl %s: ", options->command->name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

bool pwi_kv_fail(const struct pwi_kv_options *options, const char *what, pawl_status status) {
  const char *text = pawl_error_text();
  pwi_cli_failure(options->command, "%s: %s", what, *text ? text : pawl_status_text(status));
  return false;
}

/* --- options -------------------------------------------------------------------------------------------- */

static bool read_op(const char *text, const char **op_out) {
  *op_out = text;
  return strcmp(text, "push") == 0 || strcmp(text, "pull") == 0 || strcmp(text, "pushpull") == 0;
}

/* A number in scientific notation, such as 1e8. */
static bool read_keys(const char *text, uint64_t *keys_out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= 1) || value > 1e10) return false;
  *keys_out = (uint64_t)value;
  return true;
}

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_kv_options *options = context;
  switch (letter) {
  case LETTER_WORKERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->workers);
  case LETTER_SERVERS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->servers);
  case LETTER_SHARDS:
    return pwi_bench_count(value, 1, PROCESSES_MAX, &options->shards);
  case LETTER_REPLICAS:
    return pwi_bench_count(value, 0, REPLICAS_MAX, &options->replicas);
  case LETTER_OUTSTANDING:
    return pwi_bench_count(value, 1, PWI_KV_OUTSTANDING, &options->outstanding);
  case LETTER_OP:
    return read_op(value, &options->op);
  case LETTER_TRANSPORT:
    return pwi_bench_transport(value, &options->tcp);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, SECONDS_MAX, &options->seconds);
  case LETTER_KEYS:
    return read_keys(value, &options->keys);
  default:
    break;
  }
  if (letter == PWI_CLI_LETTER_JSON) options->json = true;
  if (letter == LETTER_QUICK) options->quick = true;
  if (letter == LETTER_CLUSTER) options->cluster = value;
  if (letter == LETTER_CASE) options->cases = value;
  return true;
}

/* A bit for each case; 0 if a name is unknown. */
static uint64_t read_cases(const char *text) {
  uint64_t chosen = 0;
  while (*text) {
    size_t length = strcspn(text, ","), i = 0;
    while (i < CASES && (strlen(cases[i].job.name) != length || strncmp(text, cases[i].job.name, length) != 0)) i++;
    if (i < CASES)
      chosen |= UINT64_C(1) << i;
    else if (length == 3 && strncmp(text, "all", 3) == 0)
      chosen = (UINT64_C(1) << CASES) - 1;
    else
      return 0;
    text += length + (text[length] == ',');
  }
  return chosen;
}

static void settle(struct pwi_kv_options *options) {
  if (options->servers == 0) options->servers = options->replicas + 1;
  if (options->shards == 0) options->shards = 1;
  if (!(options->seconds > 0)) options->seconds = options->quick ? 0.05 : 1;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_kv_options options = {.command = command, .cases = "all"};
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  uint64_t set = read_cases(options.cases);
  if (set == 0) return pwi_cli_usage(command, "'%s': unknown case", options.cases);
  if (options.servers > 0 && options.replicas >= options.servers)
    return pwi_cli_usage(command, "%" PRIu32 " replicas need more than %" PRIu32 " servers", options.replicas,
                         options.servers);
  settle(&options);
  print_machine(&options);
  bool good = true;
  for (size_t i = 0; i < CASES && !pwi_kv_cluster_waits(); i++)
    if (set >> i & 1) good &= run_case(&options, &cases[i]);
  return good ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}

static const struct pwi_cli_option options[] = {
    {LETTER_CASE, "case", "LIST",
     "dense4m, dense16m, cached1e5, cached1e6, fresh1e6, random1e6, "
     "onekey, onekey64, balance, memory, replicas, together, or all "
     "(the default)"},
    {LETTER_OP, "op", "OP", "only push, pull or pushpull (default: all of the case)"},
    {LETTER_WORKERS, "workers", "N", "worker processes (default: 1; together: 8)"},
    {LETTER_SERVERS, "servers", "N", "server processes (default: 1 plus replicas; balance: 4)"},
    {LETTER_SHARDS, "shards", "N", "shards per server (default: 1)"},
    {LETTER_REPLICAS, "replicas", "K", "replicas of each key (default: 0; replicas, together: 1)"},
    {LETTER_OUTSTANDING, "outstanding", "N",
     "concurrent operations per worker, in the cases dense, "
     "cached and fresh (default: 1; replicas: 8)"},
    {LETTER_TRANSPORT, "transport", "KIND", "auto, or tcp: no shared memory (default: auto)"},
    {LETTER_SECONDS, "seconds", "S", "seconds per operation (default: 1)"},
    {LETTER_KEYS, "keys", "N", "keys of the case memory (default: 1e8)"},
    {LETTER_QUICK, "quick", NULL, "a hundredth of all sizes, for a quick test"},
    {LETTER_CLUSTER, "cluster", "ADDRESS", "measure an existing cluster instead of starting one"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_kv = {
    .name = "kv",
    .summary = "measure push and pull with servers and workers in processes of their own",
    .text = "Starts a cluster and workers on this machine, pushes and pulls f32 values, and\n"
            "prints each figure beside that of one thread on an array in memory. Values\n"
            "are medians of five rounds.\n\n"
            "  pawl-bench kv --case dense4m,onekey\n"
            "  pawl-bench kv --case cached1e6 --workers 2 --transport tcp --json\n",
    .options = options,
    .run = run,
};
