/* Options of the commands that talk to a cluster, `pawl status`, `pawl get` and `pawl put`, and opening a session by them. */
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
};

/* All but the address, for commands that can do without a cluster. */
#define PWI_SESSION_PROOFS                                                                                             \
  {PWI_SESSION_KEY_FILE, "key-file", "FILE", "key to use (default: PAWL_KEY_FILE, or PAWL_KEY)"},                      \
      {PWI_SESSION_CERTIFICATE, "certificate", "FILE", "PEM file of the client's certificate, instead of a key"},      \
      {PWI_SESSION_PRIVATE_KEY, "private-key", "FILE", "PEM file of the private key of --certificate"},                \
      {PWI_SESSION_AUTHORITY, "authority", "FILE",                                                                     \
       "PEM file of the authority that signed the cluster's certificates"},                                            \
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
  bool deals_with_loss; /* keys that wait for servers which are down are this command's own matter */
  bool is_patient;      /* the time was given: a manager that is not there may be about to start */
};

/* Defaults: the address of the environment, five seconds. */
void pwi_session_choice_init(struct pwi_session_choice *choice, const char *job, bool read_only);

/* One option that pwi_cli_next returned. True if it is one of ours and could be read, or is none of ours; false: return
 * `*exit_out`. */
bool pwi_session_option(struct pwi_session_choice *choice, const struct pwi_command *command, int letter,
                        const char *value, int *exit_out);

/* Opens a session. PWI_EXIT_OK, or it has said why not. If keys wait for servers that are down it says so on standard error. */
int pwi_session_start(const struct pwi_session_choice *choice, const struct pwi_command *command,
                      struct pawl_session **session_out);

/* Whether somebody answers at the address that commands use unless they are told another one. For commands that can do without a
 * cluster. */
bool pwi_session_default_answers(void);
extern const char pwi_session_default_address[];

/* Closes it. After a failure nothing is waited for: what had no answer in time gets none. The status is that of the close. */
pawl_status pwi_session_end(const struct pwi_session_choice *choice, struct pawl_session *session, int exit_code);

/* Prints what this thread's last call failed with, and a hint where there is one; the exit code. */
int pwi_session_failure(const struct pwi_command *command, pawl_status status);

/* The same with the text of an earlier call. */
int pwi_session_failure_of(const struct pwi_command *command, pawl_status status, const char *text);

/* For commands that would wait for ever otherwise: waits until every key has a server that is up, as long as each step may take. Of the
 * session that was started last. PWI_EXIT_OK, or it has said why not. */
int pwi_session_await_whole(const struct pwi_session_choice *choice, const struct pwi_command *command);

#endif
