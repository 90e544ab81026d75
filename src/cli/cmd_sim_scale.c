/* `pawl sim scale`: how large a cluster the simulator can hold. Manager, servers and clients, the real roles, on a
 * simulated data centre; every client joins, pushes a row and pulls it again. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/cmd_sim.h"
#include "cli/taking.h"
#include "sim/cluster.h"
#include "sim/datacenter/datacenter.h"

#define NODES_MAX 100000
#define LOOK_NS (100 * PWI_SIM_MILLISECOND) /* how often a client looks whether it can begin */
#define VECTOR "scale/rows"
#define ROW 16 /* values in a row */
#define ROWS_A_SERVER 16
#define WAVE 200 /* clients that join at a time: each receives the whole membership */
#define LOOKS 1024
#define TELL_S 5.0

enum { LETTER_NODES = 257, LETTER_SERVERS, LETTER_LIMIT };

struct scale_run;

struct hand {
  struct scale_run *scale;
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  struct pwi_task task;
  float row[ROW];
  uint64_t key;
  bool has_joined, has_pushed;
};

struct scale_run {
  const struct pwi_command *command;
  uint64_t nodes, servers, clients, limit_s;
  bool json;
  struct pwi_cluster cluster;
  struct pwi_datacenter *datacenter;
  struct hand *hands;
  uint64_t added, joined, over;
  bool may_push;
  uint64_t looks; /* of the predicates */
  double told_at; /* when the progress was last shown; 0: not yet */
};

/* --- what a client does --------------------------------------------------------------------------------- */

static void fail(struct hand *hand, const char *what, pawl_status status) {
  pwi_sim_fail(hand->scale->cluster.sim, status, "%s: %s: %s", hand->client.name, what, pawl_status_text(status));
}

static void call(struct hand *hand, enum pwi_request_kind kind) {
  struct pwi_where where = {.range = {hand->key, hand->key + 1}};
  bool pushes = kind == PWI_REQUEST_PUSH;
  pawl_status status = pwi_client_start(hand->client.client, &hand->task, hand->flow, kind, &where,
                                        pushes ? hand->row : NULL, pushes ? NULL : hand->row);
  if (status) fail(hand, "cannot begin a call", status);
}

static void finished(struct pwi_task *task) {
  struct hand *hand = (struct hand *)(void *)((char *)task - offsetof(struct hand, task));
  if (task->status) {
    fail(hand, "a call has failed", task->status);
    return;
  }
  if (hand->has_pushed) {
    hand->scale->over++;
    return;
  }
  hand->has_pushed = true;
  call(hand, PWI_REQUEST_PULL);
}

static void look(void *context, uint64_t cookie) {
  struct hand *hand = context;
  struct scale_run *scale = hand->scale;
  struct pwi_client_state state;
  (void)cookie;
  pwi_client_state(hand->client.client, &state);
  if (state.joined && !hand->has_joined) {
    hand->has_joined = true;
    scale->joined++;
  }
  if (scale->may_push && state.joined && !pwi_cluster_open_vector(&hand->client, VECTOR, 0, &hand->flow)) {
    hand->task.finished = finished;
    call(hand, PWI_REQUEST_PUSH);
  } else {
    pwi_cluster_timer(&hand->client, LOOK_NS, 1);
  }
}

static void started(void *context) {
  struct hand *hand = context;
  pwi_cluster_timer(&hand->client, LOOK_NS, 1);
}

/* --- phases --------------------------------------------------------------------------------------------- */

static double memory_mb(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1024;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A run may take minutes. Tells every few seconds how far it is. */
static void tell_progress(struct scale_run *scale, const char *what, uint64_t ready) {
  if (++scale->looks % LOOKS) return;
  double now = seconds_now();
  if (scale->told_at == 0) scale->told_at = now;
  if (now - scale->told_at < TELL_S) return;
  scale->told_at = now;
  fprintf(stderr, "  %s: %" PRIu64 " of %" PRIu64 " clients after %.3f virtual s and %.1f million events, %.0f MB\n",
          what, ready, scale->clients, 1e-9 * (double)pwi_sim_now(scale->cluster.sim),
          1e-6 * (double)pwi_sim_event_count(scale->cluster.sim), memory_mb());
}

static bool is_joining(void *context) {
  struct scale_run *scale = context;
  tell_progress(scale, "join", scale->joined);
  return scale->joined < scale->added;
}

static bool is_calling(void *context) {
  struct scale_run *scale = context;
  tell_progress(scale, "push and pull", scale->over);
  return scale->over < scale->clients;
}

struct scale_moment {
  double processor;
  uint64_t events;
  int64_t virtual_ns;
};

static struct scale_moment moment_of(const struct scale_run *scale) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (struct scale_moment){(double)time.tv_sec + 1e-9 * (double)time.tv_nsec,
                               pwi_sim_event_count(scale->cluster.sim), pwi_sim_now(scale->cluster.sim)};
}

static int show(const struct scale_run *scale, const char *phase, struct scale_moment begin, pawl_status status,
                uint64_t ready) {
  struct scale_moment end = moment_of(scale);
  double seconds = end.processor - begin.processor, took = (double)(end.virtual_ns - begin.virtual_ns) * 1e-9;
  uint64_t events = end.events - begin.events;
  double rate = seconds > 0 ? (double)events / seconds : 0;
  if (scale->json)
    return pwi_cli_print_json(
        scale->command, json_pack("{s:s, s:I, s:I, s:I, s:s, s:b, s:I, s:f, s:I, s:f, s:f, s:f, s:f}", "sim", "scale",
                                  "nodes", (json_int_t)scale->nodes, "servers", (json_int_t)scale->servers, "clients",
                                  (json_int_t)scale->clients, "phase", phase, "complete", (int)!status, "clients_ready",
                                  (json_int_t)ready, "virtual_s", took, "events", (json_int_t)events, "processor_s",
                                  seconds, "events_per_s", rate, "memory_mb", memory_mb(), "memory_kb_per_node",
                                  memory_mb() * 1024 / (double)scale->nodes));
  printf("  %-12s %8" PRIu64 " %10.3f %11" PRIu64 " %9.2f %10.0f %9.0f %9.1f\n", phase, ready, took, events, seconds,
         rate, memory_mb(), memory_mb() * 1024 / (double)scale->nodes);
  fflush(stdout);
  return PWI_EXIT_OK;
}

/* --- the run -------------------------------------------------------------------------------------------- */

static void tune(struct pwi_sim_config *config, void *context) {
  const struct scale_run *scale = context;
  config->fabric = pwi_datacenter_fabric(scale->datacenter);
  config->trace = config->checks = false;
  config->limits.links = (uint32_t)(2 * scale->nodes + 64);
}

static pawl_status add_client(struct scale_run *scale, uint64_t index) {
  struct hand *hand = &scale->hands[index];
  *hand = (struct hand){.scale = scale, .key = pwi_mix64(index + 1) % (scale->servers * ROWS_A_SERVER)};
  for (int i = 0; i < ROW; i++) hand->row[i] = 1;
  hand->client = (struct pwi_cluster_client){.job = "scale", .started = started, .timer = look, .context = hand};
  snprintf(hand->client.name, sizeof hand->client.name, "c%u", (unsigned)index);
  return pwi_cluster_client_add(&scale->cluster, &hand->client);
}

static pawl_status open_all(struct scale_run *scale) {
  struct pwi_datacenter_config datacenter;
  pwi_datacenter_config_init(&datacenter);
  pawl_status status = pwi_datacenter_create(&datacenter, &scale->datacenter);
  struct pwi_cluster_config config = {.seed = 1,
                                      .processes = (uint32_t)scale->servers,
                                      .shards = 1,
                                      .points = 1,
                                      .checked_hosts = true,
                                      .shares_memberships = true,
                                      .tune = tune,
                                      .context = scale};
  if (!status) status = pwi_cluster_open(&scale->cluster, &config);
  scale->hands = pwi_alloc_zero(scale->clients, sizeof *scale->hands);
  if (!status && !scale->hands) status = PAWL_NO_MEMORY;
  return status;
}

/* Clients join in waves, as they would in a cluster that grows: otherwise all their memberships would be on their
 * way at once. */
static pawl_status join_all(struct scale_run *scale, int64_t end) {
  pawl_status status = PAWL_OK;
  while (scale->joined < scale->clients && !status) {
    for (int i = 0; i < WAVE && scale->added < scale->clients && !status; i++)
      status = add_client(scale, scale->added++);
    int64_t left = end - pwi_sim_now(scale->cluster.sim);
    if (!status) status = left > 0 ? pwi_cluster_run_while(&scale->cluster, is_joining, scale, left) : PAWL_TIMED_OUT;
  }
  return status;
}

static pawl_status call_all(struct scale_run *scale, int64_t end) {
  return pwi_cluster_run_while(&scale->cluster, is_calling, scale, end - pwi_sim_now(scale->cluster.sim));
}

static int run_phase(struct scale_run *scale, const char *phase,
                     pawl_status (*run)(struct scale_run *scale, int64_t end), const uint64_t *ready) {
  struct scale_moment begin = moment_of(scale);
  int64_t limit = (int64_t)scale->limit_s * PWI_SIM_SECOND;
  pawl_status status = run(scale, begin.virtual_ns + limit);
  int exit_code = show(scale, phase, begin, status, *ready);
  if (exit_code || !status) return exit_code;
  if (status == PAWL_TIMED_OUT)
    return pwi_cli_failure(
        scale->command, "%s: only %" PRIu64 " of %" PRIu64 " clients within %" PRIu64 " virtual seconds; see --limit",
        phase, *ready, scale->clients, scale->limit_s);
  const char *failure = pwi_sim_failure(scale->cluster.sim);
  return pwi_cli_failure(scale->command, "%s: %s", phase, failure ? failure : pawl_status_text(status));
}

static int make_vector(struct scale_run *scale) {
  struct pawl_vector_options options = {.type = PAWL_F32, .width = ROW, .size = scale->servers * ROWS_A_SERVER};
  struct pwi_flow *flow;
  pawl_status status = pwi_cluster_vector(&scale->hands[0].client, VECTOR, &options, &flow);
  scale->may_push = true;
  return status ? pwi_cli_failure(scale->command, "cannot create a vector: %s", pawl_status_text(status)) : PWI_EXIT_OK;
}

static int run_all(struct scale_run *scale) {
  if (!scale->json)
    printf("  %" PRIu64 " nodes: a manager, %" PRIu64 " servers, %" PRIu64 " clients\n"
           "  phase         clients  virtual s      events  proc. s   events/s  peak MB   KB/node\n",
           scale->nodes, scale->servers, scale->clients);
  pawl_status status = open_all(scale);
  if (status) return pwi_cli_failure(scale->command, "cannot open the cluster: %s", pawl_status_text(status));
  int exit_code = run_phase(scale, "join", join_all, &scale->joined);
  if (!exit_code) exit_code = make_vector(scale);
  if (!exit_code) exit_code = run_phase(scale, "push and pull", call_all, &scale->over);
  return exit_code;
}

static bool take_option(struct pwi_cli_taking *taking, int letter, const char *value, struct scale_run *scale) {
  switch (letter) {
  case LETTER_NODES:
    return pwi_cli_take_number(taking, value, 3, NODES_MAX, &scale->nodes);
  case LETTER_SERVERS:
    return pwi_cli_take_number(taking, value, 1, NODES_MAX, &scale->servers);
  case LETTER_LIMIT:
    return pwi_cli_take_number(taking, value, 1, NODES_MAX, &scale->limit_s);
  default:
    return scale->json = true;
  }
}

static int run_scale(const struct pwi_command *command, int argc, char **argv) {
  static struct scale_run scale;
  struct pwi_cli_taking taking = {.command = command};
  struct pwi_cli_args args;
  int letter;
  scale = (struct scale_run){.command = command, .nodes = 100, .limit_s = 60};
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take_option(&taking, letter, args.value, &scale)) return taking.exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!scale.servers) scale.servers = scale.nodes < 20 ? 1 : scale.nodes > 1000 ? 100 : scale.nodes / 10;
  if (scale.servers + 2 > scale.nodes)
    return pwi_cli_usage(command,
                         "%" PRIu64 " servers leave no room for a manager and a client among %" PRIu64 " nodes",
                         scale.servers, scale.nodes);
  scale.clients = scale.nodes - scale.servers - 1;
  pwi_cli_log_mute(true); /* warnings of the simulated nodes are expected */
  int exit_code = run_all(&scale);
  pwi_cluster_close(&scale.cluster);
  pwi_datacenter_destroy(scale.datacenter);
  pwi_free(scale.hands);
  pwi_cli_log_mute(false);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_NODES, "nodes", "N", "all nodes: a manager, servers, and clients (default: 100)"},
    {LETTER_SERVERS, "servers", "N", "of them, servers (default: a tenth, at most 100)"},
    {LETTER_LIMIT, "limit", "SECONDS", "virtual seconds that each phase may take (default: 60)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sim_scale = {
    .name = "sim scale",
    .summary = "measure how large a cluster the simulator can hold",
    .text = "Runs a manager, servers and clients, the real roles, on a simulated data\n"
            "centre of 1,024 hosts. Every client joins, pushes one row, and pulls it\n"
            "again. Prints for both phases the virtual time, the events, the processor\n"
            "time, and the largest memory of the process. Exits with 1 if some client did\n"
            "not finish.\n",
    .options = options,
    .run = run_scale,
};
