/* `pawl-bench net`: the network between two processes of this machine, compared with the limits of the
 * machine. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "mpi_run.h"
#include "net.h"
#include "onesided.h"

static const char *const transports[] = {"tcp", "tls", "unix", "ucx"};
#define TRANSPORTS (sizeof transports / sizeof *transports)
#define LIST_MAX 16
#define LIST_TEXT_MAX 256
#define SECONDS_MAX 60
#define ROUNDS_MAX 15

enum { LETTER_SECONDS = 300, LETTER_ROUNDS, LETTER_MEMORY, LETTER_OP, LETTER_PEERS };

struct plan {
  struct pwi_bench_net_options options;
  const char *transports[LIST_MAX];
  size_t transport_count;
  size_t sizes[LIST_MAX];
  size_t size_count;
  uint32_t peers[LIST_MAX];
  size_t peer_count;
  bool has_op; /* one-sided operations are measured instead of messages */
  enum pwi_onesided_op op;
  bool json, all;
};

/* Parsing a list modifies its text. */
static bool add_transports(struct plan *plan, char *list) {
  for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
    size_t known = 0;
    while (known < TRANSPORTS && strcmp(name, transports[known]) != 0) known++;
    if (known == TRANSPORTS || plan->transport_count == LIST_MAX) return false;
    plan->transports[plan->transport_count++] = transports[known];
  }
  return true;
}

static bool add_sizes(struct plan *plan, char *list) {
  for (char *text = strtok(list, ","); text; text = strtok(NULL, ",")) {
    if (plan->size_count == LIST_MAX || !pwi_bench_size(text, &plan->sizes[plan->size_count])) return false;
    plan->size_count++;
  }
  return true;
}

static bool add_peers(struct plan *plan, char *list) {
  for (char *text = strtok(list, ","); text; text = strtok(NULL, ",")) {
    if (plan->peer_count == LIST_MAX ||
        !pwi_bench_count(text, 1, PWI_ONESIDED_PEERS_MAX, &plan->peers[plan->peer_count]))
      return false;
    plan->peer_count++;
  }
  return plan->peer_count > 0;
}

static bool set_op(struct plan *plan, const char *name) {
  plan->has_op = pwi_onesided_find(name, &plan->op);
  return plan->has_op;
}

static bool set_memory(struct plan *plan, const char *kind) {
  plan->options.private_memory = strcmp(kind, "private") == 0;
  return plan->options.private_memory || strcmp(kind, "region") == 0;
}

static bool set_rounds(struct plan *plan, const char *text) {
  uint32_t rounds;
  if (!pwi_bench_count(text, 1, ROUNDS_MAX, &rounds)) return false;
  plan->options.rounds = (int)rounds;
  return true;
}

static bool read_option(void *context, int letter, const char *value) {
  struct plan *plan = context;
  char list[LIST_TEXT_MAX];
  switch (letter) {
  case 't':
    return snprintf(list, sizeof list, "%s", value) < LIST_TEXT_MAX && add_transports(plan, list);
  case 's':
    return snprintf(list, sizeof list, "%s", value) < LIST_TEXT_MAX && add_sizes(plan, list);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, SECONDS_MAX, &plan->options.seconds);
  case LETTER_ROUNDS:
    return set_rounds(plan, value);
  case LETTER_MEMORY:
    return set_memory(plan, value);
  case LETTER_OP:
    return set_op(plan, value);
  case LETTER_PEERS:
    return snprintf(list, sizeof list, "%s", value) < LIST_TEXT_MAX && add_peers(plan, list);
  default:
    plan->json = true;
    return true;
  }
}

static double rounded(double value) { return round(value * 1000) / 1000; }

static void print_json(const struct pwi_bench_net_options *options, const struct pwi_bench_net_result *result) {
  json_t *object = json_pack(
      "{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}", "bench", "net", "transport", options->transport,
      "size", (json_int_t)options->size, "gb_per_s", rounded(result->gb_per_s), "baseline_gb_per_s",
      rounded(result->baseline_gb_per_s), "rtt64_us", rounded(result->rtt64_us), "baseline_rtt64_us",
      rounded(result->baseline_rtt64_us), "rtt64_idle_us", rounded(result->rtt64_idle_us), "baseline_rtt64_idle_us",
      rounded(result->baseline_rtt64_idle_us), "cpu_s_per_gb", rounded(result->cpu_s_per_gb), "idle_cpu_pct",
      rounded(result->idle_cpu_pct), "memory", options->private_memory ? "private" : "region");
  json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
  putchar('\n');
  json_decref(object);
  fflush(stdout);
}

static void print_head(void) {
  puts("transport     size     GB/s  of base   rtt us  of base   rtt idle  of base  cpu s/GB  idle cpu");
}

static void print_row(const struct pwi_bench_net_options *options, const struct pwi_bench_net_result *result) {
  printf("%-9s %8zu %8.2f %7.2fx %8.2f %7.2fx %10.1f %7.2fx %9.3f %8.2f%%\n", options->transport, options->size,
         result->gb_per_s, result->gb_per_s / result->baseline_gb_per_s, result->rtt64_us,
         result->rtt64_us / result->baseline_rtt64_us, result->rtt64_idle_us,
         result->rtt64_idle_us / result->baseline_rtt64_idle_us, result->cpu_s_per_gb, result->idle_cpu_pct);
  fflush(stdout);
}

/* Explains why there are no figures. A missing transport is an error only if it was named explicitly. */
static int explain(const struct pwi_command *command, const struct plan *plan, int failed) {
  if (failed != PWI_BENCH_SKIPPED) return pwi_cli_failure(command, "%s could not be measured", plan->options.transport);
  int missing =
      pwi_cli_failure(command, "%s is not available on this machine ('pawl env' says why)", plan->options.transport);
  return plan->all ? PWI_EXIT_OK : missing;
}

/* One line of figures. */
static int run_one(const struct pwi_command *command, const struct plan *plan) {
  struct pwi_bench_net_result result;
  int failed = pwi_bench_net(&plan->options, &result);
  if (failed) return explain(command, plan, failed);
  if (plan->json)
    print_json(&plan->options, &result);
  else
    print_row(&plan->options, &result);
  return 0;
}

/* One-sided operations. */

static const char *unit_of(const struct plan *plan) { return plan->op == PWI_ONESIDED_NOTIFY ? "us" : "gb_per_s"; }

static void print_op_json(const struct plan *plan, const struct pwi_onesided_options *options,
                          const struct pwi_onesided_result *result) {
  json_t *object =
      json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:f, s:f, s:f, s:o}", "bench", "net", "op", pwi_onesided_name(plan->op),
                "transport", options->transport, "size", (json_int_t)options->size, "peers", (json_int_t)options->peers,
                "unit", unit_of(plan), "value", rounded(result->ours), "memcpy", rounded(result->copied), "of_memcpy",
                rounded(result->ours / result->copied), "mpi", pwi_bench_number(rounded(result->mpi)));
  json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
  putchar('\n');
  json_decref(object);
  fflush(stdout);
}

static void print_op_row(const struct pwi_onesided_options *options, const struct pwi_onesided_result *result) {
  char mpi[32] = "-", of_mpi[32] = "-";
  if (!isnan(result->mpi)) {
    snprintf(mpi, sizeof mpi, "%.2f", result->mpi);
    snprintf(of_mpi, sizeof of_mpi, "%.2fx", result->ours / result->mpi);
  }
  printf("%-9s %9zu %5u %10.2f %10.2f %9.2fx %10s %10s\n", options->transport, options->size, options->peers,
         result->ours, result->copied, result->ours / result->copied, mpi, of_mpi);
  fflush(stdout);
}

static int run_op(const struct pwi_command *command, const struct plan *plan, uint32_t peers) {
  struct pwi_onesided_options options = {.transport = plan->options.transport,
                                         .op = plan->op,
                                         .size = plan->options.size,
                                         .peers = peers,
                                         .seconds = plan->options.seconds,
                                         .rounds = plan->options.rounds};
  struct pwi_onesided_result result;
  int failed = pwi_bench_onesided(&options, &result);
  if (failed) return explain(command, plan, failed);
  result.mpi = pwi_onesided_mpi(&options);
  if (plan->json)
    print_op_json(plan, &options, &result);
  else
    print_op_row(&options, &result);
  return 0;
}

static int measure(const struct pwi_command *command, struct plan *plan) {
  int exit_code = PWI_EXIT_OK;
  if (plan->size_count == 0) plan->sizes[plan->size_count++] = plan->options.size;
  plan->all = plan->transport_count == 0;
  for (size_t i = 0; plan->all && i < TRANSPORTS; i++) plan->transports[plan->transport_count++] = transports[i];
  if (plan->peer_count == 0) plan->peers[plan->peer_count++] = 1;
  if (!plan->json && plan->has_op)
    printf("transport      size peers %10s     memcpy of memcpy        mpi     of mpi\n",
           plan->op == PWI_ONESIDED_NOTIFY ? "us" : "GB/s");
  else if (!plan->json)
    print_head();
  for (size_t i = 0; i < plan->transport_count; i++)
    for (size_t j = 0; j < plan->size_count; j++) {
      plan->options.transport = plan->transports[i];
      plan->options.size = plan->sizes[j];
      if (!plan->has_op) exit_code |= run_one(command, plan);
      for (size_t k = 0; plan->has_op && k < plan->peer_count; k++) exit_code |= run_op(command, plan, plan->peers[k]);
    }
  if (!plan->json && plan->has_op) pwi_mpi_explain("mpi_onesided");
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct plan plan = {0};
  int exit_code;
  pwi_bench_net_options_init(&plan.options);
  if (!pwi_bench_read(command, argc, argv, read_option, &plan, &exit_code)) return exit_code;
  if (plan.peer_count > 0 && !plan.has_op) return pwi_cli_usage(command, "--peers needs --op put, get or notify");
  return measure(command, &plan);
}

static const struct pwi_cli_option cli_options[] = {
    {'t', "transport", "LIST", "tcp, tls, unix, ucx; comma-separated (default: all available)"},
    {'s', "size", "LIST", "message sizes, such as 64k,1m, up to 256m (default: 1m)"},
    {LETTER_SECONDS, "seconds", "S", "seconds per measurement, up to 60 (default: 0.5)"},
    {LETTER_ROUNDS, "rounds", "N",
     "pawl and the baseline take turns N times, up to 15; medians are printed (default: 5)"},
    {LETTER_MEMORY, "memory", "KIND",
     "send from a shared region or from private memory: region or private (default: region; matters for ucx only)"},
    {LETTER_OP, "op", "OP", "measure one-sided operations instead of messages: put, get or notify"},
    {LETTER_PEERS, "peers", "LIST", "with --op: numbers of peers, up to 256 (default: 1)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_net = {
    .name = "net",
    .summary = "measure the network between two processes of this machine",
    .text = "Starts two nodes on this machine, in two processes, and measures the network\n"
            "between them. Prints each figure beside a baseline measured in the same run: a\n"
            "plain blocking send/recv loop on the same kind of socket, or for ucx a memcpy\n"
            "out of a shared mapping.\n"
            "\n"
            "With --op one process accesses regions of --peers others. put and get: GB/s of\n"
            "all peers together. notify: microseconds until every peer has answered a put\n"
            "with a notification by another. The figures stand beside a memcpy of the same\n"
            "bytes, and beside MPI_Put or MPI_Get if MPI was found when pawl was built.\n",
    .options = cli_options,
    .run = run,
};
