/* The list of managers: which address is tried next, and after which pause. */
#include "protocol/manager_list.h"

#include <string.h>

#include "base/memory.h"
#include "net/address.h"

#define PAUSE_MAX INT64_C(1000000000)
#define PAUSE_MAX_SEVERAL INT64_C(400000000) /* short, because a new leader waits only briefly for nodes */
#define PATIENCE_NS INT64_C(400000000)
#define PATIENCE_ONE_NS INT64_C(2000000000) /* timeout of an attempt if there is only one manager */
#define HOPS_MAX 3                          /* maximum hints followed in a row */

/* --- the list ------------------------------------------------------------------------------------------- */

/* Reads the address at the beginning of `text` and writes it in canonical form, so that two spellings of one
 * address compare equal. `*rest_out` is the beginning of the next address; NULL after the last. */
static pawl_status read_one(const char *text, char *address_out, const char **rest_out) {
  char word[PWI_NET_ADDRESS_MAX];
  struct pwi_address address;
  const char *comma = strchr(text, ',');
  size_t size = comma ? (size_t)(comma - text) : strlen(text);
  if (size >= sizeof word) return PAWL_INVALID;
  memcpy(word, text, size);
  word[size] = '\0';
  pawl_status status = pwi_address_parse(word, &address);
  if (status) return status;
  if (address.kind == PWI_ADDRESS_TCP && address.port_first != address.port_last) return PAWL_INVALID;
  pwi_address_print(&address, address.port_first, address_out);
  *rest_out = comma ? comma + 1 : NULL;
  return PAWL_OK;
}

pawl_status pwi_managers_init(struct pwi_managers *managers, const char *list, int64_t pause_min_ns) {
  char addresses[PWI_MANAGERS_MAX][PWI_NET_ADDRESS_MAX];
  size_t count = 0;
  for (const char *rest = list; rest; count++) {
    if (count == PWI_MANAGERS_MAX) return PAWL_INVALID;
    pawl_status status = read_one(rest, addresses[count], &rest);
    if (status) return status;
  }
  char(*copy)[PWI_NET_ADDRESS_MAX] = count ? pwi_alloc(count * sizeof *copy) : NULL;
  if (!copy) return count ? PAWL_NO_MEMORY : PAWL_INVALID;
  memcpy(copy, addresses, count * sizeof *copy);
  *managers =
      (struct pwi_managers){.addresses = copy, .count = count, .pause_min_ns = pause_min_ns, .pause_ns = pause_min_ns};
  return PAWL_OK;
}

void pwi_managers_fini(struct pwi_managers *managers) {
  pwi_free(managers->addresses);
  *managers = (struct pwi_managers){0};
}

pawl_status pwi_managers_first(const char *list, char *address_out) {
  const char *rest;
  return read_one(list, address_out, &rest);
}

/* --- asking round --------------------------------------------------------------------------------------- */

const char *pwi_managers_next(struct pwi_managers *managers) {
  managers->is_hinted = managers->hint[0] != '\0';
  managers->hops = managers->is_hinted ? managers->hops + 1 : 0;
  memcpy(managers->tried, managers->is_hinted ? managers->hint : managers->addresses[managers->at],
         sizeof managers->tried);
  managers->hint[0] = '\0';
  return managers->tried;
}

static int64_t pause(struct pwi_managers *managers) {
  int64_t most = managers->count > 1 ? PAUSE_MAX_SEVERAL : PAUSE_MAX;
  int64_t now = managers->pause_ns;
  managers->pause_ns = now * 2 < most ? now * 2 : most;
  return now;
}

int64_t pwi_managers_failed(struct pwi_managers *managers) {
  memcpy(managers->before, managers->tried, sizeof managers->before);
  if (!managers->is_hinted) {
    managers->at = (managers->at + 1) % managers->count;
    managers->failed++;
  }
  managers->is_hinted = false;
  if (managers->hint[0]) return 0;
  return managers->failed % managers->count == 0 ? pause(managers) : 0;
}

int64_t pwi_managers_lost(struct pwi_managers *managers) {
  int64_t delay = pwi_managers_failed(managers);
  return managers->count > 1 ? delay : 0;
}

void pwi_managers_found(struct pwi_managers *managers) {
  managers->failed = 0;
  managers->pause_ns = managers->pause_min_ns;
}

void pwi_managers_hint(struct pwi_managers *managers, const char *address) {
  char text[PWI_NET_ADDRESS_MAX];
  const char *rest;
  if (!address[0] || managers->hops == HOPS_MAX || read_one(address, text, &rest) || rest) return;
  if (strcmp(text, managers->tried) == 0 || strcmp(text, managers->before) == 0) return;
  memcpy(managers->hint, text, sizeof text);
}

int64_t pwi_managers_patience(const struct pwi_managers *managers) {
  return managers->count > 1 ? PATIENCE_NS : PATIENCE_ONE_NS;
}

pawl_status pwi_managers_welcome(struct pwi_managers *managers, const struct pwi_joined *joined, uint64_t term) {
  if (joined->status != PAWL_NODE_STANDBY) return pwi_managers_heed(managers, term);
  pwi_managers_hint(managers, joined->leader);
  return PAWL_OK;
}

pawl_status pwi_managers_heed(struct pwi_managers *managers, uint64_t term) {
  if (term < managers->term) return PAWL_NODE_DEPOSED;
  managers->term = term;
  return PAWL_OK;
}
