#include "net/address.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

/* Reads a decimal port and advances `*at` past it. */
static bool read_port(const char **at, uint16_t *port_out) {
  unsigned value = 0;
  const char *digit = *at;
  for (; *digit >= '0' && *digit <= '9'; digit++) {
    value = value * 10 + (unsigned)(*digit - '0');
    if (value > UINT16_MAX) return false;
  }
  if (digit == *at) return false;
  *at = digit;
  *port_out = (uint16_t)value;
  return true;
}

static bool read_ports(const char *text, struct pwi_address *address) {
  if (!read_port(&text, &address->port_first)) return false;
  address->port_last = address->port_first;
  if (*text == '-') {
    text++;
    if (!read_port(&text, &address->port_last)) return false;
    if (address->port_first == 0 || address->port_last < address->port_first) return false;
  }
  return *text == '\0';
}

static bool copy_host(struct pwi_address *address, const char *begin, const char *end) {
  size_t size = (size_t)(end - begin);
  if (size == 0 || size >= sizeof address->host) return false;
  memcpy(address->host, begin, size);
  return strpbrk(address->host, " /[]") == NULL;
}

static bool read_tcp(const char *text, struct pwi_address *address) {
  const char *colon;
  if (*text == '[') {
    const char *bracket = strchr(text, ']');
    if (!bracket || bracket[1] != ':') return false;
    if (!copy_host(address, text + 1, bracket)) return false;
    colon = bracket + 1;
  } else {
    colon = strrchr(text, ':');
    if (!colon || memchr(text, ':', (size_t)(colon - text))) return false; /* IPv6 needs its brackets */
    if (!copy_host(address, text, colon)) return false;
  }
  return read_ports(colon + 1, address);
}

static bool read_unix(const char *path, struct pwi_address *address) {
  struct sockaddr_un limit;
  size_t size = strlen(path);
  if (size == 0 || size >= sizeof limit.sun_path) return false;
  memcpy(address->host, path, size);
  return true;
}

pawl_status pwi_address_parse(const char *text, struct pwi_address *address_out) {
  struct pwi_address address = {0};
  bool good;
  if (strncmp(text, "unix:", 5) == 0) {
    address.kind = PWI_ADDRESS_UNIX;
    good = read_unix(strncmp(text, "unix:///", 8) == 0 ? text + 7 : text + 5, &address);
  } else {
    address.kind = PWI_ADDRESS_TCP;
    good = read_tcp(strncmp(text, "tcp://", 6) == 0 ? text + 6 : text, &address);
  }
  if (!good) return PAWL_INVALID;
  *address_out = address;
  return PAWL_OK;
}

void pwi_address_print(const struct pwi_address *address, uint16_t port, char *text) {
  const char *host = address->host;
  if (address->kind == PWI_ADDRESS_UNIX) /* otherwise two of three slashes would count as part of
                                            "unix:///" */
    snprintf(text, PWI_NET_ADDRESS_MAX, "unix:%s%s", strncmp(host, "///", 3) == 0 ? "//" : "", host);
  else if (strchr(host, ':'))
    snprintf(text, PWI_NET_ADDRESS_MAX, "tcp://[%s]:%u", host, (unsigned)port);
  else
    snprintf(text, PWI_NET_ADDRESS_MAX, "tcp://%s:%u", host, (unsigned)port);
}
