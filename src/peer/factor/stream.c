/* Commits on their way to peers, and from them. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/factor/inside.h"

#define PIECE_BYTES_MAX ((uint64_t)1 << 40)

void pwi_factor_reset_link(struct factor_peer *peer) {
  peer->attached = 0;
  peer->shared = 0;
  peer->is_attaching = false;
  peer->pieces_sent = peer->pieces_taken = peer->pieces_here = peer->pieces_told = 0;
  peer->has_have = peer->must_model = peer->has_head = peer->must_rewind = false;
  peer->cursor = NULL;
  peer->offset = peer->got = 0;
  peer->life_in = 0;
  peer->is_leaving = peer->was_told_leaving = peer->has_parted = false;
}

/* --- what this member has ------------------------------------------------------------------------------- */

/* The commits behind this number up to the last one applied are in the log, and nobody overwrites them. */
static uint64_t before_log(const struct factor_origin *origin) {
  uint64_t before = origin->applied, last = 0;
  for (const struct factor_entry *entry = origin->first; entry && entry->number <= origin->applied;
       entry = entry->higher) {
    if (!entry->owned && !entry->slot) continue;
    if (last == 0 || entry->number != last + 1) before = entry->number - 1;
    last = entry->number;
  }
  return last == origin->applied ? before : origin->applied;
}

bool pwi_factor_say_has(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                        struct factor_message *message) {
  unsigned char *bytes = pwi_alloc_zero(engine->count, FACTOR_HAS_SIZE);
  if (!bytes) {
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for what %" PRIu32 " members have", engine->count);
    return false;
  }
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    uint64_t received = kind == FACTOR_MODEL ? before_log(origin) : origin->received;
    pwi_put_u64(bytes + (size_t)i * FACTOR_HAS_SIZE, origin->is_heard ? received : FACTOR_NONE);
    pwi_put_u64(bytes + (size_t)i * FACTOR_HAS_SIZE + 8, origin->applied);
  }
  message->bytes = bytes;
  message->bytes_size = (size_t)engine->count * FACTOR_HAS_SIZE;
  pwi_factor_say(engine, peer, kind, message);
  pwi_free(bytes);
  return true;
}

void pwi_factor_say_have(struct pwi_factor *engine, struct factor_peer *peer, bool asks) {
  struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch, .flags = asks};
  if (!peer->is_linked || engine->need != FACTOR_COMPLETE || engine->epoch.number == 0 || !peer->has) return;
  (void)pwi_factor_say_has(engine, peer, FACTOR_HAVE, &message);
}

void pwi_factor_say_have_all(struct pwi_factor *engine, bool asks) {
  engine->since_count = engine->since_bytes = 0;
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) pwi_factor_say_have(engine, peer, asks);
}

static void hear_have(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  if (pwi_factor_compare(message->epoch, engine->epoch) != 0 || !peer->has ||
      message->bytes_size != (size_t)engine->count * FACTOR_HAS_SIZE)
    return;
  for (uint32_t i = 0; i < engine->count; i++) {
    peer->has[i].received = pwi_get_u64(message->bytes + (size_t)i * FACTOR_HAS_SIZE);
    peer->has[i].applied = pwi_get_u64(message->bytes + (size_t)i * FACTOR_HAS_SIZE + 8);
  }
  if (!peer->has_have) {
    peer->cursor = engine->first;
    peer->offset = 0;
    peer->high = 0;
  }
  bool is_first = !peer->has_have;
  peer->has_have = peer->has_said = true;
  /* An earlier WANT may be lost with its link. */
  if (is_first && engine->is_catching_up && peer->life == engine->donor) pwi_factor_say_want_all(engine, peer);
  if (message->flags & 1) pwi_factor_say_have(engine, peer, false);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static bool must_send(const struct pwi_factor *engine, const struct factor_peer *peer,
                      const struct factor_entry *entry) {
  const struct factor_origin *origin = pwi_factor_origin(engine, entry->life);
  const struct factor_has *has = pwi_factor_has(engine, peer, origin);
  if (entry->life == peer->life || has->received == FACTOR_NONE || has->received >= entry->number) return false;
  if (has->wants_until >= entry->sequence) return true;
  return entry->sequence > peer->high && pwi_factor_sends(engine, origin, peer);
}

/* Every region up to that of the entry, because the peer knows them by their order. */
static bool share_up_to(struct pwi_factor *engine, struct factor_peer *peer, uint64_t tag) {
  while (peer->shared < tag) {
    struct factor_slot *slot = engine->slots;
    while (slot->tag != peer->shared + 1) slot = slot->next;
    if (pwi_channel_share(engine->channel, peer->sender, slot->tag, slot->region, PWI_ACCESS_READ)) return false;
    peer->shared++;
  }
  return true;
}

bool pwi_factor_offer(struct pwi_factor *engine, struct factor_peer *peer) { return share_up_to(engine, peer, 1); }

static bool show(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_entry *entry) {
  const struct factor_message message = {.epoch = engine->epoch,
                                         .own = engine->epoch,
                                         .number = entry->number,
                                         .size = entry->size,
                                         .offset = entry->slot->tag,
                                         .hash = entry->hash};
  if (!share_up_to(engine, peer, entry->slot->tag)) return false;
  peer->is_reader = true;
  pwi_factor_say(engine, peer, FACTOR_SHOWN, &message);
  engine->counts.shown += entry->size;
  pwi_net_count_window(engine->config.net, (int64_t)entry->size, 0);
  return true;
}

/* Returns false while the peer must take pieces first. */
static bool send_pieces(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_entry *entry) {
  struct factor_message message = {.epoch = engine->epoch,
                                   .own = engine->epoch,
                                   .life = entry->life,
                                   .number = entry->number,
                                   .size = entry->size,
                                   .hash = entry->hash,
                                   .bytes = engine->piece};
  while (peer->offset < entry->size) {
    if (!peer->is_linked || peer->pieces_sent - peer->pieces_taken >= FACTOR_WINDOW) return false;
    size_t left = entry->size - peer->offset, some = left < FACTOR_PIECE_SIZE ? left : FACTOR_PIECE_SIZE;
    pwi_shared_read(engine->piece, entry->bytes + peer->offset, some);
    message.offset = peer->offset;
    message.bytes_size = some;
    peer->offset += some;
    peer->pieces_sent++;
    engine->counts.sent += some;
    pwi_factor_say(engine, peer, FACTOR_PIECE, &message);
  }
  return true;
}

void pwi_factor_pump(struct pwi_factor *engine, struct factor_peer *peer) {
  while (peer->is_linked && peer->has_have && peer->attached != 0 && peer->cursor && peer->has && !engine->failed) {
    struct factor_entry *entry = peer->cursor;
    bool is_begun = peer->offset > 0;
    if (is_begun || must_send(engine, peer, entry)) {
      bool is_near = entry->slot && peer->attached == 1 && !is_begun;
      if (is_near ? !show(engine, peer, entry) : !send_pieces(engine, peer, entry)) return;
    }
    if (peer->cursor != entry) continue;
    if (entry->sequence > peer->high) peer->high = entry->sequence;
    peer->cursor = peer->must_rewind ? engine->first : entry->next;
    peer->must_rewind = false;
    peer->offset = 0;
  }
}

/* --- receiving ------------------------------------------------------------------------------------------ */

void pwi_factor_say_taken(struct pwi_factor *engine, struct factor_peer *peer, bool is_whole) {
  struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch};
  message.number = ++peer->pieces_here;
  if (!is_whole && peer->pieces_here - peer->pieces_told < FACTOR_TAKEN_STEP) return;
  peer->pieces_told = peer->pieces_here;
  pwi_factor_say(engine, peer, FACTOR_TAKEN, &message);
}

static bool begin_commit(struct factor_peer *peer, const struct factor_message *message) {
  if (message->offset == 0) {
    peer->life_in = message->life;
    peer->number_in = message->number;
    peer->hash_in = message->hash;
    peer->size_in = (size_t)message->size;
    peer->got = 0;
  }
  return peer->life_in != 0 && peer->life_in == message->life && peer->number_in == message->number &&
         peer->size_in == message->size && peer->got == message->offset &&
         message->bytes_size <= peer->size_in - peer->got && message->size <= PIECE_BYTES_MAX;
}

/* Without this commit the peer holds up the others until it is removed. */
static void say_bad(const struct pwi_factor *engine, const struct factor_peer *peer, uint64_t number) {
  pwi_log(engine->config.log, PAWL_LOG_WARN, "factor.bad", "factor=%s peer=%" PRIu64 " commit=%" PRIu64,
          engine->config.name, peer->sender.id, number);
}

static void end_commit(struct pwi_factor *engine, struct factor_peer *peer) {
  unsigned char *bytes = peer->bytes_in;
  peer->bytes_in = NULL;
  peer->room_in = 0;
  if (pwi_factor_hash_of(bytes, peer->size_in) == peer->hash_in) {
    pwi_factor_accept(engine, peer->life_in, peer->number_in, bytes, bytes, peer->size_in, peer->hash_in);
  } else {
    struct factor_origin *origin = pwi_factor_origin(engine, peer->life_in);
    if (origin && origin->asked == peer->sender.id) origin->is_refused = true; /* another member may have it */
    say_bad(engine, peer, peer->number_in);
    pwi_free(bytes);
  }
  peer->life_in = 0;
}

/* Memory grows with the bytes that have arrived, whatever size the peer claims. */
static void hear_piece(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  bool fits = begin_commit(peer, message);
  bool is_whole = fits && peer->got + message->bytes_size == peer->size_in;
  if (fits && message->bytes_size > 0) {
    if (!PWI_GROW(peer->bytes_in, peer->room_in, peer->got + message->bytes_size)) {
      pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for a commit of %zu bytes", peer->size_in);
      return;
    }
    memcpy(peer->bytes_in + peer->got, message->bytes, message->bytes_size);
    peer->got += message->bytes_size;
    if (is_whole) end_commit(engine, peer);
  }
  pwi_factor_say_taken(engine, peer, is_whole);
}

/* --- reading in place ----------------------------------------------------------------------------------- */

static struct factor_window *find_window(const struct pwi_factor *engine, uint64_t life, uint64_t tag) {
  struct factor_window *window = engine->windows;
  while (window && (window->life != life || window->tag != tag)) window = window->next;
  return window;
}

static void say_attached(struct pwi_factor *engine, struct factor_peer *peer, bool is_near) {
  const struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch, .flags = is_near ? 1 : 2};
  pwi_factor_say(engine, peer, FACTOR_ATTACHED, &message);
}

static bool map(struct pwi_factor *engine, struct factor_peer *peer, uint64_t tag, struct pwi_remote remote,
                uint64_t size) {
  struct pwi_window window = {0};
  if (find_window(engine, peer->life, tag)) return true; /* over an earlier link */
  if (pwi_channel_map(engine->channel, peer->sender, remote, &window) || !window.memory) return false;
  struct factor_window *entry = window.size == size ? pwi_alloc_zero(1, sizeof *entry) : NULL;
  if (!entry) {
    pwi_net_remote_unmap(&window);
    return false;
  }
  *entry = (struct factor_window){engine->windows, peer->life, tag, window};
  engine->windows = entry;
  return true;
}

/* The first region shows whether the two share memory. */
void pwi_factor_shared(struct pwi_factor *engine, struct factor_peer *peer, uint64_t tag, struct pwi_remote remote,
                       uint64_t size) {
  if (tag == 0 || size == 0) return;
  bool is_mapped = map(engine, peer, tag, remote, size), is_first = !peer->is_attaching;
  peer->is_attaching = true;
  if (is_first || !is_mapped) say_attached(engine, peer, is_mapped);
}

static void hear_shown(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  const struct factor_window *window = find_window(engine, peer->life, message->offset);
  if (!window) return; /* the peer was told that it could not be mapped */
  if (message->size > window->window.size) return;
  if (pwi_factor_hash_of(window->window.memory, (size_t)message->size) != message->hash) {
    say_bad(engine, peer, message->number);
    return;
  }
  pwi_net_count_window(engine->config.net, 0, (int64_t)message->size);
  pwi_factor_accept(engine, peer->life, message->number, window->window.memory, NULL, (size_t)message->size,
                    message->hash);
}

/* A peer that cannot read regions any more gets everything again that it does not have. */
static void hear_attached(struct pwi_factor *engine, struct factor_peer *peer, uint32_t how) {
  if (how != 1 && how != 2) return;
  if (peer->attached == 1 && how == 2) {
    peer->cursor = engine->first;
    peer->offset = 0;
    peer->high = 0;
  }
  peer->attached = how;
}

/* --- commits that others have --------------------------------------------------------------------------- */

static struct factor_peer *next_holder(const struct pwi_factor *engine, const struct factor_origin *origin) {
  struct factor_peer *first = NULL;
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_linked || !peer->has_have || !peer->has) continue;
    const struct factor_has *has = pwi_factor_has(engine, peer, origin);
    if (has->received == FACTOR_NONE || has->received <= origin->received) continue;
    if (has->lacks == origin->received + 1) continue;
    if (!first) first = peer;
    if (peer->sender.id > origin->asked) return peer;
  }
  return first;
}

void pwi_factor_say_want_all(struct pwi_factor *engine, struct factor_peer *peer) {
  const struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch};
  pwi_factor_say(engine, peer, FACTOR_WANT, &message);
}

static void ask(struct pwi_factor *engine, struct factor_origin *origin, struct factor_peer *holder) {
  const struct factor_message message = {
      .epoch = engine->epoch, .own = engine->epoch, .life = origin->life, .number = origin->received};
  origin->asked = holder->sender.id;
  origin->is_refused = false;
  pwi_factor_say(engine, holder, FACTOR_WANT, &message);
}

/* Every other member has said so. */
static bool is_held_by_nobody(const struct pwi_factor *engine, const struct factor_origin *origin) {
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *member = &engine->origins[i];
    if (i == engine->self || !pwi_factor_is_live(member)) continue;
    const struct factor_peer *peer = pwi_factor_peer_of(engine, member);
    if (!peer || !peer->is_linked || !peer->has_have || !peer->has) return false;
    const struct factor_has *has = pwi_factor_has(engine, peer, origin);
    bool is_behind = has->received == FACTOR_NONE || has->received <= origin->received;
    if (!is_behind && has->lacks != origin->received + 1) return false;
  }
  return true;
}

/* Without forwarding a member that hears an origin anew begins at the origin's clock. It counts as one that has received
 * what came before, so the commits that count may be more than anybody has. Matrices differ in this mode anyway, so this
 * member goes on with the commits that it has. */
static void give_up(struct pwi_factor *engine, struct factor_origin *origin) {
  if (engine->config.is_complete || engine->config.forwards || !is_held_by_nobody(engine, origin)) return;
  origin->is_heard = false;
  pwi_log(engine->config.log, PAWL_LOG_WARN, "factor.gap",
          "factor=%s peer=%" PRIu64 " received=%" PRIu64 " final=%" PRIu64, engine->config.name, origin->id,
          origin->received, origin->final);
}

/* A member of which commits are missing is gone: another one has them. */
void pwi_factor_ask_missing(struct pwi_factor *engine) {
  if (!pwi_factor_is_settled(engine) || engine->need != FACTOR_COMPLETE) return;
  for (uint32_t i = 0; i < engine->count; i++) {
    struct factor_origin *origin = &engine->origins[i];
    if (pwi_factor_is_live(origin) || !origin->is_heard || origin->received >= origin->final) continue;
    const struct factor_peer *asked = pwi_factor_find(engine, origin->asked);
    if (origin->asked && asked && asked->is_linked && asked->has_have && !origin->is_refused) continue;
    struct factor_peer *holder = next_holder(engine, origin);
    if (holder)
      ask(engine, origin, holder);
    else
      give_up(engine, origin);
  }
}

static void hear_want(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  if (pwi_factor_compare(message->epoch, engine->epoch) != 0 || !peer->has_have) return;
  const struct factor_message lack = {
      .epoch = engine->epoch, .own = engine->epoch, .life = message->life, .number = message->number};
  bool is_found = message->life == 0;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    if (message->life != 0 && origin->life != message->life) continue;
    /* Commits of a lost member that this one is yet to receive are passed on, too. */
    peer->has[i].wants_until = pwi_factor_is_live(origin) ? engine->last_sequence : UINT64_MAX;
    for (const struct factor_entry *entry = origin->first; entry; entry = entry->higher)
      is_found |= entry->number == message->number + 1;
  }
  if (!is_found) pwi_factor_say(engine, peer, FACTOR_LACK, &lack);
  peer->must_rewind = peer->offset > 0; /* an entry was sent in part */
  if (!peer->must_rewind) peer->cursor = engine->first;
}

static void hear_lack(struct pwi_factor *engine, const struct factor_peer *peer, const struct factor_message *message) {
  struct factor_origin *origin = pwi_factor_origin(engine, message->life);
  if (pwi_factor_compare(message->epoch, engine->epoch) != 0 || !origin) return;
  if (origin->asked == peer->sender.id) origin->is_refused = true;
  if (peer->has && message->number == origin->received)
    pwi_factor_has(engine, peer, origin)->lacks = message->number + 1;
}

void pwi_factor_hear_stream(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind,
                            const struct factor_message *message) {
  bool is_ready = engine->epoch.number != 0 && engine->need == FACTOR_COMPLETE;
  switch (kind) {
  case FACTOR_HAVE:
    hear_have(engine, peer, message);
    break;
  case FACTOR_SHOWN:
    if (is_ready) hear_shown(engine, peer, message);
    break;
  case FACTOR_PIECE:
    if (is_ready)
      hear_piece(engine, peer, message);
    else
      pwi_factor_say_taken(engine, peer, false);
    break;
  case FACTOR_TAKEN:
    if (message->number <= peer->pieces_sent && message->number > peer->pieces_taken)
      peer->pieces_taken = message->number;
    break;
  case FACTOR_ATTACHED:
    hear_attached(engine, peer, message->flags);
    break;
  case FACTOR_WANT:
    hear_want(engine, peer, message);
    break;
  case FACTOR_LACK:
    hear_lack(engine, peer, message);
    break;
  case FACTOR_LEAVING:
    peer->is_leaving = true;
    peer->leaving_clock = message->number;
    pwi_factor_say_have(engine, peer, false);
    break;
  default:
    break;
  }
}
