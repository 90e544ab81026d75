/* The life of a server: joining, the link to the manager, other links, reports. */
#include "server/server.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "server/inside.h"

#define RETRY_MIN INT64_C(20000000)
#define GOOD_NS INT64_C(100000000) /* a link that was up for so long was good */
#define REPORT_NS INT64_C(1000000000)
#define LOADS_MAX 512

/* --- peers ---------------------------------------------------------------------------------------------- */

static struct server_peer *add_peer(struct pwi_server *server, enum server_peer_kind kind, struct pwi_link link) {
  struct server_peer *peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer) return NULL;
  peer->kind = kind;
  peer->link = link;
  if (pwi_idmap_put(&server->links, link.id, peer)) {
    pwi_free(peer);
    return NULL;
  }
  peer->inbox.shared = &server->staging;
  peer->next = server->peers;
  if (peer->next) peer->next->before = peer;
  server->peers = peer;
  return peer;
}

static void remove_peer(struct pwi_server *server, struct server_peer *peer) {
  pwi_idmap_remove(&server->links, peer->link.id);
  if (peer->before)
    peer->before->next = peer->next;
  else
    server->peers = peer->next;
  if (peer->next) peer->next->before = peer->before;
  pwi_inbox_fini(&peer->inbox);
  pwi_quota_account_leave(&server->accounts, peer->account);
  pwi_free(peer->identity);
  pwi_free(peer->address);
  pwi_free(peer);
}

struct server_peer *pwi_server_connect(struct pwi_server *server, enum server_peer_kind kind, const char *address) {
  struct pwi_link link;
  pawl_status status = pwi_net_connect(server->config.net, address, &link);
  if (status) {
    server->trouble = kind == PEER_MANAGER ? status : server->trouble;
    return NULL;
  }
  struct server_peer *peer = add_peer(server, kind, link);
  if (!peer) pwi_net_close(server->config.net, link, PAWL_NO_MEMORY);
  return peer;
}

void pwi_server_say(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind,
                    const struct pwi_enclosure *enclosures, size_t count) {
  if (!peer || !peer->is_up) return;
  /* A manager that has not answered JOIN closes the link on any other message. */
  if (peer == server->manager && kind != PWI_SAY_JOIN && server->joined_at == 0) return;
  struct pwi_message_head head = {.kind = (uint16_t)kind,
                                  .sender = server->node,
                                  .tick = server->managers.term,
                                  .view = (uint32_t)server->numbers.view,
                                  .membership = (uint32_t)server->membership->number,
                                  .catalogue = (uint32_t)server->catalogue.number};
  /* A failed send closes the link; everything important is sent again over the next. */
  pawl_status status =
      pwi_messenger_send(&server->messenger, peer->link, &peer->peering.link, &head, enclosures, count);
  (void)status;
}

/* `more` follows the payload; NULL: nothing does. */
static void say_payload(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind,
                        const struct pwi_enclosure *more) {
  if (server->writer.status) {
    if (peer) pwi_net_close(server->config.net, peer->link, server->writer.status);
    return;
  }
  struct pwi_enclosure enclosures[2] = {{PWI_SECTION_PAYLOAD, server->writer.data, server->writer.size}};
  if (more) enclosures[1] = *more;
  pwi_server_say(server, peer, kind, enclosures, more ? 2 : 1);
}

void pwi_server_say_payload(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind) {
  say_payload(server, peer, kind, NULL);
}

/* --- the manager ---------------------------------------------------------------------------------------- */

static void look_after(struct pwi_server *server, int64_t delay) {
  pwi_net_timer_cancel(server->config.net, server->retry);
  server->retry.id = 0;
  if (delay == PWI_NET_NEVER) return;
  /* Without memory for a timer, the report timer does it. */
  int64_t at = pwi_net_now(server->config.net) + delay;
  if (pwi_net_timer_set(server->config.net, at, TIMER_RETRY, &server->retry)) server->retry.id = 0;
}

static void retry_later(struct pwi_server *server) { look_after(server, pwi_managers_failed(&server->managers)); }

/* Reconnects at once if the link was good for a while, because the manager waits for this server. Otherwise
 * it waits as after any failure. */
static void return_soon(struct pwi_server *server) {
  bool was_good = server->joined_at != 0 && pwi_net_now(server->config.net) - server->joined_at >= GOOD_NS;
  server->joined_at = 0;
  if (was_good)
    look_after(server, pwi_managers_lost(&server->managers));
  else
    retry_later(server);
}

static void seek_manager(struct pwi_server *server) {
  if (server->manager || server->has_left) return;
  server->manager = pwi_server_connect(server, PEER_MANAGER, pwi_managers_next(&server->managers));
  if (server->manager)
    look_after(server, pwi_managers_patience(&server->managers));
  else
    retry_later(server);
}

/* Gives up an attempt that takes too long, and tries the next address. */
static void give_up_attempt(struct pwi_server *server) {
  if (!server->manager || server->manager->is_up) return;
  pwi_net_close(server->config.net, server->manager->link, PAWL_TIMED_OUT);
  server->manager = NULL;
  server->trouble = PAWL_TIMED_OUT;
  retry_later(server);
}

static void send_join(struct pwi_server *server) {
  struct pwi_join join = {.role = PWI_ROLE_SERVER,
                          .id = server->node,
                          .secret = server->secret,
                          .process = server->config.process,
                          .shard = server->config.shard,
                          .shard_count = server->config.shard_count,
                          .weight = server->config.weight,
                          .memory_max = server->config.memory_max};
  const char *address = server->address[0] ? server->address : pwi_net_address(server->config.net);
  strncpy(join.address, address, sizeof join.address - 1);
  strncpy(join.host, server->host, sizeof join.host - 1);
  strncpy(join.rack, server->rack, sizeof join.rack - 1);
  pwi_writer_reset(&server->writer);
  pwi_join_encode(&join, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_JOIN);
}

static void take_joined(struct pwi_server *server, const struct pwi_joined *joined) {
  if (joined->status) {
    bool is_standby = joined->status == PAWL_NODE_STANDBY;
    if (server->trouble != joined->status) /* log it once: joining is tried again */
      pwi_log(server->config.log, is_standby ? PAWL_LOG_DEBUG : PAWL_LOG_ERROR, "server.refused", "why=%s",
              pawl_status_name(joined->status));
    server->trouble = joined->status;
    /* It will join as a new node, whose first view has it drop what it has; or LEFT was lost. */
    if (joined->status == PAWL_NODE_RETIRED) server->node = server->secret = 0;
    if (joined->status == PAWL_NODE_RETIRED && server->is_leaving) server->has_left = true;
    pwi_net_close(server->config.net, server->manager->link, PAWL_OK);
    return;
  }
  server->trouble = PAWL_OK;
  pwi_managers_found(&server->managers);
  server->has_complained = false;
  server->node = joined->id;
  server->secret = joined->secret;
  server->numbers.node = joined->id;
  server->numbers.cluster = joined->cluster;
  server->greeting.node = joined->id;
  server->greeting.cluster = joined->cluster;
  if (pwi_greeting_set(server->config.net, &server->greeting)) server->trouble = PAWL_NO_MEMORY;
  if (!server->joined)
    pwi_log(server->config.log, PAWL_LOG_INFO, "server.joined", "node=%llu", (unsigned long long)server->node);
  server->joined = true;
  server->joined_at = pwi_net_now(server->config.net);
  if (server->is_leaving) pwi_server_say(server, server->manager, PWI_SAY_LEAVE, NULL, 0);
  pwi_server_chains_afresh(server);
  pwi_server_moves_report(server);
}

static void send_spaces(struct pwi_server *server) {
  struct pwi_space_bytes spaces[PWI_SPACES_MAX];
  size_t count = pwi_shard_spaces(server->shard, spaces, PWI_SPACES_MAX);
  if (count == 0) return;
  pwi_writer_reset(&server->writer);
  pwi_spaces_encode(spaces, count, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_SPACES);
}

static pawl_status take_grant(struct pwi_server *server, const void *payload, size_t size) {
  struct pwi_space_bytes spaces[PWI_SPACES_MAX];
  size_t count;
  bool is_asked = false;
  pawl_status status = pwi_spaces_decode(payload, size, spaces, &count);
  if (!status) status = pwi_shard_grant(server->shard, spaces, count);
  for (size_t i = 0; i < count && !status; i++) is_asked = is_asked || spaces[i].bytes == UINT64_MAX;
  if (is_asked) send_spaces(server);
  return status;
}

static void send_report(struct pwi_server *server) {
  if (!server->joined || !server->manager || !server->manager->is_up) return;
  static const size_t room = LOADS_MAX;
  struct pwi_report report;
  struct pwi_load *loads = pwi_alloc_zero(room, sizeof *loads);
  pwi_shard_retry(server->shard);
  pwi_shard_report(server->shard, &report);
  report.memory_max = server->config.memory_max;
  report.bytes_passed = server->bytes_passed;
  pwi_writer_reset(&server->writer);
  pwi_report_encode(&report, loads, loads ? pwi_shard_loads(server->shard, loads, room) : 0, &server->writer);
  pwi_free(loads);
  uint8_t holds[2 * sizeof(uint64_t)];
  pwi_put_u64(holds, server->held_links);
  pwi_put_u64(holds + sizeof(uint64_t), server->holds);
  say_payload(server, server->manager, PWI_SAY_REPORT, &(struct pwi_enclosure){PWI_SECTION_HOLDS, holds, sizeof holds});
  send_spaces(server);
}

static void was_probed(void *context, const struct pwi_probe *probe) {
  struct pwi_server *server = context;
  if (!server->joined) return;
  pwi_writer_reset(&server->writer);
  pwi_probe_encode(probe, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_PROBED);
}

/* The manager has lost a server and asks this one to probe it. An unknown server is not probed; news will
 * come. */
static pawl_status probe(struct pwi_server *server, const void *payload, size_t size) {
  struct pwi_probe order;
  pawl_status status = pwi_probe_decode(payload, size, &order);
  if (status) return status;
  const struct pwi_view_node *node = server->view ? pwi_view_find(server->view, (struct pwi_node){order.node}) : NULL;
  if (node) pwi_prober_begin(&server->prober, &order, node->address);
  return PAWL_OK;
}

/* The manager has sent the membership in which these senders are retired before. */
static pawl_status settle(struct pwi_server *server, const void *payload, size_t size) {
  struct pwi_settle senders[PWI_SETTLE_MAX];
  uint64_t number, unsettled[PWI_SETTLE_MAX];
  size_t count;
  pawl_status status = pwi_settle_decode(payload, size, &number, senders, &count);
  if (status) return status;
  count = pwi_shard_unsettled(server->shard, senders, count, unsettled);
  pwi_writer_reset(&server->writer);
  pwi_settled_encode(number, unsettled, count, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_SETTLED);
  return PAWL_OK;
}

static pawl_status from_manager(struct pwi_server *server, const struct pwi_control *control, const void *body) {
  struct pwi_joined joined;
  struct pwi_move move;
  size_t size, used;
  const void *payload = pwi_control_find(control, body, PWI_SECTION_PAYLOAD, &size);
  uint64_t term = control->head.tick;
  pawl_status status = control->head.kind == PWI_SAY_JOINED ? PAWL_OK : pwi_managers_heed(&server->managers, term);
  if (status) return status;
  switch (control->head.kind) {
  case PWI_SAY_JOINED:
    status = pwi_joined_decode(payload, size, &joined);
    if (!status) status = pwi_managers_welcome(&server->managers, &joined, term);
    if (!status) take_joined(server, &joined);
    return status;
  case PWI_SAY_NEWS:
    status = pwi_server_take_news(server, control, body);
    if (!status) pwi_server_say(server, server->manager, PWI_SAY_HAVE, NULL, 0);
    return status;
  case PWI_SAY_MOVE:
    status = pwi_move_decode(payload, size, &move, &used);
    if (!status) pwi_server_move_ordered(server, &move);
    return status;
  case PWI_SAY_PROBE:
    return probe(server, payload, size);
  case PWI_SAY_COMPLAIN:
    pwi_server_chains_heard(server);
    return PAWL_OK;
  case PWI_SAY_GRANT:
    return take_grant(server, payload, size);
  case PWI_SAY_SETTLE:
    return settle(server, payload, size);
  case PWI_SAY_SAVE:
    return pwi_server_save_ordered(server, payload, size);
  case PWI_SAY_LEFT:
    server->has_left = true;
    return PAWL_OK;
  default:
    return PAWL_LINK_PROTOCOL;
  }
}

/* --- links ---------------------------------------------------------------------------------------------- */

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_server *server = self;
  struct pwi_peering peering;
  (void)link;
  return pwi_greeting_check(&server->greeting, info, &peering);
}

/* A client or server has connected. */
static void accept_peer(struct pwi_server *server, struct pwi_link link, const struct pwi_link_info *info,
                        const struct pwi_peering *peering) {
  struct pwi_rights rights;
  struct pwi_quota_account *account;
  bool is_server = peering->hello.role == PWI_ROLE_SERVER;
  uint8_t priority = 0;
  pawl_status status = pwi_server_admit(server, info, peering->hello.role, &rights, &account);
  if (!status && !is_server) {
    status =
        pwi_rights_greet(&rights, peering->hello.priority, info->peer, info->identity, server->config.log, &priority);
    if (status) pwi_quota_account_leave(&server->accounts, account);
  }
  if (status) {
    pwi_net_close(server->config.net, link, status);
    return;
  }
  struct server_peer *peer = add_peer(server, is_server ? PEER_PREVIOUS : PEER_CLIENT, link);
  status = peer ? pwi_server_name_peer(peer, info) : PAWL_NO_MEMORY;
  if (peer)
    peer->account = account;
  else
    pwi_quota_account_leave(&server->accounts, account);
  if (!status && !is_server)
    status = pwi_handler_link_up(server->handler, link, peering, info->identity, &rights, account, &peer->handler);
  if (status) {
    if (!is_server) pwi_server_starve(server);
    pwi_net_close(server->config.net, link, status);
    return;
  }
  if (peer->handler) server->client_links++;
  peer->peering = *peering;
  peer->node = peering->hello.node;
  peer->is_up = true;
  peer->priority = priority;
  if (priority != 0) pwi_server_priority_up(server, peer);
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  struct pwi_peering peering;
  pawl_status status = pwi_greeting_check(&server->greeting, info, &peering);
  if (status) {
    pwi_net_close(server->config.net, link, status);
    return;
  }
  if (!peer) {
    if (info->accepted)
      accept_peer(server, link, info, &peering);
    else
      pwi_prober_link_up(&server->prober, link, &peering);
    return;
  }
  /* Another process may listen at the address of a dead neighbour: it would take this link for its own chains. */
  status = peer->kind == PEER_NEXT && peering.hello.node != peer->node ? PAWL_NODE_GONE : PAWL_OK;
  if (!status && pwi_server_name_peer(peer, info)) status = PAWL_NO_MEMORY;
  if (status) {
    pwi_net_close(server->config.net, link, status);
    return;
  }
  peer->peering = peering;
  peer->is_up = true;
  if (peer == server->manager) {
    look_after(server, PWI_NET_NEVER);
    send_join(server);
  }
  if (peer->kind == PEER_NEXT) pwi_server_chain_up(server, peer);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (!peer) {
    pwi_prober_link_down(&server->prober, link, why);
    return;
  }
  enum server_peer_kind kind = peer->kind;
  peer->is_up = false;
  if (kind == PEER_NEXT || kind == PEER_PREVIOUS) pwi_server_chain_down(server, peer);
  bool is_given_up = kind == PEER_MANAGER && peer != server->manager;
  if (kind == PEER_MANAGER && !is_given_up) server->manager = NULL;
  if (peer->handler) server->client_links--;
  pwi_server_priority_down(server, peer);
  pwi_handler_link_down(peer->handler);
  remove_peer(server, peer);
  if (kind != PEER_MANAGER || is_given_up) return;
  pwi_server_moves_without_manager(server);
  pwi_server_save_without_manager(server);
  if (why) server->trouble = why;
  if (why == PAWL_CLUSTER_OTHER && !server->has_complained) {
    server->has_complained = true;
    pwi_log(server->config.log, PAWL_LOG_ERROR, "manager.other", "node=%llu why=%s", (unsigned long long)server->node,
            pawl_status_name(why));
  }
  return_soon(server);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (!peer || !peer->is_up) return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  /* It may come between the pieces of a request. */
  if (peer->handler && pwi_message_peek_kind(message->head) == PWI_SAY_PRIORITY)
    return pwi_control_begin(&peer->control, message, &peer->peering.link);
  if (peer->handler) {
    pwi_server_priority_begin(server, peer);
    return pwi_handler_message(peer->handler, message);
  }
  if (peer->kind != PEER_MANAGER) return pwi_inbox_begin(&peer->inbox, message, &peer->peering.data, &peer->inbox);
  return pwi_control_begin(&peer->control, message, &peer->peering.link);
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (!peer) return;
  if (peer->handler && context != &peer->control) {
    pwi_handler_piece(peer->handler, offset, data, size);
    return;
  }
  if (!peer->handler && peer->kind != PEER_MANAGER) {
    pwi_inbox_piece(&peer->inbox, offset, data, size);
    return;
  }
  assert(context == &peer->control);
  pawl_status status = pwi_control_open(&peer->control, data, size, &peer->peering.link);
  if (!status && peer->handler)
    status = pwi_server_priority_state(server, peer, peer->control.head.tick);
  else if (!status)
    status = from_manager(server, &peer->control, data);
  if (!status) return;
  pwi_log(server->config.log, PAWL_LOG_WARN, "message.bad", "kind=%u why=%s", peer->control.head.kind,
          pawl_status_name(status));
  pwi_net_close(server->config.net, link, status);
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (!peer) return;
  if (peer->handler && context != &peer->control) pwi_server_priority_end(server, peer);
  if (peer->handler && context == peer->handler) pwi_handler_message_end(peer->handler, status);
  if (context == &peer->inbox && !status) pwi_server_chain_said(server, peer);
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct pwi_server *server = self;
  if (pwi_messenger_done(&server->messenger, cookie)) return;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (cookie & PWI_LOG_ENTRY_COOKIE) {
    if (pwi_log_entry_done(&server->log_entries, cookie, status)) pwi_server_chains_pump(server);
    if (peer && peer->is_up) pwi_server_chain_writable(server, peer);
    return;
  }
  if (peer && peer->handler) pwi_handler_done(peer->handler, cookie);
}

static void writable(void *self, struct pwi_link link) {
  struct pwi_server *server = self;
  struct server_peer *peer = pwi_idmap_get(&server->links, link.id);
  if (peer && peer->is_up) pwi_server_chain_writable(server, peer);
}

static void timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct pwi_server *server = self;
  (void)timer;
  if (cookie == TIMER_RETRY) {
    server->retry.id = 0;
    give_up_attempt(server);
    if (server->retry.id == 0) seek_manager(server);
    return;
  }
  if (cookie == TIMER_CHAIN) {
    server->chain_timer.id = 0;
    pwi_server_chain_timer(server);
    return;
  }
  if (cookie == TIMER_FILL) {
    server->fill_timer.id = 0;
    pwi_server_fill_timer(server);
    return;
  }
  if (cookie == TIMER_TURNS) {
    server->turn_timer.id = 0;
    pwi_server_priority_timer(server);
    return;
  }
  if (cookie == TIMER_PROBE) {
    pwi_prober_timer(&server->prober);
    return;
  }
  if (cookie == TIMER_SAVE) {
    server->save_timer.id = 0;
    pwi_server_save_timer(server);
    return;
  }
  send_report(server);
  if (server->turns.in_use > 1) pwi_server_priority_timer(server);
  pwi_server_chains_watch(server);
  if (!server->manager && server->retry.id == 0) seek_manager(server);
  struct pwi_timer next;
  if (pwi_net_timer_set(server->config.net, pwi_net_now(server->config.net) + REPORT_NS, TIMER_REPORT, &next))
    pwi_log(server->config.log, PAWL_LOG_ERROR, "server.timer", "why=NO_MEMORY");
}

const struct pwi_actor pwi_server_actor = {
    .greet = greet,
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .done = done,
    .writable = writable,
    .timer = timer,
};

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status copy_texts(struct pwi_server *server) {
  const struct pwi_server_config *config = &server->config;
  server->address = pwi_copy_string(config->address ? config->address : "");
  server->host = pwi_copy_string(config->host ? config->host : "");
  server->rack = pwi_copy_string(config->rack ? config->rack : "");
  bool all = server->address && server->host && server->rack;
  return all ? pwi_managers_init(&server->managers, config->manager, RETRY_MIN) : PAWL_NO_MEMORY;
}

static pawl_status make_parts(struct pwi_server *server) {
  struct pwi_handler_config handler = {.net = server->config.net,
                                       .numbers = &server->numbers,
                                       .log = server->config.log,
                                       .chains = &server->chains,
                                       .answers_max = server->config.answers_max};
  pawl_status status = pwi_handler_create(&handler, &server->handler);
  if (status) return status;
  pwi_log_entries_init(&server->log_entries, server->config.net);
  server->chains.log_entries = &server->log_entries;
  server->chains.chain_size = sizeof(struct chain_contact);
  server->chains.answer = pwi_handler_answer_deferred;
  server->chains.pump = pwi_server_chain_pump;
  server->chains.starve = pwi_server_chain_starve;
  server->chains.context = server;
  bool is_capped = server->config.memory_max != UINT64_MAX;
  uint64_t set_aside = server->config.set_aside < server->config.memory_max ? server->config.set_aside : 0;
  struct pwi_shard_config shard = {.memory_max = server->config.memory_max - (is_capped ? set_aside : 0),
                                   .functions = server->config.functions,
                                   .run = server->config.run,
                                   .run_context = server->config.run_context,
                                   .cache_max = server->config.cache_max,
                                   .answer = pwi_handler_answer,
                                   .context = server->handler};
  status = pwi_shard_create(&shard, &server->shard);
  if (!status) pwi_handler_set_shard(server->handler, server->shard);
  return status;
}

static pawl_status begin(struct pwi_server *server) {
  pawl_status status = copy_texts(server);
  if (!status && !(server->membership = pwi_alloc_zero(1, sizeof *server->membership))) status = PAWL_NO_MEMORY;
  if (status) return status;
  server->numbers.catalogue = &server->catalogue;
  server->numbers.membership = server->membership;
  server->greeting = (struct pwi_greeting){
      .role = PWI_ROLE_SERVER, .host = server->host, .log = server->config.log, .net = server->config.net};
  server->trouble = PAWL_CLUSTER_UNKNOWN;
  status = pwi_greeting_set(server->config.net, &server->greeting);
  if (!status) status = make_parts(server);
  struct pwi_timer report;
  if (!status)
    status = pwi_net_timer_set(server->config.net, pwi_net_now(server->config.net) + REPORT_NS, TIMER_REPORT, &report);
  if (status) return status;
  seek_manager(server);
  return server->manager || server->trouble != PAWL_INVALID ? PAWL_OK : PAWL_INVALID;
}

pawl_status pwi_server_create(const struct pwi_server_config *config, struct pwi_server **server_out) {
  struct pwi_server *server = pwi_alloc_zero(1, sizeof *server);
  if (!server) return PAWL_NO_MEMORY;
  server->config = *config;
  if (server->config.weight == 0) server->config.weight = 1;
  pwi_messenger_init(&server->messenger, config->net);
  pwi_turns_init(&server->turns);
  pwi_prober_init(&server->prober, config->net, TIMER_PROBE, was_probed, server);
  pawl_status status = begin(server);
  if (status) {
    pwi_server_destroy(server);
    return status;
  }
  *server_out = server;
  return PAWL_OK;
}

void pwi_server_destroy(struct pwi_server *server) {
  if (!server) return;
  while (server->peers) remove_peer(server, server->peers);
  pwi_server_save_fini(server);
  pwi_server_moves_fini(server);
  pwi_prober_fini(&server->prober);
  pwi_chains_fini(&server->chains);
  pwi_log_entries_fini(&server->log_entries);
  pwi_reading_fini(&server->reading);
  pwi_pages_fini(&server->stamps);
  pwi_pages_fini(&server->state);
  pwi_staging_fini(&server->staging);
  pwi_handler_destroy(server->handler);
  pwi_shard_destroy(server->shard);
  pwi_view_release(server->view);
  pwi_catalogue_fini(&server->catalogue);
  pwi_membership_destroy(server->membership);
  pwi_messenger_fini(&server->messenger);
  pwi_writer_fini(&server->writer);
  pwi_idmap_fini(&server->links);
  pwi_quota_accounts_fini(&server->accounts);
  pwi_managers_fini(&server->managers);
  pwi_free(server->address);
  pwi_free(server->host);
  pwi_free(server->rack);
  pwi_free(server);
}

void pwi_server_leave(struct pwi_server *server) {
  if (server->is_leaving) return;
  server->is_leaving = true;
  if (server->joined) pwi_server_say(server, server->manager, PWI_SAY_LEAVE, NULL, 0);
}

static uint64_t count_arcs(const struct pwi_server *server) {
  uint64_t arcs = 0;
  for (size_t i = 0; server->view && i < server->view->arc_count; i++)
    arcs += server->view->arcs[i].chain[0].node.id == server->node;
  return arcs;
}

void pwi_server_state(const struct pwi_server *server, struct pwi_server_state *state_out) {
  struct pwi_handler_figures answers;
  pwi_handler_figures(server->handler, &answers);
  *state_out = (struct pwi_server_state){.node = server->node,
                                         .cluster = server->greeting.cluster,
                                         .epoch = server->numbers.view,
                                         .catalogue = server->catalogue.number,
                                         .membership = server->membership->number,
                                         .joined = server->joined,
                                         .has_left = server->has_left,
                                         .trouble = server->trouble,
                                         .arcs = count_arcs(server),
                                         .links = server->client_links,
                                         .answer_bytes = answers.answer_bytes,
                                         .answers_dropped = answers.answers_dropped,
                                         .lanes_held = server->held_links,
                                         .holds = server->holds,
                                         .moves_out = server->moves_out,
                                         .moves_in = server->moves_in};
}

size_t pwi_server_arcs(const struct pwi_server *server, struct pwi_server_arc *arcs, size_t room) {
  for (size_t i = 0; i < server->chains.count && i < room; i++) {
    const struct pwi_chain *chain = server->chains.items[i];
    arcs[i] = (struct pwi_server_arc){.positions = chain->positions,
                                      .since = chain->since,
                                      .place = chain->place,
                                      .filling = chain->is_filling,
                                      .even = chain->is_even,
                                      .version = chain->version,
                                      .confirmed = chain->confirmed};
  }
  return server->chains.count;
}

uint64_t pwi_server_digest(const struct pwi_server *server, struct pawl_range positions,
                           const struct pwi_membership *membership) {
  return pwi_shard_digest(server->shard, positions, membership);
}

const struct pwi_membership *pwi_server_membership(const struct pwi_server *server) { return server->membership; }
const struct pwi_view *pwi_server_view(const struct pwi_server *server) { return server->view; }
const struct pwi_shard *pwi_server_shard(const struct pwi_server *server) { return server->shard; }
const struct pwi_catalogue *pwi_server_catalogue(const struct pwi_server *server) { return &server->catalogue; }
