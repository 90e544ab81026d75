/* Epochs: how members begin together, and how they fail together.
 *
 * A member that waits for an epoch says READY to the caller, the member of the group with the lowest rank. When all
 * members of the group are ready, at the same number of the group, the caller says GO. Members keep their last epoch,
 * failed or not: a member that has missed its GO gets it again when it repeats READY, and then learns of the failure as
 * all others did.
 *
 * A member that finds a reason to fail says ABORT to all linked members of the epoch, and these pass it on. The graph of
 * links of an epoch contains the ring, so ABORT reaches all members unless the ring is cut twice; but then members are
 * missing, and their neighbours notice that themselves. ABORT is repeated when a link is made again. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "peer/collective/inside.h"

bool pwi_collective_in_epoch(const struct pwi_collective *engine, uint64_t id) {
  for (uint32_t i = 0; i < engine->size; i++)
    if (engine->ids[i] == id) return true;
  return false;
}

/* --- failing -------------------------------------------------------------------------------------------- */

static void fail_with(struct pwi_collective *engine, const struct collective_message *abort) {
  engine->is_live = false;
  engine->failed = abort->status;
  engine->abort = *abort;
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && pwi_collective_in_epoch(engine, peer->sender.id))
      pwi_collective_say(engine, peer, COLLECTIVE_ABORT, abort);
  if (engine->phase == COLLECTIVE_RUNNING || engine->phase == COLLECTIVE_PENDING) {
    engine->phase = COLLECTIVE_OVER;
    engine->status = abort->status;
  }
  pwi_collective_wake(engine);
}

void pwi_collective_fail(struct pwi_collective *engine, pawl_status status, uint64_t culprit, uint64_t other,
                         const char *format, ...) {
  struct collective_message abort = {.epoch = engine->epoch, .status = status, .culprit = culprit, .other = other};
  if (!engine->is_live) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(engine->problem, sizeof engine->problem, format, arguments);
  va_end(arguments);
  fail_with(engine, &abort);
}

static void explain_abort(struct pwi_collective *engine, const struct collective_message *message) {
  char *text = engine->problem;
  size_t room = sizeof engine->problem;
  uint64_t culprit = message->culprit, other = message->other;
  if (message->status == PAWL_MISMATCH)
    snprintf(text, room, "nodes %" PRIu64 " and %" PRIu64 " called different operations", culprit, other);
  else if (message->status == PAWL_NODE_GONE)
    snprintf(text, room, "node %" PRIu64 " is gone", culprit);
  else if (message->status == PAWL_CANCELLED)
    snprintf(text, room, "node %" PRIu64 " has called pawl_collective_renew", culprit);
  else if (message->status == PAWL_CORRUPT)
    snprintf(text, room, "node %" PRIu64 " sent malformed data", culprit);
  else
    snprintf(text, room, "node %" PRIu64 " has failed", culprit);
}

void pwi_collective_hear_abort(struct pwi_collective *engine, const struct collective_message *message) {
  if (!engine->is_live || pwi_collective_compare(message->epoch, engine->epoch) != 0) return;
  explain_abort(engine, message);
  fail_with(engine, message);
}

void pwi_collective_run_short(struct pwi_collective *engine) {
  if (engine->is_closing) return;
  pwi_collective_fail(engine, PAWL_NO_MEMORY, engine->own_id, 0, "node %" PRIu64 " has no memory", engine->own_id);
  if (!engine->is_readying) return;
  engine->is_readying = false;
  engine->failed = PAWL_NO_MEMORY;
  snprintf(engine->problem, sizeof engine->problem, "no memory to begin with the other members; %s",
           engine->is_deaf ? "close the collective and open it again" : "pawl_collective_renew tries again");
  if (engine->phase == COLLECTIVE_PENDING) {
    engine->phase = COLLECTIVE_OVER;
    engine->status = PAWL_NO_MEMORY;
  }
  pwi_collective_wake(engine);
}

/* --- links ---------------------------------------------------------------------------------------------- */

static bool is_caller(const struct pwi_collective *engine) { return pwi_channel_rank(engine->channel) == 0; }

/* With the caller, and with the members of the epoch that this one sends to or receives from. */
void pwi_collective_want_links(struct pwi_collective *engine) {
  size_t count, wanted = 0, distances = pwi_collective_distances(engine->size);
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  struct pwi_sender *wants = pwi_alloc_zero(count + 2 * distances + 1, sizeof *wants);
  if (!wants) {
    pwi_collective_run_short(engine);
    return;
  }
  for (size_t i = 0; i < count && (i == 0 || is_caller(engine)); i++) wants[wanted++] = members[i].sender;
  for (size_t k = 0; k < distances; k++) {
    uint64_t distance = UINT64_C(1) << k;
    wants[wanted++].id = engine->ids[(engine->rank + distance) % engine->size];
    wants[wanted++].id = engine->ids[(engine->rank + engine->size - distance) % engine->size];
  }
  pawl_status status = pwi_channel_want(engine->channel, wants, wanted);
  pwi_free(wants);
  if (status) pwi_collective_run_short(engine);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

/* A member may have heard of GO before it has a link with the present engine of another one, and what it knows of that
 * one may be of the engine before. */
static void set_life(struct pwi_collective *engine, struct collective_peer *peer, uint64_t life) {
  peer->epoch_life = life;
  if (peer->life == 0 || peer->life >= life) return; /* later: see look_at_lives */
  peer->life = life;
  peer->is_linked = false;
  pwi_collective_stream_lost(engine, peer);
  pwi_collective_forget_life(engine, peer);
}

static void set_lives(struct pwi_collective *engine) {
  for (uint32_t i = 0; i < engine->size; i++) {
    struct collective_peer *peer = pwi_collective_find(engine, engine->ids[i]);
    if (peer) set_life(engine, peer, engine->ids[engine->size + i]);
  }
}

static void look_at_lives(struct pwi_collective *engine) {
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    if (pwi_collective_in_epoch(engine, peer->sender.id) && peer->life > peer->epoch_life)
      pwi_collective_fail_reopened(engine, peer);
}

/* Whom this member sends to and receives from. */
static pawl_status set_partners(struct pwi_collective *engine) {
  uint32_t distances = pwi_collective_distances(engine->size);
  pawl_status status = pwi_collective_make_lists(engine);
  for (struct collective_peer *peer = engine->peers; peer; peer = peer->next) {
    peer->is_in = peer->is_out = false;
    if (peer->ready_number <= engine->epoch.number) peer->ready_number = 0;
  }
  set_lives(engine);
  for (uint32_t k = 0; k < distances && !status; k++) {
    uint64_t distance = UINT64_C(1) << k;
    struct collective_peer *to = pwi_collective_find(engine, engine->ids[(engine->rank + distance) % engine->size]);
    struct collective_peer *from =
        pwi_collective_find(engine, engine->ids[(engine->rank + engine->size - distance) % engine->size]);
    if (!to || !from) return PAWL_NODE_GONE;
    to->is_out = from->is_in = true;
    status = pwi_collective_open_staging(to);
  }
  return status;
}

static bool take_ids(struct pwi_collective *engine, const uint64_t *members, uint32_t count) {
  uint64_t *copy = pwi_resize_array(engine->ids, 2 * (size_t)count, sizeof *copy);
  if (!copy) return false;
  memmove(copy, members, 2 * (size_t)count * sizeof *members);
  engine->ids = copy;
  engine->size = count;
  engine->own_id = pwi_channel_self(engine->channel).id;
  for (uint32_t i = 0; i < count; i++)
    if (copy[i] == engine->own_id) engine->rank = i;
  return true;
}

/* `members`: ids, then lives. */
static void enter(struct pwi_collective *engine, struct collective_epoch epoch, const uint64_t *members,
                  uint32_t count) {
  if (!take_ids(engine, members, count)) {
    pwi_collective_run_short(engine);
    return;
  }
  engine->epoch = epoch;
  engine->is_live = true;
  engine->is_readying = false;
  engine->failed = PAWL_OK;
  engine->problem[0] = '\0';
  engine->sequence = engine->completed = 0;
  engine->renewals++;
  pawl_status status = set_partners(engine);
  pwi_collective_want_links(engine);
  if (status == PAWL_NODE_GONE)
    pwi_collective_fail(engine, status, 0, 0, "a member has left while members began");
  else if (status)
    pwi_collective_fail(engine, status, engine->own_id, 0, "no memory for %" PRIu32 " members", count);
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    pwi_collective_hear_abort(engine, &peer->foretold);
  look_at_lives(engine);
  pwi_collective_look_at_members(engine);
  pwi_collective_wake(engine);
}

static void say_go(struct pwi_collective *engine, const struct collective_peer *peer) {
  pwi_collective_go_encode(engine->epoch, engine->ids, engine->size, &engine->writer);
  if (!engine->writer.status && peer->is_linked)
    (void)pwi_channel_send(engine->channel, peer->sender, COLLECTIVE_GO, engine->writer.data, engine->writer.size);
}

static uint32_t next_round(const struct pwi_collective *engine, uint64_t number) {
  uint32_t last = engine->epoch.number == number ? engine->epoch.round : 0;
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->ready_number == number && peer->ready_last.number == number && peer->ready_last.round > last)
      last = peer->ready_last.round;
  return last + 1;
}

/* The writer has room for GO: members that are never told would wait for an epoch that has begun. */
static bool can_say_go(struct pwi_collective *engine, size_t count) {
  pwi_writer_reset(&engine->writer);
  return pwi_write_room(&engine->writer, 16 + 16 * count) != NULL;
}

static void decide(struct pwi_collective *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  uint64_t number = pwi_channel_number(engine->channel);
  if (!engine->is_readying || !is_caller(engine) || engine->is_closing) return;
  for (size_t i = 1; i < count; i++) {
    const struct collective_peer *peer = pwi_collective_find(engine, members[i].sender.id);
    if (!peer || peer->ready_number != number) return;
  }
  uint64_t *ids = pwi_alloc_zero(2 * count, sizeof *ids);
  if (!ids || !can_say_go(engine, count)) {
    pwi_free(ids);
    pwi_collective_run_short(engine);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const struct collective_peer *peer = pwi_collective_find(engine, members[i].sender.id);
    ids[i] = members[i].sender.id;
    ids[count + i] = peer ? peer->life : engine->config.life;
  }
  struct collective_epoch epoch = {number, next_round(engine, number)};
  enter(engine, epoch, ids, (uint32_t)count);
  pwi_free(ids);
  if (pwi_collective_compare(engine->epoch, epoch) != 0) return;
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    if (pwi_collective_in_epoch(engine, peer->sender.id)) {
      say_go(engine, peer);
      if (!engine->is_live && peer->is_linked) pwi_collective_say(engine, peer, COLLECTIVE_ABORT, &engine->abort);
    }
}

void pwi_collective_ready(struct pwi_collective *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  struct collective_message message = {.epoch = engine->epoch, .position = pwi_channel_number(engine->channel)};
  if (!engine->is_readying || count == 0 || pwi_channel_rank(engine->channel) == UINT32_MAX) return;
  if (is_caller(engine)) {
    decide(engine);
    return;
  }
  const struct collective_peer *caller = pwi_collective_find(engine, members[0].sender.id);
  if (caller && caller->is_linked) pwi_collective_say(engine, caller, COLLECTIVE_READY, &message);
}

/* A member that has missed the GO of the present epoch gets it, and what has become of the epoch. */
void pwi_collective_hear_ready(struct pwi_collective *engine, struct collective_peer *peer,
                               const struct collective_message *message) {
  bool has_missed = engine->epoch.number && pwi_collective_in_epoch(engine, peer->sender.id) &&
                    peer->epoch_life == peer->life && pwi_collective_compare(message->epoch, engine->epoch) < 0;
  if (has_missed) {
    say_go(engine, peer);
    if (!engine->is_live) pwi_collective_say(engine, peer, COLLECTIVE_ABORT, &engine->abort);
    return;
  }
  peer->ready_number = message->position;
  peer->ready_last = message->epoch;
  decide(engine);
}

static bool is_sound(const struct pwi_collective *engine, const struct collective_peer *peer,
                     const struct collective_go *go) {
  bool has_self = false, has_peer = false;
  for (uint32_t i = 0; i < go->count; i++) {
    uint64_t id = pwi_collective_go_id(go, i);
    has_self |= id == pwi_channel_self(engine->channel).id;
    has_peer |= id == peer->sender.id;
  }
  return has_self && has_peer && go->epoch.number <= pwi_channel_number(engine->channel);
}

void pwi_collective_hear_go(struct pwi_collective *engine, const struct collective_peer *peer,
                            const struct collective_go *go) {
  pwi_collective_meet_next(engine);
  if (!engine->is_readying || engine->is_closing || pwi_collective_compare(go->epoch, engine->epoch) <= 0 ||
      !is_sound(engine, peer, go))
    return;
  uint64_t *ids = pwi_alloc_zero(2 * (size_t)go->count, sizeof *ids);
  if (!ids) {
    pwi_collective_run_short(engine); /* the caller says GO again when this member repeats READY */
    return;
  }
  for (uint32_t i = 0; i < go->count; i++) {
    ids[i] = pwi_collective_go_id(go, i);
    ids[go->count + i] = pwi_collective_go_life(go, i);
  }
  enter(engine, go->epoch, ids, go->count);
  pwi_free(ids);
}
