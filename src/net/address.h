/* The syntax of addresses, and their parser.
 *
 *   tcp://host:port            host is a name, an IPv4 address, or an IPv6 address in brackets
 *   tcp://host:first-last      listening only: the first free port of the range
 *   tcp://0.0.0.0:port         listening only: every interface; also tcp://[::]:port
 *   unix:/path/to/socket       a socket file on this host
 *   host:port                  short for tcp://host:port
 *
 * Port 0 when listening means any free port.
 */
#ifndef PWI_NET_ADDRESS_H
#define PWI_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"

#define PWI_ADDRESS_HOST_MAX 224 /* bytes of a host name; the standard permits 253 characters */

enum pwi_address_kind { PWI_ADDRESS_TCP, PWI_ADDRESS_UNIX };

struct pwi_address {
  enum pwi_address_kind kind;
  char host[PWI_ADDRESS_HOST_MAX]; /* tcp: without brackets; unix: the path */
  uint16_t port_first;             /* tcp */
  uint16_t port_last;              /* tcp: port_first unless a range was given */
};

/* PAWL_INVALID if the text is not an address, or too long. */
pawl_status pwi_address_parse(const char *text, struct pwi_address *address_out);

/* Writes an address as text; `port` replaces the range. At most PWI_NET_ADDRESS_MAX characters. */
void pwi_address_print(const struct pwi_address *address, uint16_t port, char *text);

#endif
