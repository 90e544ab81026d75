/* Listening and accepting.
 *
 * A stranger is an accepted connection that is not up yet. Their number is limited: when there is one too
 * many, the oldest is closed. Thousands of half-open connections thus cost little, and a genuine peer, which
 * needs only a few milliseconds to come up, is still admitted.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/tcp/world.h"

#define BACKLOG 4096 /* so that a burst of strangers does not displace a genuine peer */
#define ACCEPT_BATCH 64

bool pwi_tcp_is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
  return false;
}

static pawl_status add_source(struct tcp_net *net, int socket, const struct pwi_address *address, uint16_t port) {
  struct tcp_listener *listener = &net->listeners[net->listener_count];
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_LISTENER - net->listener_count};
  if (listen(socket, BACKLOG) != 0 || epoll_ctl(net->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
    return PAWL_NODE_ADDRESS;
  listener->socket = socket;
  listener->kind = address->kind;
  memcpy(listener->path, address->host, sizeof listener->path);
  net->listener_count++;
  if (net->address[0]) return PAWL_OK;

  struct pwi_address told = *address;
  if (net->has_advertised && address->kind == PWI_ADDRESS_TCP) {
    told = net->advertised;
    if (told.port_first != 0) port = told.port_first;
  }
  pwi_address_print(&told, port, net->address);
  pwi_log(&net->log, PAWL_LOG_INFO, "net.listen", "address=%s encrypted=%d", net->address,
          net->tls != NULL && address->kind == PWI_ADDRESS_TCP);
  return PAWL_OK;
}

/* The mark is in the upper six bits. A socket of IPv6 may carry IPv4. A system that refuses it is no reason
 * to fail: the mark is a wish. */
void pwi_tcp_mark_packets(const struct tcp_net *net, int socket) {
  int field = (int)net->dscp << 2, domain = AF_UNSPEC;
  socklen_t size = sizeof domain;
  if (net->dscp == 0 || getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return;
  if (domain == AF_INET || domain == AF_INET6) setsockopt(socket, IPPROTO_IP, IP_TOS, &field, sizeof field);
  if (domain == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_TCLASS, &field, sizeof field);
}

static pawl_status bind_port(struct addrinfo *found, uint16_t port, int *socket_out, uint16_t *port_out) {
  int handle = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handle < 0) return PAWL_NODE_LIMIT;
  int yes = 1;
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (found->ai_family == AF_INET)
    ((struct sockaddr_in *)(void *)found->ai_addr)->sin_port = htons(port);
  else
    ((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_port = htons(port);
  struct sockaddr_storage bound = {0};
  socklen_t size = sizeof bound;
  if (bind(handle, found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(handle, (struct sockaddr *)&bound, &size) != 0 || listen(handle, 1) != 0) {
    close(handle);
    return PAWL_NODE_ADDRESS;
  }
  *port_out = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port
                                               : ((struct sockaddr_in6 *)&bound)->sin6_port);
  *socket_out = handle;
  return PAWL_OK;
}

static pawl_status listen_tcp(struct tcp_net *net, const struct pwi_address *address) {
  struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  if (getaddrinfo(address->host, NULL, &hints, &found) != 0) {
    pwi_log(&net->log, PAWL_LOG_ERROR, "net.listen", "host=%s why=unknown-host", address->host);
    return PAWL_NODE_ADDRESS;
  }
  pawl_status status = PAWL_FORBIDDEN;
  if (!net->tls && !pwi_tcp_is_loopback(found->ai_addr)) {
    pwi_log(&net->log, PAWL_LOG_ERROR, "net.listen",
            "host=%s why=no-key hint='others can reach this address: make a key with `pawl key new` and give it to "
            "every node, or listen on 127.0.0.1'",
            address->host);
  } else {
    int socket = -1;
    uint16_t port = 0;
    status = PAWL_NODE_ADDRESS;
    for (unsigned wanted = address->port_first; wanted <= address->port_last && status != PAWL_OK; wanted++)
      status = bind_port(found, (uint16_t)wanted, &socket, &port);
    if (status == PAWL_OK) pwi_tcp_mark_packets(net, socket); /* the answer to a connection, too */
    if (status == PAWL_OK && (status = add_source(net, socket, address, port)) != PAWL_OK) close(socket);
    if (status != PAWL_OK)
      pwi_log(&net->log, PAWL_LOG_ERROR, "net.listen", "host=%s ports=%u-%u why=%s", address->host, address->port_first,
              address->port_last, strerror(errno));
  }
  freeaddrinfo(found);
  return status;
}

/* A socket file without a listening process was left by a dead process and is replaced. A socket with a
 * listening process is left alone, and so is any other kind of file, although connecting to it is refused
 * too. */
static bool is_abandoned(const struct sockaddr_un *name) {
  struct stat about;
  if (lstat(name->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
  int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  bool refused = connect(probe, (const struct sockaddr *)name, sizeof *name) != 0 && errno == ECONNREFUSED;
  close(probe);
  return refused;
}

static pawl_status listen_unix(struct tcp_net *net, const struct pwi_address *address) {
  if (net->require_encryption) {
    pwi_log(&net->log, PAWL_LOG_ERROR, "net.listen", "path=%s why=encryption-required", address->host);
    return PAWL_FORBIDDEN;
  }
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  memcpy(name.sun_path, address->host, sizeof name.sun_path);
  int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handle < 0) return PAWL_NODE_LIMIT;
  if (is_abandoned(&name)) unlink(name.sun_path);
  pawl_status status = PAWL_NODE_ADDRESS;
  mode_t mask = umask(0077); /* only this user may connect */
  if (bind(handle, (struct sockaddr *)&name, sizeof name) == 0) status = add_source(net, handle, address, 0);
  umask(mask);
  if (status != PAWL_OK) {
    pwi_log(&net->log, PAWL_LOG_ERROR, "net.listen", "path=%s why=%s", address->host, strerror(errno));
    close(handle);
  }
  return status;
}

pawl_status pwi_tcp_listen(struct pwi_net *base, const char *text) {
  struct tcp_net *net = (struct tcp_net *)base;
  struct pwi_address address;
  pawl_status status = pwi_address_parse(text, &address);
  if (status != PAWL_OK) return status;
  if (net->listener_count == LISTENERS_MAX) return PAWL_NODE_LIMIT;
  return address.kind == PWI_ADDRESS_TCP ? listen_tcp(net, &address) : listen_unix(net, &address);
}

void pwi_tcp_close_sources(struct tcp_net *net) {
  for (size_t i = 0; i < net->listener_count; i++) {
    close(net->listeners[i].socket);
    if (net->listeners[i].kind == PWI_ADDRESS_UNIX) unlink(net->listeners[i].path);
  }
  net->listener_count = 0;
}

/* Strangers, oldest first. */

void pwi_tcp_forget_stranger(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  if (!link->is_stranger) return;
  link->is_stranger = false;
  net->stranger_count--;
  if (link->older)
    link->older->younger = link->younger;
  else
    net->oldest_stranger = link->younger;
  if (link->younger)
    link->younger->older = link->older;
  else
    net->youngest_stranger = link->older;
}

static void remember_stranger(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  link->is_stranger = true;
  link->older = net->youngest_stranger;
  link->younger = NULL;
  if (link->older)
    link->older->younger = link;
  else
    net->oldest_stranger = link;
  net->youngest_stranger = link;
  net->stranger_count++;
}

static void evict_oldest(struct tcp_net *net) {
  struct tcp_link *oldest = net->oldest_stranger;
  if (!oldest) return;
  pwi_tcp_forget_stranger(oldest);
  pwi_tcp_link_fail(oldest, PAWL_LINK_BUSY, "too many connections without a hello");
  shutdown(oldest->socket, SHUT_RDWR);
}

static void name_peer(struct tcp_link *link, const struct sockaddr_storage *from) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  socklen_t size = from->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  if (from->ss_family == AF_UNIX) {
    struct ucred who;
    socklen_t who_size = sizeof who;
    if (getsockopt(link->socket, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0)
      snprintf(link->peer, sizeof link->peer, "unix:pid-%ld", (long)who.pid);
    else
      snprintf(link->peer, sizeof link->peer, "unix:unknown");
  } else if (getnameinfo((const struct sockaddr *)from, size, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
    snprintf(link->peer, sizeof link->peer, from->ss_family == AF_INET6 ? "tcp://[%.200s]:%.8s" : "tcp://%.200s:%.8s",
             host, port);
  }
}

static void accept_one(struct tcp_net *net, const struct tcp_listener *listener, int socket,
                       const struct sockaddr_storage *from) {
  /* The file mode of a unix socket already keeps other users out; this check also works where modes are
   * ignored. */
  if (listener->kind == PWI_ADDRESS_UNIX && !pwi_tcp_is_same_user(socket)) {
    close(socket);
    return;
  }
  if (net->stranger_count >= net->base.limits.strangers) evict_oldest(net);
  struct tcp_link *link;
  if (pwi_tcp_link_create(net, &link) != PAWL_OK) {
    close(socket);
    return;
  }
  link->socket = socket;
  link->accepted = true;
  name_peer(link, from);
  remember_stranger(link);
  int yes = 1;
  if (listener->kind == PWI_ADDRESS_TCP) setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  pwi_tcp_mark_packets(net, socket);
  if (pwi_tcp_link_watch(link) == PAWL_OK)
    pwi_tcp_link_connected(link);
  else
    pwi_tcp_link_fail(link, PAWL_NODE_LIMIT, NULL);
}

/* Out of descriptors: otherwise the waiting connection would keep epoll ready forever. */
static void refuse_one(struct tcp_net *net, int listener) {
  evict_oldest(net);
  if (net->spare >= 0) close(net->spare);
  int refused = accept(listener, NULL, NULL);
  if (refused >= 0) close(refused);
  net->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void pwi_tcp_accept_all(struct tcp_net *net, struct tcp_listener *listener) {
  for (int i = 0; i < ACCEPT_BATCH; i++) {
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    int socket = accept4(listener->socket, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EMFILE || errno == ENFILE) refuse_one(net, listener->socket);
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    net->moved = true;
    accept_one(net, listener, socket, &from);
  }
}
