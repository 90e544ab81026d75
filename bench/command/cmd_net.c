/* `pawl bench net`: the network between two processes of this machine, beside what the machine can do. */
#include <ctype.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

static const char help[] =
    "Usage: pawl bench net [OPTION]...\n"
    "\n"
    "Start two nodes on this machine, in two processes, and measure the network between\n"
    "them. Each figure stands beside a baseline measured in the same run: a plain blocking\n"
    "send/recv loop on the same kind of socket, or for ucx a memcpy out of a shared mapping.\n"
    "\n"
    "  -t, --transport LIST  of tcp, tls, unix, ucx; comma-separated (default: all there are)\n"
    "  -s, --size LIST       bytes of a message, as in 64k,1m (default: 1m)\n"
    "      --seconds S       length of each measurement (default: 0.5)\n"
    "      --rounds N        ours and the baseline take turns N times, medians count (default: 5)\n"
    "      --memory KIND     send from a shared region or from private memory: region, private\n"
    "                        (default: region; matters for ucx only)\n"
    "      --json            one JSON object a line\n"
    "  -h, --help            this text\n";

static const char *const transports[] = {"tcp", "tls", "unix", "ucx"};
#define TRANSPORTS (sizeof transports / sizeof *transports)
#define LIST_MAX 16

struct plan {
  struct pwi_bench_net_options options;
  const char *transports[LIST_MAX];
  size_t transport_count;
  size_t sizes[LIST_MAX];
  size_t size_count;
  bool json, all;
};

static int usage_error(const char *what, const char *value) {
  fprintf(stderr, "pawl bench net: %s '%s'\ntry 'pawl bench net --help'\n", what, value);
  return 2;
}

static bool read_size(const char *text, size_t *size_out) {
  char *end;
  double value = strtod(text, &end);
  double unit = 1;
  if (tolower((unsigned char)*end) == 'k') unit = 1024;
  if (tolower((unsigned char)*end) == 'm') unit = 1024 * 1024;
  if (unit > 1) end++;
  if (end == text || *end || !(value * unit >= 1) || value * unit > 256 * 1024 * 1024) return false;
  *size_out = (size_t)(value * unit);
  return true;
}

static bool read_positive(const char *text, double most, double *value_out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value > 0) || value > most) return false;
  *value_out = value;
  return true;
}

static int add_transports(struct plan *plan, char *list) {
  for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
    size_t known = 0;
    while (known < TRANSPORTS && strcmp(name, transports[known]) != 0) known++;
    if (known == TRANSPORTS || plan->transport_count == LIST_MAX) return usage_error("unknown transport", name);
    plan->transports[plan->transport_count++] = transports[known];
  }
  return 0;
}

static int add_sizes(struct plan *plan, char *list) {
  for (char *text = strtok(list, ","); text; text = strtok(NULL, ",")) {
    if (plan->size_count == LIST_MAX || !read_size(text, &plan->sizes[plan->size_count]))
      return usage_error("not a size between 1 byte and 256m:", text);
    plan->size_count++;
  }
  return 0;
}

static int set_memory(struct plan *plan, const char *kind) {
  plan->options.private_memory = strcmp(kind, "private") == 0;
  return plan->options.private_memory || strcmp(kind, "region") == 0 ? 0 : usage_error("unknown kind of memory", kind);
}

static int read_options(int argc, char **argv, struct plan *plan, bool *help_out) {
  enum { SECONDS = 1000, ROUNDS, MEMORY, JSON };
  static const struct option known[] = {{"transport", required_argument, NULL, 't'},
                                        {"size", required_argument, NULL, 's'},
                                        {"seconds", required_argument, NULL, SECONDS},
                                        {"rounds", required_argument, NULL, ROUNDS},
                                        {"memory", required_argument, NULL, MEMORY},
                                        {"json", no_argument, NULL, JSON},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};
  double rounds;
  int failed = 0;
  optind = 1;
  for (int option; !failed && (option = getopt_long(argc, argv, "t:s:h", known, NULL)) != -1;) {
    switch (option) {
    case 't':
      failed = add_transports(plan, optarg);
      break;
    case 's':
      failed = add_sizes(plan, optarg);
      break;
    case SECONDS:
      if (!read_positive(optarg, 60, &plan->options.seconds)) failed = usage_error("not a time in seconds:", optarg);
      break;
    case ROUNDS:
      if (!read_positive(optarg, 15, &rounds))
        failed = usage_error("not a number from 1 to 15:", optarg);
      else
        plan->options.rounds = (int)ceil(rounds);
      break;
    case MEMORY:
      failed = set_memory(plan, optarg);
      break;
    case JSON:
      plan->json = true;
      break;
    case 'h':
      *help_out = true;
      break;
    default:
      fputs("try 'pawl bench net --help'\n", stderr);
      failed = 2;
    }
  }
  if (!failed && optind < argc) failed = usage_error("unexpected argument", argv[optind]);
  return failed;
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

/* One line of figures. A transport that is not there is an error only if it was asked for by name. */
static int run_one(const struct plan *plan) {
  struct pwi_bench_net_result result;
  int failed = pwi_bench_net(&plan->options, &result);
  if (failed == PWI_BENCH_SKIPPED) {
    fprintf(stderr, "pawl bench net: %s is not available here ('pawl env' says why)\n", plan->options.transport);
    return plan->all ? 0 : 1;
  }
  if (failed) {
    fprintf(stderr, "pawl bench net: %s could not be measured\n", plan->options.transport);
    return 1;
  }
  if (plan->json)
    print_json(&plan->options, &result);
  else
    print_row(&plan->options, &result);
  return 0;
}

int pwi_cmd_bench_net(int argc, char **argv) {
  struct plan plan = {0};
  bool wants_help = false;
  pwi_bench_net_options_init(&plan.options);
  int failed = read_options(argc, argv, &plan, &wants_help);
  if (failed) return failed;
  if (wants_help) {
    fputs(help, stdout);
    return 0;
  }
  if (plan.size_count == 0) plan.sizes[plan.size_count++] = plan.options.size;
  plan.all = plan.transport_count == 0;
  for (size_t i = 0; plan.all && i < TRANSPORTS; i++) plan.transports[plan.transport_count++] = transports[i];
  if (!plan.json) print_head();
  for (size_t i = 0; i < plan.transport_count; i++)
    for (size_t j = 0; j < plan.size_count; j++) {
      plan.options.transport = plan.transports[i];
      plan.options.size = plan.sizes[j];
      failed |= run_one(&plan);
    }
  return failed;
}
