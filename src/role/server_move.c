/* Arcs on the move: stop and copy.
 *
 * The source freezes the positions and sends them as numbered chunks, a few ahead of what the target has confirmed. What
 * happens to the positions afterwards is never decided here: only a view gives them to the target or back to us. So
 * whatever is lost on the way, at most one of the two serves them.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "role/server_inside.h"

#define CHUNK ((size_t)256 << 10)
#define WINDOW 4 /* chunks under way */

/* --- the source ------------------------------------------------------------------------------------------------------ */

static void send_fill(struct pwi_server *server, struct moving *moving, enum pwi_fill_step step) {
  struct pwi_move fill = moving->order;
  fill.step = (uint8_t)step;
  fill.sequence = ++moving->given;
  fill.address[0] = 0;
  pwi_writer_reset(&server->writer);
  pwi_move_encode(&fill, &server->writer);
}

static void report(struct pwi_server *server, const struct moving *moving) {
  struct pwi_move reply = moving->order;
  reply.address[0] = 0;
  pwi_writer_reset(&server->writer);
  pwi_move_encode(&reply, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_MOVED);
}

static void end_move(struct pwi_server *server, struct moving *moving, pawl_status status) {
  if (moving->is_over) return;
  moving->is_over = true;
  moving->order.status = status;
  if (!status) server->moves_out++;
  if (moving->peer) {
    moving->peer->moving = NULL;
    pwi_net_close(server->config.net, moving->peer->link, PAWL_OK);
    moving->peer = NULL;
  }
  pwi_log(server->config.log, status ? PAWL_LOG_WARN : PAWL_LOG_INFO, "move.over", "move=%llu status=%s",
          (unsigned long long)moving->order.move, pawl_status_name(status));
  if (server->joined) report(server, moving);
}

/* Sends as many chunks as the window allows. */
static void go_on(struct pwi_server *server, struct moving *moving) {
  while (!moving->has_copied && !moving->is_over && moving->given - moving->confirmed < WINDOW) {
    bool more = true;
    send_fill(server, moving, PWI_FILL_CHUNK);
    size_t record = server->writer.size;
    pawl_status status = pwi_holding_copy(server->holding, &moving->copying, CHUNK, &server->writer, &more);
    if (!status) status = server->writer.status;
    if (status) {
      end_move(server, moving, status);
      return;
    }
    if (!more) {
      moving->given--;
      assert(server->writer.size == record);
      send_fill(server, moving, PWI_FILL_END);
      moving->has_copied = true;
    }
    pwi_server_say_payload(server, moving->peer, PWI_SAY_FILL);
  }
}

static void begin_move(struct pwi_server *server, struct moving *moving) {
  if (moving->has_begun || moving->is_over || server->numbers.view < moving->order.epoch) return;
  moving->has_begun = true;
  pawl_status status = PAWL_INVALID;
  if (pwi_holding_holds(server->holding, moving->order.positions))
    status = pwi_holding_freeze(server->holding, moving->order.positions);
  if (!status) {
    moving->peer = pwi_server_connect(server, PEER_TARGET, moving->order.address);
    if (!moving->peer) status = PAWL_NO_MEMORY;
  }
  if (status) {
    end_move(server, moving, status);
    return;
  }
  moving->peer->moving = moving;
}

static struct moving *find_moving(struct pwi_server *server, uint64_t move) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (moving->order.move == move) return moving;
  return NULL;
}

void pwi_server_move_ordered(struct pwi_server *server, const struct pwi_move *order) {
  struct moving *moving = find_moving(server, order->move);
  if (order->cancel) {
    if (moving) end_move(server, moving, PAWL_CANCELLED);
    return;
  }
  if (moving) { /* repeated: the manager did not hear how it ended */
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

void pwi_server_move_target_up(struct pwi_server *server, struct server_peer *peer) {
  struct moving *moving = peer->moving;
  if (!moving) return;
  send_fill(server, moving, PWI_FILL_BEGIN);
  pwi_server_say_payload(server, peer, PWI_SAY_FILL);
  pwi_copying_init(&moving->copying, moving->order.positions);
  go_on(server, moving);
}

void pwi_server_move_target_down(struct pwi_server *server, struct server_peer *peer, pawl_status why) {
  struct moving *moving = peer->moving;
  if (!moving) return;
  moving->peer = NULL;
  peer->moving = NULL;
  end_move(server, moving, why ? why : PAWL_LINK_CLOSED);
}

void pwi_server_move_confirmed(struct pwi_server *server, struct server_peer *peer, const struct pwi_move *reply) {
  struct moving *moving = peer->moving;
  if (!moving || reply->move != moving->order.move) return;
  if (reply->status) {
    end_move(server, moving, reply->status);
    return;
  }
  if (reply->sequence <= moving->given && reply->sequence > moving->confirmed) moving->confirmed = reply->sequence;
  if (moving->has_copied && moving->confirmed == moving->given)
    end_move(server, moving, PAWL_OK);
  else
    go_on(server, moving);
}

/* What the newest view means for positions that are frozen for a move. */
static bool is_settled(const struct pwi_server *server, const struct moving *moving) {
  const struct pwi_view *view = server->view;
  if (view->epoch < moving->order.epoch || view->arc_count == 0) return false;
  size_t arc = pwi_view_arc_of(view, moving->order.positions.begin);
  return pwi_arc_find(&view->arcs[arc], (struct pwi_node){moving->order.target}) == PWI_CHAIN_MAX ||
         pwi_arc_find(&view->arcs[arc], (struct pwi_node){server->node}) == PWI_CHAIN_MAX;
}

void pwi_server_moves_seen(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next) begin_move(server, moving);
  for (struct moving **at = &server->movings; *at;) {
    struct moving *moving = *at;
    if (!is_settled(server, moving)) {
      at = &moving->next;
      continue;
    }
    end_move(server, moving, PAWL_CANCELLED);
    pwi_holding_thaw(server->holding, moving->order.positions); /* what is not ours any more was dropped before */
    *at = moving->next;
    pwi_free(moving);
  }
}

void pwi_server_moves_report(struct pwi_server *server) {
  for (struct moving *moving = server->movings; moving; moving = moving->next)
    if (moving->is_over) report(server, moving);
}

/* --- the target ------------------------------------------------------------------------------------------------------ */

static void confirm(struct pwi_server *server, struct server_peer *peer, const struct pwi_move *fill,
                    pawl_status status) {
  struct pwi_move reply = *fill;
  reply.status = status;
  pwi_writer_reset(&server->writer);
  pwi_move_encode(&reply, &server->writer);
  pwi_server_say_payload(server, peer, PWI_SAY_FILLED);
}

static struct filling *find_filling(struct pwi_server *server, uint64_t move) {
  for (struct filling *filling = server->fillings; filling; filling = filling->next)
    if (filling->move == move) return filling;
  return NULL;
}

/* True if the newest view has us filling all of these positions. */
static bool is_expected(const struct pwi_server *server, const struct pwi_move *fill) {
  if (!server->view || server->numbers.view < fill->epoch || server->view->arc_count == 0) return false;
  struct pwi_node me = {server->node};
  for (size_t i = pwi_view_arc_of(server->view, fill->positions.begin); i < server->view->arc_count; i++) {
    struct pawl_range positions = pwi_view_arc_range(server->view, i);
    if (positions.begin >= fill->positions.end) break;
    size_t place = pwi_arc_find(&server->view->arcs[i], me);
    if (place == PWI_CHAIN_MAX || !server->view->arcs[i].chain[place].filling) return false;
  }
  return true;
}

/* A later move of the same positions replaces an earlier one, never the other way round. */
static pawl_status begin_filling(struct pwi_server *server, const struct pwi_move *fill) {
  if (!is_expected(server, fill)) return PAWL_FORBIDDEN;
  for (struct filling *other = server->fillings; other; other = other->next)
    if (other->move > fill->move && !pawl_range_is_empty(pawl_range_common(other->positions, fill->positions)))
      return PAWL_CANCELLED;
  struct filling *filling = pwi_alloc_zero(1, sizeof *filling);
  if (!filling) return PAWL_NO_MEMORY;
  pwi_server_fillings_forget(server, fill->positions);
  pawl_status status = pwi_holding_drop(server->holding, fill->positions);
  if (status) {
    pwi_free(filling);
    return status;
  }
  *filling = (struct filling){
      .next = server->fillings, .move = fill->move, .positions = fill->positions, .sequence = fill->sequence};
  server->fillings = filling;
  return PAWL_OK;
}

static pawl_status fill_on(struct pwi_server *server, const struct pwi_move *fill, const void *chunk, size_t size) {
  struct filling *filling = find_filling(server, fill->move);
  if (!filling || filling->is_complete || fill->sequence != filling->sequence + 1) return PAWL_CANCELLED;
  filling->sequence = fill->sequence;
  if (fill->step == PWI_FILL_CHUNK) return pwi_holding_take(server->holding, chunk, size);
  filling->is_complete = true;
  return PAWL_OK;
}

void pwi_server_fill(struct pwi_server *server, struct server_peer *peer, const struct pwi_move *fill,
                     const void *chunk, size_t size) {
  pawl_status status = fill->step == PWI_FILL_BEGIN ? begin_filling(server, fill) : fill_on(server, fill, chunk, size);
  confirm(server, peer, fill, status);
}

bool pwi_server_is_filled(const struct pwi_server *server, struct pawl_range positions) {
  for (const struct filling *filling = server->fillings; filling; filling = filling->next)
    if (filling->is_complete && pawl_range_contains(filling->positions, positions)) return true;
  return false;
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

void pwi_server_fillings_settle(struct pwi_server *server) {
  for (struct filling **at = &server->fillings; *at;) {
    struct filling *filling = *at;
    if (!pwi_rangeset_contains(&server->held, filling->positions)) {
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
