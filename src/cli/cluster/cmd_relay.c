/* `pawl relay`: runs a relay. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/session_listen.h"
#include "host/run/process.h"
#include "host/run/relay.h"
#include "wire/hello.h"

#define JOIN_NS INT64_C(10000000000)
#define TREE "rack"

enum { LETTER_JOIN = 300, LETTER_MEMORY, LETTER_HOST, LETTER_RACK, LETTER_TREE, LETTER_PRIORITY, LETTER_JOIN_TIMEOUT };

struct relay_order {
  const struct pwi_command *command;
  struct pwi_role_options options;
  struct pwi_run_relay_config config;
  const char *tree;
  char listen[PWI_SESSION_LISTEN_MAX];
  int64_t join_ns;
  bool json;
};

static void stop(void *context, int times) { pwi_run_relay_stop(context, times); }

static void greet(const struct relay_order *order, const struct pwi_run_relay *relay) {
  char page[512];
  printf("the relay has joined %s and listens on %s\n"
         "  its tree:      %s\n",
         pwi_role_short(order->config.manager), pwi_role_short(pwi_run_relay_address(relay)),
         order->config.tree.is_auto ? "auto  ('pawl status' shows the tree that the relays have agreed on)"
                                    : order->tree);
  if (order->config.http) {
    pwi_role_page(order->config.http, pwi_run_relay_http_is_encrypted(relay), pwi_run_relay_http_port(relay), page,
                  sizeof page);
    printf("  monitor it:    %smetrics and %shealthz\n", page, page);
  }
  printf("  stop it:       kill -TERM %ld  (the members of its groups then push to the servers)\n", (long)getpid());
  fflush(stdout);
}

static int show(const struct relay_order *order, const struct pwi_run_relay *relay) {
  struct pwi_relay_figures figures;
  char tree[PWI_RELAY_TREE_MAX + 1];
  pwi_run_relay_figures(relay, &figures);
  pwi_relay_tree_name(&figures.tree, tree);
  if (order->json)
    return pwi_cli_print_json(
        order->command,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I}", "relay",
                  pwi_run_relay_address(relay), "pushes", (json_int_t)figures.pushes, "bytes_in",
                  (json_int_t)figures.bytes_in, "aggregates", (json_int_t)figures.aggregates, "bytes_out",
                  (json_int_t)figures.bytes_out, "applied", (json_int_t)figures.applied, "refused",
                  (json_int_t)figures.refused, "pulls", (json_int_t)figures.pulls, "bytes_back",
                  (json_int_t)figures.bytes_back, "reads", (json_int_t)figures.reads, "bytes_read",
                  (json_int_t)figures.bytes_read, "tree", tree, "tree_changes", (json_int_t)figures.tree_changes));
  printf("%" PRIu64 " pushes became %" PRIu64 " aggregates, of which the servers applied %" PRIu64 "; %" PRIu64
         " pushes and pulls were left to their senders\n",
         figures.pushes, figures.aggregates, figures.applied, figures.refused);
  if (figures.reads > 0) printf("%" PRIu64 " pulls were answered by %" PRIu64 " reads\n", figures.pulls, figures.reads);
  if (order->config.tree.is_auto)
    printf("the tree has changed %" PRIu64 " times; it was %s at last\n", figures.tree_changes, tree);
  return PWI_EXIT_OK;
}

static int serve(const struct relay_order *order, struct pwi_run_relay *relay) {
  struct pwi_run_problem problem;
  char doubt[512];
  pawl_status status = pwi_run_relay_join(relay, order->join_ns, &problem);
  if (status == PAWL_NODE_STOPPED) return PWI_EXIT_OK;
  if (status) return pwi_cli_failure(order->command, "%s", problem.text);
  if (!order->json) greet(order, relay);
  if (pwi_run_relay_doubts(relay, doubt, sizeof doubt)) fprintf(stderr, "pawl relay: warning: %s\n", doubt);
  status = pwi_run_process_ready(pwi_run_relay_address(relay));
  if (status)
    return pwi_cli_failure(order->command, "cannot report to the parent process: %s", pawl_status_text(status));
  status = pwi_run_relay_serve(relay);
  int shown = show(order, relay);
  if (status) return pwi_cli_failure(order->command, "the cluster does not accept the key any more");
  return shown;
}

static int run_relay(struct relay_order *order) {
  struct pwi_run_relay *relay;
  struct pwi_run_problem problem;
  if (pwi_run_relay_open(&order->config, &relay, &problem)) return pwi_cli_failure(order->command, "%s", problem.text);
  struct pwi_run_process_config process = {
      .parent = order->options.parent, .ready_fd = order->options.ready_fd, .stop = stop, .context = relay};
  pawl_status status = pwi_run_process_open(&process);
  int exit_code = status
                      ? pwi_cli_failure(order->command, "cannot watch the parent process: %s", pawl_status_text(status))
                      : serve(order, relay);
  pwi_run_process_close();
  pwi_run_relay_close(relay);
  return exit_code;
}

/* --- options ---------------------------------------------------------------------------------------------------------- */

#define PRIORITIES "a number from 1 to 9"

static bool read_priority(const char *text, uint8_t *priority_out) {
  uint64_t number;
  if (!pwi_cli_number(text, &number) || number < PWI_PRIORITY_LOWEST || number > PWI_PRIORITY_HIGHEST) return false;
  *priority_out = (uint8_t)number;
  return true;
}

/* Handles one option. If it returns false, return `*exit_out`. */
static bool read_own(struct relay_order *order, int letter, const char *value, int *exit_out) {
  const char *wanted = NULL;
  switch (letter) {
  case LETTER_JOIN:
    order->config.manager = value;
    break;
  case LETTER_MEMORY:
    if (!pwi_role_size(value, &order->config.memory_max)) wanted = "a size, e.g. 512M or 8G";
    break;
  case LETTER_HOST:
    order->config.host = value;
    break;
  case LETTER_RACK:
    order->config.rack = value;
    break;
  case LETTER_TREE:
    order->tree = value;
    if (!pwi_relay_tree_parse(value, &order->config.tree))
      wanted = "auto, or none, rack, binary, degree-N or near-N with N from 2 to 1024, each also with .fixed behind it";
    break;
  case LETTER_PRIORITY:
    if (!read_priority(value, &order->config.priority)) wanted = PRIORITIES;
    break;
  case LETTER_JOIN_TIMEOUT:
    if (!pwi_role_seconds(value, &order->join_ns)) wanted = "a number of seconds";
    break;
  case PWI_CLI_LETTER_JSON:
    order->json = true;
    break;
  default:
    return pwi_role_option(&order->options, order->command, letter, value, exit_out);
  }
  if (wanted) *exit_out = pwi_cli_bad_value(order->command, value, "%s", wanted);
  return !wanted;
}

static int settle_and_run(struct relay_order *order) {
  int exit_code = PWI_EXIT_OK;
  if (!pwi_role_options_settle(&order->options, order->command, &exit_code)) return exit_code;
  exit_code = pwi_session_listen(order->command, order->config.manager, order->options.listen, order->listen);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  order->config.net = order->options.net;
  order->config.listen = order->listen;
  order->config.access = order->options.access;
  order->config.http = order->options.http;
  order->config.http_token = order->options.http_token;
  return run_relay(order);
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct relay_order order = {.command = command, .join_ns = JOIN_NS, .tree = TREE};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_role_options_init(&order.options);
  order.options.http = PWI_ROLE_HTTP_DEFAULT;
  order.config.rack = getenv("PAWL_RACK");
  const char *priority = getenv("PAWL_PRIORITY");
  if (priority && priority[0] && !read_priority(priority, &order.config.priority))
    return pwi_cli_usage(command, "PAWL_PRIORITY is '%s'; it must be " PRIORITIES, priority);
  (void)pwi_relay_tree_parse(TREE, &order.config.tree);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!read_own(&order, letter, args.value, &exit_code)) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!order.config.manager)
    return pwi_cli_usage(
        command, "no manager given; name one with --join ADDRESS ('pawl manager' prints its address when it starts)");
  exit_code = settle_and_run(&order);
  pwi_role_options_fini(&order.options);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_JOIN, "join", "ADDRESS[,…]", "address of the manager, or of all managers that share a log"},
    {LETTER_TREE, "tree", "TREE",
     "how relays send to one another: none, rack, binary, degree-N or near-N, the same for all relays; with .fixed "
     "behind it the same relays are at the top for all servers; or auto: the relays measure how fast sums reach the "
     "servers, and agree on one of these (default: " TREE ")"},
    {PWI_ROLE_LISTEN, "listen", "ADDRESS",
     "address that members and other relays connect to (default: any port, on the interface that leads to the "
     "manager)"},
    {PWI_ROLE_ADVERTISE, "advertise", "HOST", "address that others connect to, if it differs from --listen"},
    {LETTER_MEMORY, "memory", "SIZE", "memory limit for pushes that wait and for rows, e.g. 8G (default: 1G)"},
    {LETTER_HOST, "host", "LABEL",
     "label of the machine; members push to a relay on their machine if there is one (default: the host name)"},
    {LETTER_RACK, "rack", "LABEL",
     "label of the rack; members push to a relay in their rack if there is one (default: PAWL_RACK)"},
    {LETTER_PRIORITY, "priority", "N",
     "lowest priority of its requests at the servers, from 1 to 9; 9 is the most urgent (default: PAWL_PRIORITY, or "
     "that of the members that wait for them)"},
    PWI_ROLE_HTTP_OPTION,
    PWI_ROLE_HTTP_TOKEN_OPTION,
    {LETTER_JOIN_TIMEOUT, "join-timeout", "SECONDS", "wait at most SECONDS for the manager at the start (default: 10)"},
    {PWI_ROLE_KEY_FILE, "key-file", "FILE", "keys of the cluster (default: PAWL_KEY_FILE, or PAWL_KEY)"},
    {PWI_ROLE_CERTIFICATE, "certificate", "FILE", "PEM file of the node's certificate with its chain, instead of keys"},
    {PWI_ROLE_PRIVATE_KEY, "private-key", "FILE", "PEM file of the private key of --certificate"},
    {PWI_ROLE_AUTHORITY, "authority", "FILE", "PEM file of the authority that signed the certificates of all nodes"},
    {PWI_ROLE_RIGHTS, "rights", "FILE",
     "rights of each name in a certificate, as for 'pawl server'; a relay uses their highest priorities"},
    {PWI_ROLE_REQUIRE_ENCRYPTION, "require-encryption", NULL, "refuse unencrypted links and shared memory"},
    {PWI_ROLE_TRANSPORT, "transport", "KIND",
     "auto (default), tcp (no shared memory), or rdma (also between machines)"},
    {PWI_ROLE_DSCP, "dscp", "N", "mark of packets for routers, from 1 to 63 (default: PAWL_DSCP, or none)"},
    {PWI_ROLE_READY_FD, "ready-fd", "FD", "write 'ready address=ADDRESS' to the file descriptor FD when ready"},
    {PWI_ROLE_PARENT, "parent", "PID", "end when the parent process PID has ended"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_relay = {
    .name = "relay",
    .summary = "run a relay, which adds up pushes of a group on their way",
    .text = "Joins a cluster and stands between the members of groups and the servers: it\n"
            "adds up what they push in a tick, and sends one message to the server instead\n"
            "of one for each member. It reads rows once for all members that pull them\n"
            "(pawl_group_pull). Programs do not change. Start one on each machine, or\n"
            "one or more in each rack; if a relay dies, its members use the servers.\n\n"
            "  pawl relay --join node1:7295 --rack r17\n"
            "  pawl relay --join node1:7295 --key-file cluster.key --tree degree-4\n"
            "  pawl relay --join node1:7295 --tree auto\n\n"
            "Only requests of groups go through relays, and pushes only to vectors that add\n"
            "them up. A relay needs a key without limits. On SIGTERM or SIGINT it leaves the cluster and\n"
            "prints what it has done.\n",
    .options = options,
    .run = run,
};
