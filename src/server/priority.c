/* Priorities: tells the policy (server/turns.h) what the links of clients do, and holds and releases their
 * data lanes. */
#include "server/inside.h"
#include "protocol/planted.h"

static int64_t now_of(const struct pwi_server *server) { return pwi_net_now(server->config.net); }

static unsigned bit_of(const struct server_peer *peer) { return 1u << peer->priority; }

/* A peer whose net knows no holds is served as before. */
static void hold(struct pwi_server *server, struct server_peer *peer, bool is_on) {
  if (peer->is_held == is_on || !peer->is_up) return;
  if (!is_on && pwi_is_planted(PWI_PLANTED_HELD_FOREVER)) return;
  if (pwi_net_hold(server->config.net, peer->link, is_on)) return;
  peer->is_held = is_on;
  server->held_links += is_on ? 1 : (size_t)-1;
  server->holds += is_on;
}

static void set_timer(struct pwi_server *server, int64_t now) {
  int64_t next = pwi_turns_next(&server->turns, now);
  if (next == server->turn_timer_at && server->turn_timer.id != 0) return;
  pwi_net_timer_cancel(server->config.net, server->turn_timer);
  server->turn_timer.id = 0;
  if (next == INT64_MAX) return;
  /* Without memory for a timer, the next message or report decides. */
  if (pwi_net_timer_set(server->config.net, next, TIMER_TURNS, &server->turn_timer)) server->turn_timer.id = 0;
  server->turn_timer_at = next;
}

static void decide(struct pwi_server *server, int64_t now) {
  unsigned changed = pwi_turns_update(&server->turns, now);
  for (struct server_peer *peer = changed ? server->peers : NULL; peer; peer = peer->next)
    if (peer->priority != 0 && (changed & bit_of(peer)))
      hold(server, peer, server->turns.levels[peer->priority].is_held);
  set_timer(server, now);
}

/* With clients of one priority there is nothing to decide. */
static bool is_idle(const struct pwi_server *server) { return server->turns.in_use < 2; }

void pwi_server_priority_up(struct pwi_server *server, struct server_peer *peer) {
  pwi_turns_enter(&server->turns, peer->priority);
  hold(server, peer, server->turns.levels[peer->priority].is_held);
  if (!is_idle(server)) decide(server, now_of(server));
}

void pwi_server_priority_down(struct pwi_server *server, struct server_peer *peer) {
  if (peer->priority == 0) return;
  int64_t now = now_of(server);
  if (peer->is_held) server->held_links--;
  if (peer->is_receiving) pwi_turns_end(&server->turns, peer->priority, now);
  pwi_turns_leave(&server->turns, peer->priority);
  peer->priority = 0;
  decide(server, now);
}

/* The level of a relay follows the members whose requests it sends, so it may be held or released at once. */
pawl_status pwi_server_priority_state(struct pwi_server *server, struct server_peer *peer, uint64_t stated) {
  struct pwi_rights rights = pwi_server_rights_of(server, peer->identity);
  if (stated > PWI_PRIORITY_HIGHEST) return PAWL_UNSUPPORTED;
  uint8_t priority = pwi_rights_priority(&rights, (uint8_t)stated);
  if (priority == peer->priority) return PAWL_OK;
  int64_t now = now_of(server);
  if (peer->is_receiving) pwi_turns_end(&server->turns, peer->priority, now);
  pwi_turns_leave(&server->turns, peer->priority);
  pwi_turns_enter(&server->turns, priority);
  if (peer->is_receiving) pwi_turns_begin(&server->turns, priority, now);
  peer->priority = priority;
  hold(server, peer, server->turns.levels[priority].is_held);
  decide(server, now);
  return PAWL_OK;
}

void pwi_server_priority_begin(struct pwi_server *server, struct server_peer *peer) {
  if (peer->priority == 0 || peer->is_receiving) return;
  int64_t now = is_idle(server) ? 0 : now_of(server);
  peer->is_receiving = true;
  pwi_turns_begin(&server->turns, peer->priority, now);
  if (!is_idle(server)) decide(server, now);
}

void pwi_server_priority_end(struct pwi_server *server, struct server_peer *peer) {
  if (!peer->is_receiving) return;
  int64_t now = is_idle(server) ? 0 : now_of(server);
  peer->is_receiving = false;
  pwi_turns_end(&server->turns, peer->priority, now);
  if (!is_idle(server)) decide(server, now);
}

/* Answers that are being sent are work under way, too. */
void pwi_server_priority_timer(struct pwi_server *server) {
  int64_t now = now_of(server);
  for (struct server_peer *peer = server->peers; peer; peer = peer->next)
    if (peer->priority != 0 && pwi_handler_is_answering(peer->handler))
      pwi_turns_touch(&server->turns, peer->priority, now);
  decide(server, now);
}
