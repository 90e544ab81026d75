/* `pawl server drain`: has a server hand its keys over and leave, and waits until it has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/session.h"
#include "base/cursor.h"
#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/session_options.h"
#include "host/clock.h"

#define LETTER_WAIT 300
#define LOOK_NS (PWI_HOST_SECOND / 4)

struct drain {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  const char *wanted; /* a node's number or an address */
  bool json;
  int64_t wait_ns; /* -1: until it has left */
};

/* The server as the manager sees it now. */
struct seen {
  long long process, node; /* of the shard that was named; 0: there is none */
  size_t shards, down, draining;
  size_t arcs;   /* that it is in the chain of */
  size_t moves;  /* of these, under way */
  size_t others; /* shards of other servers that are up */
  char address[PWI_NET_ADDRESS_MAX];
};

/* --- looking -------------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static long long whole_of(const json_t *object, const char *name) {
  return (long long)json_integer_value(json_object_get(object, name));
}

static bool is_named(const struct drain *drain, const json_t *node) {
  uint64_t number;
  if (pwi_cli_number(drain->wanted, &number)) return (uint64_t)whole_of(node, "node") == number;
  return strcmp(pwi_role_short(text_of(node, "address")), pwi_role_short(drain->wanted)) == 0;
}

/* The first time by what was named, later by the process, whose shards go one by one. */
static void find_process(const struct drain *drain, const json_t *root, struct seen *seen) {
  size_t i;
  json_t *node;
  if (seen->process) return;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (!is_named(drain, node)) continue;
    seen->process = whole_of(node, "process");
    seen->node = whole_of(node, "node");
    snprintf(seen->address, sizeof seen->address, "%s", pwi_role_short(text_of(node, "address")));
  }
}

static bool is_ours(const json_t *root, const struct seen *seen, long long id) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (whole_of(node, "node") == id) return whole_of(node, "process") == seen->process;
  }
  return false;
}

static void count_shards(const json_t *root, struct seen *seen) {
  size_t i;
  json_t *node;
  seen->shards = seen->down = seen->draining = seen->others = 0;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    const char *state = text_of(node, "state");
    if (whole_of(node, "process") != seen->process) {
      seen->others += strcmp(state, "up") == 0;
      continue;
    }
    seen->shards++;
    seen->down += strcmp(state, "down") == 0;
    seen->draining += strcmp(state, "draining") == 0;
  }
}

static void count_arcs(const json_t *root, struct seen *seen) {
  size_t i, j;
  json_t *arc, *member, *move;
  seen->arcs = seen->moves = 0;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) {
    bool has = false;
    json_array_foreach(json_object_get(arc, "chain"), j, member) has |= is_ours(root, seen, whole_of(member, "node"));
    seen->arcs += has;
  }
  json_array_foreach(json_object_get(root, "moves"), i, move) {
    bool is_under_way = strcmp(text_of(move, "step"), "wanted") != 0;
    seen->moves += is_under_way && is_ours(root, seen, whole_of(move, "source"));
  }
}

static int look(const struct drain *drain, struct pawl_session *session, struct seen *seen) {
  char *text;
  json_error_t error;
  pawl_status status = pawl_session_status(session, drain->choice.timeout_ns, &text);
  if (status) return pwi_session_failure(drain->command, status);
  json_t *root = json_loads(text, 0, &error);
  pawl_text_free(text);
  if (!root) return pwi_cli_failure(drain->command, "the manager's answer cannot be read: %s", error.text);
  find_process(drain, root, seen);
  count_shards(root, seen);
  count_arcs(root, seen);
  json_decref(root);
  return PWI_EXIT_OK;
}

/* --- draining ------------------------------------------------------------------------------------------------------- */

static int check(const struct drain *drain, const struct seen *seen) {
  const struct pwi_command *command = drain->command;
  if (!seen->process)
    return pwi_cli_failure(command, "there is no server %s; 'pawl status' lists them, by node and address",
                           drain->wanted);
  if (seen->down == seen->shards)
    return pwi_cli_failure(command, "the server at %s is down: it cannot hand anything over", seen->address);
  if (seen->others == 0)
    return pwi_cli_failure(command,
                           "the server at %s is the only one that is up: there is nobody to hand its keys over to; add "
                           "another with 'pawl server'",
                           seen->address);
  return PWI_EXIT_OK;
}

static int order(const struct drain *drain, struct pawl_session *session, const struct seen *seen) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, (uint64_t)seen->node);
  pwi_write_text(&payload, "");
  int64_t deadline = pwi_host_after(drain->choice.timeout_ns);
  pawl_status status = pwi_session_ask(session, PWI_ASK_DRAIN, &payload, deadline, NULL, NULL);
  pwi_writer_fini(&payload);
  if (status == PAWL_OK || status == PAWL_NODE_GONE) return PWI_EXIT_OK;
  const char *hint = status == PAWL_FORBIDDEN ? "; this needs a key without limits" : "";
  return pwi_cli_failure(drain->command, "the manager does not let the server go: %s%s", pawl_status_text(status),
                         hint);
}

/* Whenever something has changed. */
static int report(const struct drain *drain, const struct seen *seen) {
  bool has_left = seen->shards == 0;
  if (drain->json)
    return pwi_cli_print_json(drain->command,
                              json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:b}", "node", (json_int_t)seen->node,
                                        "process", (json_int_t)seen->process, "address", seen->address, "shards",
                                        (json_int_t)seen->shards, "arcs", (json_int_t)seen->arcs, "moves",
                                        (json_int_t)seen->moves, "left", (int)has_left));
  if (has_left)
    printf("the server at %s has left: the others have its keys\n", seen->address);
  else
    printf("the server at %s is leaving: %zu arcs to hand over, %zu on their way\n", seen->address, seen->arcs,
           seen->moves);
  fflush(stdout);
  return PWI_EXIT_OK;
}

static bool is_news(const struct seen *before, const struct seen *now) {
  return before->shards != now->shards || before->arcs != now->arcs || before->moves != now->moves;
}

static int await(const struct drain *drain, struct pawl_session *session, struct seen *seen) {
  int64_t deadline = drain->wait_ns < 0 ? INT64_MAX : pwi_host_after(drain->wait_ns);
  int exit_code = report(drain, seen);
  while (exit_code == PWI_EXIT_OK && seen->shards > 0 && pwi_host_now() < deadline) {
    struct timespec pause = {.tv_nsec = (long)LOOK_NS};
    struct seen before = *seen;
    nanosleep(&pause, NULL);
    exit_code = look(drain, session, seen);
    if (exit_code == PWI_EXIT_OK && is_news(&before, seen)) exit_code = report(drain, seen);
    if (seen->shards > 0 && seen->down == seen->shards)
      return pwi_cli_failure(drain->command, "the server at %s went down before it had handed everything over",
                             seen->address);
  }
  if (exit_code != PWI_EXIT_OK || seen->shards == 0 || drain->wait_ns == 0) return exit_code;
  return pwi_cli_failure(drain->command,
                         "the server at %s has not left yet, and goes on; 'pawl status' shows how far it is",
                         seen->address);
}

static int run_drain(const struct drain *drain) {
  struct pawl_session *session;
  struct seen seen = {0};
  int exit_code = pwi_session_start(&drain->choice, drain->command, &session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = look(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = check(drain, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = order(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = look(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = await(drain, session, &seen);
  pawl_status ignored = pawl_session_close(session, drain->choice.timeout_ns);
  (void)ignored; /* all there was to say has been said */
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct drain drain = {.command = command, .wait_ns = -1};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&drain.choice, "drain", true);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) drain.json = true;
    if (letter == LETTER_WAIT && !pwi_role_seconds(args.value, &drain.wait_ns))
      return pwi_cli_usage(command, "'%s' is no number of seconds", args.value);
    if (!pwi_session_option(&drain.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  drain.wanted = argv[args.rest];
  return run_drain(&drain);
}

static const struct pwi_cli_option options[] = {
    {LETTER_WAIT, "wait", "SECONDS",
     "how long to wait until it has left; 0: not at all\n"
     "(default: as long as it takes)"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_server_drain = {
    .name = "server drain",
    .arguments = "NODE|ADDRESS",
    .summary = "have a server hand its keys over and leave",
    .text = "Has a server hand all its keys over to the others, and leave; its process then\n"
            "ends. The server is named by the node or the address of any of its shards, as\n"
            "'pawl status' lists them. Nobody stops for it. SIGTERM to the process does the\n"
            "same. The command waits until the server has left, and says how far it is.\n\n"
            "  pawl server drain 3 --cluster node1:7295\n"
            "  pawl server drain node2:41234 --json\n",
    .options = options,
    .run = run,
};
