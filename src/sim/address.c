/* Listening addresses. Addresses are plain names here: a hash table leads from their text to a node. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "net/address.h"
#include "sim/world.h"

static bool is_every_interface(const struct pwi_address *address) {
  return strcmp(address->host, "0.0.0.0") == 0 || strcmp(address->host, "::") == 0;
}

static struct sim_listener **bucket_of(struct pwi_sim *sim, const char *address) {
  return &sim->listeners[pwi_hash(address, strlen(address), 0) % PWI_SIM_BUCKETS];
}

struct sim_listener *pwi_sim_listener_find(struct pwi_sim *sim, const char *address) {
  struct sim_listener *listener = *bucket_of(sim, address);
  while (listener && strcmp(listener->address, address) != 0) listener = listener->next;
  return listener;
}

static bool is_open(const struct sim_listener *listener) {
  return listener && listener->incarnation && listener->node->net &&
         listener->node->incarnation == listener->incarnation;
}

static pawl_status take_address(struct sim_net *net, const char *text) {
  struct sim_listener *listener = pwi_sim_listener_find(net->sim, text);
  if (is_open(listener)) return PAWL_NODE_ADDRESS;
  if (!listener) {
    listener = pwi_alloc_zero(1, sizeof *listener);
    if (!listener) return PAWL_NO_MEMORY;
    struct sim_listener **bucket = bucket_of(net->sim, text);
    snprintf(listener->address, sizeof listener->address, "%s", text);
    listener->next = *bucket;
    *bucket = listener;
  }
  listener->node = net->node;
  listener->incarnation = net->node->incarnation;
  if (!net->address[0]) snprintf(net->address, sizeof net->address, "%s", text);
  return PAWL_OK;
}

static pawl_status take_first_free_port(struct sim_net *net, const struct pwi_address *address) {
  char text[PWI_NET_ADDRESS_MAX];
  for (uint32_t port = address->port_first; port <= address->port_last; port++) {
    pwi_address_print(address, (uint16_t)port, text);
    pawl_status status = take_address(net, text);
    if (status != PAWL_NODE_ADDRESS) return status;
  }
  return PAWL_NODE_ADDRESS;
}

/* Ports are assigned in turn, so a restarted node gets another one, as it may on a real machine. */
static pawl_status take_any_port(struct sim_net *net, struct pwi_address *address) {
  for (int tries = 0; tries < 65536; tries++) {
    uint16_t port = net->sim->next_port;
    net->sim->next_port = port == UINT16_MAX ? 20000 : (uint16_t)(port + 1);
    address->port_first = address->port_last = port;
    pawl_status status = take_first_free_port(net, address);
    if (status != PAWL_NODE_ADDRESS) return status;
  }
  return PAWL_NODE_ADDRESS;
}

pawl_status pwi_sim_net_listen(struct pwi_net *base, const char *text) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct pwi_address address;
  pawl_status status = pwi_address_parse(text, &address);
  if (status) return status;
  if (address.kind == PWI_ADDRESS_TCP && is_every_interface(&address))
    snprintf(address.host, sizeof address.host, "%s", net->node->name);
  if (address.kind == PWI_ADDRESS_TCP && address.port_last == 0) return take_any_port(net, &address);
  return take_first_free_port(net, &address);
}

pawl_status pwi_sim_address_read(const char *text, char *text_out) {
  struct pwi_address address;
  pawl_status status = pwi_address_parse(text, &address);
  if (status) return status;
  if (address.kind == PWI_ADDRESS_TCP && (address.port_first == 0 || address.port_first != address.port_last))
    return PAWL_INVALID;
  pwi_address_print(&address, address.port_first, text_out);
  return PAWL_OK;
}

void pwi_sim_listeners_free(struct pwi_sim *sim) {
  for (size_t i = 0; i < PWI_SIM_BUCKETS; i++) {
    while (sim->listeners[i]) {
      struct sim_listener *listener = sim->listeners[i];
      sim->listeners[i] = listener->next;
      pwi_free(listener);
    }
  }
}
