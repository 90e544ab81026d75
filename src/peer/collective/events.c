/* What the channel tells an engine: members, links, messages, regions, the ends of operations. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "peer/collective/inside.h"

/* --- members -------------------------------------------------------------------------------------------- */

bool pwi_collective_is_member(const struct pwi_collective *engine, uint64_t id) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id == id) return true;
  return false;
}

static struct collective_peer *add_peer(struct pwi_collective *engine, struct pwi_sender sender) {
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer || pwi_idmap_put(&engine->by_id, sender.id, peer)) {
    pwi_free(peer);
    return NULL;
  }
  peer->sender = sender;
  peer->next = engine->peers;
  engine->peers = peer;
  return peer;
}

static bool is_needed(const struct pwi_collective *engine, const struct collective_peer *peer) {
  bool is_partner = engine->is_live && (peer->is_in || peer->is_out);
  return peer->is_linked || is_partner || pwi_collective_is_member(engine, peer->sender.id);
}

static void forget_peers(struct pwi_collective *engine) {
  struct collective_peer **at = &engine->peers;
  while (*at) {
    struct collective_peer *peer = *at;
    if (is_needed(engine, peer)) {
      at = &peer->next;
      continue;
    }
    *at = peer->next;
    pwi_idmap_remove(&engine->by_id, peer->sender.id);
    pwi_collective_close_inbox(engine, peer);
    pwi_free(peer->staging);
    pwi_free(peer);
  }
}

/* A neighbour that has closed the collective, and then left, did its part of the operations that it has completed.
 * Members that are no neighbours of a lost one hear ABORT from those that are. */
static void look_for_lost(struct pwi_collective *engine) {
  uint64_t self = pwi_channel_self(engine->channel).id;
  if (!engine->is_live) return;
  if (self != engine->own_id || !pwi_collective_is_member(engine, self)) {
    pwi_collective_fail(engine, PAWL_NODE_GONE, engine->own_id, 0,
                        "this node was declared dead, or has left the group");
    return;
  }
  for (const struct collective_peer *peer = engine->peers; peer; peer = peer->next) {
    if ((!peer->is_in && !peer->is_out) || peer->is_gone || pwi_collective_is_member(engine, peer->sender.id)) continue;
    pwi_collective_fail(engine, PAWL_NODE_GONE, peer->sender.id, 0, "node %" PRIu64 " is gone", peer->sender.id);
    return;
  }
}

/* Peers know a node that was declared dead and has another id now as another node: streams begin anew. */
static void look_at_self(struct pwi_collective *engine) {
  uint64_t self = pwi_channel_self(engine->channel).id;
  if (self == engine->stream_id) return;
  engine->stream_id = self;
  for (struct collective_peer *peer = engine->peers; peer; peer = peer->next) pwi_collective_stream_reset(engine, peer);
}

void pwi_collective_look_at_members(struct pwi_collective *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id != pwi_channel_self(engine->channel).id && !add_peer(engine, members[i].sender))
      pwi_collective_run_short(engine);
  look_for_lost(engine);
  look_at_self(engine);
  forget_peers(engine);
}

static void changed(void *self) {
  struct pwi_collective *engine = self;
  pwi_collective_look_at_members(engine);
  pwi_collective_want_links(engine);
  pwi_collective_ready(engine);
  pwi_collective_advance(engine);
}

/* --- links ---------------------------------------------------------------------------------------------- */

/* An engine that was opened anew knows nothing of the epoch and the streams of the former one. */
void pwi_collective_forget_life(struct pwi_collective *engine, struct collective_peer *peer) {
  pwi_collective_stream_reset(engine, peer);
  peer->is_gone = peer->has_closed = false;
  peer->ready_number = 0;
  peer->foretold = (struct collective_message){0};
}

void pwi_collective_fail_reopened(struct pwi_collective *engine, const struct collective_peer *peer) {
  pwi_collective_fail(engine, PAWL_NODE_GONE, peer->sender.id, 0,
                      "node %" PRIu64 " has closed the collective and opened it again", peer->sender.id);
}

static void look_at_life(struct pwi_collective *engine, struct collective_peer *peer, uint64_t life) {
  if (peer->life == life) return;
  if (peer->life != 0) pwi_collective_forget_life(engine, peer);
  peer->life = life;
  if (pwi_collective_in_epoch(engine, peer->sender.id) && peer->epoch_life && peer->epoch_life != life)
    pwi_collective_fail_reopened(engine, peer);
}

static void meet(struct pwi_collective *engine, struct collective_peer *peer, uint64_t life) {
  peer->is_linked = true;
  peer->farewell = COLLECTIVE_STAYS;
  peer->has_closed = false;
  look_at_life(engine, peer, life);
  if (engine->failed && pwi_collective_in_epoch(engine, peer->sender.id))
    pwi_collective_say(engine, peer, COLLECTIVE_ABORT, &engine->abort); /* it may be lost */
}

/* A member that has closed did its part of the operations that it has completed. If it opens the collective again, they
 * must not fail for that here: its new engine has to wait until the epoch is over. */
static bool must_wait(const struct pwi_collective *engine, const struct collective_peer *peer, uint64_t life) {
  return engine->is_live && peer->is_gone && peer->life != life && pwi_collective_in_epoch(engine, peer->sender.id);
}

void pwi_collective_meet_next(struct pwi_collective *engine) {
  if (engine->is_live || engine->is_closing) return;
  for (struct collective_peer *peer = engine->peers; peer; peer = peer->next) {
    uint64_t life = peer->next_life;
    if (!life) continue;
    peer->next_life = 0;
    meet(engine, peer, life);
    if (peer->next_ready.position) pwi_collective_hear_ready(engine, peer, &peer->next_ready);
  }
}

static void hear_next(struct pwi_collective *engine, struct collective_peer *peer, uint32_t kind,
                      const struct collective_message *message) {
  const struct collective_message none = {0};
  if (kind == COLLECTIVE_READY) peer->next_ready = *message;
  if (kind != COLLECTIVE_BYE) return;
  peer->next_life = 0;
  pwi_collective_say(engine, peer, COLLECTIVE_BYE_OK, &none);
}

static void linked(void *self, struct pwi_sender sender, const void *description, size_t size) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = add_peer(engine, sender);
  if (!peer) {
    engine->is_deaf = true;
    pwi_collective_run_short(engine);
    return;
  }
  if (size != 16 || pwi_get_u64(description) != COLLECTIVE_PIECE || pwi_get_u64((const char *)description + 8) == 0) {
    pwi_log(engine->config.log, PAWL_LOG_WARN, "collective.mismatch", "collective=%s peer=%" PRIu64,
            engine->config.name, sender.id);
    return;
  }
  uint64_t life = pwi_get_u64((const char *)description + 8);
  if (engine->is_live && life < peer->epoch_life) return; /* it has closed already */
  if (must_wait(engine, peer, life)) {
    peer->next_life = life;
    peer->next_ready = (struct collective_message){0};
    return;
  }
  meet(engine, peer, life);
  pwi_collective_ready(engine);
  pwi_collective_advance(engine);
}

static void lost(void *self, struct pwi_sender sender, pawl_status why) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  (void)why;
  if (peer) peer->next_life = 0;
  if (!peer || !peer->is_linked) return;
  peer->is_linked = false;
  pwi_collective_stream_lost(engine, peer);
  forget_peers(engine);
  pwi_collective_advance(engine);
}

/* It has closed, and BYE was lost. */
static void left(void *self, struct pwi_sender sender) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  if (!peer || peer->is_gone) return;
  peer->has_closed = true;
  peer->ready_number = 0;
  if (peer->is_in || peer->is_out)
    pwi_collective_fail(engine, PAWL_NODE_GONE, sender.id, 0, "node %" PRIu64 " has closed the collective", sender.id);
  pwi_collective_advance(engine);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static void hear_bye(struct pwi_collective *engine, struct collective_peer *peer,
                     const struct collective_message *message) {
  const struct collective_message none = {0};
  peer->is_gone = true;
  peer->gone_epoch = message->epoch;
  peer->gone_after = message->position;
  peer->ready_number = 0;
  pwi_collective_inspect(peer);
  pwi_collective_say(engine, peer, COLLECTIVE_BYE_OK, &none);
}

static void hear(struct pwi_collective *engine, struct collective_peer *peer, uint32_t kind,
                 const struct collective_message *message) {
  switch (kind) {
  case COLLECTIVE_READY:
    pwi_collective_hear_ready(engine, peer, message);
    break;
  case COLLECTIVE_ABORT:
    peer->foretold = *message;
    pwi_collective_hear_abort(engine, message);
    break;
  case COLLECTIVE_INBOX:
    pwi_collective_hear_inbox(engine, peer, message->position);
    break;
  case COLLECTIVE_TAKEN:
    pwi_collective_hear_taken(peer, message->position);
    break;
  case COLLECTIVE_BYE:
    hear_bye(engine, peer, message);
    break;
  case COLLECTIVE_BYE_OK:
    if (peer->farewell == COLLECTIVE_SAID_BYE) peer->farewell = COLLECTIVE_PARTED;
    break;
  default: /* of a later version */
    break;
  }
}

static void heard(void *self, struct pwi_sender sender, uint32_t kind, const void *bytes, size_t size) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  struct collective_message message;
  struct collective_go go;
  if (!peer || (!peer->is_linked && !peer->next_life)) return;
  pawl_status status = kind == COLLECTIVE_GO ? pwi_collective_go_decode(bytes, size, &go)
                                             : pwi_collective_message_decode(kind, bytes, size, &message);
  if (status)
    pwi_log(engine->config.log, PAWL_LOG_WARN, "collective.bad",
            "collective=%s peer=%" PRIu64 " kind=%" PRIu32 " status=%s", engine->config.name, sender.id, kind,
            pawl_status_name(status));
  else if (peer->next_life)
    hear_next(engine, peer, kind, &message);
  else if (kind == COLLECTIVE_GO)
    pwi_collective_hear_go(engine, peer, &go);
  else
    hear(engine, peer, kind, &message);
  pwi_collective_advance(engine);
}

/* --- data ----------------------------------------------------------------------------------------------- */

static void shared(void *self, struct pwi_sender sender, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  if (!peer || !peer->has_inbox_there || tag != 1 || size != COLLECTIVE_INBOX_SIZE) return;
  peer->remote = remote;
  peer->has_remote = true;
  pwi_collective_advance(engine);
}

static void notified(void *self, struct pwi_sender sender, uint64_t value) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  (void)value;
  if (!peer || peer->is_gone || !peer->inbox) return; /* after BYE all pieces were found */
  if (peer->landed - peer->taken < COLLECTIVE_SLOTS)
    peer->landed++;
  else
    pwi_collective_fail(engine, PAWL_CORRUPT, sender.id, engine->own_id,
                        "node %" PRIu64 " announced more pieces than its inbox holds", sender.id);
  pwi_collective_advance(engine);
}

static void done(void *self, struct pwi_sender sender, uint64_t cookie, pawl_status status) {
  struct pwi_collective *engine = self;
  struct collective_peer *peer = pwi_collective_find(engine, sender.id);
  if (!peer) return;
  if (cookie <= COLLECTIVE_SLOTS)
    peer->is_busy[cookie - 1] = false;
  else if (!status && peer->farewell == COLLECTIVE_FENCED)
    pwi_collective_landed(engine, peer);
  pwi_collective_advance(engine);
}

static void writable(void *self, struct pwi_sender sender) {
  (void)sender;
  pwi_collective_advance(self);
}

static void closed(void *self) {
  struct pwi_collective *engine = self;
  engine->is_closed = true;
  engine->config.closed(engine->config.context);
}

const struct pwi_channel_events pwi_collective_events = {.changed = changed,
                                                         .linked = linked,
                                                         .lost = lost,
                                                         .left = left,
                                                         .heard = heard,
                                                         .shared = shared,
                                                         .notified = notified,
                                                         .done = done,
                                                         .writable = writable,
                                                         .closed = closed};
