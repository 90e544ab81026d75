/* A small HTTP/1.1 endpoint: pages for people, /metrics for Prometheus, /healthz for orchestrators.
 *
 * It answers GET and HEAD on a fixed list of paths: 405 to other methods, 404 to other paths, 400 to what is no
 * request. It reads no bodies, keeps no sessions and never writes: whoever can reach it can look, and do nothing.
 * Without a host it listens on this machine only. Every answer says that it must not be cached.
 *
 * A health check is answered whatever others do: when all PWI_HTTP_CONNECTIONS places are taken, the connection that has
 * waited for longest gives way to a new one, and a request that trickles is hung up on (host/http/http_crowd.h).
 *
 * An address that other machines can reach needs a guard: then every page but the open ones is shown only to those that
 * the guard knows (host/http/http_guard.h), and to others 401. With a guard that has certificates such an address speaks TLS.
 *
 * Threads. The endpoint has one thread of its own, in which every render runs, one at a time. A render must therefore
 * be safe beside the threads of the program, must not block for long, and must not close its endpoint. Signals are
 * blocked in that thread. Different endpoints know nothing of one another.
 */
#ifndef PWI_HOST_HTTP_HTTP_H
#define PWI_HOST_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "host/http/http_guard.h"
#include "host/text.h"

/* Writes the body. `*code` is 200, and may be set to another HTTP code: a health check that finds something wrong
 * writes why, sets 503 and returns PAWL_OK. If the render, or the text, failed, the answer is 503 with the text of the
 * status, and what was written is dropped. */
typedef pawl_status pwi_http_render(void *context, struct pwi_text *text, unsigned *code);

struct pwi_http_route {
  const char *path;         /* compared exactly, without the query: "/metrics" */
  const char *content_type; /* "text/plain; charset=utf-8" */
  pwi_http_render *render;
  void *context;
  bool is_open; /* shown to everybody */
};

struct pwi_http_config {
  const char *address; /* "host:port"; ":port" or NULL listen on 127.0.0.1. Port 0: any; "first-last": the first free */
  const struct pwi_http_route *routes; /* copied; the strings and contexts must live until the endpoint is closed */
  size_t route_count;
  struct pwi_http_guard *guard; /* borrowed until the endpoint is closed; NULL: none */
};

struct pwi_http;

/* Listens from now on. A host name is looked up, which may block for as long as the resolver takes. Errors:
 *   PAWL_INVALID        the address cannot be read, or a route has no path, type or render
 *   PAWL_LINK_RESOLVE   no such host
 *   PAWL_NODE_ADDRESS   the address is not of this machine, or its port is in use
 *   PAWL_FORBIDDEN      the port needs more rights
 *   PAWL_LINK_KEY       other machines can reach the address, and there is no guard
 *   PAWL_CORRUPT        TLS does not take the guard's certificates
 *   PAWL_UNSUPPORTED    the guard has certificates, and libmicrohttpd was built without TLS
 *   PAWL_NODE_LIMIT     too many descriptors or threads
 *   PAWL_NO_MEMORY
 */
PAWL_MUST_USE pawl_status pwi_http_open(const struct pwi_http_config *config, struct pwi_http **http_out);

/* The port it listens on. */
uint16_t pwi_http_port(const struct pwi_http *http);

/* True if it speaks TLS. */
bool pwi_http_is_encrypted(const struct pwi_http *http);

/* Hangs up on everybody and waits for a render that is running. NULL is fine. */
void pwi_http_close(struct pwi_http *http);

#endif
