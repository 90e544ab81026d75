/* What the channel tells an engine: members, links, messages, regions, the ends of operations. */
#include <inttypes.h>

#include "base/memory.h"
#include "peer/reduce/inside.h"

/* --- peers ---------------------------------------------------------------------------------------------- */

static struct reduce_peer *add_peer(struct pwi_reduce *engine, struct pwi_sender sender) {
  struct reduce_peer **at = &engine->peers, *peer = pwi_reduce_find(engine, sender.id);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer || pwi_idmap_put(&engine->by_id, sender.id, peer)) {
    pwi_free(peer);
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "no memory for %d more peers", 1);
    return NULL;
  }
  while (*at && (*at)->sender.id < sender.id) at = &(*at)->next;
  peer->sender = sender;
  peer->next = *at;
  *at = peer;
  return peer;
}

/* A member that has closed is remembered as long as the epoch in which it took part lasts. */
static bool is_needed(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (pwi_reduce_is_member(engine, peer->sender.id)) return true;
  for (size_t i = 0; peer->is_gone && i < engine->member_count; i++)
    if (engine->members[i] == peer->sender.id) return true;
  return peer->is_linked || peer->is_in || peer->is_out || peer->slot || peer->puts > 0 || peer->model_puts > 0;
}

static void forget_peers(struct pwi_reduce *engine) {
  struct reduce_peer **at = &engine->peers;
  while (*at && !engine->is_outside) {
    struct reduce_peer *peer = *at;
    if (is_needed(engine, peer)) {
      at = &peer->next;
      continue;
    }
    *at = peer->next;
    pwi_idmap_remove(&engine->by_id, peer->sender.id);
    pwi_reduce_direct_forget(peer);
    pwi_free(peer->mirror);
    pwi_free(peer);
    pwi_reduce_note_near(engine);
  }
}

void pwi_reduce_look_at_members(struct pwi_reduce *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id != pwi_reduce_self(engine)) (void)add_peer(engine, members[i].sender);
  forget_peers(engine);
  pwi_reduce_agree(engine);
}

static void changed(void *self) {
  struct pwi_reduce *engine = self;
  pwi_reduce_look_at_members(engine);
  pwi_reduce_advance(engine);
}

/* Before the first epoch nobody can say who is wrong; later it is the one that has joined. */
static bool fits(struct pwi_reduce *engine, struct reduce_peer *peer, const void *description, size_t size) {
  char problem[PWI_REDUCE_PROBLEM_MAX];
  if (pwi_reduce_compare(engine, peer->sender.id, description, size, problem, sizeof problem) == PAWL_OK) return true;
  if (!engine->was_in_epoch) {
    const struct reduce_message none = {0};
    pwi_reduce_fail(engine, PAWL_MISMATCH, "%s", problem);
    pwi_reduce_say(engine, peer, REDUCE_PING, &none); /* its answer shows that it knows as well */
    peer->is_pinged = true;
    peer->pongs = 0;
  } else
    pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.mismatch", "reduce=%s why=\"%s\"", engine->config.name, problem);
  return false;
}

static void linked(void *self, struct pwi_sender sender, const void *description, size_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = add_peer(engine, sender);
  if (!peer) return;
  peer->is_linked = true;
  pwi_reduce_direct_link(peer);
  peer->is_pinged = false;
  peer->farewell = FAREWELL_NONE;
  if (engine->has_said_bye) pwi_reduce_say_bye(engine, peer);
  if (fits(engine, peer, description, size)) {
    pwi_reduce_agree_linked(engine, peer);
    if (sender.id == engine->got_from) {
      struct reduce_message message = {.epoch = engine->epoch};
      pwi_reduce_say(engine, peer, REDUCE_GOT, &message); /* may be lost */
    }
    if (engine->phase == PHASE_AGREE) pwi_reduce_say_stop(engine, peer); /* it may be lost */
    if (engine->has_arrived && sender.id == engine->epoch.caller && engine->phase == PHASE_EXCHANGE) {
      struct reduce_message message = {.epoch = engine->epoch, .version = engine->completed + 1};
      pwi_reduce_say(engine, peer, REDUCE_ARRIVED, &message); /* it, or its answer, may be lost */
    }
  } else if (!engine->failed) { /* otherwise the link has to stay until the peer has answered */
    pwi_reduce_agree_gone(engine, peer, 0);
  }
  pwi_reduce_advance(engine);
}

static void lost(void *self, struct pwi_sender sender, pawl_status why) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  (void)why;
  if (!peer) return;
  peer->is_linked = false;
  pwi_reduce_direct_link(peer);
  pwi_reduce_drop_target(engine, peer);
  peer->has_model_remote = false;
  peer->model_next = peer->model_tag = 0;
  for (struct reduce_retired *at = engine->retired; at; at = at->next)
    if (at->peer.id == sender.id) at->is_over = true;
  if (peer->slot) peer->slot->is_orphan = true;
  if (peer->slot && !peer->slot->is_full) pwi_reduce_retire_slot(engine, peer);
  if (engine->model && sender.id == engine->donor && !engine->has_model) pwi_reduce_end_model(engine);
  forget_peers(engine);
  pwi_reduce_advance(engine);
}

/* A member that closes says BYE to the members that it is linked with. All others learn it when they want a link. */
static void left(void *self, struct pwi_sender sender) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer || engine->failed) return;
  pwi_reduce_agree_gone(engine, peer, 0);
  pwi_reduce_advance(engine);
}

static void hear_ack(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) != 0) return;
  if (peer->is_reader)
    pwi_reduce_hear_used(engine, peer, message->epoch, message->version);
  else if (message->version == peer->acked + 1 && message->version <= peer->target.sent)
    peer->acked = message->version;
}

static void hear_release(struct pwi_reduce *engine, struct pwi_sender sender, uint64_t tag) {
  for (struct reduce_retired *at = engine->retired; at; at = at->next)
    if (at->peer.id == sender.id && at->tag == tag) at->is_over = true;
}

static void hear_bye(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  pwi_reduce_inspect(engine, peer);
  pwi_reduce_agree_gone(engine, peer, message->version);
}

static void hear(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                 const struct reduce_message *message) {
  const struct reduce_message none = {0};
  switch (kind) {
  case REDUCE_CALL:
  case REDUCE_LATER:
  case REDUCE_STATE:
    pwi_reduce_hear_agree(engine, peer, kind, message);
    break;
  case REDUCE_SLOT:
    pwi_reduce_hear_slot(engine, peer, message);
    break;
  case REDUCE_RELEASE:
    hear_release(engine, peer->sender, message->tag);
    break;
  case REDUCE_ACK:
    hear_ack(engine, peer, message);
    break;
  case REDUCE_ARRIVED:
  case REDUCE_PASS:
    pwi_reduce_hear_barrier(engine, peer, kind, message);
    break;
  case REDUCE_MODEL:
    pwi_reduce_hear_model(engine, peer, message);
    break;
  case REDUCE_GOT:
    if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) == 0) peer->is_served = false;
    break;
  case REDUCE_BYE:
    hear_bye(engine, peer, message);
    break;
  case REDUCE_STOP:
    if (pwi_reduce_is_credible(engine, message->epoch))
      peer->stop = (struct reduce_stop){message->epoch, message->tag, message->version};
    break;
  case REDUCE_MAPPED:
    pwi_reduce_hear_mapped(engine, peer, message);
    break;
  case REDUCE_PING:
    pwi_reduce_say(engine, peer, REDUCE_PONG, &none);
    break;
  case REDUCE_PONG:
    peer->pongs++;
    peer->is_silent = false;
    break;
  default: /* WAKE, or of a later version */
    break;
  }
}

static void heard(void *self, struct pwi_sender sender, uint32_t kind, const void *bytes, size_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  struct reduce_message message;
  struct reduce_go go;
  if (!peer || (engine->failed && kind != REDUCE_PING && kind != REDUCE_PONG)) return;
  pawl_status status =
      kind == REDUCE_GO ? pwi_reduce_go_decode(bytes, size, &go) : pwi_reduce_message_decode(bytes, size, &message);
  if (status)
    pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.bad", "reduce=%s peer=%" PRIu64 " kind=%" PRIu32 " status=%s",
            engine->config.name, sender.id, kind, pawl_status_name(status));
  else if (kind == REDUCE_GO)
    pwi_reduce_hear_go(engine, peer, &go);
  else
    hear(engine, peer, kind, &message);
  pwi_reduce_advance(engine);
}

static void shared(void *self, struct pwi_sender sender, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer) return;
  if (tag == peer->target.tag && size == pwi_reduce_slot_size(engine)) {
    peer->target.remote = remote;
    peer->target.has_remote = true;
  } else if (tag == peer->model_tag && size == pwi_reduce_model_size(engine)) {
    peer->model_remote = remote;
    peer->has_model_remote = true;
  } else if (tag == REDUCE_BOARD_TAG) {
    pwi_reduce_direct_shared(engine, peer, remote, size);
  }
  pwi_reduce_advance(engine);
}

static void notified(void *self, struct pwi_sender sender, uint64_t value) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer || engine->failed) return;
  if (engine->model && sender.id == engine->donor && value == (engine->model_tag & 0xffff) << 32)
    engine->has_model = true;
  else
    pwi_reduce_notified(engine, peer, value);
  pwi_reduce_advance(engine);
}

static void done(void *self, struct pwi_sender sender, uint64_t cookie, pawl_status status) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer) return;
  (void)status; /* a failure is followed by `lost` */
  pwi_reduce_done(engine, peer, cookie);
  pwi_reduce_advance(engine);
}

static void writable(void *self, struct pwi_sender sender) {
  (void)sender;
  pwi_reduce_advance(self);
}

static void closed(void *self) {
  struct pwi_reduce *engine = self;
  engine->is_closed = true;
  engine->config.closed(engine->config.context);
}

const struct pwi_channel_events pwi_reduce_events = {.changed = changed,
                                                     .linked = linked,
                                                     .lost = lost,
                                                     .left = left,
                                                     .heard = heard,
                                                     .shared = shared,
                                                     .notified = notified,
                                                     .done = done,
                                                     .writable = writable,
                                                     .closed = closed};
