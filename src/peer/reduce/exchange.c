/* Slots, puts, acknowledgements and the barrier (ASAP, section 4). */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/reduce/inside.h"
#include "protocol/planted.h"

#define TAG_BITS 16 /* of a tag in a notification, above 32 bits of the version */

static bool is_acked_mode(const struct pwi_reduce *engine) { return engine->config.mode == PAWL_REDUCE_NOTIFY_ACK; }

static uint64_t notification(uint64_t tag, uint64_t version) {
  return (tag & ((1u << TAG_BITS) - 1)) << 32 | (version & UINT32_MAX);
}

/* --- slots of this node --------------------------------------------------------------------------------- */

void pwi_reduce_retire(struct pwi_reduce *engine, struct reduce_peer *peer, struct pwi_region *region, uint64_t tag) {
  struct reduce_retired *retired = pwi_alloc_zero(1, sizeof *retired);
  if (!retired) { /* its peer's next put may take the link down, which is made again */
    if (!engine->is_outside) pwi_net_region_close(engine->config.net, region);
    return;
  }
  *retired = (struct reduce_retired){engine->retired, peer->sender, region, tag, !peer->is_linked};
  engine->retired = retired;
}

/* While the work outside reads slots, a slot stays; `worked` looks again. */
void pwi_reduce_retire_slot(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_slot *slot = peer->slot;
  if (!slot || engine->is_outside) return;
  const struct reduce_message none = {.epoch = slot->epoch};
  bool was_orphan = slot->is_orphan;
  peer->slot = NULL;
  if (peer->is_linked && !was_orphan) pwi_reduce_say(engine, peer, REDUCE_SLOT, &none);
  pwi_reduce_retire(engine, peer, slot->region, slot->tag);
  if (was_orphan && engine->retired && engine->retired->region == slot->region) engine->retired->is_over = true;
  pwi_free(slot);
}

void pwi_reduce_sweep(struct pwi_reduce *engine) {
  struct reduce_retired **at = &engine->retired;
  if (engine->is_outside) return;
  while (*at) {
    struct reduce_retired *retired = *at;
    if (!retired->is_over) {
      at = &retired->next;
      continue;
    }
    *at = retired->next;
    pwi_net_region_close(engine->config.net, retired->region);
    pwi_free(retired);
  }
}

static void open_slot(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_slot *slot = pwi_alloc_zero(1, sizeof *slot);
  size_t size = pwi_reduce_slot_size(engine);
  pawl_status status = slot ? pwi_net_region_open(engine->config.net, size, &slot->region) : PAWL_NO_MEMORY;
  if (!status && engine->config.significant > 0 && !peer->mirror) {
    peer->mirror = pwi_alloc_zero(engine->layout.raw + 8, 1);
    if (!peer->mirror) {
      pwi_net_region_close(engine->config.net, slot->region);
      status = PAWL_NO_MEMORY;
    }
  }
  if (status) {
    pwi_free(slot);
    pwi_reduce_fail(engine, status, "no memory for the tensors of node %" PRIu64, peer->sender.id);
    return;
  }
  slot->tag = pwi_reduce_tag(engine);
  slot->epoch = engine->epoch;
  slot->wanted = pwi_reduce_version(engine);
  struct reduce_message message = {.epoch = slot->epoch, .version = slot->wanted, .tag = slot->tag, .size = size};
  pwi_reduce_say(engine, peer, REDUCE_SLOT, &message);
  if (pwi_channel_share(engine->channel, peer->sender, slot->tag, slot->region, PWI_ACCESS_WRITE)) {
    pwi_net_region_close(engine->config.net, slot->region); /* `writable` or the next link tries again */
    pwi_free(slot);
    return;
  }
  peer->slot = slot;
}

/* The planted bug: a slot of the old epoch is used in the new one. */
static void use_again(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_slot *slot = peer->slot;
  if (pwi_reduce_epoch_compare(slot->epoch, engine->epoch) == 0 || slot->is_orphan) return;
  slot->epoch = engine->epoch;
  slot->wanted = pwi_reduce_version(engine);
  slot->is_full = false;
  struct reduce_message message = {
      .epoch = slot->epoch, .version = slot->wanted, .tag = slot->tag, .size = pwi_reduce_slot_size(engine)};
  pwi_reduce_say(engine, peer, REDUCE_SLOT, &message);
  (void)!pwi_channel_share(engine->channel, peer->sender, slot->tag, slot->region, PWI_ACCESS_WRITE);
}

void pwi_reduce_open_slots(struct pwi_reduce *engine) {
  if (engine->epoch.number == 0 || engine->is_closing) return;
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next) {
    if (!peer->is_in || !peer->is_linked || engine->failed || !pwi_reduce_needs_slot(engine, peer)) continue;
    if (!peer->slot)
      open_slot(engine, peer);
    else if (pwi_is_planted(PWI_PLANTED_REDUCE_OLD_SLOT))
      use_again(engine, peer);
  }
}

static bool holds(const struct pwi_reduce *engine, const struct reduce_slot *slot, uint64_t version) {
  const unsigned char *memory = pwi_net_region_memory(slot->region);
  struct reduce_header header;
  pwi_reduce_header_decode(memory, &header);
  bool is_sparse = header.kind == REDUCE_SPARSE && engine->config.significant > 0;
  bool is_sound = is_sparse ? header.size <= engine->layout.capacity
                            : header.kind == REDUCE_DENSE && header.size == engine->layout.capacity;
  return header.version == version && is_sound &&
         pwi_get_u64(memory + REDUCE_HEADER_SIZE + engine->layout.capacity) == version;
}

static void say_ack(struct pwi_reduce *engine, const struct reduce_peer *peer, uint64_t version) {
  struct reduce_message message = {.epoch = engine->epoch, .version = version};
  if (peer->is_linked) pwi_reduce_say(engine, peer, REDUCE_ACK, &message);
}

/* NOTIFY: the version has landed, whole. A late notification of an older slot has another tag. */
void pwi_reduce_notified(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t value) {
  struct reduce_slot *slot = peer->slot;
  if (!is_acked_mode(engine) || !slot || slot->is_orphan || value >> 32 != notification(slot->tag, 0) >> 32) return;
  /* After BYE the version was found without its notification, and may be used by now. */
  bool was_found = slot->is_full ? value == notification(slot->tag, slot->wanted)
                                 : peer->is_gone && value == notification(slot->tag, slot->wanted - 1);
  if (was_found) return;
  if (slot->is_full || value != notification(slot->tag, slot->wanted) || !holds(engine, slot, slot->wanted)) {
    pwi_reduce_fail(engine, PAWL_CORRUPT, "node %" PRIu64 " announced version %" PRIu64 ", which is not there",
                    peer->sender.id, value & UINT32_MAX);
    return;
  }
  slot->is_full = true;
  if (pwi_is_planted(PWI_PLANTED_REDUCE_EARLY_ACK)) say_ack(engine, peer, slot->wanted);
}

/* The peer closes, after a fence. Its last notification may be lost with the channel. */
void pwi_reduce_inspect(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_slot *slot = peer->slot;
  if (slot && is_acked_mode(engine) && !slot->is_full && holds(engine, slot, slot->wanted)) slot->is_full = true;
}

/* ACK: after the inputs were combined. */
void pwi_reduce_acknowledge(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next) {
    struct reduce_slot *slot = peer->slot;
    if (!slot) continue;
    if (slot->is_orphan) {
      pwi_reduce_retire_slot(engine, peer);
      continue;
    }
    if (is_acked_mode(engine) && slot->is_full && !pwi_is_planted(PWI_PLANTED_REDUCE_EARLY_ACK))
      say_ack(engine, peer, slot->wanted);
    slot->is_full = false;
    slot->wanted = pwi_reduce_version(engine);
  }
  pwi_reduce_show_used(engine, engine->completed);
}

/* --- slots of peers ------------------------------------------------------------------------------------- */

/* Nothing more is put into the old slot: tells the peer once all earlier puts have landed. */
void pwi_reduce_drop_target(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_target *target = &peer->target;
  struct reduce_message message = {.tag = target->tag};
  if (peer->part < peer->parts) engine->users[peer->buffer]--;
  peer->part = peer->parts = 0;
  if (target->tag != 0 && peer->is_linked) {
    if (!target->has_put)
      pwi_reduce_say(engine, peer, REDUCE_RELEASE, &message);
    else
      (void)!pwi_channel_fence(engine->channel, peer->sender, COOKIE_FENCE | target->tag << COOKIE_BITS);
  }
  *target = (struct reduce_target){0};
}

void pwi_reduce_hear_slot(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  pwi_reduce_drop_target(engine, peer);
  if (message->size != pwi_reduce_slot_size(engine) || message->version == 0 || message->tag == 0) return;
  peer->target = (struct reduce_target){
      .epoch = message->epoch, .tag = message->tag, .wanted = message->version, .sent = message->version - 1};
  if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) == 0 && peer->acked < message->version - 1)
    peer->acked = message->version - 1;
}

/* --- puts ----------------------------------------------------------------------------------------------- */

struct part {
  size_t offset, size;
  uint64_t notify;
};

/* The bytes of one put land in any order, and puts land in order. In NOTIFY-ACK mode the notification follows the
 * data and nobody reads before it. In the other modes a reader looks at any time, so that the version is put
 * before and after the data. */
static unsigned split(const struct pwi_reduce *engine, const struct reduce_peer *peer, struct part parts[3]) {
  size_t capacity = engine->layout.capacity, whole = pwi_reduce_slot_size(engine);
  uint64_t notify = notification(peer->target.tag, peer->target.sent);
  if (!is_acked_mode(engine)) {
    parts[0] = (struct part){0, REDUCE_HEADER_SIZE, 0};
    parts[1] = (struct part){REDUCE_HEADER_SIZE, capacity, 0};
    parts[2] = (struct part){REDUCE_HEADER_SIZE + capacity, REDUCE_FOOTER_SIZE, 0};
    return 3;
  }
  if (pwi_is_planted(PWI_PLANTED_REDUCE_NOTIFY_FIRST)) {
    parts[0] = (struct part){whole - REDUCE_FOOTER_SIZE, REDUCE_FOOTER_SIZE, 0};
    parts[1] = (struct part){0, REDUCE_HEADER_SIZE, notify};
    parts[2] = (struct part){REDUCE_HEADER_SIZE, capacity, 0};
    return 3;
  }
  size_t size = engine->staged_header[peer->buffer].size;
  if (size < capacity) {
    parts[0] = (struct part){0, REDUCE_HEADER_SIZE + size, 0};
    parts[1] = (struct part){whole - REDUCE_FOOTER_SIZE, REDUCE_FOOTER_SIZE, notify};
    return 2;
  }
  parts[0] = (struct part){0, whole, notify};
  return 1;
}

/* False if the link takes no more at the moment. */
static bool put_part(struct pwi_reduce *engine, struct reduce_peer *peer, const struct part *part) {
  if (part->size > 0 || part->notify > 0) {
    pawl_status status = pwi_channel_put(engine->channel, peer->sender, peer->target.remote, part->offset,
                                         engine->staging[peer->buffer] + part->offset, part->size, part->notify,
                                         COOKIE_BUFFER + peer->buffer);
    if (status) return false;
    engine->users[peer->buffer]++;
    peer->puts++;
    peer->target.has_put = true;
    engine->has_spoken = true;
    if (peer->counted < peer->target.sent)
      engine->bytes_sent += part->size;
    else /* pwi_reduce_show has counted it */
      pwi_net_count_window(engine->config.net, -(int64_t)part->size, 0);
  }
  peer->part++;
  return true;
}

static void put_parts(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct part parts[3];
  if (peer->part == peer->parts) return;
  (void)split(engine, peer, parts);
  while (peer->part < peer->parts)
    if (!put_part(engine, peer, &parts[peer->part])) return;
  engine->users[peer->buffer]--; /* the hold of `start` */
}

static void start(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t version) {
  struct part parts[3];
  peer->target.sent = version;
  peer->buffer = (unsigned)version % 2;
  peer->part = 0;
  peer->parts = split(engine, peer, parts);
  engine->users[peer->buffer]++;
  put_parts(engine, peer);
}

static void pump_peer(struct pwi_reduce *engine, struct reduce_peer *peer) {
  struct reduce_target *target = &peer->target;
  if (!peer->is_out || !peer->is_linked || !target->has_remote || engine->staged == 0 ||
      pwi_reduce_epoch_compare(target->epoch, engine->epoch) != 0)
    return;
  put_parts(engine, peer);
  if (peer->part < peer->parts) return;
  uint64_t next = is_acked_mode(engine) ? peer->acked + 1 : engine->staged;
  if (next <= target->sent || next > engine->staged || next + 1 < engine->staged) return;
  if (!is_acked_mode(engine) && peer->puts > 0) return; /* one at a time */
  start(engine, peer, next);
}

void pwi_reduce_pump(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next) pump_peer(engine, peer);
}

void pwi_reduce_done(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t cookie) {
  struct reduce_message release = {.tag = cookie >> COOKIE_BITS};
  switch (cookie & ((1u << COOKIE_BITS) - 1)) {
  case COOKIE_BUFFER:
  case COOKIE_BUFFER + 1:
    engine->users[cookie - COOKIE_BUFFER]--;
    peer->puts--;
    break;
  case COOKIE_FENCE:
    if (peer->is_linked) pwi_reduce_say(engine, peer, REDUCE_RELEASE, &release);
    break;
  case COOKIE_MODEL:
    peer->model_puts--;
    engine->model_puts--;
    break;
  case COOKIE_FAREWELL:
    if (peer->farewell == FAREWELL_FENCE) peer->farewell = FAREWELL_LANDED;
    break;
  default:
    break;
  }
}

/* --- waiting -------------------------------------------------------------------------------------------- */

/* In NOTIFY-ACK mode the buffer holds the version before the last until all neighbours have used it. */
bool pwi_reduce_can_stage(const struct pwi_reduce *engine) {
  uint64_t version = engine->completed + 1;
  if (engine->users[version % 2] > 0) return false;
  for (const struct reduce_peer *peer = engine->near; peer && is_acked_mode(engine); peer = peer->near_next)
    if (peer->is_out && !peer->is_gone && peer->acked + 2 < version) return false;
  return true;
}

bool pwi_reduce_has_inputs(struct pwi_reduce *engine) {
  if (engine->config.mode == PAWL_REDUCE_ASYNC) return true;
  if (engine->config.mode == PAWL_REDUCE_BSP) return engine->passed >= engine->completed + 1;
  for (const struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->is_in && !pwi_reduce_has_input(engine, peer)) return false;
  return true;
}

bool pwi_reduce_is_member(const struct pwi_reduce *engine, uint64_t id) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  size_t low = 0;
  while (low < count) { /* by ascending id */
    size_t middle = low + (count - low) / 2;
    if (members[middle].sender.id == id) return true;
    if (members[middle].sender.id < id)
      low = middle + 1;
    else
      count = middle;
  }
  return false;
}

/* A member that cannot send in this epoch any more, or never will. */
static bool is_over(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (peer->is_gone || !pwi_reduce_is_member(engine, peer->sender.id)) return true;
  if (peer->stop.mark == pwi_reduce_epoch_mark(engine->epoch)) return engine->completed + 1 > peer->stop.version;
  return pwi_reduce_epoch_compare(peer->stop.called, engine->epoch) > 0;
}

/* A step of an epoch that is over is finished all the same if all inputs can still arrive, so that no work is lost
 * when a member joins or closes. In BSP mode PASS comes before the CALL of the same caller. */
bool pwi_reduce_may_finish(const struct pwi_reduce *engine) {
  if (engine->own_id != pwi_reduce_self(engine)) return false;
  if (engine->config.mode == PAWL_REDUCE_ASYNC) return true;
  if (engine->config.mode == PAWL_REDUCE_BSP) {
    const struct reduce_peer *caller = pwi_reduce_find(engine, engine->epoch.caller);
    return engine->passed >= engine->completed + 1 ||
           (pwi_reduce_epoch_compare(engine->called, engine->epoch) == 0 && !(caller && is_over(engine, caller)));
  }
  for (const struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->is_in && is_over(engine, peer) && !pwi_reduce_has_input(engine, peer)) return false;
  return true;
}

/* This member agrees on another epoch. Members that need tensors of it in an older one must do so, too. NULL: says it
 * to all. */
void pwi_reduce_say_stop(struct pwi_reduce *engine, const struct reduce_peer *to) {
  bool is_staged = engine->staged == engine->completed + 1;
  struct reduce_message message = {
      .epoch = engine->called, .version = engine->completed + is_staged, .tag = pwi_reduce_epoch_mark(engine->epoch)};
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && (!to || to == peer)) pwi_reduce_say(engine, peer, REDUCE_STOP, &message);
}

/* --- the barrier of BSP --------------------------------------------------------------------------------- */

static void pass(struct pwi_reduce *engine, uint64_t version) {
  struct reduce_message message = {.epoch = engine->epoch, .version = version};
  engine->passed = version;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && peer->arrived >= version) pwi_reduce_say(engine, peer, REDUCE_PASS, &message);
}

/* The caller knows all participants by its decision. Those that have arrived are not looked at again. */
static void look_at_barrier(struct pwi_reduce *engine) {
  const struct reduce_decision *decision = &engine->decision;
  uint64_t version = engine->completed + 1;
  if (!engine->has_arrived || !decision->is_made || engine->passed >= version ||
      pwi_reduce_epoch_compare(decision->epoch, engine->epoch) != 0)
    return;
  if (engine->barrier_version != version) engine->barrier_at = 0;
  engine->barrier_version = version;
  for (; engine->barrier_at < decision->count; engine->barrier_at++) {
    const struct reduce_peer *peer = pwi_reduce_find(engine, decision->ids[engine->barrier_at]);
    if (peer && peer->arrived < version) return;
  }
  pass(engine, version);
}

static bool has_sent_all(const struct pwi_reduce *engine) {
  for (const struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->is_out && !peer->is_gone &&
        (peer->target.sent != engine->staged || peer->part < peer->parts || !peer->target.has_remote))
      return false;
  return true;
}

static void say_arrived(struct pwi_reduce *engine) {
  struct reduce_message message = {.epoch = engine->epoch, .version = engine->completed + 1};
  const struct reduce_peer *caller = pwi_reduce_find(engine, engine->epoch.caller);
  if (caller && caller->is_linked) pwi_reduce_say(engine, caller, REDUCE_ARRIVED, &message);
}

void pwi_reduce_arrive(struct pwi_reduce *engine) {
  if (engine->config.mode != PAWL_REDUCE_BSP || engine->phase != PHASE_EXCHANGE) return;
  if (!engine->has_arrived && has_sent_all(engine)) {
    engine->has_arrived = true;
    if (engine->epoch.caller != engine->own_id) say_arrived(engine);
  }
  if (engine->epoch.caller == engine->own_id) look_at_barrier(engine);
}

void pwi_reduce_hear_barrier(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                             const struct reduce_message *message) {
  if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) != 0 || engine->config.mode != PAWL_REDUCE_BSP) return;
  if (kind == REDUCE_PASS && peer->sender.id == engine->epoch.caller && message->version == engine->completed + 1 &&
      engine->has_arrived)
    engine->passed = message->version;
  if (kind != REDUCE_ARRIVED || engine->epoch.caller != engine->own_id) return;
  peer->arrived = message->version;
  struct reduce_message passed = {.epoch = engine->epoch, .version = message->version};
  if (message->version <= engine->passed) pwi_reduce_say(engine, peer, REDUCE_PASS, &passed);
}

/* --- closing -------------------------------------------------------------------------------------------- */

static bool has_delivered(struct pwi_reduce *engine, struct reduce_peer *peer) {
  const struct reduce_target *target = &peer->target;
  if (!peer->is_out || peer->is_gone || !pwi_reduce_is_member(engine, peer->sender.id)) return true;
  if (is_acked_mode(engine) && peer->acked >= engine->staged) return true;
  if (peer->farewell == FAREWELL_LANDED || peer->is_reader) return true;
  if (!peer->is_linked || !target->has_remote || target->sent != engine->staged || peer->part < peer->parts)
    return false;
  if (peer->farewell == FAREWELL_NONE && pwi_channel_fence(engine->channel, peer->sender, COOKIE_FAREWELL) == PAWL_OK)
    peer->farewell = FAREWELL_FENCE;
  return false;
}

/* A peer that has answered a PING has heard everything that was said before it. */
bool pwi_reduce_have_answered(const struct pwi_reduce *engine) {
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && peer->is_pinged && peer->pongs == 0) return false;
  return true;
}

bool pwi_reduce_deliver(struct pwi_reduce *engine) {
  bool is_delivered = true;
  if (engine->failed == PAWL_MISMATCH) return pwi_reduce_have_answered(engine); /* both are to hear of it */
  if (engine->staged == 0 || engine->config.mode == PAWL_REDUCE_ASYNC || engine->failed) return true;
  pwi_reduce_pump(engine);
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (!has_delivered(engine, peer)) is_delivered = false;
  return is_delivered;
}
