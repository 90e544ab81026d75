/* Where consumed items are: in the memory of near producers, in copies of far ones, or frozen.
 *
 * A place belongs to at most one peer. Of two live peers that produce the same key the one with the lower
 * sender id has it: all members decide alike. Memory is retired when all its places have left it.
 *
 * LATE WRITES. A producer that was declared dead may live on and write, and a put of it may land late. So a
 * peer that is gone is *frozen*: its whole versions are copied to memory that nobody else can write. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "peer/item/inside.h"
#include "protocol/planted.h"

/* --- memory --------------------------------------------------------------------------------------------- */

void pwi_item_memory_free(struct pwi_items *engine, struct item_memory *memory) {
  pwi_net_remote_unmap(&memory->window);
  if (memory->region && engine->is_closed) pwi_net_region_close(engine->config.net, memory->region);
  pwi_free(memory->block);
  pwi_free(memory->note);
  *memory = (struct item_memory){0};
}

static void free_now(struct pwi_items *engine, struct item_memory *memory) {
  pwi_net_remote_unmap(&memory->window);
  pwi_net_region_close(engine->config.net, memory->region);
  pwi_free(memory->block);
  pwi_free(memory->note);
  *memory = (struct item_memory){0};
}

/* No place is in the memory any more. */
void pwi_item_retire(struct pwi_items *engine, struct item_memory *memory) {
  uint64_t readers = pwi_item_readers_inside(&engine->readers, UINT64_MAX);
  struct item_retired *retired = memory->note;
  if (readers == 0 || !retired) {
    free_now(engine, memory);
    return;
  }
  memory->note = NULL;
  *retired = (struct item_retired){engine->retired, *memory, readers};
  engine->retired = retired;
  *memory = (struct item_memory){0};
}

void pwi_item_sweep(struct pwi_items *engine) {
  for (struct item_retired **at = &engine->retired; *at;) {
    struct item_retired *retired = *at;
    retired->readers = pwi_item_readers_inside(&engine->readers, retired->readers);
    if (retired->readers) {
      at = &retired->next;
      continue;
    }
    *at = retired->next;
    free_now(engine, &retired->memory);
    pwi_free(retired);
  }
}

static unsigned char *base_of(const struct item_memory *memory) {
  return memory->region ? pwi_net_region_memory(memory->region) : memory->block;
}

static const unsigned char *cell_in(const struct pwi_items *engine, const struct item_peer *peer,
                                    const struct item_memory *memory, uint32_t rank) {
  if (memory->window.memory) {
    uint32_t shown = pwi_item_runs_rank(&peer->produces, pwi_item_runs_key(&peer->in, rank));
    return (const unsigned char *)memory->window.memory + (size_t)shown * engine->stride;
  }
  const unsigned char *base = base_of(memory);
  return base ? base + (size_t)rank * engine->stride : NULL;
}

const unsigned char *pwi_item_place(const struct pwi_items *engine, const struct item_peer *peer, uint32_t rank) {
  return cell_in(engine, peer, &peer->memory, rank);
}

/* --- places --------------------------------------------------------------------------------------------- */

static struct item_peer *owner_of(const struct pwi_items *engine, size_t place) {
  uint16_t number = engine->owners[place];
  return number == 0 || number == ITEM_OWNER_SELF ? NULL : engine->by_number[number - 1];
}

/* Among the places of a key the one for this peer; SIZE_MAX: others have them all. */
static size_t choose(const struct pwi_items *engine, const struct item_peer *peer, uint32_t rank) {
  size_t producers = engine->parameters.producers, first = (size_t)rank * producers, best = SIZE_MAX;
  for (size_t i = first; i < first + producers; i++)
    if (engine->owners[i] == peer->number) return i;
  if (peer->how == ITEM_FROZEN) return SIZE_MAX; /* keeps what it has */
  for (size_t i = first; i < first + producers && best == SIZE_MAX; i++)
    if (engine->owners[i] == 0) best = i;
  for (size_t i = first; i < first + producers && best == SIZE_MAX; i++) {
    const struct item_peer *owner = owner_of(engine, i);
    if (owner && (owner->how == ITEM_FROZEN || owner->is_bad || !owner->is_linked)) best = i;
  }
  return best;
}

static void leave_place(struct pwi_items *engine, size_t place) {
  struct item_peer *owner = owner_of(engine, place);
  if (owner && owner->owned > 0) owner->owned--;
  engine->owners[place] = 0;
}

/* A live peer with a higher id gives way. The one with the lower id may be a process that has died and is a
 * member for a while longer; of two that live, both fail or the later one does (meta.c). Only consumers see
 * that an item has more producers than the context allows. */
static size_t resolve(struct pwi_items *engine, const struct item_peer *peer, uint32_t rank) {
  size_t producers = engine->parameters.producers, first = (size_t)rank * producers, highest = SIZE_MAX;
  for (size_t i = first; i < first + producers; i++) {
    const struct item_peer *owner = owner_of(engine, i),
                           *before = highest == SIZE_MAX ? peer : owner_of(engine, highest);
    if (owner && owner->sender.id > before->sender.id) highest = i;
  }
  if (!engine->is_open && producers > 1)
    pwi_item_fail(engine, PAWL_EXISTS, "key %" PRIu32 " has more than %zu producers; one of them is node %" PRIu64,
                  pwi_item_runs_key(&engine->consumes, rank), producers, peer->sender.id);
  return highest;
}

/* Gives the peer its places, in its present memory. */
void pwi_item_attach_places(struct pwi_items *engine, struct item_peer *peer) {
  for (uint32_t i = 0; i < peer->in.keys; i++) {
    uint32_t key = pwi_item_runs_key(&peer->in, i), rank = pwi_item_runs_rank(&engine->consumes, key);
    size_t place = choose(engine, peer, rank);
    if (place == SIZE_MAX && peer->how != ITEM_FROZEN) place = resolve(engine, peer, rank);
    if (place == SIZE_MAX) continue;
    if (engine->owners[place] != peer->number) {
      leave_place(engine, place);
      engine->owners[place] = peer->number;
      peer->owned++;
    }
    atomic_store(&engine->places[place], pwi_item_place(engine, peer, i));
  }
}

void pwi_item_own_places(struct pwi_items *engine) {
  for (uint32_t i = 0; i < engine->consumes.keys; i++) {
    uint32_t rank = pwi_item_runs_rank(&engine->produces, pwi_item_runs_key(&engine->consumes, i));
    size_t place = (size_t)i * engine->parameters.producers;
    if (rank == ITEM_NO_RANK) continue;
    engine->owners[place] = ITEM_OWNER_SELF;
    atomic_store(&engine->places[place], pwi_item_own_cell(engine, rank));
  }
}

uint32_t pwi_item_missing(const struct pwi_items *engine) {
  size_t producers = engine->parameters.producers;
  for (uint32_t i = 0; i < engine->consumes.keys; i++) {
    bool has_any = false;
    for (size_t j = 0; j < producers; j++) has_any |= engine->owners[i * producers + j] != 0;
    if (!has_any) return i;
  }
  return ITEM_NO_RANK;
}

bool pwi_items_has_producer(const struct pwi_items *engine, uint64_t key) {
  uint32_t rank = pwi_item_runs_rank(&engine->consumes, key);
  size_t producers = engine->parameters.producers;
  if (rank == ITEM_NO_RANK) return pwi_item_runs_rank(&engine->produces, key) != ITEM_NO_RANK;
  for (size_t i = rank * producers; i < (rank + 1) * producers; i++) {
    const struct item_peer *owner = owner_of(engine, i);
    if (engine->owners[i] == ITEM_OWNER_SELF || (owner && owner->how != ITEM_FROZEN)) return true;
  }
  return false;
}

/* --- attaching and freezing ----------------------------------------------------------------------------- */

/* The peer's whole versions, as this member has them, in other memory. */
static void copy_cells(struct pwi_items *engine, const struct item_peer *peer, struct item_memory *to) {
  for (uint32_t i = 0; i < peer->in.keys; i++) {
    const unsigned char *from = pwi_item_place(engine, peer, i);
    unsigned char *cell = base_of(to) + (size_t)i * engine->stride;
    if (from && pwi_item_cell_copy(cell, from, engine->config.size) == 0) memset(cell, 0, engine->stride);
  }
}

static bool make_note(struct item_memory *memory) {
  memory->note = pwi_alloc_zero(1, sizeof *memory->note);
  return memory->note != NULL;
}

static pawl_status make_block(struct pwi_items *engine, const struct item_peer *peer, struct item_memory *memory) {
  memory->bytes = peer->in.keys * engine->stride;
  if (make_note(memory)) memory->block = pwi_alloc_zero(peer->in.keys, engine->stride);
  if (memory->block) return PAWL_OK;
  free_now(engine, memory);
  return PAWL_NO_MEMORY;
}

static pawl_status make_copy(struct pwi_items *engine, const struct item_peer *peer, struct item_memory *memory) {
  if (engine->stride > SIZE_MAX / 2 / peer->in.keys) return PAWL_OVERFLOW;
  if (!pwi_item_is_push(engine)) return make_block(engine, peer, memory);
  if (!make_note(memory)) return PAWL_NO_MEMORY;
  memory->bytes = peer->in.keys * engine->stride;
  pawl_status status = pwi_net_region_open(engine->config.net, memory->bytes, &memory->region);
  if (!status) return PAWL_OK;
  memory->region = NULL;
  free_now(engine, memory);
  return status;
}

/* Places first leave the old memory. */
static void move_to(struct pwi_items *engine, struct item_peer *peer, struct item_memory *memory, enum item_how how) {
  struct item_memory old = peer->memory;
  peer->memory = *memory;
  peer->how = how;
  pwi_item_attach_places(engine, peer);
  pwi_item_retire(engine, &old);
}

static bool attach_near(struct pwi_items *engine, struct item_peer *peer) {
  struct item_memory memory = {0};
  if (pwi_channel_map(engine->channel, peer->sender, peer->shown, &memory.window)) return false;
  if (!memory.window.memory || memory.window.size < peer->produces.keys * engine->stride || !make_note(&memory)) {
    pwi_net_remote_unmap(&memory.window);
    return false;
  }
  move_to(engine, peer, &memory, ITEM_NEAR);
  return true;
}

/* A region of its own for every link: late puts of an old link reach the old one only. */
static bool attach_far(struct pwi_items *engine, struct item_peer *peer) {
  struct item_memory memory = {0};
  pawl_status status = make_copy(engine, peer, &memory);
  if (status) {
    pwi_item_fail(engine, status, "no memory for the items of node %" PRIu64, peer->sender.id);
    return false;
  }
  copy_cells(engine, peer, &memory);
  move_to(engine, peer, &memory, ITEM_FAR);
  atomic_store(&engine->has_far_producer, true);
  peer->must_share = pwi_item_is_push(engine);
  return true;
}

void pwi_item_attach(struct pwi_items *engine, struct item_peer *peer) {
  if (!peer->has_meta || peer->is_bad || peer->in.keys == 0) {
    peer->must_attach = false;
    return;
  }
  if (peer->how != ITEM_FAR || !peer->must_share) {
    bool is_near = peer->shown_size >= peer->produces.keys * engine->stride && attach_near(engine, peer);
    if (!is_near && !attach_far(engine, peer)) return;
    pwi_item_say_number(engine, peer, ITEM_ATTACHED, is_near ? 1 : 2);
  }
  if (peer->how == ITEM_FAR && peer->must_share) {
    pawl_status status =
        pwi_channel_share(engine->channel, peer->sender, ITEM_TAG_COPY, peer->memory.region, PWI_ACCESS_WRITE);
    pwi_item_try_later(engine, peer, status);
    if (status) return;
    peer->must_share = false;
  }
  peer->must_attach = false;
  pwi_item_ask_again(engine, peer);
  for (uint32_t i = 0; i < peer->in.keys && engine->waits.next != &engine->waits; i++)
    pwi_item_wake_key(engine, pwi_item_runs_key(&peer->in, i));
}

/* Others may produce the same keys. */
static void hand_over(struct pwi_items *engine, const struct item_peer *gone) {
  for (struct item_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer != gone && peer->is_linked && !peer->is_bad && (peer->how == ITEM_NEAR || peer->how == ITEM_FAR))
      pwi_item_attach_places(engine, peer);
}

void pwi_item_forget_places(struct pwi_items *engine, struct item_peer *peer) {
  size_t producers = engine->parameters.producers;
  for (uint32_t i = 0; i < peer->in.keys && peer->owned > 0; i++) {
    uint32_t rank = pwi_item_runs_rank(&engine->consumes, pwi_item_runs_key(&peer->in, i));
    for (size_t place = rank * producers; place < (rank + 1) * producers; place++) {
      if (engine->owners[place] != peer->number) continue;
      leave_place(engine, place);
      atomic_store(&engine->places[place], NULL);
    }
  }
  peer->how = ITEM_NOWHERE;
  pwi_item_retire(engine, &peer->memory);
  hand_over(engine, peer);
}

void pwi_item_freeze(struct pwi_items *engine, struct item_peer *peer) {
  struct item_memory memory = {0};
  if (peer->how != ITEM_NEAR && peer->how != ITEM_FAR) return;
  if (pwi_is_planted(PWI_PLANTED_ITEM_LATE_PUT)) {
    peer->how = ITEM_FROZEN;
    return;
  }
  if (!make_block(engine, peer, &memory)) copy_cells(engine, peer, &memory); /* or else as if never set */
  move_to(engine, peer, &memory, ITEM_FROZEN);
  hand_over(engine, peer);
  pwi_item_wake_all(engine);
}
