#include "host/run/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPBACK "127.0.0.1"

static pawl_status print_range(const struct pwi_address *address, char *text_out) {
  char first[PWI_NET_ADDRESS_MAX];
  if (address->port_first == UINT16_MAX) return PAWL_INVALID;
  pwi_address_print(address, (uint16_t)(address->port_first + 1), first);
  int length = snprintf(text_out, PWI_NET_ADDRESS_MAX, "%s-%u", first, (unsigned)UINT16_MAX);
  return length > 0 && length < PWI_NET_ADDRESS_MAX ? PAWL_OK : PAWL_INVALID;
}

pawl_status pwi_run_shard_address(const char *address, uint32_t shard, char *text_out) {
  struct pwi_address parsed;
  pawl_status status = pwi_address_parse(address, &parsed);
  if (status) return status;
  if (parsed.kind == PWI_ADDRESS_TCP && shard > 0 && parsed.port_first && parsed.port_first == parsed.port_last)
    return print_range(&parsed, text_out);
  char text[PWI_NET_ADDRESS_MAX], tail[16] = "";
  if (parsed.kind == PWI_ADDRESS_UNIX && shard > 0) snprintf(tail, sizeof tail, ".%u", (unsigned)shard);
  int length = snprintf(text, sizeof text, "%s%s", address, tail);
  if (length < 0 || (size_t)length >= sizeof text) return PAWL_INVALID;
  memcpy(text_out, text, sizeof text);
  return PAWL_OK;
}

bool pwi_run_is_wildcard(const char *address) {
  struct pwi_address parsed;
  struct in_addr four;
  struct in6_addr six;
  if (pwi_address_parse(address, &parsed) || parsed.kind != PWI_ADDRESS_TCP) return false;
  if (inet_pton(AF_INET, parsed.host, &four) == 1) return four.s_addr == htonl(INADDR_ANY);
  return inet_pton(AF_INET6, parsed.host, &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six);
}

static bool is_loopback(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Connecting a datagram socket sends nothing, and selects the local address that would be used. */
static pawl_status ask_kernel(const struct addrinfo *peer, struct sockaddr_storage *ours_out) {
  socklen_t size = sizeof *ours_out;
  int handle = socket(peer->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return PAWL_LINK_UNREACHABLE;
  bool good = connect(handle, peer->ai_addr, peer->ai_addrlen) == 0 &&
              getsockname(handle, (struct sockaddr *)ours_out, &size) == 0;
  close(handle);
  return good ? PAWL_OK : PAWL_LINK_UNREACHABLE;
}

static pawl_status print_host(const struct sockaddr_storage *address, char *host_out) {
  char host[NI_MAXHOST];
  socklen_t size = address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  if (getnameinfo((const struct sockaddr *)address, size, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
    return PAWL_LINK_UNREACHABLE;
  int length = snprintf(host_out, PWI_NET_ADDRESS_MAX, strchr(host, ':') ? "[%s]" : "%s", host);
  return length > 0 && length < PWI_NET_ADDRESS_MAX ? PAWL_OK : PAWL_LINK_UNREACHABLE;
}

pawl_status pwi_run_route(const char *peer, char *host_out, bool *is_loopback_out) {
  struct pwi_address parsed;
  struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
  struct sockaddr_storage ours = {0};
  char port[8], host[PWI_NET_ADDRESS_MAX];
  pawl_status status = pwi_address_parse(peer, &parsed);
  if (status) return status;
  const char *name = parsed.kind == PWI_ADDRESS_UNIX ? LOOPBACK : parsed.host;
  snprintf(port, sizeof port, "%u", parsed.port_first ? (unsigned)parsed.port_first : 1u);
  if (getaddrinfo(name, port, &hints, &found) != 0) return PAWL_LINK_RESOLVE;
  status = ask_kernel(found, &ours);
  freeaddrinfo(found);
  if (!status) status = print_host(&ours, host);
  if (status) return status;
  memcpy(host_out, host, sizeof host);
  *is_loopback_out = is_loopback(&ours);
  return PAWL_OK;
}
