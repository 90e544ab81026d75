/* `pawl server drain`: tells a server to hand its keys over and leave, and waits until it has left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "api/session.h"
#include "base/cursor.h"
#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/cluster/server_seen.h"
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

static int look(const struct drain *drain, struct pawl_session *session, struct pwi_server_seen *seen) {
  return pwi_server_look(drain->command, session, drain->choice.timeout_ns, drain->wanted, seen);
}

/* --- draining ------------------------------------------------------------------------------------------------------- */

static int check(const struct drain *drain, const struct pwi_server_seen *seen) {
  const struct pwi_command *command = drain->command;
  if (!seen->process)
    return pwi_cli_failure(command, "server %s not found; list servers by node and address with 'pawl status'",
                           drain->wanted);
  if (seen->down == seen->shards)
    return pwi_cli_failure(
        command, "the server at %s is down and cannot hand its keys over; give it up with 'pawl server forget'",
        seen->address);
  if (seen->others == 0)
    return pwi_cli_failure(
        command,
        "the server at %s is the only one that is up, so no other can take its keys; add one with 'pawl server'",
        seen->address);
  return PWI_EXIT_OK;
}

static int order(const struct drain *drain, struct pawl_session *session, const struct pwi_server_seen *seen) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, (uint64_t)seen->node);
  pwi_write_text(&payload, "");
  int64_t deadline = pwi_host_after(drain->choice.timeout_ns);
  pawl_status status = pwi_session_ask(session, PWI_ASK_DRAIN, &payload, deadline, NULL, NULL);
  pwi_writer_fini(&payload);
  if (status == PAWL_OK || status == PAWL_NODE_GONE) return PWI_EXIT_OK;
  const char *hint = status == PAWL_FORBIDDEN ? "; use a key without limits" : "";
  return pwi_cli_failure(drain->command, "the manager refused to drain the server: %s%s", pawl_status_text(status),
                         hint);
}

/* Prints the progress. */
static int report(const struct drain *drain, const struct pwi_server_seen *seen) {
  bool has_left = seen->shards == 0;
  if (drain->json)
    return pwi_cli_print_json(drain->command,
                              json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:b}", "node", (json_int_t)seen->node,
                                        "process", (json_int_t)seen->process, "address", pwi_json_string(seen->address),
                                        "shards", (json_int_t)seen->shards, "arcs", (json_int_t)seen->arcs, "moves",
                                        (json_int_t)seen->moves, "left", (int)has_left));
  if (has_left)
    printf("the server at %s has left; the other servers have its keys\n", seen->address);
  else
    printf("the server at %s is leaving: %zu arcs to hand over, %zu in transfer\n", seen->address, seen->arcs,
           seen->moves);
  fflush(stdout);
  return PWI_EXIT_OK;
}

static bool is_news(const struct pwi_server_seen *before, const struct pwi_server_seen *now) {
  return before->shards != now->shards || before->arcs != now->arcs || before->moves != now->moves;
}

static int await(const struct drain *drain, struct pawl_session *session, struct pwi_server_seen *seen) {
  int64_t deadline = drain->wait_ns < 0 ? INT64_MAX : pwi_host_after(drain->wait_ns);
  int exit_code = report(drain, seen);
  while (exit_code == PWI_EXIT_OK && seen->shards > 0 && pwi_host_now() < deadline) {
    struct timespec pause = {.tv_nsec = (long)LOOK_NS};
    struct pwi_server_seen before = *seen;
    nanosleep(&pause, NULL);
    exit_code = look(drain, session, seen);
    if (exit_code == PWI_EXIT_OK && is_news(&before, seen)) exit_code = report(drain, seen);
    if (seen->shards > 0 && seen->down == seen->shards)
      return pwi_cli_failure(drain->command, "the server at %s went down before it had handed over all its keys",
                             seen->address);
  }
  if (exit_code != PWI_EXIT_OK || seen->shards == 0 || drain->wait_ns == 0) return exit_code;
  return pwi_cli_failure(
      drain->command,
      "the server at %s has not left yet and continues to drain; follow its progress with 'pawl status'",
      seen->address);
}

static int run_drain(const struct drain *drain) {
  struct pawl_session *session;
  struct pwi_server_seen seen = {0};
  int exit_code = pwi_session_start(&drain->choice, drain->command, &session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = look(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = check(drain, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = order(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = look(drain, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = await(drain, session, &seen);
  pawl_status ignored = pwi_session_end(&drain->choice, session, exit_code);
  (void)ignored; /* the result or an error has been printed */
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct drain drain = {.command = command, .wait_ns = -1};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&drain.choice, "drain", false);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) drain.json = true;
    if (letter == LETTER_WAIT && !pwi_role_seconds(args.value, &drain.wait_ns))
      return pwi_cli_bad_value(command, args.value, "a number of seconds");
    if (!pwi_session_option(&drain.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  drain.wanted = argv[args.rest];
  return run_drain(&drain);
}

static const struct pwi_cli_option options[] = {
    {LETTER_WAIT, "wait", "SECONDS",
     "wait at most SECONDS until the server has left; 0: do not wait (default: no limit)"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_server_drain = {
    .name = "server drain",
    .arguments = "NODE|ADDRESS",
    .summary = "tell a server to hand its keys over and leave",
    .text = "Tells a server to hand all its keys over to the other servers and to leave;\n"
            "its process then ends. Name the server by the node or the address of any of\n"
            "its shards, as 'pawl status' lists them. Clients keep working. SIGTERM to the\n"
            "process does the same. The command reports progress and waits until the server\n"
            "has left.\n\n"
            "  pawl server drain 3 --cluster node1:7295\n"
            "  pawl server drain node2:41234 --json\n",
    .options = options,
    .run = run,
};
