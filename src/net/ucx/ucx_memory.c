/* Regions, put, get and fence on the data plane.
 *
 * Between processes of one host a region is given to peers and mapped there (shared.h): bodies in it are read
 * in place, and put and get are copies that are complete when the call returns. Between hosts UCX transfers
 * the bytes by RDMA.
 */
#include <poll.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "net/ucx/ucx_internal.h"

#define REGIONS_MAX 65536

static pawl_status register_for_fabric(struct pwi_plane *plane, struct pwi_plane_memory *memory) {
  ucp_mem_map_params_t params = {
      .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
      .address = memory->shared.memory,
      .length = memory->shared.size,
  };
  if (!plane->has_fabric) return PAWL_OK;
  return ucp_mem_map(plane->context, &params, &memory->handle) == UCS_OK ? PAWL_OK : PAWL_NODE_LIMIT;
}

pawl_status pwi_plane_memory_open(struct pwi_plane *plane, size_t size, struct pwi_plane_memory **memory_out,
                                  void **address_out) {
  struct pwi_plane_memory *memory = pwi_alloc_zero(1, sizeof *memory);
  if (!memory) return PAWL_NO_MEMORY;
  pawl_status status = pwi_shared_open(size, &memory->shared);
  if (status != PAWL_OK) goto free_memory;
  status = register_for_fabric(plane, memory);
  if (status != PAWL_OK) goto close_shared;
  memory->number = ++plane->last_memory;
  memory->next = plane->memories;
  plane->memories = memory;
  *memory_out = memory;
  *address_out = memory->shared.memory;
  return PAWL_OK;

close_shared:
  pwi_shared_close(&memory->shared);
free_memory:
  pwi_free(memory);
  return status;
}

/* The place of the number among the memories that the peer has mapped, or NULL. */
static uint64_t *find_introduced(const struct pwi_plane_peer *peer, uint64_t number) {
  for (size_t i = 0; i < pwi_fifo_count(&peer->introduced); i++) {
    uint64_t *introduced = pwi_fifo_at(&peer->introduced, i);
    if (*introduced == number) return introduced;
  }
  return NULL;
}

bool pwi_ucx_is_introduced(const struct pwi_plane_peer *peer, uint64_t number) {
  return find_introduced(peer, number) != NULL;
}

/* The peer unmaps the memory. */
static void withdraw(struct pwi_plane_peer *peer, uint64_t number) {
  uint64_t *introduced = find_introduced(peer, number);
  if (!introduced) return;
  *introduced = *(uint64_t *)pwi_fifo_at(&peer->introduced, 0);
  pwi_fifo_pop(&peer->introduced);
  if (!peer->is_closing && !peer->has_failed) (void)pwi_ucx_tell(peer, PACKET_FORGET, number, NULL, 0);
}

void pwi_plane_memory_close(struct pwi_plane *plane, struct pwi_plane_memory *memory) {
  for (struct pwi_plane_port *port = plane->ports; port; port = port->next)
    if (port->peer) withdraw(port->peer, memory->number);
  for (struct pwi_plane_memory **at = &plane->memories; *at; at = &(*at)->next)
    if (*at == memory) {
      *at = memory->next;
      break;
    }
  if (memory->handle) ucp_mem_unmap(plane->context, memory->handle);
  pwi_shared_close(&memory->shared);
  pwi_free(memory);
}

const struct pwi_plane_memory *pwi_ucx_memory_of(const struct pwi_plane *plane, const void *address, size_t size) {
  uintptr_t begin = (uintptr_t)address;
  for (const struct pwi_plane_memory *memory = plane->memories; memory; memory = memory->next) {
    uintptr_t base = (uintptr_t)memory->shared.memory;
    if (begin >= base && pwi_span_fits(begin - base, size, memory->shared.size)) return memory;
  }
  return NULL;
}

bool pwi_plane_memory_is_read_by(const struct pwi_plane_memory *memory, const struct pwi_plane_peer *peer) {
  for (const struct operation *operation = peer->operations; operation; operation = operation->next)
    for (size_t i = 0; i < operation->memory_count; i++)
      if (operation->memories[i] == memory) return true;
  return false;
}

/* The descriptor is sent first, so that it is available when the packet arrives. */
pawl_status pwi_ucx_introduce(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory) {
  if (find_introduced(peer, memory->number)) return PAWL_OK;
  pawl_status status = pwi_fifo_reserve(&peer->introduced, pwi_fifo_count(&peer->introduced) + 1);
  if (status == PAWL_OK) status = pwi_shared_give(peer->channel, memory->number, &memory->shared);
  if (status != PAWL_OK) return status;
  *(uint64_t *)pwi_fifo_push(&peer->introduced) = memory->number;
  return pwi_ucx_tell(peer, PACKET_REGION, memory->number, NULL, 0);
}

static struct pwi_mapping *find_region(const struct pwi_plane_peer *peer, uint64_t number) {
  for (size_t i = 0; i < peer->region_count; i++)
    if (peer->regions[i].number == number) return &peer->regions[i];
  return NULL;
}

static pawl_status add_region(struct pwi_plane_peer *peer, const struct pwi_mapping *mapping) {
  if (mapping->number == 0 || find_region(peer, mapping->number)) return PAWL_CORRUPT;
  if (peer->region_count == REGIONS_MAX) return PAWL_NO_MEMORY;
  if (!PWI_GROW(peer->regions, peer->region_room, peer->region_count + 1)) return PAWL_NO_MEMORY;
  peer->regions[peer->region_count++] = *mapping;
  return PAWL_OK;
}

/* Takes all descriptors that the peer has given. If a region could not be taken, a message that refers to it
 * takes the link down. */
void pwi_ucx_regions_came(struct pwi_plane_peer *peer) {
  struct pwi_mapping mapping;
  pawl_status status = PAWL_OK;
  while (status == PAWL_OK && (status = pwi_shared_take(peer->channel, &mapping)) == PAWL_OK) {
    status = add_region(peer, &mapping);
    if (status != PAWL_OK) pwi_mapping_close(&mapping);
  }
  if (status == PAWL_CORRUPT) pwi_ucx_fail(peer, "the descriptor is not that of a region");
}

void pwi_ucx_region_left(struct pwi_plane_peer *peer, uint64_t number) {
  struct pwi_mapping *region = find_region(peer, number);
  if (!region) return;
  for (size_t i = 0; i < peer->remote_count; i++)
    if (peer->remotes[i].number == number) peer->remotes[i].memory = NULL;
  pwi_mapping_close(region);
  *region = peer->regions[--peer->region_count];
}

void pwi_ucx_release_regions(struct pwi_plane_peer *peer) {
  for (size_t i = 0; i < peer->region_count; i++) pwi_mapping_close(&peer->regions[i]);
  for (size_t i = 0; i < peer->remote_count; i++)
    if (peer->remotes[i].key) ucp_rkey_destroy(peer->remotes[i].key);
  peer->region_count = peer->remote_count = 0;
}

/* No event reports that the peer has taken descriptors, so this counts as pending: the net does not sleep
 * long. */
static void stuff(struct pwi_plane_peer *peer) {
  if (peer->is_stuffed) return;
  peer->is_stuffed = true;
  peer->plane->pending++;
}

void pwi_ucx_check_room(struct pwi_plane_peer *peer) {
  struct pollfd channel = {.fd = peer->channel, .events = POLLOUT};
  if (!peer->is_closing && poll(&channel, 1, 0) == 0) return;
  peer->is_stuffed = false;
  peer->plane->pending--;
  if (!peer->is_closing) peer->plane->events->taken(peer->owner);
}

bool pwi_plane_is_stuffed(const struct pwi_plane_peer *peer) { return peer->is_stuffed; }

/* A key: the number of the memory, its address, and with a fabric the UCX key to it. */
#define KEY_HEAD 16

pawl_status pwi_plane_memory_key(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory, void *key,
                                 size_t capacity, size_t *size_out) {
  void *packed = NULL;
  size_t packed_size = 0;
  if (capacity < KEY_HEAD) return PAWL_TOO_LARGE;
  pawl_status status = peer->same_host ? pwi_ucx_introduce(peer, memory) : PAWL_OK;
  if (status == PAWL_QUEUE_FULL) stuff(peer);
  if (status != PAWL_OK) return status;
  if (!peer->same_host && memory->handle &&
      ucp_rkey_pack(peer->plane->context, memory->handle, &packed, &packed_size) != UCS_OK)
    return PAWL_NO_MEMORY;
  if (packed_size > capacity - KEY_HEAD) {
    status = PAWL_TOO_LARGE;
  } else {
    char *at = key;
    pwi_put_u64(at, memory->number);
    pwi_put_u64(at + 8, (uint64_t)(uintptr_t)memory->shared.memory);
    if (packed_size) memcpy(at + KEY_HEAD, packed, packed_size);
    *size_out = KEY_HEAD + packed_size;
  }
  if (packed) ucp_rkey_buffer_release(packed);
  return status;
}

/* Finds a region of the peer with the size of its token, against which accesses are checked. */
static pawl_status reach_mapped(struct pwi_plane_peer *peer, uint64_t number, uint64_t size, bool writable,
                                struct plane_remote *remote) {
  pwi_ucx_regions_came(peer);
  struct pwi_mapping *region = find_region(peer, number);
  if (!region) return PAWL_NOT_FOUND;
  if (region->size != size) return PAWL_CORRUPT;
  pawl_status status = writable ? pwi_mapping_open_for_writing(region) : PAWL_OK;
  if (status != PAWL_OK) return status;
  remote->number = number;
  remote->memory = region->memory;
  return PAWL_OK;
}

static size_t find_free_remote(const struct pwi_plane_peer *peer) {
  size_t i = 0;
  while (i < peer->remote_count && peer->remotes[i].is_open) i++;
  return i;
}

pawl_status pwi_plane_remote_open(struct pwi_plane_peer *peer, const void *key, size_t key_size, uint64_t size,
                                  bool writable, size_t *remote_out) {
  struct plane_remote remote = {.is_open = true};
  const char *at = key;
  if (key_size < KEY_HEAD) return PAWL_CORRUPT;
  if (!PWI_GROW(peer->remotes, peer->remote_room, peer->remote_count + 1)) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_OK;
  remote.address = pwi_get_u64(at + 8);
  if (peer->same_host)
    status = reach_mapped(peer, pwi_get_u64(at), size, writable, &remote);
  else if (key_size == KEY_HEAD || ucp_ep_rkey_unpack(peer->endpoint, at + KEY_HEAD, &remote.key) != UCS_OK)
    status = PAWL_CORRUPT;
  if (status != PAWL_OK) return status;
  size_t place = find_free_remote(peer);
  if (place == peer->remote_count) peer->remote_count++;
  peer->remotes[place] = remote;
  *remote_out = place;
  return PAWL_OK;
}

/* The region stays mapped until the peer closes it, because the peer may send bodies in it. A UCX key may be
 * in use until the link ends. */
void pwi_plane_remote_close(struct pwi_plane_peer *peer, size_t remote) {
  if (!peer->remotes[remote].key) peer->remotes[remote] = (struct plane_remote){0};
}

pawl_status pwi_plane_remote_map(struct pwi_plane_peer *peer, size_t remote, void **memory_out, size_t *size_out) {
  const struct plane_remote *target = &peer->remotes[remote];
  const struct pwi_mapping *region = target->memory ? find_region(peer, target->number) : NULL;
  if (!region) return PAWL_NOT_FOUND;
  pawl_status status = pwi_mapping_again(region, memory_out);
  if (status == PAWL_OK) *size_out = region->size;
  return status;
}

uint64_t pwi_plane_notifications(const struct pwi_plane_peer *peer) { return peer->notifications; }

/* The notification is part of the operation of the put, so that notifications that the peer does not fetch
 * count in the queue. */
static void notify_peer(struct operation *operation) {
  operation->peer->notifications++;
  operation->packet.kind = PACKET_NOTIFY;
  operation->packet.number = operation->notify;
  pwi_ucx_send_packet(operation, &operation->packet, NULL, 0, UCP_AM_SEND_FLAG_EAGER);
}

/* With RDMA the put has landed once the endpoint is flushed; only then may the notification be sent. */
static void notify_after_flush(void *request, ucs_status_t status, void *user_data) {
  struct operation *operation = user_data;
  if (status == UCS_OK && !operation->peer->is_closing) notify_peer(operation);
  pwi_ucx_param(operation).cb.send(request, status, operation);
}

static void flush_and_notify(struct operation *operation) {
  ucp_request_param_t param = pwi_ucx_param(operation);
  param.cb.send = notify_after_flush;
  void *request = ucp_ep_flush_nbx(operation->peer->endpoint, &param);
  pwi_ucx_watch(operation, request);
  if (request == NULL) notify_peer(operation);
}

static void put_by_fabric(struct operation *operation, const struct plane_remote *remote, uint64_t offset,
                          const void *from, size_t size) {
  ucp_request_param_t param = pwi_ucx_param(operation);
  if (size > 0 && size <= PWI_NET_COPY_MAX) from = memcpy(operation->payload, from, size);
  if (size > 0)
    pwi_ucx_watch(operation,
                  ucp_put_nbx(operation->peer->endpoint, from, size, remote->address + offset, remote->key, &param));
  if (operation->notify) flush_and_notify(operation);
}

/* The peer has closed the region. */
static bool is_gone(const struct pwi_plane_peer *peer, const struct plane_remote *remote) {
  return peer->same_host && !remote->memory;
}

pawl_status pwi_plane_put(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, const void *from, size_t size,
                          uint64_t notify, uint64_t cookie) {
  struct operation *operation = pwi_ucx_begin(peer, cookie, size, true);
  if (!operation) return PAWL_NO_MEMORY;
  operation->notify = notify;
  const struct plane_remote *target = &peer->remotes[remote];
  if (is_gone(peer, target)) {
    operation->status = PAWL_NOT_FOUND;
  } else if (target->memory) {
    if (size > 0) memcpy(target->memory + offset, from, size);
    pwi_shared_release(); /* the notification must not overtake the bytes */
    operation->packet.size = target->number;
    if (notify) notify_peer(operation);
  } else {
    put_by_fabric(operation, target, offset, from, size);
  }
  pwi_ucx_step(operation, PAWL_OK);
  return PAWL_OK;
}

pawl_status pwi_plane_get(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, void *into, size_t size,
                          uint64_t cookie) {
  struct operation *operation = pwi_ucx_begin(peer, cookie, size, true);
  if (!operation) return PAWL_NO_MEMORY;
  const struct plane_remote *target = &peer->remotes[remote];
  if (is_gone(peer, target)) {
    operation->status = PAWL_NOT_FOUND;
  } else if (target->memory) {
    pwi_shared_acquire();
    if (size > 0) memcpy(into, target->memory + offset, size);
  } else if (size > 0) {
    ucp_request_param_t param = pwi_ucx_param(operation);
    pwi_ucx_watch(operation, ucp_get_nbx(peer->endpoint, into, size, target->address + offset, target->key, &param));
  }
  pwi_ucx_step(operation, PAWL_OK);
  return PAWL_OK;
}

pawl_status pwi_plane_fence(struct pwi_plane_peer *peer, uint64_t cookie) {
  struct operation *operation = pwi_ucx_begin(peer, cookie, 0, true);
  if (!operation) return PAWL_NO_MEMORY;
  if (!peer->same_host) {
    ucp_request_param_t param = pwi_ucx_param(operation);
    pwi_ucx_watch(operation, ucp_ep_flush_nbx(peer->endpoint, &param));
  }
  pwi_ucx_step(operation, PAWL_OK);
  return PAWL_OK;
}
