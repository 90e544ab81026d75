/* `pawl server forget`: gives up a server that is down for good. */
#include <stdio.h>

#include "base/json.h"
#include "api/session.h"
#include "base/cursor.h"
#include "cli/cli.h"
#include "cli/cluster/cluster_whole.h"
#include "cli/cluster/server_seen.h"
#include "cli/session_options.h"
#include "host/clock.h"

#define LETTER_LOSE_DATA 300
#define LETTER_ALL_LOST 301

struct forget {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  const char *wanted; /* number of a node, or an address; NULL: all lost servers */
  bool json, lose_data, all_lost;
};

static int look(const struct forget *forget, struct pawl_session *session, struct pwi_server_seen *seen) {
  return pwi_server_look(forget->command, session, forget->choice.timeout_ns, forget->wanted, seen);
}

static int check(const struct forget *forget, const struct pwi_server_seen *seen) {
  const struct pwi_command *command = forget->command;
  if (!seen->process)
    return pwi_cli_failure(command, "server %s not found; list servers by node and address with 'pawl status'",
                           forget->wanted);
  if (seen->away < seen->shards)
    return pwi_cli_failure(command, "the server at %s is not down; remove it with 'pawl server drain'", seen->address);
  if (seen->alone > 0 && seen->others == 0)
    return pwi_cli_failure(command,
                           "the server at %s has the only copy of some keys, and no other server is up to take them "
                           "over; add one with 'pawl server'",
                           seen->address);
  if (seen->alone == 0 || forget->lose_data) return PWI_EXIT_OK;
  return pwi_cli_failure(
      command,
      "the server at %s has the only copy of %zu arcs (%.1f %% of all keys), which wait for it. If it will never come "
      "back, give them up with --lose-data: ALL DATA PUSHED TO THEM IS LOST, and their keys read as zero",
      seen->address, seen->alone, 100 * seen->alone_sum);
}

static int order(const struct forget *forget, struct pawl_session *session, const struct pwi_server_seen *seen) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, (uint64_t)seen->node);
  pwi_write_u8(&payload, forget->lose_data);
  int64_t deadline = pwi_host_after(forget->choice.timeout_ns);
  pawl_status status = pwi_session_ask(session, PWI_ASK_GIVE_UP, &payload, deadline, NULL, NULL);
  pwi_writer_fini(&payload);
  if (status == PAWL_OK || status == PAWL_NODE_GONE) return PWI_EXIT_OK;
  const char *hint = status == PAWL_FORBIDDEN      ? "; use a key without limits"
                     : status == PAWL_CLUSTER_LOST ? "; permit it with --lose-data"
                     : status == PAWL_EXISTS    ? ": it is back, or other servers reach it, or it was lost a moment ago"
                     : status == PAWL_NOT_FOUND ? ": no other server is up to take its keys over"
                                                : "";
  return pwi_cli_failure(forget->command, "the manager refused to forget the server: %s%s", pawl_status_text(status),
                         hint);
}

static int report(const struct forget *forget, const struct pwi_server_seen *seen) {
  if (forget->json)
    return pwi_cli_print_json(forget->command,
                              json_pack("{s:I, s:I, s:o, s:I, s:f}", "node", (json_int_t)seen->node, "process",
                                        (json_int_t)seen->process, "address", pwi_json_string(seen->address),
                                        "arcs_lost", (json_int_t)seen->alone, "ring_lost", seen->alone_sum));
  printf("forgot the server at %s\n", seen->address);
  if (seen->alone > 0)
    printf("  it had the only copy of %zu arcs (%.1f %% of all keys): they restart empty on other servers, and their "
           "data is lost\n",
           seen->alone, 100 * seen->alone_sum);
  else
    printf("  other servers have copies of all its data\n");
  return PWI_EXIT_OK;
}

/* Gives up all servers that are down and have the only copy of some keys. */
static int forget_all(const struct forget *forget, struct pawl_session *session) {
  size_t count = 0;
  int exit_code = pwi_cluster_give_up(forget->command, session, forget->choice.timeout_ns, &count);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (forget->json) return pwi_cli_print_json(forget->command, json_pack("{s:I}", "forgotten", (json_int_t)count));
  if (count > 0)
    printf("forgot %zu shards of lost servers; keys that no other server has are zero now\n", count);
  else
    printf("no server that is down has the only copy of any key; nothing was changed\n");
  return PWI_EXIT_OK;
}

static int forget_one(const struct forget *forget, struct pawl_session *session) {
  struct pwi_server_seen seen = {0};
  int exit_code = look(forget, session, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = check(forget, &seen);
  if (exit_code == PWI_EXIT_OK) exit_code = order(forget, session, &seen);
  return exit_code == PWI_EXIT_OK ? report(forget, &seen) : exit_code;
}

static int run_forget(const struct forget *forget) {
  struct pawl_session *session;
  int exit_code = pwi_session_start(&forget->choice, forget->command, &session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = forget->all_lost ? forget_all(forget, session) : forget_one(forget, session);
  pawl_status ignored = pwi_session_end(&forget->choice, session, exit_code);
  (void)ignored; /* the result or an error has been printed */
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct forget forget = {.command = command};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&forget.choice, "forget", false);
  forget.choice.deals_with_loss = true;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) forget.json = true;
    if (letter == LETTER_LOSE_DATA) forget.lose_data = true;
    if (letter == LETTER_ALL_LOST) forget.all_lost = true;
    if (!pwi_session_option(&forget.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, forget.all_lost ? 0 : 1, forget.all_lost ? 0 : 1))
    return args.exit_code;
  forget.wanted = forget.all_lost ? NULL : argv[args.rest];
  return run_forget(&forget);
}

static const struct pwi_cli_option options[] = {
    {LETTER_LOSE_DATA, "lose-data", NULL, "give up data that only this server had; it is LOST"},
    {LETTER_ALL_LOST, "all-lost", NULL,
     "give up all servers that are down and have the only copy of some keys; data that only they had is LOST"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_server_forget = {
    .name = "server forget",
    .arguments = "NODE|ADDRESS | --all-lost",
    .summary = "give up a server that is down for good",
    .text = "Tells the manager that a server that is down will not come back. If other\n"
            "servers have copies of all its data, nothing is lost. Keys of which it has the\n"
            "only copy wait for it. With --lose-data these keys are given up: their data is\n"
            "LOST, they read as zero, and clients that had pushed to them get CLUSTER_LOST.\n"
            "Make sure that the process is dead: a server that is only cut off from the\n"
            "manager may still be serving clients.\n\n"
            "  pawl server forget 3 --cluster node1:7295\n"
            "  pawl server forget node2:41234 --lose-data\n"
            "  pawl server forget --all-lost    # after all servers were stopped\n",
    .options = options,
    .run = run,
};
