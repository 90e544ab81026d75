/* The producer's side: shows its region, tells consumers that have asked, and puts items into the copies of
 * far ones.
 *
 * A set marks the item for each far consumer; the pump puts marked items while the queue has room. A later
 * set of a marked item replaces the earlier one. Neighbouring items go in one put. Every put is a copy that
 * was made under the writer's lock, so only landing can tear it.
 *
 * ASKS. A consumer that waits says for which clock. The producer remembers that, sets the item's bit for the
 * threads that set, and looks at the clock again: so either the setting thread sees the bit, or the engine
 * sees the clock. Threads of this member that wait for an item which another thread will set count as
 * consumers that have asked. */
#include "base/memory.h"
#include "peer/item/inside.h"

static bool is_far(const struct pwi_items *engine, const struct item_peer *peer) {
  return pwi_item_is_push(engine) && peer->attached == 2;
}

static uint64_t own_clock(const struct pwi_items *engine, uint32_t rank) {
  return pwi_item_cell_clock(pwi_item_own_cell(engine, rank), engine->config.size);
}

/* --- asks ----------------------------------------------------------------------------------------------- */

static void set_bit(struct pwi_items *engine, uint32_t rank, bool is_asked) {
  uint64_t bit = UINT64_C(1) << rank % 64;
  if (is_asked)
    atomic_fetch_or(&engine->is_asked[rank / 64], bit);
  else
    atomic_fetch_and(&engine->is_asked[rank / 64], ~bit);
}

static void end_ask(struct item_peer *peer, uint32_t rank) {
  if (peer->asks[rank]) peer->ask_count--;
  peer->asks[rank] = 0;
}

/* The item has the clock. A far consumer is notified after all earlier puts have landed. */
static void answer(struct pwi_items *engine, struct item_peer *peer, uint32_t rank) {
  if (!is_far(engine, peer)) {
    pwi_item_say_number(engine, peer, ITEM_WAKE, rank);
    end_ask(peer, rank);
    return;
  }
  bool is_sent = !engine->config.is_conservative && !pwi_item_is_marked(&peer->dirty, rank) && peer->has_copy &&
                 pwi_channel_put(engine->channel, peer->sender, peer->copy, 0, NULL, 0, rank + 1, 0) == PAWL_OK;
  if (is_sent)
    end_ask(peer, rank);
  else if (!pwi_item_mark(&peer->dirty, peer->out.keys, rank)) /* the put notifies */
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory for items to send");
}

/* Returns true if a thread of this member waits for a later clock. */
static bool wake_own(struct pwi_items *engine, uint32_t key, uint64_t clock) {
  bool is_any = false;
  for (struct pwi_items_wait *wait = engine->waits.next, *next; wait != &engine->waits; wait = next) {
    next = wait->next;
    if (wait->key != key) continue;
    if (wait->need <= clock)
      wait->wake(wait->context);
    else
      is_any = true;
  }
  return is_any;
}

/* Answers all consumers of an item that its clock satisfies. */
void pwi_item_serve(struct pwi_items *engine, uint32_t rank) {
  uint32_t key = pwi_item_runs_key(&engine->produces, rank);
  uint64_t clock;
  bool is_any;
  do {
    set_bit(engine, rank, false);
    clock = own_clock(engine, rank);
    is_any = wake_own(engine, key, clock);
    for (struct item_peer *peer = engine->peers; peer; peer = peer->next) {
      uint32_t out = peer->asks ? pwi_item_runs_rank(&peer->out, key) : ITEM_NO_RANK;
      if (out == ITEM_NO_RANK || peer->asks[out] == 0) continue;
      if (peer->asks[out] <= clock)
        answer(engine, peer, out);
      else
        is_any = true;
    }
    if (is_any) set_bit(engine, rank, true);
  } while (is_any && own_clock(engine, rank) != clock);
}

void pwi_item_hear_ask(struct pwi_items *engine, struct item_peer *peer, const void *bytes, size_t size) {
  struct item_ask ask;
  uint32_t first, count;
  if (pwi_item_ask_decode(bytes, size, &ask) || peer->out.keys == 0) return;
  if (!peer->asks) peer->asks = pwi_alloc_zero(peer->out.keys, sizeof *peer->asks);
  if (!peer->asks) {
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory for what consumers ask");
    return;
  }
  for (uint32_t i = 0; i < ask.pairs; i++) {
    pwi_item_ask_at(&ask, i, &first, &count);
    if (first >= peer->out.keys || count > peer->out.keys - first) continue;
    for (uint32_t rank = first; rank < first + count; rank++) {
      peer->ask_count += peer->asks[rank] == 0;
      peer->asks[rank] = ask.need;
      pwi_item_serve(engine, pwi_item_runs_rank(&engine->produces, pwi_item_runs_key(&peer->out, rank)));
    }
  }
}

/* --- puts ----------------------------------------------------------------------------------------------- */

static void mark(struct pwi_items *engine, struct item_peer *peer, uint32_t rank) {
  if (!pwi_item_mark(&peer->dirty, peer->out.keys, rank))
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory for items to send");
}

static void mark_if_set(struct pwi_items *engine, struct item_peer *peer, uint32_t rank) {
  uint32_t own = pwi_item_runs_rank(&engine->produces, pwi_item_runs_key(&peer->out, rank));
  if (own_clock(engine, own) > 0) mark(engine, peer, rank);
}

void pwi_item_push_all(struct pwi_items *engine, struct item_peer *peer) {
  if (!pwi_item_is_push(engine) || engine->config.is_conservative) return;
  for (uint32_t i = 0; i < peer->out.keys; i++) mark_if_set(engine, peer, i);
}

void pwi_items_tell(struct pwi_items *engine, uint64_t key, size_t count) {
  atomic_store(&engine->is_blocked, false);
  for (uint64_t at = key; at < key + count; at++) {
    uint32_t rank = pwi_item_runs_rank(&engine->produces, at);
    if (rank == ITEM_NO_RANK) continue;
    for (struct item_peer *peer = engine->peers; peer && !engine->config.is_conservative; peer = peer->next) {
      uint32_t out = is_far(engine, peer) && !peer->is_bad ? pwi_item_runs_rank(&peer->out, at) : ITEM_NO_RANK;
      if (out != ITEM_NO_RANK) mark(engine, peer, out);
    }
    if (atomic_load(&engine->is_asked[rank / 64]) >> rank % 64 & 1) pwi_item_serve(engine, rank);
  }
  for (struct item_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && !peer->is_bad) pwi_item_pump(engine, peer);
}

/* Copies a cell while its writer does not write. Returns 0 if it does: a thread that unlocks after
 * `is_blocked` was set will tell again. */
static uint64_t copy_own(struct pwi_items *engine, uint32_t rank, unsigned char *to) {
  _Atomic bool *stripe = &engine->stripes[rank % ITEM_STRIPES];
  if (atomic_exchange(stripe, true)) {
    atomic_store(&engine->is_blocked, true);
    if (atomic_exchange(stripe, true)) return 0;
  }
  uint64_t clock = pwi_item_cell_copy(to, pwi_item_own_cell(engine, rank), engine->config.size);
  atomic_store_explicit(stripe, false, memory_order_release);
  return clock;
}

/* Copies marked items of neighbouring ranks. One that was asked for is the last, because a put notifies of one. */
static uint32_t gather(struct pwi_items *engine, struct item_peer *peer, uint32_t first, uint32_t most,
                       unsigned char *to, uint32_t *notify_out) {
  uint32_t count = 0;
  *notify_out = 0;
  while (count < most && first + count < peer->out.keys && pwi_item_is_marked(&peer->dirty, first + count)) {
    uint32_t out = first + count, rank = pwi_item_runs_rank(&engine->produces, pwi_item_runs_key(&peer->out, out));
    uint64_t clock = copy_own(engine, rank, to + count * engine->stride);
    if (clock == 0) break;
    count++;
    if (peer->asks && peer->asks[out] && peer->asks[out] <= clock) {
      *notify_out = out + 1;
      break;
    }
  }
  return count;
}

/* Returns false if nothing more can be put now. */
static bool put_some(struct pwi_items *engine, struct item_peer *peer) {
  _Alignas(16) unsigned char small[PWI_NET_COPY_MAX];
  uint32_t first = pwi_item_next_mark(&peer->dirty), notify, most = (uint32_t)(sizeof small / engine->stride);
  if (first == ITEM_NO_RANK) return false;
  bool is_many = most == 0 || (first + most < peer->out.keys && pwi_item_is_marked(&peer->dirty, first + most));
  struct item_buffer *buffer = is_many ? pwi_item_buffer_take(engine, peer) : NULL;
  if (is_many && !buffer && most == 0) {
    pwi_item_try_later(engine, peer, peer->moving > 0 ? PAWL_QUEUE_FULL : PAWL_NO_MEMORY);
    return false;
  }
  unsigned char *bytes = buffer ? buffer->bytes : small;
  uint32_t count = gather(engine, peer, first, buffer ? engine->buffer_cells : most, bytes, &notify);
  pawl_status status =
      count == 0 ? PAWL_QUEUE_FULL
                 : pwi_channel_put(engine->channel, peer->sender, peer->copy, (uint64_t)first * engine->stride, bytes,
                                   count * engine->stride, notify, buffer ? buffer->cookie : 0);
  if (status) {
    if (buffer) pwi_item_buffer_give(engine, pwi_item_buffer_done(engine, buffer->cookie));
    if (count == 0) peer->dirty.cursor = first + 1 < peer->out.keys ? first + 1 : 0; /* one that is being written */
    pwi_item_try_later(engine, peer, status);
    return false;
  }
  for (uint32_t i = first; i < first + count; i++) pwi_item_unmark(&peer->dirty, i);
  if (notify) end_ask(peer, notify - 1);
  engine->puts += count;
  peer->must_fence = true;
  return true;
}

void pwi_item_pump(struct pwi_items *engine, struct item_peer *peer) {
  if (peer->out.keys > 0 && peer->is_told && !peer->is_shown && engine->shown) {
    pawl_status status =
        pwi_channel_share(engine->channel, peer->sender, ITEM_TAG_SHOWN, engine->shown, PWI_ACCESS_READ);
    peer->is_shown = status == PAWL_OK;
    pwi_item_try_later(engine, peer, status);
  }
  while (peer->has_copy && put_some(engine, peer)) {
  }
}

/* Sends the last versions that a consumer has not asked for. */
static bool is_taken(struct pwi_items *engine, struct item_peer *peer) {
  if (!peer->is_told_closing && pwi_item_is_push(engine)) {
    for (uint32_t i = 0; i < peer->out.keys && engine->config.is_conservative; i++) mark_if_set(engine, peer, i);
    peer->has_taken = true;
    pwi_item_pump(engine, peer);
  } else if (!peer->is_told_closing) {
    pwi_item_say_number(engine, peer, ITEM_CLOSING, 0);
  }
  peer->is_told_closing = true;
  return peer->has_taken;
}

/* Everything that was set has landed, or the peer does not need it. */
bool pwi_item_is_delivered(struct pwi_items *engine, struct item_peer *peer) {
  if (!peer->is_linked) return !peer->is_member || peer->is_gone || peer->out.keys == 0;
  if (!peer->is_seen) return false;
  if (peer->is_bad || peer->out.keys == 0 || engine->failed) return true;
  if (peer->attached == 0 || peer->moving > 0) return false;
  if (peer->attached == 1) return true;
  if (pwi_item_is_push(engine) && !peer->has_copy) return false;
  if (!is_taken(engine, peer) || peer->dirty.count > 0 || peer->moving > 0) return false;
  if (peer->must_fence && !peer->fence) {
    uint64_t cookie = ++engine->last_cookie;
    pawl_status status = pwi_channel_fence(engine->channel, peer->sender, cookie);
    pwi_item_try_later(engine, peer, status);
    if (status) return false;
    peer->fence = cookie;
    peer->must_fence = false;
  }
  return !peer->must_fence && !peer->fence;
}
