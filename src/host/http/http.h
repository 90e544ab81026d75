/* A small HTTP/1.1 endpoint: pages for people, /metrics for Prometheus, /healthz for orchestrators.
 *
 * It answers GET and HEAD on a fixed list of paths: 405 to other methods, 404 to other paths, 400 to
 * malformed requests. It reads no bodies, keeps no sessions and changes nothing: clients can only look.
 * Without a host it listens on this machine only. Every answer forbids caching.
 *
 * Health checks are answered under any load: when all PWI_HTTP_CONNECTIONS places are taken, a new
 * connection replaces one that has had an answer or has waited longest, and slow requests are cut off
 * (host/http/http_crowd.h).
 *
 * An address that other machines can reach needs a guard. Then only clients that the guard accepts
 * (host/http/http_guard.h) see pages that are not public; others get 401. If the guard has certificates,
 * such an address speaks TLS.
 *
 * Threads. The endpoint has one thread of its own, in which every render runs, one at a time. A render
 * must be safe beside the threads of the program, must not block for long, and must not close its
 * endpoint. Signals are blocked in that thread. Endpoints are independent of one another.
 */
#ifndef PWI_HOST_HTTP_HTTP_H
#define PWI_HOST_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "host/http/http_guard.h"
#include "host/text.h"

/* Writes the body. `*code` is 200, and may be set to another HTTP code: a health check that finds a
 * problem writes why, sets 503 and returns PAWL_OK. If the render returns an error, or the text has one,
 * the answer is 503 with the text of the status, and the body is dropped. */
typedef pawl_status pwi_http_render(void *context, struct pwi_text *text, unsigned *code);

struct pwi_http_route {
  const char *path;         /* compared exactly, without the query: "/metrics" */
  const char *content_type; /* "text/plain; charset=utf-8" */
  pwi_http_render *render;
  void *context;
  bool is_open; /* shown to every client, without the guard */
};

struct pwi_http_config {
  /* "host:port"; ":port" or NULL: 127.0.0.1. Port 0: any; "first-last": the first free one */
  const char *address;
  /* copied; strings and contexts must live until the endpoint is closed */
  const struct pwi_http_route *routes;
  size_t route_count;
  struct pwi_http_guard *guard; /* borrowed until the endpoint is closed; NULL: none */
};

struct pwi_http;

/* Starts to listen. A host name is looked up, which may block for as long as the resolver takes. Errors:
 *   PAWL_INVALID        the address is malformed, or a route has no path, type or render
 *   PAWL_LINK_RESOLVE   no such host
 *   PAWL_NODE_ADDRESS   the address is not of this machine, or its port is in use
 *   PAWL_FORBIDDEN      the port needs more rights
 *   PAWL_LINK_KEY       other machines can reach the address, and there is no guard
 *   PAWL_CORRUPT        TLS rejects the guard's certificates
 *   PAWL_UNSUPPORTED    the guard has certificates, but libmicrohttpd was built without TLS
 *   PAWL_NODE_LIMIT     too many descriptors or threads
 *   PAWL_NO_MEMORY
 */
PAWL_MUST_USE pawl_status pwi_http_open(const struct pwi_http_config *config, struct pwi_http **http_out);

/* The port that it listens on. */
uint16_t pwi_http_port(const struct pwi_http *http);

/* True if it speaks TLS. */
bool pwi_http_is_encrypted(const struct pwi_http *http);

/* Closes all connections and waits for a running render. NULL is fine. */
void pwi_http_close(struct pwi_http *http);

#endif
