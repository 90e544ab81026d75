/* libmicrohttpd listens and parses; this file decides and formats the answers. libmicrohttpd never logs:
 * no flag asks it to. */
#include "host/http/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>

#include "base/memory.h"
#include "host/http/http_crowd.h"
#include "net/address.h"

#define DEFAULT_HOST "127.0.0.1"
#define PLAIN "text/plain; charset=utf-8"
#define BACKLOG 128
#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define MEMORY_PER_CONNECTION ((size_t)16 << 10) /* headers and the socket's buffer, without the body */

struct pwi_http {
  struct MHD_Daemon *daemon;
  struct pwi_http_crowd *crowd;
  struct pwi_http_guard *guard; /* NULL: none */
  bool is_encrypted;
  uint16_t port;
  size_t route_count;
  struct pwi_http_route routes[];
};

/* --- answers -------------------------------------------------------------------------------------------- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code, const char *type, const char *body,
                             size_t length) {
  struct MHD_Response *response = MHD_create_response_from_buffer(length, (void *)body, MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  bool complete = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
                  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
                  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
  if (complete && code == MHD_HTTP_METHOD_NOT_ALLOWED)
    complete = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES;
  if (complete && code == MHD_HTTP_UNAUTHORIZED)
    complete = MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer") == MHD_YES;
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

/* --- authorisation -------------------------------------------------------------------------------------- */

/* Whether the client presented a certificate for clients that the authority signed. */
static bool has_certificate(const struct pwi_http *http, struct MHD_Connection *connection) {
  if (!http->is_encrypted) return false;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  unsigned status = 0;
  gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                   .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
  if (!info || !info->tls_session || !gnutls_certificate_get_peers(info->tls_session, NULL)) return false;
  return gnutls_certificate_verify_peers(info->tls_session, &purpose, 1, &status) == GNUTLS_E_SUCCESS && status == 0;
}

static bool may_look(const struct pwi_http *http, struct MHD_Connection *connection,
                     const struct pwi_http_route *route) {
  if (!http->guard || route->is_open) return true;
  const char *shown = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  if (pwi_http_guard_knows(http->guard, shown)) return true;
  /* A guard without tokens guards the machine's own pages only if they are encrypted. */
  if (!pwi_http_guard_has_tokens(http->guard) && !http->is_encrypted) return true;
  return has_certificate(http, connection);
}

static const struct pwi_http_route *find_route(const struct pwi_http *http, const char *path) {
  for (size_t i = 0; i < http->route_count; i++)
    if (strcmp(http->routes[i].path, path) == 0) return &http->routes[i];
  return NULL;
}

/* --- connections ---------------------------------------------------------------------------------------- */

static struct pwi_http_guest *guest_of(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

/* Closes the connection if the crowd has no place for it. */
static void on_connection(void *context, struct MHD_Connection *connection, void **guest,
                          enum MHD_ConnectionNotificationCode what) {
  struct pwi_http *http = context;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    pwi_http_crowd_leave(http->crowd, *guest);
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  int socket = info ? info->connect_fd : -1;
  info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  *guest = pwi_http_crowd_enter(http->crowd, socket, info ? info->client_addr : NULL);
  if (!*guest) shutdown(socket, SHUT_RDWR);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **seen,
                         enum MHD_RequestTerminationCode how) {
  struct pwi_http *http = context;
  struct pwi_http_guest *guest = guest_of(connection);
  (void)seen, (void)how;
  if (guest) pwi_http_guest_is_done(http->crowd, guest);
}

/* --- requests ------------------------------------------------------------------------------------------- */

/* libmicrohttpd calls this once after the headers, once for each part of a body, and once at the end. A
 * refusal is sent at once, which ends the connection; an answer is sent at the end, so that the connection
 * can be reused. A request with a body is cut off. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body, size_t *body_size,
                                  void **seen) {
  static char mark;
  (void)version;
  (void)body;
  bool known = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
  if (!known) return reply_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are supported");
  if (!*seen) {
    *seen = &mark;
    return MHD_YES;
  }
  if (*body_size != 0) return MHD_NO;
  const struct pwi_http *http = context;
  const struct pwi_http_route *route = find_route(http, path);
  if (!route) return reply_line(connection, MHD_HTTP_NOT_FOUND, "no such page");
  struct pwi_http_guest *guest = guest_of(connection);
  if (guest) pwi_http_guest_is_answered(http->crowd, guest);
  if (!may_look(http, connection, route))
    return reply_line(connection, MHD_HTTP_UNAUTHORIZED, "a token is required: Authorization: Bearer TOKEN");
  return reply_route(connection, route);
}

/* --- listening ------------------------------------------------------------------------------------------ */

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

static bool is_loopback(const struct sockaddr *where) {
  if (where->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)where)->sin_addr.s_addr) >> 24 == 127;
  const struct in6_addr *address = &((const struct sockaddr_in6 *)(const void *)where)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* Uses poll and not epoll: with few connections it costs nothing, and libmicrohttpd's epoll misses a
 * client that hangs up right behind half a request. The thread inherits the signal mask, so signals go to
 * the threads of the program. */
static pawl_status start_daemon(struct pwi_http *http, const struct sockaddr *where,
                                const struct MHD_OptionItem *more) {
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | (where->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u) |
                   (http->is_encrypted ? MHD_USE_TLS : 0u);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  errno = 0;
  http->daemon = MHD_start_daemon(
      flags, 0, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR, where, MHD_OPTION_CONNECTION_LIMIT,
      (unsigned)(2 * PWI_HTTP_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PWI_HTTP_ANSWER_SECONDS,
      MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)BACKLOG, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_PER_CONNECTION,
      MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
      on_completed, http, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return http->daemon ? PAWL_OK : status_of(error);
}

/* Checks the certificates here, because libmicrohttpd would only report that it cannot start. */
static bool are_good(const struct pwi_http_papers *papers) {
  gnutls_certificate_credentials_t credentials;
  gnutls_datum_t certificate = {(unsigned char *)papers->certificate, (unsigned)strlen(papers->certificate)};
  gnutls_datum_t key = {(unsigned char *)papers->private_key, (unsigned)strlen(papers->private_key)};
  gnutls_datum_t authority = {(unsigned char *)papers->authority, (unsigned)strlen(papers->authority)};
  if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS) return false;
  bool good = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM) >= 0 &&
              gnutls_certificate_set_x509_trust_mem(credentials, &authority, GNUTLS_X509_FMT_PEM) > 0;
  gnutls_certificate_free_credentials(credentials);
  return good;
}

/* An address that other machines can reach is encrypted if possible, and always guarded. */
static pawl_status start(struct pwi_http *http, const struct sockaddr *where) {
  const struct pwi_http_papers *papers = http->guard ? pwi_http_guard_papers(http->guard) : NULL;
  struct MHD_OptionItem more[5] = {{MHD_OPTION_END, 0, NULL}};
  http->is_encrypted = papers && !is_loopback(where);
  if (!http->guard && !is_loopback(where)) return PAWL_LINK_KEY;
  if (!http->is_encrypted) return start_daemon(http, where, more);
  if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) return PAWL_UNSUPPORTED;
  if (!are_good(papers)) return PAWL_CORRUPT;
  more[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, papers->certificate};
  more[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, papers->private_key};
  more[2] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, papers->authority};
  more[3] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES};
  more[4] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
  return start_daemon(http, where, more);
}

/* Tries every address of the host before the next port. */
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
  *http = (struct pwi_http){.route_count = config->route_count, .guard = config->guard};
  if (routes_size) memcpy(http->routes, config->routes, routes_size);
  status = pwi_http_crowd_open(&http->crowd);
  if (status) goto free_http;
  status = start_somewhere(http, &address);
  if (status) goto close_crowd;
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
  http->port = info ? info->port : 0;
  *http_out = http;
  return PAWL_OK;
close_crowd:
  pwi_http_crowd_close(http->crowd);
free_http:
  pwi_free(http);
  return status;
}

uint16_t pwi_http_port(const struct pwi_http *http) { return http->port; }

bool pwi_http_is_encrypted(const struct pwi_http *http) { return http->is_encrypted; }

void pwi_http_close(struct pwi_http *http) {
  if (!http) return;
  MHD_stop_daemon(http->daemon);
  pwi_http_crowd_close(http->crowd);
  pwi_free(http);
}
