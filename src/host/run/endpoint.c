#include "host/run/endpoint.h"

#include "host/metrics.h"

pawl_status pwi_run_endpoint_open(const struct pwi_run_endpoint_config *config, struct pwi_run_endpoint *endpoint,
                                  struct pwi_run_problem *problem) {
  const struct pwi_http_route routes[] = {
      {"/metrics", PWI_METRICS_CONTENT_TYPE, config->metrics, config->context, false},
      {"/healthz", "text/plain; charset=utf-8", config->health, config->context, true},
  };
  struct pwi_http_guard_config guard = {.token_file = config->token_file,
                                        .certificate = config->net->certificate,
                                        .private_key = config->net->private_key,
                                        .authority = config->net->authority};
  pawl_status status = pwi_http_guard_open(&guard, &endpoint->guard, problem);
  if (status) return status;
  struct pwi_http_config http = {
      .address = config->address, .routes = routes, .route_count = 2, .guard = endpoint->guard};
  status = pwi_http_open(&http, &endpoint->http);
  if (status) pwi_run_problem_http(problem, config->address, status);
  return status;
}

void pwi_run_endpoint_close(struct pwi_run_endpoint *endpoint) {
  pwi_http_close(endpoint->http);
  pwi_http_guard_close(endpoint->guard);
  *endpoint = (struct pwi_run_endpoint){0};
}

uint16_t pwi_run_endpoint_port(const struct pwi_run_endpoint *endpoint) {
  return endpoint->http ? pwi_http_port(endpoint->http) : 0;
}

bool pwi_run_endpoint_is_encrypted(const struct pwi_run_endpoint *endpoint) {
  return endpoint->http && pwi_http_is_encrypted(endpoint->http);
}
