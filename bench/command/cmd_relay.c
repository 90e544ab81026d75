/* `pawl-bench relay`: one member of a group whose members push and pull the same values in every tick.
 *
 * Start one process for each member, with and without relays (`pawl relay`) in the cluster. Every member adds 1 to every
 * value in every tick. The rows that come back must be the product of members and ticks, exactly: a push that was lost
 * or doubled shows at once. tests/bench/relay_edge_test.sh does this between network namespaces with slow links. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#include "base/memory.h"
#include "bench.h"
#include "cli/session_options.h"
#include "relay.h"

#define PATIENCE (600 * PAWL_SECOND)
#define TICKS_MAX 100000
#define EXACT 16777216.0 /* whole numbers up to this are exact in f32 */

enum { LETTER_CLUSTER = 300, LETTER_MEMBERS, LETTER_TICKS, LETTER_SIZE, LETTER_NAME, LETTER_PULL };

struct relay_options {
  struct pwi_session_choice choice;
  const char *name;
  uint32_t members, ticks;
  size_t size;
  bool pulls, json;
};

struct relay_run {
  struct pawl_session *session;
  struct pawl_group *group;
  struct pawl_vector *vector;
  float *in, *out;
  double *seconds; /* of each tick */
  size_t values, count;
};

static bool read_option(void *context, int letter, const char *value) {
  struct relay_options *options = context;
  switch (letter) {
  case LETTER_CLUSTER:
    options->choice.options.address = value;
    return true;
  case LETTER_MEMBERS:
    return pwi_bench_count(value, 1, 4096, &options->members);
  case LETTER_TICKS:
    return pwi_bench_count(value, 1, TICKS_MAX, &options->ticks);
  case LETTER_SIZE:
    return pwi_bench_size(value, &options->size) && options->size >= sizeof(float);
  case LETTER_NAME:
    options->name = value;
    return strlen(value) < 100;
  case LETTER_PULL:
    options->pulls = true;
    return true;
  default:
    options->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

static pawl_status open_all(const struct relay_options *options, struct relay_run *run) {
  char group[128], vector[128];
  struct pawl_vector_options shape;
  snprintf(group, sizeof group, "%s/group", options->name);
  snprintf(vector, sizeof vector, "%s/values", options->name);
  pawl_vector_options_init(&shape);
  shape.size = run->values;
  pawl_status status = pawl_vector_ensure(run->session, vector, &shape, PATIENCE, &run->vector);
  if (!status) status = pawl_group_join(run->session, group, options->members, PATIENCE, &run->group);
  if (!status) status = pawl_group_barrier(run->group, PATIENCE);
  return status;
}

/* The first value that is not `wanted`; the number of values if all are. */
static size_t first_other(const struct relay_run *run, float wanted) {
  size_t i = 0;
  while (i < run->values && run->out[i] == wanted) i++;
  return i;
}

/* One tick: the sum of all pushes so far is in `out`. Between the barriers nobody pushes. */
static pawl_status run_tick(const struct relay_options *options, struct relay_run *run) {
  struct pawl_where where = pawl_at_range(0, run->values);
  struct pawl_task *task;
  pawl_status status = options->pulls ? pawl_group_push(run->group, run->vector, where, run->in, &task)
                                      : pawl_group_pushpull(run->group, run->vector, where, run->in, run->out, &task);
  if (!status) status = pawl_task_finish(task, PATIENCE);
  if (status || !options->pulls) return status;
  status = pawl_group_barrier(run->group, PATIENCE);
  if (!status) status = pawl_group_pull(run->group, run->vector, where, 0, run->out, &task);
  return status ? status : pawl_task_finish(task, PATIENCE);
}

static int run_ticks(const struct pwi_command *command, const struct relay_options *options, struct relay_run *run) {
  for (uint32_t tick = 1; tick <= options->ticks; tick++) {
    double begin = pwi_bench_now();
    float wanted = (float)tick * (float)options->members;
    pawl_status status = run_tick(options, run);
    if (status) return pwi_cli_failure(command, "tick %" PRIu32 ": %s", tick, pawl_error_text());
    run->seconds[run->count++] = pwi_bench_now() - begin;
    size_t at = first_other(run, wanted);
    if (at < run->values)
      return pwi_cli_failure(command, "tick %" PRIu32 ": value %zu is %g, not %g: a push was %s", tick, at,
                             (double)run->out[at], (double)wanted, run->out[at] < wanted ? "lost" : "doubled");
    status = pawl_group_barrier(run->group, PATIENCE);
    if (status) return pwi_cli_failure(command, "tick %" PRIu32 ": %s", tick, pawl_error_text());
  }
  return PWI_EXIT_OK;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static int show(const struct pwi_command *command, const struct relay_options *options, struct relay_run *run,
                double total) {
  qsort(run->seconds, run->count, sizeof *run->seconds, compare);
  double median = run->seconds[run->count / 2], slowest = run->seconds[run->count - 1];
  if (options->json)
    return pwi_cli_print_json(command, json_pack("{s:s, s:i, s:i, s:I, s:f, s:f, s:f}", "bench", "relay", "members",
                                                 (int)options->members, "ticks", (int)options->ticks, "bytes",
                                                 (json_int_t)(run->values * sizeof(float)), "seconds", total,
                                                 "median_tick_s", median, "slowest_tick_s", slowest));
  printf("%" PRIu32 " ticks of %zu bytes in %.2f s; a tick took %.3f s in the median, %.3f s at most; every value is "
         "right\n",
         options->ticks, run->values * sizeof(float), total, median, slowest);
  return PWI_EXIT_OK;
}

static int measure(const struct pwi_command *command, const struct relay_options *options, struct relay_run *run) {
  run->values = options->size / sizeof(float);
  run->in = pwi_resize_array(NULL, run->values, sizeof *run->in);
  run->out = pwi_resize_array(NULL, run->values, sizeof *run->out);
  run->seconds = pwi_resize_array(NULL, options->ticks, sizeof *run->seconds);
  if (!run->in || !run->out || !run->seconds) return pwi_cli_failure(command, "not enough memory for the values");
  for (size_t i = 0; i < run->values; i++) run->in[i] = 1;
  if (open_all(options, run)) return pwi_cli_failure(command, "%s", pawl_error_text());
  double begin = pwi_bench_now();
  int exit_code = run_ticks(command, options, run);
  return exit_code != PWI_EXIT_OK ? exit_code : show(command, options, run, pwi_bench_now() - begin);
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct relay_options options = {.name = "bench-relay", .members = 8, .ticks = 20, .size = (size_t)1 << 20};
  struct relay_run run = {0};
  int exit_code;
  pwi_session_choice_init(&options.choice, "bench-relay", false);
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if ((double)options.members * options.ticks > EXACT)
    return pwi_cli_usage(command, "%u members and %u ticks are more than f32 can count", options.members,
                         options.ticks);
  options.choice.options.tcp_only = true; /* the bytes shall cross the network */
  exit_code = pwi_session_start(&options.choice, command, &run.session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = measure(command, &options, &run);
  pawl_status status = pawl_session_close(run.session, PATIENCE);
  if (status && exit_code == PWI_EXIT_OK) exit_code = pwi_cli_failure(command, "%s", pawl_error_text());
  pwi_free(run.in);
  pwi_free(run.out);
  pwi_free(run.seconds);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_CLUSTER, "cluster", "ADDRESS[,…]", "address of the manager (default: PAWL_ADDRESS, or 127.0.0.1:7295)"},
    {LETTER_MEMBERS, "members", "N", "processes that do the same, this one included (default: 8)"},
    {LETTER_TICKS, "ticks", "N", "how often each of them pushes (default: 20)"},
    {LETTER_SIZE, "size", "SIZE", "bytes of values of a push (default: 1m)"},
    {LETTER_PULL, "pull", NULL, "push, meet at a barrier, and pull the rows, instead of one pushpull"},
    {LETTER_NAME, "name", "NAME", "space of the group and the vector; both must be new (default: bench-relay)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_relay = {
    .name = "relay",
    .summary = "push as one member of a group, with or without relays",
    .text = "Joins a group of a running cluster. In every tick each member adds 1 to every\n"
            "value and reads the sum, which must be exact: a push that is lost or doubled on\n"
            "the way ends the run. Prints the seconds of a tick. Start one process for each\n"
            "member; whether relays are between them and the servers depends on the cluster.\n\n"
            "  pawl-bench relay --cluster node1:7295 --members 8 --ticks 100 --size 4m\n",
    .options = options,
    .run = run,
};
