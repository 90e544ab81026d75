/* The consumer's side: waits, asks, and what is fetched from far producers (Lapser, 3.2.2.B).
 *
 * With PULL a wait first fetches the item: all waits of one item share that. If the producer does not have
 * the clock yet, the wait asks, and fetches again when the producer says WAKE. With PUSH, and from a near
 * producer, a wait only asks. */
#include "base/memory.h"
#include "peer/item/inside.h"

static bool is_pulled(const struct pwi_items *engine, const struct item_peer *peer) {
  return peer->how == ITEM_FAR && !pwi_item_is_push(engine);
}

/* --- asking --------------------------------------------------------------------------------------------- */

/* An ASK that has no answer yet, for the same clock or an earlier one, will be answered for this wait, too. */
static pawl_status note_ask(struct item_peer *peer, uint32_t rank, uint64_t need, bool *is_new_out) {
  if (!peer->asked) peer->asked = pwi_alloc_zero(peer->in.keys, sizeof *peer->asked);
  if (!peer->asked) return PAWL_NO_MEMORY;
  *is_new_out = peer->asked[rank] == 0 || peer->asked[rank] > need;
  if (*is_new_out) peer->asked[rank] = need;
  return PAWL_OK;
}

static pawl_status send_ask(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t need) {
  unsigned char bytes[12 + ITEM_PAIR_SIZE];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  bool is_new;
  pawl_status status = note_ask(peer, rank, need, &is_new);
  if (status || !is_new) return status;
  pwi_item_ask_begin(&writer, need, 1);
  pwi_item_ask_pair(&writer, rank, 1);
  (void)pwi_channel_send(engine->channel, peer->sender, ITEM_ASK, writer.data, writer.size);
  return PAWL_OK;
}

/* Ranks that follow one another and need the same clock go in one ASK. */
struct asking_run {
  struct item_peer *peer;
  uint32_t first, count;
  uint64_t need;
};

static void flush(struct pwi_items *engine, struct asking_run *run) {
  unsigned char bytes[12 + ITEM_PAIR_SIZE];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  if (run->count == 0) return;
  pwi_item_ask_begin(&writer, run->need, 1);
  pwi_item_ask_pair(&writer, run->first, run->count);
  (void)pwi_channel_send(engine->channel, run->peer->sender, ITEM_ASK, writer.data, writer.size);
  run->count = 0;
}

static pawl_status ask_in_run(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t need,
                              struct asking_run *run) {
  bool is_new;
  pawl_status status = note_ask(peer, rank, need, &is_new);
  if (status || !is_new) return status;
  if (run->count == 0 || run->peer != peer || run->need != need || rank != run->first + run->count) {
    flush(engine, run);
    *run = (struct asking_run){peer, rank, 0, need};
  }
  run->count++;
  return PAWL_OK;
}

static pawl_status want(struct item_peer *peer, uint32_t rank) {
  if (pwi_item_is_marked(&peer->fetching, rank)) return PAWL_OK;
  return pwi_item_mark(&peer->wanted, peer->in.keys, rank) ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status ask_peer(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t need) {
  if (!is_pulled(engine, peer)) return send_ask(engine, peer, rank, need);
  if (peer->asked && peer->asked[rank] && peer->asked[rank] <= need) return PAWL_OK;
  pawl_status status = want(peer, rank);
  if (!status) pwi_item_fetch(engine, peer);
  return status;
}

/* All producers of the item that can be asked now; a peer that is attached later is asked then. This member
 * may be one of them: another thread will set the item. The last version of a producer may have come, and its loss may
 * have woken all waits, after the caller looked and before this wait began: then nobody else would wake it. */
pawl_status pwi_items_ask(struct pwi_items *engine, const struct pwi_items_wait *wait) {
  pawl_status status = PAWL_OK;
  uint32_t own = pwi_item_runs_rank(&engine->produces, wait->key);
  if (own != ITEM_NO_RANK) pwi_item_serve(engine, own);
  for (struct item_peer *peer = engine->peers; peer && !status; peer = peer->next) {
    uint32_t rank = pwi_item_is_attached(peer) ? pwi_item_runs_rank(&peer->in, wait->key) : ITEM_NO_RANK;
    if (rank != ITEM_NO_RANK) status = ask_peer(engine, peer, rank, wait->need);
  }
  if (pwi_item_is_whole(engine, wait->key, wait->need)) wait->wake(wait->context);
  pwi_item_sweep(engine);
  return status;
}

void pwi_items_wait_begin(struct pwi_items *engine, struct pwi_items_wait *wait) {
  wait->next = &engine->waits;
  wait->before = engine->waits.before;
  engine->waits.before->next = wait;
  engine->waits.before = wait;
}

void pwi_items_wait_end(struct pwi_items *engine, struct pwi_items_wait *wait) {
  (void)engine;
  wait->before->next = wait->next;
  wait->next->before = wait->before;
}

void pwi_item_ask_again(struct pwi_items *engine, struct item_peer *peer) {
  for (struct pwi_items_wait *wait = engine->waits.next; wait != &engine->waits; wait = wait->next) {
    uint32_t rank = pwi_item_runs_rank(&peer->in, wait->key);
    if (rank != ITEM_NO_RANK && ask_peer(engine, peer, rank, wait->need))
      pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory to ask for key %llu", (unsigned long long)wait->key);
  }
}

void pwi_item_hear_wake(struct pwi_items *engine, struct item_peer *peer, uint32_t rank) {
  if (rank >= peer->in.keys || !peer->asked || peer->asked[rank] == 0) return;
  peer->asked[rank] = 0;
  if (!is_pulled(engine, peer))
    pwi_item_wake_key(engine, pwi_item_runs_key(&peer->in, rank));
  else if (want(peer, rank))
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory to fetch items");
}

/* --- fetching ------------------------------------------------------------------------------------------- */

/* A get of its own costs about as much as moving these bytes. */
#define GAP_BYTES 4096

/* How many ranks from `first` on one get fetches: up to the last wanted one that is near enough to the one before, at the
 * producer, where the get begins at item `shown`. Items between them come along. A rank that another get fetches ends it,
 * so that every rank belongs to one get. */
static uint32_t follow(const struct pwi_items *engine, const struct item_peer *peer, uint32_t first, uint32_t shown,
                       uint32_t *cells_out) {
  uint32_t gap = (uint32_t)(GAP_BYTES / engine->stride), count = 1;
  *cells_out = 1;
  for (uint32_t rank = first + 1; rank < peer->in.keys && !pwi_item_is_marked(&peer->fetching, rank); rank++) {
    uint32_t cells = pwi_item_runs_rank(&peer->produces, pwi_item_runs_key(&peer->in, rank)) - shown + 1;
    if (cells > engine->buffer_cells || cells - *cells_out > gap + 1) break;
    if (!pwi_item_is_marked(&peer->wanted, rank)) continue;
    count = rank - first + 1;
    *cells_out = cells;
  }
  return count;
}

static bool fetch_some(struct pwi_items *engine, struct item_peer *peer) {
  uint32_t first = pwi_item_next_mark(&peer->wanted);
  if (first == ITEM_NO_RANK) return false;
  struct item_buffer *buffer = pwi_item_buffer_take(engine, peer);
  if (!buffer) {
    pwi_item_try_later(engine, peer, peer->moving > 0 ? PAWL_QUEUE_FULL : PAWL_NO_MEMORY);
    return false;
  }
  uint32_t shown = pwi_item_runs_rank(&peer->produces, pwi_item_runs_key(&peer->in, first));
  buffer->is_get = true;
  buffer->first = first;
  uint32_t cells;
  buffer->count = follow(engine, peer, first, shown, &cells);
  pawl_status status = pwi_channel_get(engine->channel, peer->sender, peer->shown, (uint64_t)shown * engine->stride,
                                       buffer->bytes, cells * engine->stride, buffer->cookie);
  for (uint32_t i = first; !status && i < first + buffer->count; i++) {
    if (!pwi_item_mark(&peer->fetching, peer->in.keys, i)) pwi_item_try_later(engine, peer, PAWL_NO_MEMORY);
    pwi_item_unmark(&peer->wanted, i);
  }
  if (status) pwi_item_buffer_give(engine, pwi_item_buffer_done(engine, buffer->cookie));
  pwi_item_try_later(engine, peer, status);
  return status == PAWL_OK;
}

void pwi_item_fetch(struct pwi_items *engine, struct item_peer *peer) {
  if (!is_pulled(engine, peer) || !pwi_item_is_attached(peer)) return;
  while (fetch_some(engine, peer)) {
  }
  if (!peer->is_closing || peer->wanted.count > 0 || peer->fetching.count > 0) return;
  peer->is_closing = false;
  pwi_item_say_number(engine, peer, ITEM_TAKEN, 0);
}

void pwi_item_take_all(struct pwi_items *engine, struct item_peer *peer) {
  if (!is_pulled(engine, peer)) return;
  peer->is_closing = true;
  for (uint32_t i = 0; i < peer->in.keys; i++) (void)!want(peer, i); /* without memory the producer waits for nothing */
}

/* Waits that the version satisfies try again; for the others this member asks. */
static void tell_waits(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t clock) {
  uint64_t key = pwi_item_runs_key(&peer->in, rank), need = 0;
  for (struct pwi_items_wait *wait = engine->waits.next, *next; wait != &engine->waits; wait = next) {
    next = wait->next;
    if (wait->key != key) continue;
    if (wait->need <= clock)
      wait->wake(wait->context);
    else if (need == 0 || wait->need < need)
      need = wait->need;
  }
  if (need && send_ask(engine, peer, rank, need)) pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory to ask");
}

/* Asks for an item of a prefetch that its producer does not have yet. */
static void seek(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t have,
                 struct asking_run *run) {
  uint64_t need = peer->sought ? peer->sought[rank] : 0;
  if (need == 0) return;
  if (have >= need)
    peer->sought[rank] = 0;
  else if (ask_in_run(engine, peer, rank, need, run))
    pwi_item_fail(engine, PAWL_NO_MEMORY, "no memory to ask");
}

static void take(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, const unsigned char *from,
                 struct asking_run *run) {
  unsigned char *cell = peer->memory.block + (size_t)rank * engine->stride;
  uint64_t shown = pwi_item_cell_clock(from, engine->config.size),
           have = pwi_item_cell_clock(cell, engine->config.size);
  if (shown > 0 && !pwi_item_cell_check(from, engine->config.size, shown)) { /* torn */
    (void)!want(peer, rank);
    return;
  }
  if (shown > have || (shown == have && shown > 0)) have = pwi_item_cell_copy(cell, from, engine->config.size);
  engine->fetches++;
  seek(engine, peer, rank, have, run);
  tell_waits(engine, peer, rank, have);
}

void pwi_item_fetched(struct pwi_items *engine, struct item_peer *peer, struct item_buffer *buffer,
                      pawl_status status) {
  struct asking_run run = {0};
  if (buffer->first >= peer->in.keys || buffer->count > peer->in.keys - buffer->first || !is_pulled(engine, peer))
    return;
  uint32_t shown = pwi_item_runs_rank(&peer->produces, pwi_item_runs_key(&peer->in, buffer->first));
  for (uint32_t rank = buffer->first; rank < buffer->first + buffer->count; rank++) {
    uint32_t at = pwi_item_runs_rank(&peer->produces, pwi_item_runs_key(&peer->in, rank)) - shown;
    pwi_item_unmark(&peer->fetching, rank);
    if (status || at >= engine->buffer_cells) continue; /* the link, or the context, ends */
    take(engine, peer, rank, buffer->bytes + at * engine->stride, &run);
  }
  flush(engine, &run);
}

/* --- prefetching ---------------------------------------------------------------------------------------- */

/* What is fetched may be too old: then the need is known. */
static pawl_status request(struct pwi_items *engine, struct item_peer *peer, uint32_t rank, uint64_t need,
                           struct asking_run *run) {
  if (!is_pulled(engine, peer)) return ask_in_run(engine, peer, rank, need, run);
  if (!peer->sought) peer->sought = pwi_alloc_zero(peer->in.keys, sizeof *peer->sought);
  if (!peer->sought) return PAWL_NO_MEMORY;
  peer->sought[rank] = need;
  if (peer->asked && peer->asked[rank] && peer->asked[rank] <= need) return PAWL_OK;
  return want(peer, rank);
}

static pawl_status request_range(struct pwi_items *engine, struct item_peer *peer, const struct pawl_items_keys *keys,
                                 uint64_t clock, uint64_t slack, struct asking_run *run) {
  pawl_status status = PAWL_OK;
  for (uint64_t i = 0; i < keys->count && !status; i++) {
    uint64_t key = keys->start + i * (keys->stride ? keys->stride : 1),
             need = pwi_items_need(engine, key, clock, slack);
    uint32_t rank = pwi_item_runs_rank(&peer->in, key);
    if (rank == ITEM_NO_RANK) continue;
    if (pwi_item_cell_clock(pwi_item_place(engine, peer, rank), engine->config.size) < need)
      status = request(engine, peer, rank, need, run);
  }
  return status;
}

/* Nothing is fetched before all is marked, so that gets are large. */
pawl_status pwi_items_prefetch(struct pwi_items *engine, const struct pawl_items_keys *keys, size_t keys_count,
                               uint64_t clock, uint64_t slack) {
  pawl_status status = PAWL_OK;
  for (struct item_peer *peer = engine->peers; peer && !status; peer = peer->next) {
    struct asking_run run = {0};
    if (!pwi_item_is_attached(peer) || peer->how != ITEM_FAR) continue;
    if (pwi_item_is_push(engine) && !engine->config.is_conservative) continue;
    for (size_t i = 0; i < keys_count && !status; i++)
      status = request_range(engine, peer, &keys[i], clock, slack, &run);
    flush(engine, &run);
    pwi_item_fetch(engine, peer);
  }
  return status;
}
