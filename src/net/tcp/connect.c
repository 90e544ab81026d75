/* Connecting: resolves a name without blocking the actor, then tries each of its addresses.
 *
 * A separate thread resolves names, because the resolver of the C library blocks. Numeric addresses need no
 * thread.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/tcp/world.h"

/* Shared by the link and the resolving thread; the last user frees it. */
struct resolution {
  atomic_int references;
  atomic_bool is_finished;
  int waker; /* a duplicate of the net's descriptor, so that a late thread does not write to an unrelated
                file */
  int error;
  struct addrinfo *found;
  char host[PWI_ADDRESS_HOST_MAX];
  char port[8];
};

static void let_go(struct resolution *resolution) {
  if (atomic_fetch_sub(&resolution->references, 1) != 1) return;
  if (resolution->found) freeaddrinfo(resolution->found);
  if (resolution->waker >= 0) close(resolution->waker);
  pwi_free(resolution);
}

static int resolve(struct resolution *resolution, int flags) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | flags, .ai_socktype = SOCK_STREAM};
  return getaddrinfo(resolution->host, resolution->port, &hints, &resolution->found);
}

static void *resolve_in_thread(void *argument) {
  struct resolution *resolution = argument;
  resolution->error = resolve(resolution, 0);
  atomic_store(&resolution->is_finished, true);
  eventfd_write(resolution->waker, 1);
  let_go(resolution);
  return NULL;
}

static pawl_status start_thread(struct tcp_net *net, struct resolution *resolution) {
  resolution->waker = dup(net->waker);
  if (resolution->waker < 0) return PAWL_NODE_LIMIT;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  atomic_fetch_add(&resolution->references, 1);
  int error = pthread_create(&thread, &attributes, resolve_in_thread, resolution);
  pthread_attr_destroy(&attributes);
  if (error == 0) return PAWL_OK;
  let_go(resolution);
  return PAWL_NODE_LIMIT;
}

void pwi_tcp_drop_resolution(struct tcp_link *link) {
  if (link->resolution) let_go(link->resolution);
  link->resolution = NULL;
  link->candidate = NULL;
}

static pawl_status status_of_connect(int error) {
  switch (error) {
  case ECONNREFUSED:
  case ENOENT:
    return PAWL_LINK_REFUSED;
  case ETIMEDOUT:
    return PAWL_TIMED_OUT;
  case EACCES:
    return PAWL_FORBIDDEN;
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case EADDRNOTAVAIL:
    return PAWL_NODE_LIMIT;
  default:
    return PAWL_LINK_UNREACHABLE;
  }
}

static int open_socket(struct tcp_link *link, int family) {
  if (link->socket >= 0) close(link->socket);
  link->socket = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (link->socket < 0) return errno;
  int yes = 1;
  if (family != AF_UNIX) setsockopt(link->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  pwi_tcp_mark_packets(link->net, link->socket);
  return 0;
}

static int begin_connect(struct tcp_link *link, const struct sockaddr *address, socklen_t size) {
  /* Without a key the net neither connects to other machines nor accepts links from them. */
  if (!link->net->tls && address->sa_family != AF_UNIX && !pwi_tcp_is_loopback(address)) return EACCES;
  int error = open_socket(link, address->sa_family);
  if (error) return error;
  link->stage = STAGE_CONNECTING;
  link->can_read = link->can_write = false;
  if (connect(link->socket, address, size) != 0 && errno != EINPROGRESS) return errno;
  /* The socket is added to epoll only now: before connect it would report a hang-up. */
  return pwi_tcp_link_watch(link) == PAWL_OK ? 0 : EMFILE;
}

/* Tries the next address of the name; the link fails with the error of the last one. */
static void try_candidates(struct tcp_link *link, int error) {
  while (link->candidate) {
    struct addrinfo *candidate = link->candidate;
    link->candidate = candidate->ai_next;
    error = begin_connect(link, candidate->ai_addr, candidate->ai_addrlen);
    if (error == 0) return;
  }
  pwi_tcp_link_fail(link, status_of_connect(error),
                    error == EACCES ? "no key: make one with `pawl key new` and give it to every node"
                                    : strerror(error));
}

static void resolved(struct tcp_link *link) {
  struct resolution *resolution = link->resolution;
  if (resolution->error) {
    pwi_tcp_link_fail(link, PAWL_LINK_RESOLVE, gai_strerror(resolution->error));
    return;
  }
  link->candidate = resolution->found;
  try_candidates(link, EHOSTUNREACH);
}

void pwi_tcp_check_resolutions(struct tcp_net *net) {
  for (size_t i = 0; i < net->slot_count; i++) {
    struct tcp_link *link = net->slots[i];
    if (link && link->stage == STAGE_RESOLVING && !link->is_failed && atomic_load(&link->resolution->is_finished))
      resolved(link);
  }
}

/* True if the socket is connected to itself. The kernel does this if nobody listens at a port of this host, and
 * it happens to choose this very port for the connection (RFC 9293, 3.5, simultaneous open). It would make a
 * dead server look alive to who probes it. */
static bool is_own_peer(const struct tcp_link *link, const struct sockaddr_storage *peer, socklen_t peer_size) {
  struct sockaddr_storage own = {0};
  socklen_t size = sizeof own;
  return getsockname(link->socket, (struct sockaddr *)&own, &size) == 0 && own.ss_family != AF_UNIX &&
         size == peer_size && memcmp(&own, peer, size) == 0;
}

void pwi_tcp_continue_connecting(struct tcp_link *link) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(link->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) {
    struct sockaddr_storage peer = {0};
    size = sizeof peer;
    if (getpeername(link->socket, (struct sockaddr *)&peer, &size) != 0) {
      if (errno == ENOTCONN) return; /* an earlier event; the real one will follow */
      error = errno;
    } else if (is_own_peer(link, &peer, size)) {
      error = ECONNREFUSED;
    }
  }
  if (error == 0)
    pwi_tcp_link_connected(link);
  else
    try_candidates(link, error);
}

static pawl_status connect_tcp(struct tcp_link *link, const struct pwi_address *address) {
  struct resolution *resolution = pwi_alloc_zero(1, sizeof *resolution);
  if (!resolution) return PAWL_NO_MEMORY;
  atomic_init(&resolution->references, 1);
  resolution->waker = -1;
  memcpy(resolution->host, address->host, sizeof resolution->host);
  memcpy(link->host, address->host, sizeof link->host);
  snprintf(resolution->port, sizeof resolution->port, "%u", address->port_first);
  link->resolution = resolution;
  link->stage = STAGE_RESOLVING;
  if (resolve(resolution, AI_NUMERICHOST) == 0) {
    resolved(link);
    return PAWL_OK;
  }
  return start_thread(link->net, resolution);
}

static void connect_unix(struct tcp_link *link, const struct pwi_address *address) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  memcpy(name.sun_path, address->host, sizeof name.sun_path);
  int error = link->net->require_encryption ? EACCES : begin_connect(link, (const struct sockaddr *)&name, sizeof name);
  if (error == EAGAIN) /* not refused: a process listens, but is slow */
    pwi_tcp_link_fail(link, PAWL_LINK_BUSY, "its backlog is full");
  else if (error)
    pwi_tcp_link_fail(link, status_of_connect(error), strerror(error));
}

pawl_status pwi_tcp_connect(struct pwi_net *base, const char *text, struct pwi_link *link_out) {
  struct pwi_address address;
  pawl_status status = pwi_address_parse(text, &address);
  if (status != PAWL_OK) return status;
  if (address.kind == PWI_ADDRESS_TCP && (address.port_first != address.port_last || address.port_first == 0))
    return PAWL_INVALID;
  struct tcp_link *link;
  status = pwi_tcp_link_create((struct tcp_net *)base, &link);
  if (status != PAWL_OK) return status;
  link->is_announced = true;
  pwi_address_print(&address, address.port_first, link->peer);
  if (address.kind == PWI_ADDRESS_UNIX)
    connect_unix(link, &address);
  else
    status = connect_tcp(link, &address);
  if (status != PAWL_OK) {
    pwi_tcp_link_destroy(link);
    return status;
  }
  *link_out = link->id;
  return PAWL_OK;
}
