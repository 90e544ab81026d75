/* Addresses: any text; an accepted address is printed and parsed again.
 *
 * covers: src/net/address.c
 */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/un.h>

#include "net/address.h"

#define TEXT_MAX 400

static void check_tcp(const struct pwi_address *address) {
  assert(address->port_first <= address->port_last);
  assert(address->port_first != 0 || address->port_last == 0);
  assert(strpbrk(address->host, " /[]") == NULL);
}

static void check_unix(const struct pwi_address *address) {
  assert(strlen(address->host) < sizeof((struct sockaddr_un *)NULL)->sun_path);
  assert(address->port_first == 0 && address->port_last == 0);
}

/* Whatever port is printed, parsing returns it, and everything else is unchanged. */
static void check_print(const struct pwi_address *address, uint16_t port) {
  char text[PWI_NET_ADDRESS_MAX];
  struct pwi_address again;
  pwi_address_print(address, port, text);
  assert(strlen(text) < sizeof text - 1); /* so the text was not truncated */
  assert(pwi_address_parse(text, &again) == PAWL_OK);
  assert(again.kind == address->kind && strcmp(again.host, address->host) == 0);
  if (address->kind == PWI_ADDRESS_TCP) assert(again.port_first == port && again.port_last == port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char room[TEXT_MAX + 1];
  struct pwi_address address, untouched;
  if (size > TEXT_MAX) size = TEXT_MAX;
  char *text = room + TEXT_MAX - size; /* ends where the array ends */
  if (size) memcpy(text, data, size);
  memset(&untouched, 0x5a, sizeof untouched);
  address = untouched;
  pawl_status status = pwi_address_parse(text, &address);
  if (status != PAWL_OK) {
    assert(status == PAWL_INVALID && memcmp(&address, &untouched, sizeof address) == 0);
    return 0;
  }
  assert(address.host[0] != '\0' && memchr(address.host, '\0', sizeof address.host) != NULL);
  if (address.kind == PWI_ADDRESS_TCP)
    check_tcp(&address);
  else
    check_unix(&address);
  check_print(&address, address.port_first);
  check_print(&address, address.port_last);
  check_print(&address, 65535);
  return 0;
}
