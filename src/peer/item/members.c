/* What the channel tells an engine: members, links, messages, regions, the ends of operations. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "peer/item/inside.h"

/* --- peers ---------------------------------------------------------------------------------------------- */

static bool take_number(struct pwi_items *engine, struct item_peer *peer) {
  size_t free_at = 0;
  while (free_at < engine->numbers && engine->by_number[free_at]) free_at++;
  if (free_at + 1 >= ITEM_OWNER_SELF) return false;
  if (free_at == engine->numbers) {
    if (!PWI_GROW(engine->by_number, engine->numbers_room, engine->numbers + 1)) return false;
    engine->numbers++;
  }
  engine->by_number[free_at] = peer;
  peer->number = (uint16_t)(free_at + 1);
  return true;
}

static struct item_peer *add_peer(struct pwi_items *engine, struct pwi_sender sender) {
  struct item_peer **at = &engine->peers, *peer = pwi_item_find(engine, sender.id);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (peer && pwi_idmap_put(&engine->by_id, sender.id, peer)) {
    pwi_free(peer);
    peer = NULL;
  }
  if (!peer || !take_number(engine, peer)) {
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory for node %" PRIu64, sender.id);
    if (peer) pwi_idmap_remove(&engine->by_id, sender.id);
    pwi_free(peer);
    return NULL;
  }
  while (*at && (*at)->sender.id < sender.id) at = &(*at)->next;
  peer->sender = sender;
  peer->next = *at;
  *at = peer;
  return peer;
}

static void free_peer(struct pwi_items *engine, struct item_peer *peer) {
  pwi_idmap_remove(&engine->by_id, peer->sender.id);
  engine->by_number[peer->number - 1] = NULL;
  pwi_item_drop_meta(peer);
  pwi_free(peer);
}

/* A peer that is gone is remembered while items are in its frozen memory. */
static void forget_some(struct pwi_items *engine) {
  struct item_peer **at = &engine->peers;
  while (*at) {
    struct item_peer *peer = *at;
    if (peer->is_member || peer->is_linked || peer->owned > 0 || peer->moving > 0) {
      at = &peer->next;
      continue;
    }
    *at = peer->next;
    pwi_item_retire(engine, &peer->memory);
    free_peer(engine, peer);
  }
}

void pwi_item_forget_peers(struct pwi_items *engine) {
  while (engine->peers) {
    struct item_peer *peer = engine->peers;
    engine->peers = peer->next;
    pwi_item_memory_free(engine, &peer->memory);
    free_peer(engine, peer);
  }
  while (engine->retired) {
    struct item_retired *retired = engine->retired;
    engine->retired = retired->next;
    pwi_item_memory_free(engine, &retired->memory);
    pwi_free(retired);
  }
  pwi_idmap_fini(&engine->by_id);
  pwi_free(engine->by_number);
}

/* --- members -------------------------------------------------------------------------------------------- */

static void want_links(struct pwi_items *engine) {
  size_t count = 0, at = 0;
  for (const struct item_peer *peer = engine->peers; peer; peer = peer->next) count += peer->is_member;
  struct pwi_sender *senders = pwi_alloc_zero(count + 1, sizeof *senders);
  for (const struct item_peer *peer = engine->peers; peer && senders; peer = peer->next)
    if (peer->is_member) senders[at++] = peer->sender;
  if (!senders || pwi_channel_want(engine->channel, senders, count))
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory for the links of %zu members", count);
  pwi_free(senders);
}

/* While this node is not a member itself it cannot judge who is. */
void pwi_item_look_at_members(struct pwi_items *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  uint64_t self = pwi_channel_self(engine->channel).id;
  if (pwi_channel_rank(engine->channel) == UINT32_MAX) return;
  for (struct item_peer *peer = engine->peers; peer; peer = peer->next) peer->is_member = false;
  for (size_t i = 0; i < count; i++) {
    struct item_peer *peer = members[i].sender.id == self ? NULL : add_peer(engine, members[i].sender);
    if (peer) peer->is_member = true;
  }
  for (struct item_peer *peer = engine->peers; peer; peer = peer->next)
    if (!peer->is_member) pwi_item_freeze(engine, peer);
  forget_some(engine);
  want_links(engine);
}

/* Returns NULL if no member is missing. */
static const struct item_peer *find_missing(const struct pwi_items *engine) {
  for (const struct item_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_member || peer->is_gone || peer->is_bad) continue;
    if (!peer->is_linked || !peer->is_told || (peer->in.keys > 0 && peer->how != ITEM_NEAR && peer->how != ITEM_FAR))
      return peer;
  }
  return NULL;
}

/* A member has left or closed the context, so that another one may come and produce its keys. */
static bool is_incomplete(const struct pwi_items *engine) {
  size_t count;
  (void)pwi_channel_members(engine->channel, &count);
  for (const struct item_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_member && peer->is_gone) return true;
  return count < pwi_channel_founders(engine->channel);
}

void pwi_item_look_open(struct pwi_items *engine) {
  if (engine->failed || pwi_channel_rank(engine->channel) == UINT32_MAX || find_missing(engine)) return;
  uint32_t missing = pwi_item_missing(engine);
  if (missing != ITEM_NO_RANK) {
    if (!is_incomplete(engine))
      pwi_item_fail(engine, PAWL_NOT_FOUND, "key %" PRIu32 " has no producer",
                    pwi_item_runs_key(&engine->consumes, missing));
    return;
  }
  engine->is_open = true;
  pwi_log(engine->config.log, PAWL_LOG_DEBUG, "items.open", "items=%s produced=%" PRIu32 " consumed=%" PRIu32,
          engine->name, engine->produces.keys, engine->consumes.keys);
  pwi_item_wake_all(engine);
}

pawl_status pwi_items_explain(const struct pwi_items *engine, char *text, size_t size) {
  const struct item_peer *peer = find_missing(engine);
  uint32_t missing = pwi_item_missing(engine);
  if (pwi_channel_rank(engine->channel) == UINT32_MAX) {
    snprintf(text, size, "this session is not a member at present");
  } else if (!peer && missing != ITEM_NO_RANK) {
    snprintf(text, size, "key %" PRIu32 " has no producer", pwi_item_runs_key(&engine->consumes, missing));
    return PAWL_NOT_FOUND;
  } else if (!peer) {
    snprintf(text, size, "all members have answered");
  } else if (!peer->is_told) {
    snprintf(text, size, "node %" PRIu64 " has not opened it%s", peer->sender.id, peer->is_linked ? " completely" : "");
  } else {
    snprintf(text, size, "waits for the memory of node %" PRIu64, peer->sender.id);
  }
  return PAWL_TIMED_OUT;
}

/* A session that is over is not a member either: threads that wait look at it. */
static void changed(void *self) {
  struct pwi_items *engine = self;
  if (pwi_channel_rank(engine->channel) == UINT32_MAX) pwi_item_wake_all(engine);
  pwi_item_look_at_members(engine);
  pwi_item_advance(engine);
}

/* --- links ---------------------------------------------------------------------------------------------- */

static void reset_link(struct pwi_items *engine, struct item_peer *peer) {
  if (peer->attached == 2 && pwi_item_is_push(engine) && !engine->config.is_conservative)
    atomic_fetch_sub(&engine->far_count, 1);
  if (peer->is_telling && !peer->is_told && !peer->is_repeated) pwi_item_drop_meta(peer);
  peer->is_telling = peer->is_told = peer->is_seen = peer->is_bad = false;
  peer->must_attach = peer->must_share = peer->is_shown = peer->has_copy = false;
  peer->must_fence = peer->is_closing = peer->is_told_closing = peer->has_taken = false;
  peer->attached = 0;
  peer->fence = peer->shown_size = 0;
  pwi_item_marks_fini(&peer->dirty);
  pwi_item_marks_fini(&peer->wanted);
  pwi_item_marks_fini(&peer->fetching);
  pwi_free(peer->asked);
  pwi_free(peer->sought);
  pwi_free(peer->asks);
  peer->asked = peer->sought = peer->asks = NULL;
  peer->ask_count = 0;
}

static void linked(void *self, struct pwi_sender sender, const void *description, size_t size) {
  struct pwi_items *engine = self;
  struct item_peer *peer = add_peer(engine, sender);
  (void)description;
  (void)size;
  if (!peer) return;
  reset_link(engine, peer);
  peer->is_linked = true;
  peer->is_gone = false;
  pwi_item_send_meta(engine, peer);
  pwi_item_advance(engine);
}

static void end_buffers(struct pwi_items *engine, struct item_peer *peer) {
  for (struct item_buffer *buffer = engine->buffers, *next; buffer; buffer = next) {
    next = buffer->next;
    if (buffer->peer.id == peer->sender.id) pwi_item_buffer_give(engine, pwi_item_buffer_done(engine, buffer->cookie));
  }
}

static void go(struct pwi_items *engine, struct item_peer *peer) {
  peer->is_gone = true;
  pwi_item_freeze(engine, peer);
}

/* A peer that has closed the context ends its link gracefully. A link that broke is made again. */
static void lost(void *self, struct pwi_sender sender, pawl_status why) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  if (!peer) return;
  peer->is_linked = false;
  end_buffers(engine, peer);
  reset_link(engine, peer);
  if (why == PAWL_LINK_CLOSED) go(engine, peer);
  forget_some(engine);
  pwi_item_advance(engine);
}

static void left(void *self, struct pwi_sender sender) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  if (!peer) return;
  go(engine, peer);
  pwi_item_advance(engine);
}

/* --- messages and memory -------------------------------------------------------------------------------- */

static void hear_attached(struct pwi_items *engine, struct item_peer *peer, uint32_t how) {
  bool was_far = peer->attached == 2, is_far = how == 2;
  if (how != 1 && how != 2) return;
  peer->attached = how;
  if (!pwi_item_is_push(engine) || engine->config.is_conservative || was_far == is_far) return;
  atomic_fetch_add(&engine->far_count, is_far ? 1 : UINT32_MAX);
}

static void hear_number(struct pwi_items *engine, struct item_peer *peer, uint32_t kind, const void *bytes,
                        size_t size) {
  uint32_t number;
  if (pwi_item_number_decode(bytes, size, &number)) return;
  if (kind == ITEM_SEEN) peer->is_seen = true;
  if (kind == ITEM_ATTACHED) hear_attached(engine, peer, number);
  if (kind == ITEM_WAKE) pwi_item_hear_wake(engine, peer, number);
  if (kind == ITEM_CLOSING) pwi_item_take_all(engine, peer);
  if (kind == ITEM_TAKEN) peer->has_taken = true;
}

static void heard(void *self, struct pwi_sender sender, uint32_t kind, const void *bytes, size_t size) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  if (!peer || !peer->is_linked) return;
  if (kind == ITEM_META)
    pwi_item_hear_meta(engine, peer, bytes, size);
  else if (kind == ITEM_SEEN || !peer->is_bad)
    switch (kind) {
    case ITEM_ASK:
      pwi_item_hear_ask(engine, peer, bytes, size);
      break;
    case ITEM_SEEN:
    case ITEM_ATTACHED:
    case ITEM_WAKE:
    case ITEM_CLOSING:
    case ITEM_TAKEN:
      hear_number(engine, peer, kind, bytes, size);
      break;
    default: /* of a later version */
      break;
    }
  pwi_item_advance(engine);
}

static void shared(void *self, struct pwi_sender sender, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  if (!peer || !peer->has_meta || peer->is_bad) return;
  if (tag == ITEM_TAG_SHOWN && !peer->must_attach && !peer->shown_size) {
    peer->shown = remote;
    peer->shown_size = size;
    peer->must_attach = true;
  } else if (tag == ITEM_TAG_COPY && !peer->has_copy && size >= peer->out.keys * engine->stride) {
    peer->copy = remote;
    peer->has_copy = true;
    pwi_item_push_all(engine, peer);
  }
  pwi_item_advance(engine);
}

static void notified(void *self, struct pwi_sender sender, uint64_t value) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  if (!peer || value == 0 || value > peer->in.keys) return;
  pwi_item_hear_wake(engine, peer, (uint32_t)(value - 1));
  pwi_item_advance(engine);
}

static void done(void *self, struct pwi_sender sender, uint64_t cookie, pawl_status status) {
  struct pwi_items *engine = self;
  struct item_peer *peer = pwi_item_find(engine, sender.id);
  struct item_buffer *buffer = pwi_item_buffer_done(engine, cookie);
  if (peer && peer->fence == cookie) {
    peer->fence = 0;
    if (status) peer->must_fence = true;
  }
  if (buffer && buffer->is_get && peer) pwi_item_fetched(engine, peer, buffer, status);
  if (buffer) pwi_item_buffer_give(engine, buffer);
  pwi_item_advance(engine);
}

static void writable(void *self, struct pwi_sender sender) {
  (void)sender;
  pwi_item_advance(self);
}

static void closed(void *self) {
  struct pwi_items *engine = self;
  engine->is_closed = true;
  engine->config.closed(engine->config.context);
}

const struct pwi_channel_events pwi_item_events = {.changed = changed,
                                                   .linked = linked,
                                                   .lost = lost,
                                                   .left = left,
                                                   .heard = heard,
                                                   .shared = shared,
                                                   .notified = notified,
                                                   .done = done,
                                                   .writable = writable,
                                                   .closed = closed};
