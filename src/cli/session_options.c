#include "cli/session_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/role_options.h" /* pwi_role_seconds */
#include "host/clock.h"
#include "net/tcp/tcp.h"
#include "wire/hello.h"

#define DEFAULT_PORT 7295 /* the default port of the manager */
#define DEFAULT_ADDRESS "127.0.0.1:7295"
#define PROBE_MS 500
#define DEFAULT_NS (5 * PAWL_SECOND)
#define WHOLE_LOOK_NS 50000000L

const char pwi_session_default_address[] = DEFAULT_ADDRESS;

static bool connects(int descriptor) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(DEFAULT_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct pollfd poll_for = {.fd = descriptor, .events = POLLOUT};
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return true;
  if (errno != EINPROGRESS || poll(&poll_for, 1, PROBE_MS) != 1) return false;
  return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool pwi_session_default_answers(void) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  bool answers = connects(descriptor);
  close(descriptor);
  return answers;
}

void pwi_session_choice_init(struct pwi_session_choice *choice, const char *job, bool read_only) {
  const char *address = getenv("PAWL_ADDRESS");
  pawl_session_options_init(&choice->options);
  choice->options.address = address && *address ? address : DEFAULT_ADDRESS;
  choice->options.job = job;
  choice->options.read_only = read_only;
  choice->timeout_ns = DEFAULT_NS;
}

static bool read_bounded(const struct pwi_command *command, const char *value, unsigned most, uint32_t *number_out,
                         int *exit_out) {
  uint64_t number;
  if (pwi_cli_number(value, &number) && number >= 1 && number <= most) {
    *number_out = (uint32_t)number;
    return true;
  }
  *exit_out = pwi_cli_bad_value(command, value, "a number from 1 to %u", most);
  return false;
}

bool pwi_session_option(struct pwi_session_choice *choice, const struct pwi_command *command, int letter,
                        const char *value, int *exit_out) {
  struct pawl_session_options *options = &choice->options;
  switch (letter) {
  case PWI_SESSION_CLUSTER:
    options->address = value;
    break;
  case PWI_SESSION_KEY_FILE:
    options->key_file = value;
    break;
  case PWI_SESSION_CERTIFICATE:
    options->certificate = value;
    break;
  case PWI_SESSION_PRIVATE_KEY:
    options->private_key = value;
    break;
  case PWI_SESSION_AUTHORITY:
    options->authority = value;
    break;
  case PWI_SESSION_REQUIRE_ENCRYPTION:
    options->require_encryption = true;
    break;
  case PWI_SESSION_PRIORITY:
    return read_bounded(command, value, PWI_PRIORITY_HIGHEST, &options->priority, exit_out);
  case PWI_SESSION_DSCP:
    return read_bounded(command, value, PWI_DSCP_MAX, &options->dscp, exit_out);
  case PWI_SESSION_TIMEOUT:
    choice->is_patient = true;
    if (pwi_role_seconds(value, &choice->timeout_ns) && choice->timeout_ns > 0) break;
    *exit_out = pwi_cli_bad_value(command, value, "a number of seconds above 0");
    return false;
  default:
    break;
  }
  return true;
}

static int explain_open(const struct pwi_command *command, const struct pawl_session_options *options,
                        pawl_status status) {
  const char *address = options->address;
  if (!address && status != PAWL_TIMED_OUT) return pwi_session_failure(command, status); /* a temporary cluster */
  switch (status) {
  case PAWL_LINK_REFUSED:
  case PAWL_LINK_UNREACHABLE:
  case PAWL_CLUSTER_UNKNOWN:
    return pwi_cli_failure(
        command,
        "no manager answers at %s; start one with 'pawl manager', or set the address with --cluster or PAWL_ADDRESS",
        address);
  case PAWL_LINK_RESOLVE:
    return pwi_cli_failure(command, "%s: unknown host; set the address of the manager with --cluster or PAWL_ADDRESS",
                           address);
  case PAWL_LINK_KEY:
    return pwi_cli_failure(
        command, "the manager at %s does not accept the key; set the right one with --key-file or PAWL_KEY_FILE",
        address);
  case PAWL_LINK_PROTOCOL:
  case PAWL_LINK_CLOSED:
  case PAWL_LINK_RESET:
    return pwi_cli_failure(command,
                           "the process at %s is not a manager (it does not speak pawl's protocol), or only one side "
                           "uses a key; show the keys in use here with 'pawl env'",
                           address);
  case PAWL_CLUSTER_HISTORY:
    return pwi_cli_failure(command,
                           "the manager at %s has stopped making decisions because its servers are ahead of its log; "
                           "start it with the newest log of this cluster",
                           address);
  case PAWL_TIMED_OUT:
    return pwi_cli_failure(command, "%s; wait longer with --timeout", pawl_error_text());
  default:
    return pwi_session_failure(command, status);
  }
}

/* The open session of this command, to explain failures; NULL: none is open. */
static struct pawl_session *opened;
static bool has_told; /* the user was told that keys wait for servers */

static void tell_waiting(const struct pwi_command *command) {
  if (!opened || has_told || pawl_session_check(opened) != PAWL_CLUSTER_WAITING) return;
  has_told = true;
  fprintf(stderr, "%s %s: the cluster is not complete: %s\n", pwi_cli_program, command->name, pawl_error_text());
}

int pwi_session_start(const struct pwi_session_choice *choice, const struct pwi_command *command,
                      struct pawl_session **session_out) {
  struct pawl_session_options options = choice->options;
  options.timeout_ns = choice->timeout_ns;
  options.impatient = !choice->is_patient;
  pawl_status status = pawl_session_open(&options, session_out);
  if (status) return explain_open(command, &options, status);
  opened = *session_out;
  has_told = choice->deals_with_loss;
  tell_waiting(command);
  return PWI_EXIT_OK;
}

pawl_status pwi_session_end(const struct pwi_session_choice *choice, struct pawl_session *session, int exit_code) {
  if (opened == session) opened = NULL;
  return pawl_session_close(session, exit_code == PWI_EXIT_OK ? choice->timeout_ns : 0);
}

static void cut_at(char *text, const char *end) {
  char *at = strstr(text, end);
  if (at) *at = '\0';
}

/* The library's tasks continue after a timeout, but a command ends. So the text must not say that the task
 * continues. */
static int explain_delay(const struct pwi_command *command, const char *text) {
  char what[1024], why[1024] = "";
  snprintf(what, sizeof what, "%s", text);
  if (pawl_session_check(opened) == PAWL_CLUSTER_WAITING) snprintf(why, sizeof why, "; %s", pawl_error_text());
  if (*why) cut_at(what, why);
  cut_at(what, "; not finished after");
  cut_at(what, ": deadline passed");
  tell_waiting(command);
  return pwi_cli_failure(command, "%s: no answer in time%s", what,
                         *why ? "" : "; show the servers with 'pawl status', or wait longer with --timeout");
}

int pwi_session_failure_of(const struct pwi_command *command, pawl_status status, const char *text) {
  const char *hint = "";
  if (status == PAWL_TIMED_OUT && *text && opened) return explain_delay(command, text);
  if (status == PAWL_FORBIDDEN) hint = "; the key in use does not permit it (show its limits with 'pawl key show')";
  if (status == PAWL_TIMED_OUT) hint = "; show the servers with 'pawl status', or wait longer with --timeout";
  if (status == PAWL_CLUSTER_WAITING && opened) tell_waiting(command);
  return pwi_cli_failure(command, "%s%s", *text ? text : pawl_status_text(status), hint);
}

int pwi_session_failure(const struct pwi_command *command, pawl_status status) {
  char text[1024];
  snprintf(text, sizeof text, "%s", pawl_error_text());
  return pwi_session_failure_of(command, status, text);
}

int pwi_session_await_whole(const struct pwi_session_choice *choice, const struct pwi_command *command) {
  struct timespec pause = {.tv_nsec = WHOLE_LOOK_NS};
  int64_t deadline = pwi_host_after(choice->timeout_ns);
  while (pawl_session_check(opened) == PAWL_CLUSTER_WAITING) {
    tell_waiting(command);
    if (pwi_host_now() >= deadline)
      return pwi_cli_failure(command, "the cluster is not complete after %g s; nothing was started",
                             (double)choice->timeout_ns / (double)PAWL_SECOND);
    nanosleep(&pause, NULL);
  }
  return PWI_EXIT_OK;
}
