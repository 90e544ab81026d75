/* What the channel tells an engine: members, links, messages, regions. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "peer/factor/inside.h"

/* --- peers ---------------------------------------------------------------------------------------------- */

struct factor_peer *pwi_factor_find(const struct pwi_factor *engine, uint64_t id) {
  return id ? pwi_idmap_get(&engine->by_id, id) : NULL;
}

bool pwi_factor_is_member(const struct pwi_factor *engine, uint64_t id) {
  size_t count, low = 0;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t high = count; low < high;) { /* by ascending id */
    size_t middle = low + (high - low) / 2;
    if (members[middle].sender.id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && members[low].sender.id == id;
}

static struct factor_peer *add_peer(struct pwi_factor *engine, struct pwi_sender sender) {
  struct factor_peer **at = &engine->peers, *peer = pwi_factor_find(engine, sender.id);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer || pwi_idmap_put(&engine->by_id, sender.id, peer)) {
    pwi_free(peer);
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for node %" PRIu64, sender.id);
    return NULL;
  }
  while (*at && (*at)->sender.id < sender.id) at = &(*at)->next;
  peer->sender = sender;
  peer->next = *at;
  *at = peer;
  return peer;
}

static void free_peer(struct pwi_factor *engine, struct factor_peer *peer) {
  pwi_idmap_remove(&engine->by_id, peer->sender.id);
  pwi_free(peer->state);
  pwi_free(peer->has);
  pwi_free(peer->bytes_in);
  pwi_free(peer);
}

void pwi_factor_free_peers(struct pwi_factor *engine) {
  while (engine->peers) {
    struct factor_peer *peer = engine->peers;
    engine->peers = peer->next;
    free_peer(engine, peer);
  }
  pwi_idmap_fini(&engine->by_id);
}

/* A peer that takes part is remembered until the next epoch begins without it. */
static void forget_some(struct pwi_factor *engine) {
  struct factor_peer **at = &engine->peers;
  while (*at) {
    struct factor_peer *peer = *at;
    bool is_needed = peer->is_linked || pwi_factor_is_member(engine, peer->sender.id);
    if (is_needed || pwi_factor_origin(engine, peer->life)) {
      at = &peer->next;
      continue;
    }
    *at = peer->next;
    free_peer(engine, peer);
  }
}

/* Windows of lives whose commits are not needed any more. The threads that read them are those of steps. */
static void forget_windows(struct pwi_factor *engine) {
  struct factor_window **at = &engine->windows;
  while (*at && !engine->is_outside) {
    struct factor_window *window = *at;
    bool is_used = pwi_factor_origin(engine, window->life) != NULL;
    for (const struct factor_peer *peer = engine->peers; peer && !is_used; peer = peer->next)
      is_used = peer->is_linked && peer->life == window->life;
    if (is_used) {
      at = &window->next;
      continue;
    }
    *at = window->next;
    pwi_net_remote_unmap(&window->window);
    pwi_free(window);
  }
}

static void want_links(struct pwi_factor *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  struct pwi_sender *senders = pwi_alloc_zero(count + 1, sizeof *senders);
  for (size_t i = 0; senders && i < count; i++) senders[i] = members[i].sender;
  if (!senders || pwi_channel_want(engine->channel, senders, count))
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for the links of %zu members", count);
  pwi_free(senders);
}

void pwi_factor_look_at_members(struct pwi_factor *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id != pwi_channel_self(engine->channel).id) (void)add_peer(engine, members[i].sender);
  forget_some(engine);
  forget_windows(engine);
  want_links(engine);
}

static void changed(void *self) {
  struct pwi_factor *engine = self;
  if (engine->has_left) return;
  pwi_factor_look_at_members(engine);
  pwi_factor_agree(engine);
  pwi_factor_advance(engine);
}

/* --- links ---------------------------------------------------------------------------------------------- */

/* Before the first epoch nobody can say who is wrong; later it is the one that joins. */
static bool fits(struct pwi_factor *engine, struct factor_peer *peer, const unsigned char *description, size_t size) {
  char problem[PWI_FACTOR_PROBLEM_MAX];
  if (pwi_factor_fits(engine, peer->sender.id, description, size, problem)) return true;
  if (engine->epoch.number == 0)
    pwi_factor_fail(engine, PAWL_MISMATCH, "%s", problem);
  else
    pwi_log(engine->config.log, PAWL_LOG_WARN, "factor.mismatch", "factor=%s why=\"%s\"", engine->config.name, problem);
  return false;
}

static void linked(void *self, struct pwi_sender sender, const void *description, size_t size) {
  struct pwi_factor *engine = self;
  struct factor_peer *peer = add_peer(engine, sender);
  const struct factor_message none = {0};
  if (!peer) return;
  pwi_factor_reset_link(peer);
  peer->is_linked = true;
  peer->is_bad = !fits(engine, peer, description, size);
  if (peer->is_bad) {
    pwi_factor_advance(engine);
    return;
  }
  uint64_t life = pwi_factor_life_in(description);
  if (peer->life != life) {
    pwi_free(peer->has);
    peer->has = NULL;
    peer->has_said = peer->has_status = peer->is_reader = false;
  }
  peer->life = life;
  peer->part = pwi_factor_part_in(description);
  if (pwi_factor_meet(engine, peer)) pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for node %" PRIu64, sender.id);
  if (engine->has_said_bye) pwi_factor_say(engine, peer, FACTOR_BYE, &none);
  (void)pwi_factor_offer(engine, peer);
  pwi_factor_agree_linked(engine, peer);
  pwi_factor_say_have(engine, peer, true);
  pwi_factor_agree(engine);
  pwi_factor_advance(engine);
}

static void lost(void *self, struct pwi_sender sender, pawl_status why) {
  struct pwi_factor *engine = self;
  struct factor_peer *peer = pwi_factor_find(engine, sender.id);
  (void)why;
  if (!peer) return;
  peer->is_linked = peer->has_state = peer->has_status = false;
  pwi_factor_reset_link(peer);
  forget_some(engine);
  pwi_factor_agree(engine);
  pwi_factor_advance(engine);
}

static void go(struct pwi_factor *engine, struct factor_peer *peer) {
  peer->gone_life = peer->life;
  pwi_factor_agree(engine);
  pwi_factor_advance(engine);
}

/* It has closed, and its BYE may be lost. */
static void left(void *self, struct pwi_sender sender) {
  struct pwi_factor *engine = self;
  struct factor_peer *peer = pwi_factor_find(engine, sender.id);
  if (peer && peer->life != 0) go(engine, peer);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static void hear(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind, const void *bytes, size_t size,
                 const struct factor_message *message) {
  const struct factor_message none = {0};
  if (kind == FACTOR_BYE) {
    pwi_factor_say(engine, peer, FACTOR_BYE_OK, &none);
    go(engine, peer);
  } else if (kind == FACTOR_BYE_OK) {
    peer->has_parted = true;
  } else if (engine->failed || engine->has_said_bye) {
    return;
  } else if (kind >= FACTOR_STATUS && kind <= FACTOR_GO) {
    pwi_factor_hear_agree(engine, peer, kind, bytes, size, message);
  } else if (kind >= FACTOR_ASK && kind <= FACTOR_VALUES) {
    pwi_factor_hear_model(engine, peer, kind, message);
  } else {
    pwi_factor_hear_stream(engine, peer, kind, message);
  }
}

static void heard(void *self, struct pwi_sender sender, uint32_t kind, const void *bytes, size_t size) {
  struct pwi_factor *engine = self;
  struct factor_peer *peer = pwi_factor_find(engine, sender.id);
  struct factor_message message;
  if (!peer || !peer->is_linked || peer->is_bad || engine->has_left) return;
  pawl_status status = pwi_factor_message_decode(kind, bytes, size, &message);
  if (status)
    pwi_log(engine->config.log, PAWL_LOG_WARN, "factor.bad", "factor=%s peer=%" PRIu64 " kind=%" PRIu32 " status=%s",
            engine->config.name, sender.id, kind, pawl_status_name(status));
  else
    hear(engine, peer, kind, bytes, size, &message);
  pwi_factor_advance(engine);
}

static void shared(void *self, struct pwi_sender sender, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct pwi_factor *engine = self;
  struct factor_peer *peer = pwi_factor_find(engine, sender.id);
  if (!peer || !peer->is_linked || peer->is_bad || engine->has_left) return;
  pwi_factor_shared(engine, peer, tag, remote, size);
  pwi_factor_advance(engine);
}

static void writable(void *self, struct pwi_sender sender) {
  struct pwi_factor *engine = self;
  (void)sender;
  if (!engine->has_left) pwi_factor_advance(engine);
}

static void closed(void *self) {
  struct pwi_factor *engine = self;
  engine->is_closed = true;
  engine->config.closed(engine->config.context);
}

const struct pwi_channel_events pwi_factor_events = {.changed = changed,
                                                     .linked = linked,
                                                     .lost = lost,
                                                     .left = left,
                                                     .heard = heard,
                                                     .shared = shared,
                                                     .writable = writable,
                                                     .closed = closed};
