/* The memory of messages: small bodies inside their block, larger ones borrowed from the sender until
 * late. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sim/world.h"

#define MESSAGES_AT_A_TIME 64

/* Copies of large bodies are in a list, so that all can be freed at the end. */
struct sim_kept {
  struct sim_kept *before, *after;
  _Alignas(PWI_NET_PIECE_ALIGN) uint8_t bytes[];
};

static size_t block_size(int large) {
  size_t size = sizeof(struct sim_message) + (large ? PWI_NET_COPY_MAX : PWI_SIM_SMALL);
  return (size + 63) & ~(size_t)63;
}

static bool fill_pool(struct pwi_sim *sim, int large) {
  size_t size = block_size(large);
  uint8_t *bytes = pwi_sim_block(sim, MESSAGES_AT_A_TIME * size);
  if (!bytes) return false;
  for (size_t i = MESSAGES_AT_A_TIME; i-- > 0;) {
    struct sim_message *message = (struct sim_message *)(void *)(bytes + i * size);
    message->next = sim->message_pool[large];
    sim->message_pool[large] = message;
  }
  return true;
}

struct sim_message *pwi_sim_message_new(struct pwi_sim *sim, size_t size, bool borrowed) {
  int large = !borrowed && size > PWI_SIM_SMALL;
  if (!sim->message_pool[large] && !fill_pool(sim, large)) return NULL;
  struct sim_message *message = sim->message_pool[large];
  sim->message_pool[large] = message->next;
  memset(message, 0, offsetof(struct sim_message, head));
  message->large = (uint8_t)large;
  message->size = size;
  message->borrowed = borrowed;
  return message;
}

static void free_copy(struct pwi_sim *sim, struct sim_message *message) {
  if (!message->copy) return;
  struct sim_kept *kept = (struct sim_kept *)(void *)((uint8_t *)message->copy - offsetof(struct sim_kept, bytes));
  if (kept->before)
    kept->before->after = kept->after;
  else
    sim->kept = kept->after;
  if (kept->after) kept->after->before = kept->before;
  message->copy = NULL;
  pwi_free(kept);
}

void pwi_sim_kept_free(struct pwi_sim *sim) {
  while (sim->kept) {
    struct sim_kept *kept = sim->kept;
    sim->kept = kept->after;
    pwi_free(kept);
  }
}

void pwi_sim_message_release(struct pwi_sim *sim, struct sim_message *message) {
  if (message->travelling || message->unfinished) return;
  free_copy(sim, message);
  message->next = sim->message_pool[message->large];
  sim->message_pool[message->large] = message;
}

static const struct iovec *parts_of(const struct sim_message *message) {
  return (const struct iovec *)(const void *)message->body;
}

void pwi_sim_message_fill(struct sim_message *message, const struct iovec *parts, size_t count) {
  if (message->borrowed) {
    if (count) memcpy(message->body, parts, count * sizeof *parts);
    message->part_count = count;
    return;
  }
  uint8_t *to = message->body;
  for (size_t i = 0; i < count; i++) {
    if (parts[i].iov_len) memcpy(to, parts[i].iov_base, parts[i].iov_len);
    to += parts[i].iov_len;
  }
}

/* --- reading -------------------------------------------------------------------------------------------- */

void pwi_sim_message_read(const struct sim_message *message, size_t offset, size_t size, void *to) {
  if (!message->borrowed) {
    memcpy(to, (message->copy ? (const uint8_t *)message->copy : message->body) + offset, size);
    return;
  }
  uint8_t *out = to;
  for (const struct iovec *part = parts_of(message); size > 0; part++) {
    if (offset >= part->iov_len) {
      offset -= part->iov_len;
      continue;
    }
    size_t length = part->iov_len - offset < size ? part->iov_len - offset : size;
    memcpy(out, (const uint8_t *)part->iov_base + offset, length);
    out += length;
    size -= length;
    offset = 0;
  }
}

/* The span if it is contiguous, or NULL. */
static const uint8_t *find_whole(const struct sim_message *message, size_t offset, size_t size) {
  if (!message->borrowed) return (message->copy ? (const uint8_t *)message->copy : message->body) + offset;
  const struct iovec *part = parts_of(message);
  while (offset >= part->iov_len) offset -= (part++)->iov_len;
  return size <= part->iov_len - offset ? (const uint8_t *)part->iov_base + offset : NULL;
}

static bool make_bounce(struct pwi_sim *sim, size_t size) {
  if (size <= sim->bounce_room) return true;
  uint8_t *bounce = pwi_resize(sim->bounce, size);
  if (!bounce) return false;
  sim->bounce = bounce;
  sim->bounce_room = size;
  return true;
}

const uint8_t *pwi_sim_message_view(struct pwi_sim *sim, struct sim_message *message, size_t offset, size_t size) {
  const uint8_t *whole = find_whole(message, offset, size);
  if (whole && (uintptr_t)whole % PWI_NET_PIECE_ALIGN == 0) return whole;
  if (!make_bounce(sim, size)) return NULL;
  pwi_sim_message_read(message, offset, size, sim->bounce);
  return sim->bounce;
}

/* --- borrowed bodies ------------------------------------------------------------------------------------ */

uint64_t pwi_sim_message_hash(const struct sim_message *message) {
  if (!message->borrowed) return pwi_hash(message->copy ? message->copy : message->body, message->size, 0);
  if (message->part_count == 1) return pwi_hash(parts_of(message)->iov_base, message->size, 0);
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 0);
  for (size_t i = 0; i < message->part_count; i++)
    pwi_hasher_add(&hasher, parts_of(message)[i].iov_base, parts_of(message)[i].iov_len);
  return pwi_hasher_value(&hasher);
}

void pwi_sim_message_check(struct pwi_sim *sim, const struct sim_message *message, const struct sim_node *sender) {
  if (!message->borrowed || !sim->config.checks || pwi_sim_message_hash(message) == message->hash) return;
  pwi_sim_fail(sim, PAWL_CORRUPT,
               message->after_failure ? "region changed after a failed send, while the peer may still read it: node=%s "
                                        "cookie=%llu size=%zu"
                                      : "body changed before done: node=%s cookie=%llu size=%zu",
               sender->name, (unsigned long long)message->cookie, message->size);
}

bool pwi_sim_message_keep(struct pwi_sim *sim, struct sim_message *message, const struct sim_node *sender) {
  if (!message->borrowed) return true;
  pwi_sim_message_check(sim, message, sender);
  struct sim_kept *kept = pwi_alloc(sizeof *kept + message->size);
  if (!kept) return false;
  pwi_sim_message_read(message, 0, message->size, kept->bytes);
  kept->before = NULL;
  kept->after = sim->kept;
  if (sim->kept) sim->kept->before = kept;
  sim->kept = kept;
  message->copy = kept->bytes;
  message->borrowed = false;
  message->body_region = 0;
  return true;
}

void pwi_sim_message_garble(struct pwi_sim *sim, struct sim_message *message, bool is_of_region) {
  if (!message->copy || !message->size || !pwi_random_chance(&sim->random, sim->config.garble_chance)) return;
  size_t at = pwi_random_below(&sim->random, message->size);
  if (!is_of_region) ((uint8_t *)message->copy)[at] ^= 0x40;
}

static bool lies_in(const struct sim_region *region, const struct iovec *part) {
  uintptr_t begin = (uintptr_t)region->region.memory, at = (uintptr_t)part->iov_base;
  return begin <= at && at - begin <= region->region.size && part->iov_len <= region->region.size - (at - begin);
}

/* A body with any part in a region counts as being there: it can be read only as long as the region lives. */
uint64_t pwi_sim_body_region(const struct sim_net *net, const struct iovec *parts, size_t count) {
  for (const struct sim_region *region = net->regions; region; region = region->next)
    for (size_t i = 0; i < count; i++)
      if (lies_in(region, &parts[i])) return region->serial;
  return 0;
}
