/* The log: commits that are here, until this member has applied them and every other one has them. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/factor/inside.h"
#include "protocol/planted.h"

#define SLOT_MIN ((size_t)16 << 10)

uint64_t pwi_factor_hash_of(const unsigned char *bytes, size_t size) {
  unsigned char piece[4096];
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 0);
  for (size_t at = 0; at < size; at += sizeof piece) {
    size_t some = size - at < sizeof piece ? size - at : sizeof piece;
    pwi_shared_read(piece, bytes + at, some);
    pwi_hasher_add(&hasher, piece, some);
  }
  return pwi_hasher_value(&hasher);
}

/* --- regions of own commits ----------------------------------------------------------------------------- */

/* The smallest free one that is large enough, or a new one. */
pawl_status pwi_factor_take_slot(struct pwi_factor *engine, size_t size, struct factor_slot **slot_out) {
  struct factor_slot *best = NULL;
  size_t room = SLOT_MIN;
  for (struct factor_slot *slot = engine->slots; slot; slot = slot->next)
    if (!slot->is_used && slot->size >= size && (!best || slot->size < best->size)) best = slot;
  if (!best) {
    while (room < size)
      if (!pwi_mul_size(room, 2, &room)) return PAWL_TOO_LARGE;
    best = pwi_alloc_zero(1, sizeof *best);
    if (!best) return PAWL_NO_MEMORY;
    pawl_status status = pwi_net_region_open(engine->config.net, room, &best->region);
    if (status) {
      pwi_free(best);
      return status;
    }
    best->size = room;
    best->tag = ++engine->last_tag;
    best->next = engine->slots;
    engine->slots = best;
  }
  best->is_used = true;
  *slot_out = best;
  return PAWL_OK;
}

/* --- entries -------------------------------------------------------------------------------------------- */

static void insert_by_number(struct factor_origin *origin, struct factor_entry *entry) {
  struct factor_entry **at = &origin->first;
  while (*at && (*at)->number < entry->number) at = &(*at)->higher;
  entry->higher = *at;
  *at = entry;
}

static void append(struct pwi_factor *engine, struct factor_origin *origin, struct factor_entry *entry) {
  entry->sequence = ++engine->last_sequence;
  *engine->end = entry;
  engine->end = &entry->next;
  insert_by_number(origin, entry);
  engine->counts.kept += entry->size;
  engine->since_count++;
  engine->since_bytes += entry->size;
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next)
    if (!peer->cursor) peer->cursor = entry;
}

static bool is_here(const struct factor_origin *origin, uint64_t number) {
  for (const struct factor_entry *entry = origin->first; entry && entry->number <= number; entry = entry->higher)
    if (entry->number == number) return true;
  return false;
}

void pwi_factor_count_received(struct factor_origin *origin) {
  for (const struct factor_entry *entry = origin->first; entry; entry = entry->higher)
    if (entry->number == origin->received + 1) origin->received++;
}

pawl_status pwi_factor_append_own(struct pwi_factor *engine) {
  struct factor_origin *origin = &engine->origins[engine->self];
  struct factor_entry *entry = pwi_alloc_zero(1, sizeof *entry);
  if (!entry) return PAWL_NO_MEMORY;
  *entry = (struct factor_entry){.id = origin->id,
                                 .life = origin->life,
                                 .number = ++engine->clock,
                                 .bytes = pwi_net_region_memory(engine->staging->region),
                                 .size = engine->staged_size,
                                 .hash = engine->staged_hash,
                                 .slot = engine->staging};
  append(engine, origin, entry);
  origin->received = engine->clock;
  return PAWL_OK;
}

static bool is_wanted(const struct factor_origin *origin, uint64_t number) {
  uint64_t last = pwi_factor_is_live(origin) ? UINT64_MAX : origin->final;
  if (number > last || number > origin->received + FACTOR_AHEAD) return false;
  if (pwi_is_planted(PWI_PLANTED_FACTOR_TWICE)) return true;
  return number > origin->received && !is_here(origin, number);
}

void pwi_factor_accept(struct pwi_factor *engine, uint64_t life, uint64_t number, const unsigned char *bytes,
                       unsigned char *owned, size_t size, uint64_t hash) {
  struct factor_origin *origin = pwi_factor_origin(engine, life);
  bool is_ours = !origin || life == engine->config.life || !origin->is_heard;
  if (is_ours || !is_wanted(origin, number)) {
    pwi_free(owned);
    return;
  }
  struct factor_entry *entry = pwi_alloc_zero(1, sizeof *entry);
  if (!entry) {
    pwi_free(owned);
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for commits of node %" PRIu64, origin->id);
    return;
  }
  *entry = (struct factor_entry){.id = origin->id,
                                 .life = life,
                                 .number = number,
                                 .is_again = number <= origin->received,
                                 .bytes = bytes,
                                 .owned = owned,
                                 .size = size,
                                 .hash = hash};
  append(engine, origin, entry);
  pwi_factor_count_received(origin);
  if (origin->asked && !pwi_factor_is_live(origin) && origin->received == origin->final) origin->asked = 0;
  struct factor_peer *peer = pwi_factor_peer_of(engine, origin);
  if (peer && peer->is_leaving && peer->is_linked && origin->received >= peer->leaving_clock)
    pwi_factor_say_have(engine, peer, false);
}

/* --- freeing -------------------------------------------------------------------------------------------- */

/* Whatever points to the entry goes on behind it. */
static void skip(struct pwi_factor *engine, const struct factor_entry *entry) {
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (peer->cursor != entry) continue;
    peer->cursor = entry->next;
    peer->offset = 0;
  }
}

static void free_entry(struct pwi_factor *engine, struct factor_entry **at) {
  struct factor_entry *entry = *at;
  struct factor_origin *origin = pwi_factor_origin(engine, entry->life);
  skip(engine, entry);
  *at = entry->next;
  if (!*at) engine->end = at;
  for (struct factor_entry **by_number = &origin->first; *by_number; by_number = &(*by_number)->higher)
    if (*by_number == entry) {
      *by_number = entry->higher;
      break;
    }
  if (entry->slot) entry->slot->is_used = false;
  engine->counts.kept -= entry->size;
  pwi_free(entry->owned);
  pwi_free(entry);
}

bool pwi_factor_is_known_to_all(const struct pwi_factor *engine, const struct factor_origin *origin, uint64_t number) {
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *member = &engine->origins[i];
    if (i == engine->self || !pwi_factor_is_live(member)) continue;
    const struct factor_peer *peer = pwi_factor_peer_of(engine, member);
    if (member == origin || pwi_factor_is_lost(engine, member->id, member->life)) continue;
    const struct factor_has *has = peer && peer->has ? pwi_factor_has(engine, peer, origin) : NULL;
    if (!has || !peer->has_said) return false;
    if (has->received != FACTOR_NONE && has->received < number) return false;
    if (origin == &engine->origins[engine->self] && peer->is_reader && has->received != FACTOR_NONE &&
        has->applied < number)
      return false;
  }
  return true;
}

/* Commits that were applied and are known to all. While members settle they all stay: nobody knows what others lack. */
void pwi_factor_sweep(struct pwi_factor *engine) {
  struct factor_entry **at = &engine->first;
  if (engine->is_outside || !pwi_factor_is_settled(engine)) return;
  while (*at) {
    const struct factor_origin *origin = pwi_factor_origin(engine, (*at)->life);
    if ((*at)->number <= origin->applied && pwi_factor_is_known_to_all(engine, origin, (*at)->number))
      free_entry(engine, at);
    else
      at = &(*at)->next;
  }
}

/* Frees the entries of an origin beyond a number. */
void pwi_factor_cut(struct pwi_factor *engine, struct factor_origin *origin, uint64_t last) {
  struct factor_entry **at = &engine->first;
  if (!origin->first) return;
  while (*at) {
    if ((*at)->life == origin->life && (*at)->number > last)
      free_entry(engine, at);
    else
      at = &(*at)->next;
  }
}

void pwi_factor_drop_log(struct pwi_factor *engine) {
  while (engine->first) {
    struct factor_entry *entry = engine->first;
    engine->first = entry->next;
    pwi_free(entry->owned);
    pwi_free(entry);
  }
}

/* --- bounds --------------------------------------------------------------------------------------------- */

bool pwi_factor_has_room(const struct pwi_factor *engine) {
  const struct factor_origin *self = &engine->origins[engine->self];
  uint64_t count = 0, bytes = 0;
  for (const struct factor_entry *entry = self->first; entry; entry = entry->higher) {
    count++;
    bytes += entry->size;
  }
  return count <= 1 || (count < FACTOR_KEPT + engine->config.staleness &&
                        (bytes < FACTOR_KEPT_BYTES || count <= 2 + engine->config.staleness));
}
