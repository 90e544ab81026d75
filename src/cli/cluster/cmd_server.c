/* `pawl server`: runs a server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/role_options.h"
#include "host/run/process.h"
#include "host/run/server.h"

#define DRAIN_NS INT64_C(30000000000)
#define JOIN_NS INT64_C(10000000000)

enum {
  LETTER_JOIN = 300,
  LETTER_SHARDS,
  LETTER_MEMORY,
  LETTER_HOST,
  LETTER_RACK,
  LETTER_DRAIN_TIMEOUT,
  LETTER_JOIN_TIMEOUT,
};

struct server_order {
  const struct pwi_command *command;
  struct pwi_role_options options;
  struct pwi_run_server_config config;
  int64_t join_ns;
};

static void stop(void *context, int times) { pwi_run_server_stop(context, times); }

static void reload(void *context) { pwi_run_server_reload(context); }

static void greet(const struct server_order *order, const struct pwi_run_server *server) {
  char page[512];
  printf("the server has joined %s and listens on", pwi_role_short(order->config.manager));
  for (uint32_t i = 0; i < (order->config.shards ? order->config.shards : 1); i++)
    printf(" %s", pwi_role_short(pwi_run_server_address(server, i)));
  printf("\n");
  if (order->options.http) {
    pwi_role_page(order->options.http, pwi_run_server_http_is_encrypted(server), pwi_run_server_http_port(server), page,
                  sizeof page);
    printf("  monitor it:    %smetrics and %shealthz\n", page, page);
  }
  printf("  stop it:       kill -TERM %ld  (it first hands its keys over to the other servers)\n", (long)getpid());
  fflush(stdout);
}

/* Hands all keys over after a signal. */
static int drain(const struct server_order *order, struct pwi_run_server *server) {
  double seconds = (double)order->config.drain_ns / 1e9;
  fprintf(stderr,
          "pawl server: handing keys over to the other servers, for at most %g s; a second signal ends it at once\n",
          seconds);
  if (!pwi_run_server_drain(server)) return PWI_EXIT_OK;
  return pwi_cli_failure(order->command, "ended before all keys were handed over; the remaining ones are lost");
}

static int serve(const struct server_order *order, struct pwi_run_server *server) {
  struct pwi_run_problem problem;
  pawl_status status = pwi_run_server_join(server, order->join_ns, &problem);
  if (status == PAWL_NODE_STOPPED) return PWI_EXIT_OK;
  if (status) return pwi_cli_failure(order->command, "%s", problem.text);
  greet(order, server);
  status = pwi_run_process_ready(pwi_run_server_address(server, 0));
  if (status)
    return pwi_cli_failure(order->command, "cannot report to the parent process: %s", pawl_status_text(status));
  if (!pwi_run_server_wait(server)) return drain(order, server);
  fprintf(stderr, "pawl server: drained by an operator; the other servers have all its keys\n");
  return PWI_EXIT_OK;
}

static int run_server(const struct server_order *order) {
  struct pwi_run_server *server;
  struct pwi_run_problem problem;
  if (pwi_run_server_open(&order->config, &server, &problem))
    return pwi_cli_failure(order->command, "%s", problem.text);
  struct pwi_run_process_config process = {.parent = order->options.parent,
                                           .ready_fd = order->options.ready_fd,
                                           .stop = stop,
                                           .reload = reload,
                                           .context = server};
  pawl_status status = pwi_run_process_open(&process);
  int exit_code = status
                      ? pwi_cli_failure(order->command, "cannot watch the parent process: %s", pawl_status_text(status))
                      : serve(order, server);
  pwi_run_process_close();
  pwi_run_server_close(server);
  return exit_code;
}

/* --- options -------------------------------------------------------------------------------------------------------- */

static bool read_shards(struct server_order *order, const char *value) {
  uint64_t number;
  if (!pwi_cli_number(value, &number) || number == 0 || number > PWI_RUN_SHARDS_MAX) return false;
  order->config.shards = (uint32_t)number;
  return true;
}

/* Handles one option. If it returns false, return `*exit_out`. */
static bool read_own(struct server_order *order, int letter, const char *value, int *exit_out) {
  bool good = true;
  switch (letter) {
  case LETTER_JOIN:
    order->config.manager = value;
    break;
  case LETTER_SHARDS:
    good = read_shards(order, value);
    break;
  case LETTER_MEMORY:
    good = pwi_role_size(value, &order->config.memory_max);
    break;
  case LETTER_HOST:
    order->config.host = value;
    break;
  case LETTER_RACK:
    order->config.rack = value;
    break;
  case LETTER_DRAIN_TIMEOUT:
    good = pwi_role_seconds(value, &order->config.drain_ns);
    break;
  case LETTER_JOIN_TIMEOUT:
    good = pwi_role_seconds(value, &order->join_ns);
    break;
  default:
    return pwi_role_option(&order->options, order->command, letter, value, exit_out);
  }
  const char *wanted = letter == LETTER_SHARDS   ? "a number of shards, from 1 to 1024"
                       : letter == LETTER_MEMORY ? "a size, e.g. 512M or 8G"
                                                 : "a number of seconds";
  if (!good) *exit_out = pwi_cli_bad_value(order->command, value, "%s", wanted);
  return good;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct server_order order = {.command = command, .join_ns = JOIN_NS};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  if (argc > 1 && strcmp(argv[1], "drain") == 0) return pwi_cli_run(&pwi_command_server_drain, argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "forget") == 0) return pwi_cli_run(&pwi_command_server_forget, argc - 1, argv + 1);
  pwi_role_options_init(&order.options);
  order.options.http = PWI_ROLE_HTTP_DEFAULT;
  order.config.memory_max = UINT64_MAX;
  order.config.drain_ns = DRAIN_NS;
  order.config.rack = getenv("PAWL_RACK");
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!read_own(&order, letter, args.value, &exit_code)) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!order.config.manager)
    return pwi_cli_usage(
        command, "no manager given; name one with --join ADDRESS ('pawl manager' prints its address when it starts)");
  if (pwi_role_options_settle(&order.options, command, &exit_code)) {
    order.config.net = order.options.net;
    order.config.listen = order.options.listen;
    order.config.http = order.options.http;
    order.config.checkpoint_places = order.options.checkpoints;
    order.config.http_token = order.options.http_token;
    order.config.access = order.options.access;
    order.config.audit = order.options.audit;
    order.config.functions = &order.options.functions.set;
    exit_code = run_server(&order);
  }
  pwi_role_options_fini(&order.options);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_JOIN, "join", "ADDRESS[,…]", "address of the manager, or of all managers that share a log"},
    {PWI_ROLE_LISTEN, "listen", "ADDRESS",
     "listen for clients and other servers on host:port or host:first-last; further shards use the next free ports "
     "(default: any port, on loopback if the manager is on loopback, else on all interfaces)"},
    {PWI_ROLE_ADVERTISE, "advertise", "HOST", "address that others connect to, if it differs from --listen"},
    {LETTER_SHARDS, "shards", "N", "number of shards: threads that each hold a part of the keys (default: 1)"},
    {LETTER_MEMORY, "memory", "SIZE", "memory limit for data, e.g. 8G, divided among the shards (default: none)"},
    {LETTER_HOST, "host", "LABEL",
     "label of the machine; copies of a key are kept on different machines if possible (default: the host name)"},
    {LETTER_RACK, "rack", "LABEL",
     "label of the rack; copies of a key are kept in different racks if possible (default: PAWL_RACK)"},
    PWI_ROLE_HTTP_OPTION,
    {LETTER_DRAIN_TIMEOUT, "drain-timeout", "SECONDS",
     "end after SECONDS even if keys are not yet handed over (default: 30)"},
    {LETTER_JOIN_TIMEOUT, "join-timeout", "SECONDS", "wait at most SECONDS for the manager at the start (default: 10)"},
    PWI_ROLE_OPTIONS,
    {0},
};

static const struct pwi_command *const also[] = {&pwi_command_server_drain, &pwi_command_server_forget, NULL};

const struct pwi_command pwi_command_server = {
    .name = "server",
    .summary = "run a server, which holds a part of all vectors",
    .text = "Joins a cluster and holds a part of the keys of every vector. Servers can be\n"
            "added and stopped while the cluster runs: the manager moves the keys.\n\n"
            "  pawl server --join 127.0.0.1:7295\n"
            "  pawl server --join node1:7295 --key-file cluster.key --shards 4 --memory 64G\n\n"
            "On SIGTERM or SIGINT the server hands all keys over to the other servers, then\n"
            "ends. A second signal ends it at once, and keys not yet handed over are lost.\n"
            "The last server of a cluster has no server to hand its keys over to. To drain\n"
            "a server from another machine, use 'pawl server drain'.\n",
    .options = options,
    .also = also,
    .run = run,
};
