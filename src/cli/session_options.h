/* Options of the commands that connect to a cluster, such as `pawl status`, `pawl get` and `pawl put`, and
 * opening their session. */
#ifndef PWI_CLI_SESSION_OPTIONS_H
#define PWI_CLI_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/session.h>

#include "cli/cli.h"

enum {
  PWI_SESSION_CLUSTER = 500,
  PWI_SESSION_KEY_FILE,
  PWI_SESSION_CERTIFICATE,
  PWI_SESSION_PRIVATE_KEY,
  PWI_SESSION_AUTHORITY,
  PWI_SESSION_REQUIRE_ENCRYPTION,
  PWI_SESSION_TIMEOUT,
  PWI_SESSION_PRIORITY,
  PWI_SESSION_DSCP,
};

/* All options but --cluster, for commands that can work without a cluster. */
#define PWI_SESSION_PROOFS                                                                                             \
  {PWI_SESSION_KEY_FILE, "key-file", "FILE", "key to use (default: PAWL_KEY_FILE, or PAWL_KEY)"},                      \
      {PWI_SESSION_CERTIFICATE, "certificate", "FILE", "PEM file of the client's certificate, instead of a key"},      \
      {PWI_SESSION_PRIVATE_KEY, "private-key", "FILE", "PEM file of the private key of --certificate"},                \
      {PWI_SESSION_AUTHORITY, "authority", "FILE",                                                                     \
       "PEM file of the authority that signed the cluster's certificates"},                                            \
      {PWI_SESSION_PRIORITY, "priority", "N",                                                                          \
       "how urgent the requests are, from 1 to 9 (default: PAWL_PRIORITY, or 5); servers let less urgent ones wait"},  \
      {PWI_SESSION_DSCP, "dscp", "N", "mark of packets for routers, from 1 to 63 (default: PAWL_DSCP, or none)"},      \
      {PWI_SESSION_REQUIRE_ENCRYPTION, "require-encryption", NULL, "refuse unencrypted links and shared memory"}, {    \
    PWI_SESSION_TIMEOUT, "timeout", "SECONDS", "time limit of each step (default: 5)"                                  \
  }

#define PWI_SESSION_OPTIONS                                                                                            \
  {PWI_SESSION_CLUSTER, "cluster", "ADDRESS[,…]",                                                                      \
   "address of the manager, or of all managers that share a log (default: PAWL_ADDRESS, or 127.0.0.1:7295)"},          \
      PWI_SESSION_PROOFS

struct pwi_session_choice {
  struct pawl_session_options options;
  int64_t timeout_ns;
  bool deals_with_loss; /* the command itself handles keys that wait for servers that are down */
  bool is_patient;      /* --timeout was given: the manager may be about to start */
};

/* Sets defaults: the address from PAWL_ADDRESS, and a timeout of five seconds. */
void pwi_session_choice_init(struct pwi_session_choice *choice, const char *job, bool read_only);

/* Handles an option that pwi_cli_next returned. Options of other groups are ignored. If it returns false,
 * return `*exit_out`. */
bool pwi_session_option(struct pwi_session_choice *choice, const struct pwi_command *command, int letter,
                        const char *value, int *exit_out);

/* Opens a session. If keys wait for servers that are down, prints a warning to standard error. Returns
 * PWI_EXIT_OK, or prints an error. */
int pwi_session_start(const struct pwi_session_choice *choice, const struct pwi_command *command,
                      struct pawl_session **session_out);

/* Whether a process answers at the default address. For commands that can work without a cluster. */
bool pwi_session_default_answers(void);
extern const char pwi_session_default_address[];

/* Closes the session and returns the status of the close. After a failure it does not wait for tasks in
 * progress. */
pawl_status pwi_session_end(const struct pwi_session_choice *choice, struct pawl_session *session, int exit_code);

/* Prints the error of this thread's last call, with a hint if there is one. Returns the exit code. */
int pwi_session_failure(const struct pwi_command *command, pawl_status status);

/* Prints an error with the text of an earlier call. Returns the exit code. */
int pwi_session_failure_of(const struct pwi_command *command, pawl_status status, const char *text);

/* Waits until every key has a server that is up, at most for the timeout of a step. For commands that would
 * otherwise wait without end. Uses the session that was started last. Returns PWI_EXIT_OK, or prints an
 * error. */
int pwi_session_await_whole(const struct pwi_session_choice *choice, const struct pwi_command *command);

#endif
