/* Regions, put, get and fence on the data plane.
 *
 * Between processes of one host a region is mapped by its peers (shared.h): bodies in it are read in place, and put and
 * get are copies, complete when the call returns. Between hosts UCX moves the bytes by RDMA.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/ucx/ucx_internal.h"

#define REGIONS_MAX 65536

static pawl_status register_for_fabric(struct pwi_plane *plane, struct pwi_plane_memory *memory) {
  ucp_mem_map_params_t params = {
      .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
      .address = memory->shared.memory,
      .length = (size_t)memory->shared.name.size,
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

static bool was_introduced(const struct pwi_plane_peer *peer, uint64_t number) {
  for (size_t i = 0; i < pwi_fifo_count(&peer->introduced); i++)
    if (*(uint64_t *)pwi_fifo_at(&peer->introduced, i) == number) return true;
  return false;
}

void pwi_plane_memory_close(struct pwi_plane *plane, struct pwi_plane_memory *memory) {
  for (struct pwi_plane_port *port = plane->ports; port; port = port->next) {
    struct pwi_plane_peer *peer = port->peer;
    if (peer && !peer->is_closing && !peer->has_failed && was_introduced(peer, memory->number))
      (void)pwi_ucx_tell(peer, PACKET_FORGET, memory->number, NULL, 0);
  }
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
    if (begin >= base && pwi_span_fits(begin - base, size, memory->shared.name.size)) return memory;
  }
  return NULL;
}

bool pwi_plane_memory_is_read_by(const struct pwi_plane_memory *memory, const struct pwi_plane_peer *peer) {
  for (const struct operation *operation = peer->operations; operation; operation = operation->next)
    for (size_t i = 0; i < operation->memory_count; i++)
      if (operation->memories[i] == memory) return true;
  return false;
}

pawl_status pwi_ucx_introduce(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory) {
  if (was_introduced(peer, memory->number)) return PAWL_OK;
  pawl_status status = pwi_fifo_reserve(&peer->introduced, pwi_fifo_count(&peer->introduced) + 1);
  if (status != PAWL_OK) return status;
  status = pwi_ucx_tell(peer, PACKET_REGION, memory->number, &memory->shared.name, sizeof memory->shared.name);
  if (status == PAWL_OK) *(uint64_t *)pwi_fifo_push(&peer->introduced) = memory->number;
  return status;
}

/* A peer's region: map it. If that fails the peer is dying; messages that point to it then fail the link. */
void pwi_ucx_region_came(struct pwi_plane_peer *peer, uint64_t number, const void *name, size_t size) {
  struct pwi_shared_name shared;
  if (size != sizeof shared || peer->region_count == REGIONS_MAX) return;
  memcpy(&shared, name, sizeof shared);
  struct mapped_region *regions = pwi_resize_array(peer->regions, peer->region_count + 1, sizeof *regions);
  if (!regions) return;
  peer->regions = regions;
  void *memory;
  if (pwi_shared_map(&shared, false, &memory) != PAWL_OK) return;
  regions[peer->region_count++] = (struct mapped_region){number, (size_t)shared.size, memory};
}

void pwi_ucx_region_left(struct pwi_plane_peer *peer, uint64_t number) {
  for (size_t i = 0; i < peer->region_count; i++) {
    if (peer->regions[i].number != number) continue;
    pwi_shared_unmap(peer->regions[i].memory, peer->regions[i].size);
    peer->regions[i] = peer->regions[--peer->region_count];
    return;
  }
}

void pwi_ucx_release_regions(struct pwi_plane_peer *peer) {
  for (size_t i = 0; i < peer->region_count; i++) pwi_shared_unmap(peer->regions[i].memory, peer->regions[i].size);
  for (size_t i = 0; i < peer->remote_count; i++) {
    if (peer->remotes[i].memory) pwi_shared_unmap(peer->remotes[i].memory, peer->remotes[i].size);
    if (peer->remotes[i].key) ucp_rkey_destroy(peer->remotes[i].key);
  }
  peer->region_count = peer->remote_count = 0;
}

/* A key: the memory's name, its address, and with a fabric UCX's key to it. */
#define KEY_HEAD (sizeof(struct pwi_shared_name) + sizeof(uint64_t))

pawl_status pwi_plane_memory_key(struct pwi_plane *plane, const struct pwi_plane_memory *memory, void *key,
                                 size_t capacity, size_t *size_out) {
  uint64_t address = (uint64_t)(uintptr_t)memory->shared.memory;
  void *packed = NULL;
  size_t packed_size = 0;
  if (memory->handle && ucp_rkey_pack(plane->context, memory->handle, &packed, &packed_size) != UCS_OK)
    return PAWL_NO_MEMORY;
  pawl_status status = capacity >= KEY_HEAD && packed_size <= capacity - KEY_HEAD ? PAWL_OK : PAWL_TOO_LARGE;
  if (status == PAWL_OK) {
    char *at = key;
    memcpy(at, &memory->shared.name, sizeof memory->shared.name);
    memcpy(at + sizeof memory->shared.name, &address, sizeof address);
    if (packed_size) memcpy(at + KEY_HEAD, packed, packed_size);
    *size_out = KEY_HEAD + packed_size;
  }
  if (packed) ucp_rkey_buffer_release(packed);
  return status;
}

static pawl_status reach(struct pwi_plane_peer *peer, const char *key, size_t size, bool writable,
                         struct plane_remote *remote) {
  struct pwi_shared_name name;
  memcpy(&name, key, sizeof name);
  if (peer->same_host) {
    void *memory;
    pawl_status status = pwi_shared_map(&name, writable, &memory);
    if (status != PAWL_OK) return status;
    remote->memory = memory;
    remote->size = (size_t)name.size;
    return PAWL_OK;
  }
  memcpy(&remote->address, key + sizeof name, sizeof remote->address);
  if (size == KEY_HEAD) return PAWL_CORRUPT;
  return ucp_ep_rkey_unpack(peer->endpoint, key + KEY_HEAD, &remote->key) == UCS_OK ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_plane_remote_open(struct pwi_plane_peer *peer, const void *key, size_t size, bool writable,
                                  size_t *remote_out) {
  struct plane_remote remote = {0};
  if (size < KEY_HEAD) return PAWL_CORRUPT;
  struct plane_remote *remotes = pwi_resize_array(peer->remotes, peer->remote_count + 1, sizeof *remotes);
  if (!remotes) return PAWL_NO_MEMORY;
  peer->remotes = remotes;
  pawl_status status = reach(peer, key, size, writable, &remote);
  if (status != PAWL_OK) return status;
  *remote_out = peer->remote_count;
  remotes[peer->remote_count++] = remote;
  return PAWL_OK;
}

/* Part of the put's own operation, so that notifications nobody fetches count in the queue. */
static void notify_peer(struct operation *operation) {
  operation->packet.kind = PACKET_NOTIFY;
  operation->packet.number = operation->notify;
  pwi_ucx_send_packet(operation, &operation->packet, NULL, 0, UCP_AM_SEND_FLAG_EAGER);
}

/* Through RDMA the put has landed once the endpoint is flushed; only then may the notification go. */
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

pawl_status pwi_plane_put(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, const void *from, size_t size,
                          uint64_t notify, uint64_t cookie) {
  struct operation *operation = pwi_ucx_begin(peer, cookie, size, true);
  if (!operation) return PAWL_NO_MEMORY;
  operation->notify = notify;
  const struct plane_remote *target = &peer->remotes[remote];
  if (target->memory) {
    if (size > 0) memcpy(target->memory + offset, from, size);
    atomic_thread_fence(memory_order_release); /* the notification must not overtake the bytes */
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
  if (target->memory) {
    atomic_thread_fence(memory_order_acquire);
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
