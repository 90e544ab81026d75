/* Finds out about the other end of a connection on this host: its user, and whether it is the peer itself.
 *
 * A data plane relies on data from the peer, and UCX trusts the address that it receives: garbage aborts the
 * process. A plain link may therefore have a plane only with a process that could kill this one anyway, one
 * of the same user or root. The kernel identifies the user: directly for a unix socket, and in /proc/net/tcp
 * for a loopback connection.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "net/tcp/world.h"

#define ESTABLISHED 1 /* the state of a connection that its owner has not closed */

static bool is_trusted(unsigned long user) { return user == 0 || user == geteuid(); }

/* Formats an address as the kernel does: words in native byte order, in hexadecimal. */
static void print_end(const struct sockaddr_storage *end, char text[48]) {
  if (end->ss_family == AF_INET) {
    const struct sockaddr_in *address = (const struct sockaddr_in *)end;
    snprintf(text, 48, "%08X:%04X", address->sin_addr.s_addr, ntohs(address->sin_port));
    return;
  }
  const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)end;
  uint32_t words[4];
  memcpy(words, &address->sin6_addr, sizeof words);
  snprintf(text, 48, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], ntohs(address->sin6_port));
}

static bool is_listed(const struct sockaddr_storage *peer, const struct sockaddr_storage *us) {
  char line[512], from[48], to[48], both[100];
  print_end(peer, from);
  print_end(us, to);
  snprintf(both, sizeof both, ": %s %s ", from, to);
  FILE *file = fopen(peer->ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
  if (!file) return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, file)) {
    unsigned state;
    unsigned long user;
    const char *at = strstr(line, both);
    if (at && sscanf(at + strlen(both), "%x %*x:%*x %*x:%*x %*x %lu", &state, &user) == 2)
      found = state == ESTABLISHED && is_trusted(user);
  }
  fclose(file);
  return found;
}

bool pwi_tcp_is_same_user(int socket) {
  struct sockaddr_storage peer = {0}, us = {0};
  socklen_t peer_size = sizeof peer, us_size = sizeof us;
  if (getpeername(socket, (struct sockaddr *)&peer, &peer_size) != 0 ||
      getsockname(socket, (struct sockaddr *)&us, &us_size) != 0)
    return false;
  if (us.ss_family != AF_UNIX) return is_listed(&peer, &us);
  struct ucred who;
  socklen_t size = sizeof who;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && is_trusted(who.uid);
}

/* An end of a connection: family u16, port u16, address 16 bytes. A unix socket has no ports. */
#define END_SIZE 20

static void put_end(uint8_t to[END_SIZE], const struct sockaddr_storage *end) {
  pwi_put_u16(to, (uint16_t)end->ss_family);
  if (end->ss_family == AF_INET) {
    const struct sockaddr_in *address = (const struct sockaddr_in *)end;
    pwi_put_u16(to + 2, address->sin_port);
    memcpy(to + 4, &address->sin_addr, sizeof address->sin_addr);
  } else if (end->ss_family == AF_INET6) {
    const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)end;
    pwi_put_u16(to + 2, address->sin6_port);
    memcpy(to + 4, &address->sin6_addr, sizeof address->sin6_addr);
  }
}

uint32_t pwi_tcp_hash_ends(const struct tcp_link *link) {
  struct sockaddr_storage peer = {0}, us = {0};
  socklen_t peer_size = sizeof peer, us_size = sizeof us;
  uint8_t bytes[16 + 2 * END_SIZE] = {0};
  if (getpeername(link->socket, (struct sockaddr *)&peer, &peer_size) != 0 ||
      getsockname(link->socket, (struct sockaddr *)&us, &us_size) != 0)
    return 0;
  memcpy(bytes, link->net->host, 16);
  put_end(bytes + 16, link->accepted ? &peer : &us);
  put_end(bytes + 16 + END_SIZE, link->accepted ? &us : &peer);
  uint32_t hash = (uint32_t)pwi_hash(bytes, sizeof bytes, 0) & PWI_ENDS_MASK;
  return hash ? hash : 1;
}
