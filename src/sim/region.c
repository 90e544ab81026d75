/* Regions and the tokens that let a peer reach them. */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "sim/world.h"

#define REGION_ALIGN 64
#define TOKEN_SIZE 32
#define TOKEN_SEED UINT64_C(0x7061776c746f6b65)
#define REMOTE_BITS 24 /* bits of a remote's id for its index; the rest is its link */
#define REMOTES_MAX ((size_t)1 << REMOTE_BITS)

static struct sim_region *region_of(struct pwi_region *region) { return (struct sim_region *)(void *)region; }

struct sim_region *pwi_sim_region_find(const struct pwi_sim *sim, uint32_t slot, uint64_t serial) {
  if (slot >= sim->region_room) return NULL;
  struct sim_region *region = sim->regions[slot];
  return region && region->serial == serial ? region : NULL;
}

static pawl_status take_slot(struct pwi_sim *sim, struct sim_region *region) {
  uint32_t slot = 0;
  while (slot < sim->region_room && sim->regions[slot]) slot++;
  if (slot == sim->region_room) {
    uint32_t room = sim->region_room ? sim->region_room * 2 : 16;
    struct sim_region **regions = pwi_resize_array(sim->regions, room, sizeof(struct sim_region *));
    if (!regions) return PAWL_NO_MEMORY;
    memset(regions + sim->region_room, 0, (room - sim->region_room) * sizeof(struct sim_region *));
    sim->regions = regions;
    sim->region_room = room;
  }
  sim->regions[slot] = region;
  region->slot = slot;
  region->serial = ++sim->last_region;
  return PAWL_OK;
}

static void release_memory(struct sim_memory *memory) {
  if (atomic_fetch_sub_explicit(&memory->users, 1, memory_order_acq_rel) == 1) pwi_free(memory);
}

pawl_status pwi_sim_net_region_open(struct pwi_net *base, size_t size, struct pwi_region **region_out) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  size_t room;
  if (net->node->is_starved || !pwi_add_size(size, sizeof(struct sim_memory) + REGION_ALIGN, &room))
    return PAWL_NO_MEMORY;
  struct sim_region *region = pwi_alloc_zero(1, sizeof *region);
  if (!region) return PAWL_NO_MEMORY;
  region->memory = pwi_alloc_zero(1, room);
  if (!region->memory) goto free_region;
  atomic_init(&region->memory->users, 1);
  uintptr_t bytes = (uintptr_t)region->memory->bytes;
  region->region.memory = region->memory->bytes + (-bytes & (uintptr_t)(REGION_ALIGN - 1));
  region->region.size = size;
  if (take_slot(net->sim, region)) goto free_memory;
  region->next = net->regions;
  net->regions = region;
  *region_out = &region->region;
  return PAWL_OK;
free_memory:
  pwi_free(region->memory);
free_region:
  pwi_free(region);
  return PAWL_NO_MEMORY;
}

static void region_free(struct pwi_sim *sim, struct sim_region *region) {
  sim->regions[region->slot] = NULL;
  release_memory(region->memory);
  pwi_free(region);
}

void pwi_sim_regions_free(struct sim_net *net) {
  while (net->regions) {
    struct sim_region *region = net->regions;
    net->regions = region->next;
    region_free(net->sim, region);
  }
}

/* --- closing -------------------------------------------------------------------------------------------- */

/* Removes the messages of a lane, starting with the first whose body lies in the region. True if there was
 * one. */
static bool lane_loses_region(struct pwi_sim *sim, struct sim_lane *lane, uint64_t serial) {
  struct sim_message *before = NULL, *message = lane->head;
  while (message && message->body_region != serial) {
    before = message;
    message = message->next;
  }
  if (!message) return false;
  if (before)
    before->next = NULL;
  else
    lane->head = NULL;
  lane->tail = before;
  while (message) {
    struct sim_message *next = message->next;
    message->next = NULL;
    message->cancelled = message->body_region == serial;
    message->borrowed = message->borrowed && !message->cancelled;
    message->travelling = false;
    pwi_sim_message_release(sim, message);
    message = next;
  }
  return true;
}

/* Delivered bodies whose `done` is on its way back are not read again. */
static void forget_region(struct sim_end *end, uint64_t serial) {
  for (struct sim_message *message = end->unfinished; message; message = message->after)
    if (message->body_region == serial) message->borrowed = false;
}

/* Gets that have not read everything yet would write to memory that is freed. True if there was one. */
static bool gets_lose_region(struct sim_end *end, const struct sim_region *region) {
  bool lost = false;
  uintptr_t begin = (uintptr_t)region->region.memory;
  for (struct sim_message *message = end->unfinished; message; message = message->after) {
    uintptr_t into = (uintptr_t)message->into;
    if (message->kind != MESSAGE_GET || !message->travelling) continue;
    if (into >= begin + region->region.size || into + message->size <= begin) continue;
    message->cancelled = lost = true;
  }
  return lost;
}

void pwi_sim_net_region_close(struct pwi_net *base, struct pwi_region *closed) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_region *region = region_of(closed);
  for (struct sim_end *end = net->ends; end; end = end->after) {
    bool lost = gets_lose_region(end, region);
    for (int lane = 0; lane < PWI_SIM_LANES; lane++)
      lost |= lane_loses_region(net->sim, &end->out[lane], region->serial);
    forget_region(end, region->serial);
    if (!lost || (end->state != END_UP && end->state != END_CLOSING)) continue;
    end->state = END_CLOSING; /* nothing more is sent, not even a FIN */
    end->fin_sent = true;
    pwi_sim_schedule_end(net->sim, pwi_sim_node_time(net->node), EVENT_DOWN, end, false)->status = PAWL_CANCELLED;
  }
  struct sim_region **place = &net->regions;
  while (*place != region) place = &(*place)->next;
  *place = region->next;
  region_free(net->sim, region);
}

/* --- tokens --------------------------------------------------------------------------------------------- */

/* Names the link and the end that owns the region. */
static uint64_t name_owner(uint64_t link, bool accepted) { return link << 1 | accepted; }

pawl_status pwi_sim_net_region_share(struct pwi_net *base, struct pwi_region *shared, struct pwi_link link,
                                     unsigned access, void *token, size_t *token_size_out) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct sim_region *region = region_of(shared);
  const struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  if (access & PWI_ACCESS_WRITE) {
    if (region->writer && region->writer != end->serial) return PAWL_FORBIDDEN;
    region->writer = end->serial;
  }
  uint8_t *bytes = token;
  pwi_put_u32(bytes, region->slot);
  pwi_put_u32(bytes + 4, access);
  pwi_put_u64(bytes + 8, region->serial);
  pwi_put_u64(bytes + 16, name_owner(end->serial, end->accepted));
  pwi_put_u64(bytes + 24, pwi_hash(bytes, 24, TOKEN_SEED));
  *token_size_out = TOKEN_SIZE;
  return PAWL_OK;
}

static pawl_status grow_remotes(struct sim_end *end) {
  if (end->remote_count < end->remote_room) return PAWL_OK;
  size_t room = end->remote_room ? end->remote_room * 2 : 8;
  if (room > REMOTES_MAX) return PAWL_NO_MEMORY;
  struct sim_remote *remotes = pwi_resize_array(end->remotes, room, sizeof *remotes);
  if (!remotes) return PAWL_NO_MEMORY;
  end->remotes = remotes;
  end->remote_room = room;
  return PAWL_OK;
}

pawl_status pwi_sim_net_remote_open(struct pwi_net *base, struct pwi_link link, const void *token, size_t token_size,
                                    struct pwi_remote *remote_out) {
  struct sim_end *end = pwi_sim_end_find((struct sim_net *)(void *)base, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  const uint8_t *bytes = token;
  if (token_size != TOKEN_SIZE || pwi_get_u64(bytes + 24) != pwi_hash(bytes, 24, TOKEN_SEED)) return PAWL_CORRUPT;
  if (pwi_get_u64(bytes + 16) != name_owner(end->serial, !end->accepted)) return PAWL_CORRUPT;
  pawl_status status = grow_remotes(end);
  if (status) return status;
  end->remotes[end->remote_count++] = (struct sim_remote){
      .region_slot = pwi_get_u32(bytes),
      .access = pwi_get_u32(bytes + 4),
      .region_serial = pwi_get_u64(bytes + 8),
  };
  *remote_out = (struct pwi_remote){end->id << REMOTE_BITS | end->remote_count};
  return PAWL_OK;
}

static struct sim_remote *find_remote(const struct sim_end *end, struct pwi_remote remote) {
  uint64_t number = remote.id & (REMOTES_MAX - 1);
  if (remote.id >> REMOTE_BITS != (end->id & (UINT64_MAX >> REMOTE_BITS))) return NULL;
  if (number == 0 || number > end->remote_count || end->remotes[number - 1].is_closed) return NULL;
  return &end->remotes[number - 1];
}

const struct sim_remote *pwi_sim_remote_find(const struct sim_end *end, struct pwi_remote remote) {
  return find_remote(end, remote);
}

void pwi_sim_net_remote_close(struct pwi_net *base, struct pwi_link link, struct pwi_remote handle) {
  struct sim_end *end = pwi_sim_end_find((struct sim_net *)(void *)base, link);
  struct sim_remote *remote = end ? find_remote(end, handle) : NULL;
  if (remote) remote->is_closed = true;
}

/* --- windows -------------------------------------------------------------------------------------------- */

static void release_window(const struct pwi_window *window) { release_memory(window->keeper); }

/* The window is the memory of the region. Puts that land in parts make torn reads. */
pawl_status pwi_sim_net_remote_map(struct pwi_net *base, struct pwi_link link, struct pwi_remote handle,
                                   struct pwi_window *window_out) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  const struct sim_end *end = pwi_sim_end_find(net, link);
  if (!end || end->state != END_UP) return PAWL_NOT_FOUND;
  const struct sim_remote *remote = find_remote(end, handle);
  if (!remote) return PAWL_INVALID;
  if (!(remote->access & PWI_ACCESS_READ)) return PAWL_FORBIDDEN;
  const struct sim_region *region = pwi_sim_region_find(net->sim, remote->region_slot, remote->region_serial);
  if (!region) return PAWL_NOT_FOUND;
  *window_out = (struct pwi_window){0};
  if (!(end->link->can & PWI_LINK_IN_PLACE)) return PAWL_OK;
  atomic_fetch_add_explicit(&region->memory->users, 1, memory_order_relaxed);
  *window_out = (struct pwi_window){
      .memory = region->region.memory,
      .size = region->region.size,
      .release = release_window,
      .keeper = region->memory,
  };
  return PAWL_OK;
}
