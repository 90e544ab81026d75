/* Filling a new member of a chain, and handing an arc over (docs/replication.md).
 *
 * FILLING. The last full member copies its data to the following one chunk by chunk, with a few chunks under
 * way, while requests go on. It also sends every change, in the same sequence, and each chunk is exact for
 * the version in its message. The later of chunk and change is always newer, so nothing is lost. When the
 * last chunk is stored, the confirmations of the new member begin to count: from then on no change is
 * confirmed that it lacks. Once it has everything that was confirmed before, the manager is told.
 *
 * A vector that is loaded from a checkpoint meanwhile does not end the fill: chunks and changes name their
 * incarnation, and a target that has the newer one takes no rows of the older one.
 *
 * PAUSES. Copying takes memory bandwidth and processors from requests, on both servers. So the source pauses
 * after a burst of chunks if requests have moved more bytes than the burst meanwhile: the more they moved,
 * the longer, up to five times the duration of the burst. So requests come first under high load, and filling
 * under low load.
 *
 * HANDING OVER. The head accepts no more requests, and waits until all full members are equal. It serves
 * again with the next view that makes it the head, if the manager cancels the order, or if the manager is
 * lost before it was told.
 *
 * Only views decide which chain keeps an arc.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "server/inside.h"

#define CHUNK ((size_t)256 << 10) /* requests wait behind a chunk, so it should take no longer than they do */
#define WINDOW 16                 /* chunks under way */
#define BURST 16                  /* chunks between pauses */
#define BURST_BYTES (BURST * CHUNK)
#define SILENCES 3 /* checks, one a second, without a stored chunk */
#define PAUSE_MAX INT64_C(20000000)

/* --- orders --------------------------------------------------------------------------------------------- */

static void report(struct pwi_server *server, const struct moving *moving) {
  struct pwi_move reply = moving->order;
  reply.address[0] = 0;
  pwi_writer_reset(&server->writer);
  pwi_move_encode(&reply, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_MOVED);
}

/* The chain of an order; NULL if it is no longer as the order says. */
static struct pwi_chain *chain_of(const struct pwi_server *server, const struct moving *moving) {
  struct pwi_chain *chain = pwi_chains_find(&server->chains, moving->order.positions.begin);
  if (!chain || chain->positions.begin != moving->order.positions.begin ||
      chain->positions.end != moving->order.positions.end)
    return NULL;
  if (moving->order.step == PWI_MOVE_HANDOVER) return chain->is_head ? chain : NULL;
  return chain->following_fills && chain->following == moving->order.target ? chain : NULL;
}

static void end_move(struct pwi_server *server, struct moving *moving, pawl_status status) {
  struct pwi_chain *chain = chain_of(server, moving);
  if (moving->is_over) return;
  moving->is_over = true;
  moving->order.status = status;
  if (!status) server->moves_out++;
  if (chain && status) { /* entries for the target need not be kept */
    chain->is_open = chain->is_synced = chain->is_handing = false;
    pwi_chain_settle(&server->chains, chain);
  }
  pwi_log(server->config.log, status ? PAWL_LOG_WARN : PAWL_LOG_INFO, "move.over", "node=%llu move=%llu status=%s",
          (unsigned long long)server->node, (unsigned long long)moving->order.move, pawl_status_name(status));
  if (server->joined) report(server, moving);
}

static struct moving *find_moving(struct pwi_server *server, uint64_t move) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (moving->order.move == move) return moving;
  return NULL;
}

static struct moving *fill_of(const struct pwi_server *server, const struct pwi_chain *chain) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (!moving->is_over && moving->order.step != PWI_MOVE_HANDOVER && chain_of(server, moving) == chain) return moving;
  return NULL;
}

static void begin_move(struct pwi_server *server, struct moving *moving) {
  if (moving->is_over || moving->has_begun || server->numbers.view < moving->order.epoch) return;
  struct pwi_chain *chain = chain_of(server, moving);
  moving->has_begun = true;
  if (!chain) {
    end_move(server, moving, PAWL_INVALID);
  } else if (moving->order.step == PWI_MOVE_HANDOVER) {
    chain->is_handing = true;
    pwi_shard_dismiss(server->shard, chain->positions);
    pwi_server_moves_look(server, chain);
  } else if (pwi_server_reach(server, moving->order.target)) {
    pwi_server_fill_go(server, moving->order.target);
  } else if (!pwi_server_seeks(server, moving->order.target)) { /* no link_down would end the order */
    end_move(server, moving, PAWL_LINK_CLOSED);
  }
}

/* Ends a handover: the head serves again. */
static void take_back(struct pwi_server *server, const struct moving *moving) {
  struct pwi_chain *chain = moving->order.step == PWI_MOVE_HANDOVER ? chain_of(server, moving) : NULL;
  if (chain) chain->is_handing = false;
}

void pwi_server_move_ordered(struct pwi_server *server, const struct pwi_move *order) {
  struct moving *moving = find_moving(server, order->move);
  if (order->cancel) {
    if (!moving) return;
    end_move(server, moving, PAWL_CANCELLED);
    take_back(server, moving);
    return;
  }
  if (moving) { /* a repeated order: the manager has not received the result */
    if (moving->is_over) report(server, moving);
    return;
  }
  moving = pwi_alloc_zero(1, sizeof *moving);
  if (!moving) {
    if (server->manager) pwi_net_close(server->config.net, server->manager->link, PAWL_NO_MEMORY);
    return;
  }
  moving->order = *order;
  moving->next = server->movings;
  server->movings = moving;
  begin_move(server, moving);
}

/* A handover is valid until any next view, a fill as long as its chain is unchanged. */
static bool is_overtaken(const struct pwi_server *server, const struct moving *moving) {
  if (!moving->has_begun) return false;
  if (moving->order.step == PWI_MOVE_HANDOVER && server->numbers.view > moving->order.epoch) return true;
  return !chain_of(server, moving);
}

/* A view has come: forgets outdated orders and their results. */
void pwi_server_moves_seen(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next) begin_move(server, moving);
  for (struct moving **at = &server->movings; *at;) {
    struct moving *moving = *at;
    if (!is_overtaken(server, moving)) {
      at = &moving->next;
      continue;
    }
    end_move(server, moving, PAWL_CANCELLED);
    take_back(server, moving);
    *at = moving->next;
    pwi_free(moving);
  }
}

void pwi_server_moves_report(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (moving->is_over) report(server, moving);
}

/* The manager has decided nothing about handovers of which it was not told, so they are cancelled. */
void pwi_server_moves_without_manager(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (moving->order.step == PWI_MOVE_HANDOVER && !moving->is_over) end_move(server, moving, PAWL_CANCELLED);
}

void pwi_server_moves_look(struct pwi_server *server, struct pwi_chain *chain) {
  for (struct moving *moving = server->movings; moving; moving = moving->next) {
    if (moving->is_over || !moving->has_begun || chain_of(server, moving) != chain) continue;
    if (moving->order.step == PWI_MOVE_HANDOVER) {
      if (chain->is_handing && pwi_chain_is_settled(chain)) end_move(server, moving, PAWL_OK);
    } else if (chain->is_synced && chain->heard >= moving->synced_at) {
      end_move(server, moving, PAWL_OK);
    }
  }
}

/* --- the source ----------------------------------------------------------------------------------------- */

static struct pwi_chain_message chunk_message(const struct pwi_chain *chain, const struct moving *moving,
                                              enum pwi_chunk_step step) {
  return (struct pwi_chain_message){.kind = PWI_CHAIN_CHUNK,
                                    .effect = (uint8_t)step,
                                    .positions = chain->positions,
                                    .since = chain->since,
                                    .version = moving->given + 1,
                                    .prior = pwi_chain_at(chain),
                                    .other = moving->order.move};
}

static pawl_status send_chunk(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving,
                              enum pwi_chunk_step step, struct pwi_log_entry *log_entry) {
  struct pwi_chain_message message = chunk_message(chain, moving, step);
  struct pwi_log_entry_address address = pwi_server_address_of(server, contact_of(chain)->following);
  pawl_status status = pwi_log_entry_send_bytes(log_entry, &address, &message, server->node);
  if (!status) moving->given++;
  return status;
}

/* Sends BEGIN: the target drops its rows of the arc. Changes after this version follow. */
static pawl_status begin_copying(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving) {
  struct pwi_log_entry *log_entry;
  pawl_status status = pwi_log_entry_take(&server->log_entries, 0, &log_entry);
  if (status) return status;
  status = send_chunk(server, chain, moving, PWI_CHUNK_BEGIN, log_entry);
  pwi_log_entry_release(log_entry);
  if (status) return status;
  pwi_copying_init(&moving->copying, moving->order.positions);
  pwi_chain_rewind(chain, pwi_chain_at(chain));
  chain->is_open = true;
  return PAWL_OK;
}

/* The kind of the next chunk. */
static pawl_status write_chunk(struct pwi_server *server, struct pwi_chain *chain, struct pwi_copying *copying,
                               struct pwi_writer *writer, bool *more_out) {
  pawl_status status = pwi_shard_copy(server->shard, copying, CHUNK, writer, more_out);
  if (!status && !*more_out) status = pwi_chain_save_versions(&server->chains, chain, writer);
  return status ? status : writer->status;
}

/* Rows are written to the memory that they are sent from. Clocks may be larger, and are copied to it. */
static pawl_status fill_log_entry(struct pwi_server *server, struct pwi_chain *chain, struct pwi_copying *copying,
                                  struct pwi_log_entry **log_entry_out, bool *more_out) {
  struct pwi_copying before = *copying;
  struct pwi_log_entry *log_entry;
  pawl_status status = pwi_log_entry_take(&server->log_entries, CHUNK + CHUNK / 16, &log_entry);
  if (status) return status;
  struct pwi_writer writer = pwi_writer_over(pwi_log_entry_memory(log_entry), log_entry->size);
  status = write_chunk(server, chain, copying, &writer, more_out);
  if (status == PAWL_TOO_LARGE) {
    *copying = before;
    pwi_log_entry_release(log_entry);
    log_entry = NULL;
    pwi_writer_reset(&server->writer);
    status = write_chunk(server, chain, copying, &server->writer, more_out);
    if (!status) status = pwi_log_entry_take(&server->log_entries, server->writer.size, &log_entry);
    if (!status) memcpy(pwi_log_entry_memory(log_entry), server->writer.data, server->writer.size);
  } else if (!status) {
    pwi_log_entry_shrink(log_entry, writer.size);
  }
  if (status)
    pwi_log_entry_release(log_entry);
  else
    *log_entry_out = log_entry;
  return status;
}

/* A chunk is read and sent at once, so that it is exact for the version in its message. It follows all
 * changes up to that version: if one of them is still unsent, the chunk waits. */
static pawl_status copy_next(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving) {
  struct pwi_copying going = moving->copying;
  struct pwi_log_entry *log_entry;
  bool more = true;
  pawl_status status = fill_log_entry(server, chain, &going, &log_entry, &more);
  if (status) return status;
  status = send_chunk(server, chain, moving, more ? PWI_CHUNK_DATA : PWI_CHUNK_END, log_entry);
  pwi_log_entry_release(log_entry);
  if (status) return status;
  moving->copying = going;
  moving->has_copied = !more;
  return PAWL_OK;
}

/* One timer serves all fills: too early, it is set again; too late, a pause is a little longer. */
static bool set_timer(struct pwi_server *server, int64_t at) {
  if (server->fill_timer.id != 0) return true;
  pawl_status status = pwi_net_timer_set(server->config.net, at, TIMER_FILL, &server->fill_timer);
  if (status) server->fill_timer.id = 0;
  return !status;
}

/* Bytes that requests have moved, including those passed on in chains. */
static uint64_t traffic_of(const struct pwi_server *server) {
  return pwi_shard_traffic(server->shard) + server->chain_bytes;
}

static void begin_burst(struct pwi_server *server, struct moving *moving) {
  moving->burst_end = moving->given + BURST;
  moving->burst_at = pwi_net_now(server->config.net);
  moving->traffic_before = traffic_of(server);
}

/* The pause after a burst of this duration, while requests moved so many bytes. */
static int64_t pause_after(int64_t burst, uint64_t traffic) {
  double more = (double)traffic / (double)BURST_BYTES - 1, times = more < 5 ? more : 5;
  int64_t pause = more > 0 ? (int64_t)((double)burst * times) : 0;
  return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

/* A burst was sent and stored: the next begins at once, or after a pause. */
static void end_burst(struct pwi_server *server, struct moving *moving) {
  int64_t now = pwi_net_now(server->config.net);
  uint64_t traffic = traffic_of(server) - moving->traffic_before;
  int64_t pause = pause_after(now - moving->burst_at, traffic);
  begin_burst(server, moving);
  if (pause > 0 && set_timer(server, now + pause)) moving->pauses_until = now + pause;
}

static bool may_copy(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving) {
  if (moving->given == moving->burst_end && moving->taken == moving->given) end_burst(server, moving);
  return !moving->has_copied && moving->given < moving->burst_end && moving->given - moving->taken < WINDOW &&
         moving->pauses_until == 0 && !pwi_chain_next(chain);
}

static void go_on(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving) {
  pawl_status status = PAWL_OK;
  if (!contact_of(chain)->following || !moving->has_begun) return;
  if (moving->given == 0) {
    status = begin_copying(server, chain, moving);
    begin_burst(server, moving);
  }
  pwi_server_chain_pump(server, chain);
  while (!status && may_copy(server, chain, moving)) status = copy_next(server, chain, moving);
  if (status && status != PAWL_QUEUE_FULL && status != PAWL_NOT_FOUND) end_move(server, moving, status);
}

void pwi_server_fill_go(struct pwi_server *server, uint64_t node) {
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    struct moving *moving = chain->following == node && chain->following_fills ? fill_of(server, chain) : NULL;
    if (moving) go_on(server, chain, moving);
  }
}

void pwi_server_fill_timer(struct pwi_server *server) {
  int64_t now = pwi_net_now(server->config.net);
  for (struct moving *moving = server->movings; moving; moving = moving->next) {
    struct pwi_chain *chain =
        moving->is_over || moving->order.step == PWI_MOVE_HANDOVER ? NULL : chain_of(server, moving);
    if (!chain || moving->pauses_until == 0) continue;
    if (moving->pauses_until > now && set_timer(server, moving->pauses_until)) continue;
    moving->pauses_until = 0;
    begin_burst(server, moving);
    go_on(server, chain, moving);
  }
}

void pwi_server_fills_watch(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next) {
    bool should_come = moving->has_begun && !moving->is_over && moving->taken < moving->given;
    moving->silences = should_come && moving->taken == moving->taken_then ? moving->silences + 1 : 0;
    moving->taken_then = moving->taken;
    if (moving->silences <= SILENCES) continue;
    struct pwi_chain *chain = chain_of(server, moving);
    struct server_peer *peer = chain ? contact_of(chain)->following : NULL;
    end_move(server, moving, PAWL_LINK_SILENT);
    if (peer) pwi_net_close(server->config.net, peer->link, PAWL_LINK_SILENT);
  }
}

void pwi_server_fill_down(struct pwi_server *server, uint64_t node, pawl_status why) {
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    struct moving *moving = chain->following == node && chain->following_fills ? fill_of(server, chain) : NULL;
    if (moving) end_move(server, moving, why);
  }
}

/* The target has all chunks. Its confirmations count from now on, after it has everything confirmed
 * before. */
static void count_target(struct pwi_server *server, struct pwi_chain *chain, struct moving *moving, uint64_t has) {
  pwi_chain_heard(&server->chains, chain, has);
  chain->is_synced = true;
  moving->synced_at = pwi_chain_at(chain);
  pwi_server_moves_look(server, chain);
}

void pwi_server_fill_taken(struct pwi_server *server, struct pwi_chain *chain,
                           const struct pwi_chain_message *message) {
  struct moving *moving = chain->following_fills ? fill_of(server, chain) : NULL;
  if (!moving || moving->order.move != message->other) return;
  if (message->status) {
    end_move(server, moving, message->status);
    return;
  }
  if (message->version <= moving->given && message->version > moving->taken) moving->taken = message->version;
  if (moving->has_copied && moving->taken == moving->given && !chain->is_synced)
    count_target(server, chain, moving, message->prior);
  else
    go_on(server, chain, moving);
}

/* --- the target ----------------------------------------------------------------------------------------- */

struct filling *pwi_server_filling(struct pwi_server *server, const struct pwi_chain *chain) {
  for (struct filling *filling = server->fillings; filling; filling = filling->next)
    if (filling->since == chain->since && filling->positions.begin == chain->positions.begin) return filling;
  return NULL;
}

static pawl_status begin_filling(struct pwi_server *server, struct pwi_chain *chain,
                                 const struct pwi_chain_message *message) {
  struct filling *filling = pwi_alloc_zero(1, sizeof *filling);
  if (!filling) return PAWL_NO_MEMORY;
  pwi_server_fillings_forget(server, chain->positions);
  pawl_status status = pwi_shard_drop(server->shard, chain->positions);
  if (status) {
    pwi_free(filling);
    return status;
  }
  *filling = (struct filling){.next = server->fillings,
                              .move = message->other,
                              .since = chain->since,
                              .positions = chain->positions,
                              .chunk = message->version};
  server->fillings = filling;
  chain->processed = chain->version = message->prior;
  chain->siblings = 0;
  contact_of(chain)->is_stuck = false;
  pwi_clock_fini(&chain->staged);
  return PAWL_OK;
}

/* A chunk out of sequence would restore old rows, so the fill begins anew. */
static pawl_status fill_on(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_chain_message *message,
                           uint32_t catalogue, const void *chunk, size_t size) {
  struct filling *filling = pwi_server_filling(server, chain);
  if (!filling || filling->move != message->other || filling->is_complete || message->version != filling->chunk + 1)
    return PAWL_CANCELLED;
  if (message->prior != chain->processed || catalogue > (uint32_t)server->catalogue.number) return PAWL_CANCELLED;
  filling->chunk = message->version;
  if (!chunk) return PAWL_NO_MEMORY;
  if (message->effect == PWI_CHUNK_DATA) return pwi_shard_take(server->shard, chunk, size);
  pawl_status status = pwi_chain_load_versions(chain, chunk, size);
  if (!status) status = pwi_shard_stage_rest(server->shard, chain->positions);
  if (!status) filling->is_complete = true;
  if (!status) pwi_shard_mark_all(server->shard, chain->positions, message->prior + 1);
  return status;
}

void pwi_server_fill_chunk(struct pwi_server *server, struct server_peer *peer, struct pwi_chain *chain,
                           const struct pwi_chain_message *message, const void *chunk, size_t size) {
  if (!chain->is_filling) return;
  struct pwi_chain_message reply = *message;
  reply.kind = PWI_CHAIN_TAKEN;
  reply.effect = 0;
  reply.status = message->effect == PWI_CHUNK_BEGIN
                     ? begin_filling(server, chain, message)
                     : fill_on(server, chain, message, peer->inbox.head.catalogue, chunk, size);
  pwi_server_chain_taken(server, chain, &reply);
}

bool pwi_server_is_filled(const struct pwi_server *server, struct pawl_range positions) {
  for (const struct filling *filling = server->fillings; filling; filling = filling->next)
    if (filling->is_complete && pawl_range_contains(filling->positions, positions)) return true;
  return false;
}

void pwi_server_fill_stuck(struct pwi_server *server, struct pwi_chain *chain) {
  const struct filling *filling = pwi_server_filling(server, chain);
  if (!filling || !contact_of(chain)->previous) return;
  struct pwi_chain_message message = {.kind = PWI_CHAIN_TAKEN,
                                      .status = PAWL_CANCELLED,
                                      .positions = chain->positions,
                                      .since = chain->since,
                                      .version = filling->chunk,
                                      .prior = chain->processed,
                                      .other = filling->move};
  pwi_server_chain_taken(server, chain, &message);
}

pawl_status pwi_server_fillings_open(struct pwi_server *server) {
  pawl_status status = PAWL_OK;
  for (const struct filling *filling = server->fillings; filling && !status; filling = filling->next)
    if (filling->is_complete) status = pwi_shard_stage_rest(server->shard, filling->positions);
  return status;
}

void pwi_server_fillings_forget(struct pwi_server *server, struct pawl_range positions) {
  for (struct filling **at = &server->fillings; *at;) {
    struct filling *filling = *at;
    if (pawl_range_is_empty(pawl_range_common(filling->positions, positions))) {
      at = &filling->next;
      continue;
    }
    *at = filling->next;
    pwi_free(filling);
  }
}

void pwi_server_moves_fini(struct pwi_server *server) {
  while (server->movings) {
    struct moving *moving = server->movings;
    server->movings = moving->next;
    pwi_free(moving);
  }
  pwi_server_fillings_forget(server, pawl_range_of(0, PWI_RING_END));
}
