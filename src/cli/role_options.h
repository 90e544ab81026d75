/* Options shared by `pawl manager`, `pawl server` and `pawl relay`: addresses, keys and certificates, HTTP, and the parent
 * process. */
#ifndef PWI_CLI_ROLE_OPTIONS_H
#define PWI_CLI_ROLE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "host/disk_queue.h"
#include "host/function_loader.h"
#include "host/run/access.h"
#include "net/tcp/tcp.h"

enum {
  PWI_ROLE_LISTEN = 400,
  PWI_ROLE_ADVERTISE,
  PWI_ROLE_HTTP,
  PWI_ROLE_HTTP_TOKEN,
  PWI_ROLE_RIGHTS,
  PWI_ROLE_AUDIT,
  PWI_ROLE_KEY_FILE,
  PWI_ROLE_CERTIFICATE,
  PWI_ROLE_PRIVATE_KEY,
  PWI_ROLE_AUTHORITY,
  PWI_ROLE_REQUIRE_ENCRYPTION,
  PWI_ROLE_TRANSPORT,
  PWI_ROLE_DSCP,
  PWI_ROLE_FUNCTIONS,
  PWI_ROLE_CHECKPOINTS,
  PWI_ROLE_READY_FD,
  PWI_ROLE_PARENT,
};

#define PWI_ROLE_HTTP_DEFAULT "127.0.0.1:0" /* of servers and relays */

/* The options of servers and relays whose help is the same. */
#define PWI_ROLE_HTTP_OPTION                                                                                           \
  {                                                                                                                    \
    PWI_ROLE_HTTP, "http", "ADDRESS",                                                                                  \
        "serve /metrics and /healthz on ADDRESS, or none (default: " PWI_ROLE_HTTP_DEFAULT ", any port)"               \
  }

/* The options of managers, too. */
#define PWI_ROLE_HTTP_TOKEN_OPTION                                                                                     \
  {                                                                                                                    \
    PWI_ROLE_HTTP_TOKEN, "http-token", "FILE",                                                                         \
        "file of tokens that /metrics requires (Authorization: Bearer), see 'pawl key token'; needed if other "        \
        "machines can reach --http and there are no certificates"                                                      \
  }

/* The options whose help is the same for managers and servers. */
#define PWI_ROLE_OPTIONS                                                                                               \
  PWI_ROLE_HTTP_TOKEN_OPTION,                                                                                          \
      {PWI_ROLE_KEY_FILE, "key-file", "FILE", "keys of the cluster (default: PAWL_KEY_FILE, or PAWL_KEY)"},            \
      {PWI_ROLE_CERTIFICATE, "certificate", "FILE",                                                                    \
       "PEM file of the node's certificate with its chain, instead of keys"},                                          \
      {PWI_ROLE_PRIVATE_KEY, "private-key", "FILE", "PEM file of the private key of --certificate"},                   \
      {PWI_ROLE_AUTHORITY, "authority", "FILE",                                                                        \
       "PEM file of the authority that signed the certificates of all nodes"},                                         \
      {PWI_ROLE_RIGHTS, "rights", "FILE",                                                                              \
       "rights of each name in a certificate, in lines 'NAME [read-only|operator] [space=NAME] ...' or 'NAME none'; "  \
       "reloaded on SIGHUP"},                                                                                          \
      {PWI_ROLE_AUDIT, "audit", "FILE", "append a line to FILE for every link and every request to the manager"},      \
      {PWI_ROLE_REQUIRE_ENCRYPTION, "require-encryption", NULL, "refuse unencrypted links and shared memory"},         \
      {PWI_ROLE_TRANSPORT, "transport", "KIND",                                                                        \
       "auto (default), tcp (no shared memory), or rdma (also between machines)"},                                     \
      {PWI_ROLE_DSCP, "dscp", "N", "mark of packets for routers, from 1 to 63 (default: PAWL_DSCP, or none)"},         \
      {PWI_ROLE_FUNCTIONS, "functions", "DIR",                                                                         \
       "load server functions from the .so files in DIR; the manager and all servers need the same ones (default: "    \
       "PAWL_FUNCTIONS)"},                                                                                             \
      {PWI_ROLE_CHECKPOINTS, "checkpoints", "DIR",                                                                     \
       "allow checkpoints in DIR and below; may be given several times (default: see docs/checkpoints.md)"},           \
      {PWI_ROLE_READY_FD, "ready-fd", "FD", "write 'ready address=ADDRESS' to the file descriptor FD when ready"}, {   \
    PWI_ROLE_PARENT, "parent", "PID", "end when the parent process PID has ended"                                      \
  }

struct pwi_role_options {
  const char *listen;
  const char *http; /* NULL: none */
  const char *http_token;
  struct pwi_tcp_config net;
  int ready_fd; /* -1: none */
  pid_t parent; /* 0: none */
  struct pwi_cli_keys keys;
  const char *key_file;
  const char *rights_file, *audit; /* NULL: none */
  struct pwi_run_access_config access;
  const char *function_directory; /* NULL: none */
  struct pwi_host_functions functions;
  struct pwi_disk_queue_places checkpoints;
};

/* Sets defaults, except for `listen` and `http`. Release with pwi_role_options_fini. */
void pwi_role_options_init(struct pwi_role_options *options);
void pwi_role_options_fini(struct pwi_role_options *options);

/* Handles an option that pwi_cli_next returned. Options of other groups are ignored. If it returns false,
 * return `*exit_out`. */
bool pwi_role_option(struct pwi_role_options *options, const struct pwi_command *command, int letter, const char *value,
                     int *exit_out);

/* After the last option: reads the keys and loads the server functions. If it returns false, return
 * `*exit_out`. */
bool pwi_role_options_settle(struct pwi_role_options *options, const struct pwi_command *command, int *exit_out);

/* Parses a size in bytes: a number, optionally followed by k, M, G or T (powers of 1024; either case); at
 * least 1. */
bool pwi_role_size(const char *text, uint64_t *bytes_out);

/* Parses seconds, not negative and possibly with a fraction, to nanoseconds. */
bool pwi_role_seconds(const char *text, int64_t *nanoseconds_out);

/* An address without "tcp://". Returns a pointer into the same text. */
const char *pwi_role_short(const char *address);

/* Writes the base URL of the HTTP pages, `http://host:port/` or https, to `text`. */
void pwi_role_page(const char *http, bool is_encrypted, uint16_t port, char *text, size_t size);

#endif
