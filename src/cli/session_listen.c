#include "cli/session_listen.h"

#include <stdio.h>
#include <string.h>

#include "host/run/address.h"

#define LOOPBACK "127.0.0.1"

int pwi_session_listen(const struct pwi_command *command, const char *cluster, const char *chosen,
                       char listen_out[PWI_SESSION_LISTEN_MAX]) {
  char first[PWI_NET_ADDRESS_MAX], host[PWI_NET_ADDRESS_MAX] = LOOPBACK;
  bool is_loopback;
  if (!chosen && cluster) {
    snprintf(first, sizeof first, "%.*s", (int)strcspn(cluster, ","), cluster);
    pawl_status status = pwi_run_route(first, host, &is_loopback);
    if (status)
      return pwi_cli_failure(
          command, "cannot find a route to the manager at %s: %s; give the address of this machine with --listen",
          first, pawl_status_text(status));
  }
  int size = chosen ? snprintf(listen_out, PWI_SESSION_LISTEN_MAX, "%s", chosen)
                    : snprintf(listen_out, PWI_SESSION_LISTEN_MAX, "%s:0", host);
  if (size > 0 && size < PWI_SESSION_LISTEN_MAX) return PWI_EXIT_OK;
  return pwi_cli_failure(command, "the address to listen on is too long");
}
