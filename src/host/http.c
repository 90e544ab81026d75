/* libmicrohttpd does the listening and the parsing; here is what it may do and what it says. It never logs: no flag
 * asks it to. */
#include "host/http.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "base/memory.h"
#include "net/address.h"

#define DEFAULT_HOST "127.0.0.1"
#define PLAIN "text/plain; charset=utf-8"
#define MEMORY_PER_CONNECTION ((size_t)16 << 10) /* headers and the socket's buffer, not the body */

struct pwi_http {
  struct MHD_Daemon *daemon;
  uint16_t port;
  size_t route_count;
  struct pwi_http_route routes[];
};

/* --- answers ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code, const char *type, const char *body,
                             size_t length) {
  struct MHD_Response *response = MHD_create_response_from_buffer(length, (void *)body, MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  bool complete = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
                  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
                  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
  if (complete && code == MHD_HTTP_METHOD_NOT_ALLOWED)
    complete = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES;
  enum MHD_Result result = complete ? MHD_queue_response(connection, code, response) : MHD_NO;
  MHD_destroy_response(response);
  return result;
}

static enum MHD_Result reply_line(struct MHD_Connection *connection, unsigned code, const char *line) {
  char body[128];
  int length = snprintf(body, sizeof body, "%s\n", line);
  return reply(connection, code, PLAIN, body, (size_t)length);
}

static enum MHD_Result reply_route(struct MHD_Connection *connection, const struct pwi_http_route *route) {
  struct pwi_text text = {0};
  unsigned code = MHD_HTTP_OK;
  pawl_status status = route->render(route->context, &text, &code);
  if (!status) status = pwi_text_status(&text);
  enum MHD_Result result = status ? reply_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, pawl_status_text(status))
                                  : reply(connection, code, route->content_type, pwi_text_view(&text), text.length);
  pwi_text_fini(&text);
  return result;
}

static const struct pwi_http_route *find_route(const struct pwi_http *http, const char *path) {
  for (size_t i = 0; i < http->route_count; i++)
    if (strcmp(http->routes[i].path, path) == 0) return &http->routes[i];
  return NULL;
}

/* Called once when the headers are in, once for each piece of a body, and once at the end. A refusal is given at once,
 * which ends the connection; an answer at the end, so that the connection can be used again. A body is hung up on. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body, size_t *body_size,
                                  void **seen) {
  static char mark;
  (void)version;
  (void)body;
  bool known = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
  if (!known) return reply_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
  if (!*seen) {
    *seen = &mark;
    return MHD_YES;
  }
  if (*body_size != 0) return MHD_NO;
  const struct pwi_http_route *route = find_route(context, path);
  if (!route) return reply_line(connection, MHD_HTTP_NOT_FOUND, "no such page");
  return reply_route(connection, route);
}

/* --- listening -------------------------------------------------------------------------------------------------- */

static pawl_status read_address(const char *text, struct pwi_address *address_out) {
  char whole[PWI_ADDRESS_HOST_MAX + 16];
  if (!text) text = ":0";
  int length = snprintf(whole, sizeof whole, "%s%s", *text == ':' ? DEFAULT_HOST : "", text);
  if (length < 0 || (size_t)length >= sizeof whole) return PAWL_INVALID;
  struct pwi_address address;
  pawl_status status = pwi_address_parse(whole, &address);
  if (status) return status;
  if (address.kind != PWI_ADDRESS_TCP) return PAWL_INVALID;
  *address_out = address;
  return PAWL_OK;
}

static pawl_status status_of(int error) {
  switch (error) {
  case EACCES:
  case EPERM:
    return PAWL_FORBIDDEN;
  case ENOMEM:
    return PAWL_NO_MEMORY;
  case EMFILE:
  case ENFILE:
  case EAGAIN:
    return PAWL_NODE_LIMIT;
  default:
    return PAWL_NODE_ADDRESS;
  }
}

/* With poll and not epoll: of few connections it costs nothing, and libmicrohttpd's epoll does not see a client hang up
 * that comes right behind half a request. The thread inherits the mask: signals are for the threads of the program. */
static pawl_status start(struct pwi_http *http, const struct sockaddr *where) {
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | (where->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  errno = 0;
  http->daemon = MHD_start_daemon(
      flags, 0, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR, where, MHD_OPTION_CONNECTION_LIMIT,
      (unsigned)PWI_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PWI_HTTP_IDLE_SECONDS,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_PER_CONNECTION, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return http->daemon ? PAWL_OK : status_of(error);
}

/* Every address of the host is tried before the next port is. */
static pawl_status start_somewhere(struct pwi_http *http, const struct pwi_address *address) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
  pawl_status status = PAWL_NODE_ADDRESS;
  for (unsigned port = address->port_first; port <= address->port_last; port++) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int error = getaddrinfo(address->host, service, &hints, &found);
    if (error) return error == EAI_MEMORY ? PAWL_NO_MEMORY : PAWL_LINK_RESOLVE;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
      if (!(status = start(http, at->ai_addr))) break;
    freeaddrinfo(found);
    if (status != PAWL_NODE_ADDRESS) break;
  }
  return status;
}

static bool is_complete(const struct pwi_http_route *route) {
  return route->path && route->path[0] == '/' && route->content_type && route->render;
}

pawl_status pwi_http_open(const struct pwi_http_config *config, struct pwi_http **http_out) {
  struct pwi_address address;
  pawl_status status = read_address(config->address, &address);
  if (status) return status;
  for (size_t i = 0; i < config->route_count; i++)
    if (!is_complete(&config->routes[i])) return PAWL_INVALID;
  size_t routes_size = config->route_count * sizeof *config->routes;
  struct pwi_http *http = pwi_alloc(sizeof *http + routes_size);
  if (!http) return PAWL_NO_MEMORY;
  *http = (struct pwi_http){.route_count = config->route_count};
  if (routes_size) memcpy(http->routes, config->routes, routes_size);
  status = start_somewhere(http, &address);
  if (status) goto free_http;
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
  http->port = info ? info->port : 0;
  *http_out = http;
  return PAWL_OK;
free_http:
  pwi_free(http);
  return status;
}

uint16_t pwi_http_port(const struct pwi_http *http) { return http->port; }

void pwi_http_close(struct pwi_http *http) {
  if (!http) return;
  MHD_stop_daemon(http->daemon);
  pwi_free(http);
}
