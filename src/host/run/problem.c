#include "host/run/problem.h"

#include <stdarg.h>
#include <stdio.h>

void pwi_run_problem_set(struct pwi_run_problem *problem, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->text, sizeof problem->text, format, arguments);
  va_end(arguments);
}

void pwi_run_problem_listen(struct pwi_run_problem *problem, const char *address, pawl_status status) {
  const char *hint = "";
  if (status == PAWL_FORBIDDEN)
    hint = "; other machines can reach this address: create a key with 'pawl key new cluster.key' and give it to every "
           "node with "
           "--key-file, or listen on 127.0.0.1";
  if (status == PAWL_NODE_ADDRESS) hint = "; the port may be in use: choose another with --listen";
  if (status == PAWL_INVALID) hint = "; expected host:port, host:first-last or unix:/path";
  pwi_run_problem_set(problem, "cannot listen on %s: %s%s", address, pawl_status_text(status), hint);
}

void pwi_run_problem_http(struct pwi_run_problem *problem, const char *address, pawl_status status) {
  if (status == PAWL_LINK_KEY) {
    pwi_run_problem_set(problem,
                        "cannot serve HTTP on %s: other machines can reach this address, but access is not "
                        "restricted; create a token with 'pawl key token FILE' and pass --http-token FILE, or use "
                        "certificates, or 127.0.0.1, or --http none",
                        address);
    return;
  }
  if (status == PAWL_CORRUPT) {
    pwi_run_problem_set(problem, "cannot serve HTTP on %s: --certificate, --private-key or --authority is invalid",
                        address);
    return;
  }
  pwi_run_problem_set(problem, "cannot serve HTTP on %s: %s; choose another address with --http, or --http none",
                      address, pawl_status_text(status));
}

void pwi_run_problem_join(struct pwi_run_problem *problem, const char *manager, pawl_status status) {
  switch (status) {
  case PAWL_LINK_KEY:
    pwi_run_problem_set(problem,
                        "the manager at %s does not accept our key; give this node the manager's key file with "
                        "--key-file, or set PAWL_KEY_FILE",
                        manager);
    break;
  case PAWL_LINK_REFUSED:
  case PAWL_CLUSTER_UNKNOWN:
    pwi_run_problem_set(problem, "no manager answers at %s; start one with 'pawl manager'", manager);
    break;
  case PAWL_INVALID:
    pwi_run_problem_set(problem, "'%s' is not the address of a manager: expected host:port or unix:/path", manager);
    break;
  case PAWL_LINK_PROTOCOL:
  case PAWL_CORRUPT:
  case PAWL_LINK_CLOSED:
  case PAWL_LINK_RESET:
    pwi_run_problem_set(problem,
                        "the peer at %s is not a manager, or only one side has a key; compare "
                        "'pawl env' on both machines",
                        manager);
    break;
  case PAWL_FORBIDDEN:
    pwi_run_problem_set(problem,
                        "the manager at %s refused this server: a server needs a key without limits, or, on the "
                        "manager's own machine, no key; see 'pawl key --help'",
                        manager);
    break;
  default:
    pwi_run_problem_set(problem, "cannot join the manager at %s: %s", manager, pawl_status_text(status));
  }
}
