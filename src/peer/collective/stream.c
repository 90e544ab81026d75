/* Streams of pieces: staging memory and puts on one side, the inbox on the other. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "peer/collective/inside.h"
#include "protocol/planted.h"

#define LANDED 1 /* the notification of every piece: pieces of a link land in order */

static size_t slot_of(uint64_t position) { return (size_t)(position % COLLECTIVE_SLOTS); }

/* --- to a peer ------------------------------------------------------------------------------------------ */

pawl_status pwi_collective_open_staging(struct collective_peer *peer) {
  if (!peer->staging) peer->staging = pwi_alloc(COLLECTIVE_INBOX_SIZE); /* only staged pieces are read */
  return peer->staging ? PAWL_OK : PAWL_NO_MEMORY;
}

bool pwi_collective_has_room(const struct collective_peer *peer) {
  return peer->staged - peer->taken_there < COLLECTIVE_SLOTS && !peer->is_busy[slot_of(peer->staged)];
}

unsigned char *pwi_collective_room(const struct collective_peer *peer) {
  return peer->staging + slot_of(peer->staged) * COLLECTIVE_SLOT_SIZE + COLLECTIVE_HEAD_SIZE;
}

void pwi_collective_stage(struct pwi_collective *engine, struct collective_peer *peer, struct collective_head *head) {
  head->position = peer->staged;
  pwi_collective_head_encode(head, pwi_collective_room(peer) - COLLECTIVE_HEAD_SIZE);
  peer->staged++;
  pwi_collective_flush(engine, peer);
}

void pwi_collective_flush(struct pwi_collective *engine, struct collective_peer *peer) {
  while (peer->is_linked && peer->has_remote && peer->put < peer->staged) {
    size_t slot = slot_of(peer->put), offset = slot * COLLECTIVE_SLOT_SIZE;
    struct collective_head head;
    if (peer->is_busy[slot] || pwi_collective_head_decode(peer->staging + offset, &head)) return;
    size_t size = COLLECTIVE_HEAD_SIZE + head.size;
    if (pwi_channel_put(engine->channel, peer->sender, peer->remote, offset, peer->staging + offset, size, LANDED,
                        slot + 1))
      return; /* until `writable`, or over the next link */
    peer->is_busy[slot] = true;
    peer->put++;
    engine->bytes_sent += size;
  }
}

/* The peer takes pieces from this position on, over this link. */
void pwi_collective_hear_inbox(struct pwi_collective *engine, struct collective_peer *peer, uint64_t position) {
  if (position < peer->taken_there || position > peer->staged) {
    pwi_collective_fail(engine, PAWL_CORRUPT, peer->sender.id, 0, "node %" PRIu64 " wants a piece that was never sent",
                        peer->sender.id);
    return;
  }
  peer->taken_there = peer->put = position;
  if (pwi_is_planted(PWI_PLANTED_COLLECTIVE_NO_RESEND)) peer->put = peer->staged;
  peer->has_inbox_there = true;
}

void pwi_collective_hear_taken(struct collective_peer *peer, uint64_t position) {
  if (position >= peer->taken_there && position <= peer->put) peer->taken_there = position;
}

/* --- from a peer ---------------------------------------------------------------------------------------- */

/* A region is shared with one link only. Without room in the queue, `writable` tries again. */
void pwi_collective_open_inbox(struct pwi_collective *engine, struct collective_peer *peer) {
  struct collective_message message = {.position = peer->taken};
  if (!peer->is_in || !peer->is_linked || peer->is_shared || peer->is_gone || engine->is_closing) return;
  if (!peer->inbox && pwi_net_region_open(engine->config.net, COLLECTIVE_INBOX_SIZE, &peer->inbox)) {
    pwi_collective_fail(engine, PAWL_NO_MEMORY, engine->own_id, 0, "no memory for pieces of node %" PRIu64,
                        peer->sender.id);
    return;
  }
  peer->landed = peer->told = peer->taken;
  pwi_collective_say(engine, peer, COLLECTIVE_INBOX, &message);
  if (!pwi_channel_share(engine->channel, peer->sender, 1, peer->inbox, PWI_ACCESS_WRITE)) peer->is_shared = true;
}

void pwi_collective_close_inbox(struct pwi_collective *engine, struct collective_peer *peer) {
  pwi_net_region_close(engine->config.net, peer->inbox);
  peer->inbox = NULL;
  peer->is_shared = false;
  peer->landed = peer->taken;
}

static const unsigned char *inbox_at(const struct collective_peer *peer, uint64_t position) {
  return (const unsigned char *)pwi_net_region_memory(peer->inbox) + slot_of(position) * COLLECTIVE_SLOT_SIZE;
}

/* The peer closes, after a fence. Its last notifications may be lost with the channel. */
void pwi_collective_inspect(struct collective_peer *peer) {
  struct collective_head head;
  while (peer->inbox && peer->landed - peer->taken < COLLECTIVE_SLOTS &&
         !pwi_collective_head_decode(inbox_at(peer, peer->landed), &head) && head.position == peer->landed &&
         head.sequence > 0)
    peer->landed++;
}

bool pwi_collective_peek(struct pwi_collective *engine, struct collective_peer *peer, struct collective_head *head_out,
                         const unsigned char **values_out) {
  unsigned char bytes[COLLECTIVE_HEAD_SIZE];
  if (!peer->inbox || peer->landed == peer->taken) return false;
  const unsigned char *slot = inbox_at(peer, peer->taken);
  memcpy(bytes, slot, sizeof bytes);
  if (pwi_collective_head_decode(bytes, head_out) || head_out->position != peer->taken || head_out->sequence == 0) {
    pwi_collective_fail(engine, PAWL_CORRUPT, peer->sender.id, engine->own_id,
                        "node %" PRIu64 " announced a piece that is not there", peer->sender.id);
    return false;
  }
  *values_out = slot + COLLECTIVE_HEAD_SIZE;
  return true;
}

void pwi_collective_take(struct pwi_collective *engine, struct collective_peer *peer) {
  peer->taken++;
  if (peer->taken - peer->told < COLLECTIVE_SLOTS / 2 || !peer->is_linked) return;
  struct collective_message message = {.position = peer->taken};
  peer->told = peer->taken;
  pwi_collective_say(engine, peer, COLLECTIVE_TAKEN, &message);
}

/* --- links ---------------------------------------------------------------------------------------------- */

/* All operations have ended. What the peer has not taken is put again over the next link. Of a peer that has closed,
 * the last pieces stay readable. */
void pwi_collective_stream_lost(struct pwi_collective *engine, struct collective_peer *peer) {
  memset(peer->is_busy, 0, sizeof peer->is_busy);
  peer->has_inbox_there = peer->has_remote = false;
  peer->put = peer->taken_there;
  if (!peer->is_gone) pwi_collective_close_inbox(engine, peer);
}

void pwi_collective_stream_reset(struct pwi_collective *engine, struct collective_peer *peer) {
  pwi_collective_close_inbox(engine, peer);
  peer->staged = peer->put = peer->taken_there = 0;
  peer->landed = peer->taken = peer->told = 0;
}
