/* How members agree on an epoch.
 *
 * The caller is the living member with the lowest sender id. It says CALL when members were lost, or others want to join.
 * From then on no member begins a commit or applies one, and each says what it has received: STATE. When all members of
 * the newest epoch that anybody is in have answered, the caller decides. Of a lost member those commits count that any
 * survivor has received; the others get them from it. A member that joins takes part from the highest clock on.
 *
 * A caller that is lost while it decides leaves members in different epochs. The next caller hears from all survivors of
 * the newest one, so it knows what the lost one had decided, as far as any survivor does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "peer/factor/inside.h"

bool pwi_factor_is_lost(const struct pwi_factor *engine, uint64_t id, uint64_t life) {
  const struct factor_peer *peer = pwi_factor_find(engine, id);
  if (life == engine->config.life) return false;
  if (!peer || !pwi_factor_is_member(engine, id)) return true;
  /* A later life ends an earlier one. Of a life that is later than the known one this member has only heard. */
  return peer->gone_life == life || peer->is_bad || peer->life > life;
}

/* --- what this member has ------------------------------------------------------------------------------- */

struct factor_line pwi_factor_own_line(const struct factor_origin *origin) {
  return (struct factor_line){.id = origin->id,
                              .life = origin->life,
                              .base = origin->base,
                              .clock = origin->clock,
                              .final = origin->final,
                              .received = origin->is_heard ? origin->received : FACTOR_NONE,
                              .applied = origin->applied,
                              .part = origin->part};
}

/* NULL: no memory. */
static struct factor_line *own_lines(const struct pwi_factor *engine) {
  struct factor_line *lines = pwi_alloc_zero(engine->count + (size_t)1, sizeof *lines);
  for (uint32_t i = 0; lines && i < engine->count; i++) lines[i] = pwi_factor_own_line(&engine->origins[i]);
  return lines;
}

static void say_state(struct pwi_factor *engine, struct factor_peer *to) {
  struct factor_line *lines = own_lines(engine);
  struct factor_message message = {.epoch = engine->promised,
                                   .own = engine->epoch,
                                   .life = engine->config.life,
                                   .number = engine->clock,
                                   .hash = engine->initial_hash,
                                   .flags = pwi_factor_need(engine)};
  if (lines)
    pwi_factor_say_list(engine, to, FACTOR_STATE, &message, lines, engine->count);
  else
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory to agree with the other members");
  pwi_free(lines);
}

/* --- calling -------------------------------------------------------------------------------------------- */

/* All members that have not closed, if none of them takes part yet. */
bool pwi_factor_may_begin(const struct pwi_factor *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++) {
    const struct factor_peer *peer = pwi_factor_find(engine, members[i].sender.id);
    if (members[i].sender.id == pwi_channel_self(engine->channel).id) continue;
    if (peer && (peer->is_bad || (peer->life != 0 && peer->gone_life == peer->life && !peer->is_linked))) continue;
    bool is_fresh = peer && peer->is_linked && peer->has_status && peer->in_epoch.number == 0;
    if (!is_fresh || members[i].sender.id < pwi_channel_self(engine->channel).id) return false;
  }
  return true;
}

static bool is_caller(const struct pwi_factor *engine) {
  if (engine->epoch.number == 0) return pwi_factor_may_begin(engine);
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    if (pwi_factor_is_live(origin) && !pwi_factor_is_lost(engine, origin->id, origin->life)) return i == engine->self;
  }
  return false;
}

static bool is_joining(const struct pwi_factor *engine, const struct factor_peer *peer) {
  return peer->is_linked && peer->has_status && !peer->is_bad && peer->in_epoch.number == 0 &&
         peer->gone_life != peer->life && !pwi_factor_origin(engine, peer->life) &&
         pwi_factor_is_member(engine, peer->sender.id);
}

static bool is_epoch_due(const struct pwi_factor *engine) {
  if (!pwi_factor_is_settled(engine)) return true;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    if (pwi_factor_is_live(origin) && pwi_factor_is_lost(engine, origin->id, origin->life)) return true;
  }
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next)
    if (is_joining(engine, peer)) return true;
  return false;
}

static void say_call(struct pwi_factor *engine, struct factor_peer *peer) {
  const struct factor_message message = {.epoch = engine->promised, .own = engine->epoch};
  if (peer->is_linked) pwi_factor_say(engine, peer, FACTOR_CALL, &message);
}

static void call(struct pwi_factor *engine) {
  uint64_t number = pwi_channel_number(engine->channel);
  uint32_t round = engine->promised.number == number ? engine->promised.round + 1 : 1;
  engine->promised = (struct factor_epoch){number, round, pwi_channel_self(engine->channel).id};
  engine->is_calling = true;
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    peer->has_state = false;
    say_call(engine, peer);
  }
}

/* --- messages ------------------------------------------------------------------------------------------- */

void pwi_factor_say_go(struct pwi_factor *engine, struct factor_peer *peer) {
  struct factor_line *lines = own_lines(engine);
  struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch, .life = peer->donor};
  if (lines)
    pwi_factor_say_list(engine, peer, FACTOR_GO, &message, lines, engine->count);
  else
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory to agree with the other members");
  pwi_free(lines);
}

/* Its GO may be lost with an earlier link. */
static void hear_status(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  peer->has_status = true;
  peer->in_epoch = message->own;
  bool is_behind = pwi_factor_compare(message->own, engine->epoch) < 0;
  if (is_behind && engine->epoch.caller == engine->own_id && pwi_factor_origin(engine, peer->life))
    pwi_factor_say_go(engine, peer);
  if (engine->donor != 0 && engine->donor == peer->life) pwi_factor_ask_model(engine);
}

static void hear_call(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  const struct factor_message later = {.epoch = engine->promised, .own = engine->epoch};
  if (message->epoch.caller != peer->sender.id || message->epoch.number == 0) return;
  if (pwi_factor_compare(message->epoch, engine->promised) < 0 ||
      pwi_factor_compare(message->epoch, engine->epoch) <= 0) {
    pwi_factor_say(engine, peer, FACTOR_LATER, &later);
    return;
  }
  engine->promised = message->epoch;
  engine->is_calling = false;
  say_state(engine, peer);
}

static void hear_later(struct pwi_factor *engine, const struct factor_message *message) {
  uint64_t number = pwi_channel_number(engine->channel);
  if (!engine->is_calling || message->epoch.number != number || message->epoch.round == UINT32_MAX ||
      pwi_factor_compare(message->epoch, engine->promised) <= 0)
    return;
  engine->promised = message->epoch;
  call(engine);
}

static void hear_state(struct pwi_factor *engine, struct factor_peer *peer, const void *bytes, size_t size,
                       const struct factor_message *message) {
  if (!engine->is_calling || pwi_factor_compare(message->epoch, engine->promised) != 0 || message->life != peer->life ||
      message->flags > FACTOR_PARTIAL)
    return;
  unsigned char *copy = pwi_resize(peer->state, size);
  if (!copy) {
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory to agree with the other members");
    return;
  }
  memcpy(copy, bytes, size);
  peer->state = copy;
  peer->state_size = size;
  peer->has_state = true;
}

static void hear_go(struct pwi_factor *engine, const struct factor_peer *peer, const struct factor_message *message) {
  bool has_self = false;
  if (pwi_factor_compare(message->epoch, engine->promised) != 0 || message->epoch.caller != peer->sender.id ||
      pwi_factor_compare(message->epoch, engine->epoch) <= 0 || engine->is_calling)
    return;
  struct factor_line *lines = pwi_alloc_zero(message->lines + (size_t)1, sizeof *lines);
  if (!lines) {
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory to agree with the other members");
    return;
  }
  for (uint32_t i = 0; i < message->lines; i++) {
    lines[i] = pwi_factor_line(message, i);
    has_self |= lines[i].life == engine->config.life && lines[i].final == FACTOR_NONE;
  }
  if (has_self)
    pwi_factor_enter(engine, message->epoch, lines, message->lines, message->life);
  else if (engine->epoch.number != 0)
    pwi_factor_fail(engine, PAWL_NODE_GONE, "the other members have gone on without this one");
  pwi_free(lines);
}

void pwi_factor_hear_agree(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind, const void *bytes,
                           size_t size, const struct factor_message *message) {
  if (kind == FACTOR_STATUS) hear_status(engine, peer, message);
  if (kind == FACTOR_CALL) hear_call(engine, peer, message);
  if (kind == FACTOR_LATER) hear_later(engine, message);
  if (kind == FACTOR_STATE) hear_state(engine, peer, bytes, size, message);
  if (kind == FACTOR_GO) hear_go(engine, peer, message);
  pwi_factor_agree(engine);
}

void pwi_factor_agree_linked(struct pwi_factor *engine, struct factor_peer *peer) {
  const struct factor_message message = {.epoch = engine->promised, .own = engine->epoch};
  pwi_factor_say(engine, peer, FACTOR_STATUS, &message);
  if (engine->is_calling) say_call(engine, peer);
}

/* --- the course ----------------------------------------------------------------------------------------- */

/* Peers know a node that was declared dead, and has another id now, as another one. */
static bool is_out(struct pwi_factor *engine) {
  uint64_t self = pwi_channel_self(engine->channel).id;
  if (engine->epoch.number != 0 && (self != engine->own_id || !pwi_factor_is_member(engine, self)))
    pwi_factor_fail(engine, PAWL_NODE_GONE, "this node was declared dead, or has left the group");
  return engine->failed || pwi_channel_rank(engine->channel) == UINT32_MAX;
}

void pwi_factor_agree(struct pwi_factor *engine) {
  if (engine->failed || engine->has_said_bye || is_out(engine)) return;
  if (!is_caller(engine)) {
    engine->is_calling = false;
    return;
  }
  bool is_old = engine->is_calling && engine->promised.number != pwi_channel_number(engine->channel);
  if (is_old || (!engine->is_calling && is_epoch_due(engine))) call(engine);
  if (engine->is_calling) pwi_factor_decide(engine);
}
