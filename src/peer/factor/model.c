/* How a member that joins takes over the matrix of another one, the donor. The donor sends it from where it is and applies
 * nothing meanwhile. The commits that the matrix does not contain come from the log of the donor, and from their origins. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/factor/inside.h"

/* --- the member that joins ------------------------------------------------------------------------------ */

static struct factor_peer *donor_of(const struct pwi_factor *engine) {
  const struct factor_origin *origin = engine->donor ? pwi_factor_origin(engine, engine->donor) : NULL;
  return origin ? pwi_factor_peer_of(engine, origin) : NULL;
}

/* A donor that is not in the epoch yet says so when it is: STATUS. */
void pwi_factor_ask_model(struct pwi_factor *engine) {
  const struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch};
  struct factor_peer *donor = donor_of(engine);
  if (!donor || !donor->is_linked || engine->need == FACTOR_COMPLETE) return;
  if (pwi_factor_compare(donor->in_epoch, engine->epoch) == 0) pwi_factor_say(engine, donor, FACTOR_ASK, &message);
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* What the matrix contains. Of an origin that the donor does not hear, this member hears what follows the clock of the
 * epoch, or the last commit in the matrix: the donor may have heard the origin in an earlier epoch, and applied commits
 * that arrived after the origin had told its clock. */
static void hear_head(struct pwi_factor *engine, const struct factor_message *message) {
  if (message->bytes_size != (size_t)engine->count * FACTOR_HAS_SIZE || message->size != engine->bytes) return;
  for (uint32_t i = 0; i < engine->count; i++) {
    struct factor_origin *origin = &engine->origins[i];
    uint64_t received = pwi_get_u64(message->bytes + (size_t)i * FACTOR_HAS_SIZE);
    uint64_t applied = pwi_get_u64(message->bytes + (size_t)i * FACTOR_HAS_SIZE + 8);
    if (i == engine->self) continue;
    origin->applied = received == FACTOR_NONE ? greater(origin->clock, applied) : applied;
    origin->received = received < applied ? received : origin->applied;
    pwi_factor_count_received(origin);
    if (!pwi_factor_is_live(origin)) origin->is_heard = received != FACTOR_NONE;
  }
  engine->has_head = true;
  engine->model_got = 0;
}

/* Commits up to the clocks of the epoch may be known to all but this member, so that only the donor keeps them. Commits that
 * the matrix contains and that the donor keeps come, too: another member may lack them, and have only this one to ask. */
void pwi_factor_look_at_gaps(struct pwi_factor *engine) {
  if (!engine->is_catching_up || !pwi_factor_is_settled(engine)) return;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    if (i != engine->self && origin->is_heard && origin->received < greater(origin->clock, origin->applied)) return;
  }
  engine->is_catching_up = false;
}

static void hear_values(struct pwi_factor *engine, struct factor_peer *donor, const struct factor_message *message) {
  if (!engine->has_head || message->offset != engine->model_got ||
      message->bytes_size > engine->bytes - engine->model_got)
    return;
  engine->need = FACTOR_PARTIAL;
  memcpy((unsigned char *)engine->config.matrix + engine->model_got, message->bytes, message->bytes_size);
  engine->model_got += message->bytes_size;
  if (engine->model_got < engine->bytes) return;
  engine->need = FACTOR_COMPLETE;
  engine->is_catching_up = true;
  pwi_factor_say_have_all(engine, true);
  pwi_factor_say_want_all(engine, donor);
  pwi_log(engine->config.log, PAWL_LOG_DEBUG, "factor.joined", "factor=%s donor=%" PRIu64 " clock=%" PRIu64,
          engine->config.name, donor->sender.id, engine->clock);
}

/* --- the donor ------------------------------------------------------------------------------------------ */

static void hear_ask(struct pwi_factor *engine, struct factor_peer *peer, const struct factor_message *message) {
  if (pwi_factor_compare(message->epoch, engine->epoch) != 0 || !pwi_factor_is_ready(engine) || !peer->has) return;
  if (peer->part != engine->config.part) return; /* it has other rows */
  peer->must_model = true;
  peer->has_head = false;
  peer->model_at = 0;
}

/* An origin uses a region again when all members have applied the commit in it. So a commit that this member has applied is
 * copied before it is promised to another one. One that was overwritten is known to all. */
static bool keep_applied(struct pwi_factor *engine) {
  for (struct factor_entry *entry = engine->first; entry; entry = entry->next) {
    const struct factor_origin *origin = pwi_factor_origin(engine, entry->life);
    if (entry->owned || entry->slot || entry->number > origin->applied) continue;
    unsigned char *copy = pwi_alloc(entry->size);
    if (!copy) {
      pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory to pass on a commit of %zu bytes", entry->size);
      return false;
    }
    pwi_shared_read(copy, entry->bytes, entry->size);
    if (pwi_factor_hash_of(copy, entry->size) == entry->hash)
      entry->bytes = entry->owned = copy;
    else
      pwi_free(copy);
  }
  return true;
}

/* While the matrix changes it is not sent, and while it is sent it does not change. */
void pwi_factor_serve(struct pwi_factor *engine, struct factor_peer *peer) {
  struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch, .size = engine->bytes};
  if (!peer->must_model || engine->is_outside || !pwi_factor_is_settled(engine) || engine->failed) return;
  if (!peer->has_head && !keep_applied(engine)) return;
  if (!peer->has_head && !pwi_factor_say_has(engine, peer, FACTOR_MODEL, &message)) return;
  peer->has_head = true;
  while (peer->is_linked && peer->model_at < engine->bytes && peer->pieces_sent - peer->pieces_taken < FACTOR_WINDOW) {
    size_t left = engine->bytes - peer->model_at;
    message.offset = peer->model_at;
    message.bytes = (const unsigned char *)engine->config.matrix + peer->model_at;
    message.bytes_size = left < FACTOR_PIECE_SIZE ? left : FACTOR_PIECE_SIZE;
    peer->model_at += message.bytes_size;
    peer->pieces_sent++;
    pwi_factor_say(engine, peer, FACTOR_VALUES, &message);
  }
  if (peer->model_at == engine->bytes) peer->must_model = false;
}

bool pwi_factor_is_serving(const struct pwi_factor *engine) {
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->must_model && peer->is_linked) return true;
  return false;
}

void pwi_factor_hear_model(struct pwi_factor *engine, struct factor_peer *peer, uint32_t kind,
                           const struct factor_message *message) {
  bool is_from_donor = engine->donor != 0 && engine->donor == peer->life && engine->need != FACTOR_COMPLETE &&
                       pwi_factor_compare(message->epoch, engine->epoch) == 0;
  if (kind == FACTOR_ASK) hear_ask(engine, peer, message);
  if (kind == FACTOR_MODEL && is_from_donor) hear_head(engine, message);
  if (kind == FACTOR_VALUES && is_from_donor) hear_values(engine, peer, message);
  if (kind == FACTOR_VALUES) pwi_factor_say_taken(engine, peer, engine->need == FACTOR_COMPLETE);
}
