/* The HTTP endpoint of a role: /metrics for clients that its guard accepts, and /healthz for all. */
#ifndef PWI_HOST_RUN_ENDPOINT_H
#define PWI_HOST_RUN_ENDPOINT_H

#include "host/http/http.h"
#include "net/tcp/tcp.h"

struct pwi_run_endpoint_config {
  const char *address;              /* as in struct pwi_http_config */
  const char *token_file;           /* NULL: none */
  const struct pwi_tcp_config *net; /* whose certificates it uses */
  pwi_http_render *metrics, *health;
  void *context;
};

/* A struct of zeros is closed. */
struct pwi_run_endpoint {
  struct pwi_http *http;
  struct pwi_http_guard *guard; /* NULL: none */
};

/* Close it in any case. */
PAWL_MUST_USE pawl_status pwi_run_endpoint_open(const struct pwi_run_endpoint_config *config,
                                                struct pwi_run_endpoint *endpoint, struct pwi_run_problem *problem);
void pwi_run_endpoint_close(struct pwi_run_endpoint *endpoint);

uint16_t pwi_run_endpoint_port(const struct pwi_run_endpoint *endpoint); /* 0: it is closed */
bool pwi_run_endpoint_is_encrypted(const struct pwi_run_endpoint *endpoint);

#endif
