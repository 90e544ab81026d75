/* Joining. Servers join as new nodes, or return with their id and secret. Clients join as new senders, or
 * return in the same way. */
#include <string.h>

#include "manager/inside.h"
#include "protocol/planted.h"
#include "protocol/relays.h"

#define SHARDS_MAX 4096
#define JOB_DEFAULT "default"

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

static uint64_t draw_secret(struct pwi_manager *manager) {
  uint64_t secret = pwi_random_u64(manager->config.random);
  return secret != 0 ? secret : 1;
}

/* --- refusing ------------------------------------------------------------------------------------------- */

/* A peer that was retired may join again on the same link, as a new node or sender. */
static void turn_away(struct pwi_manager *manager, struct manager_peer *peer, pawl_status why) {
  pwi_log(manager->config.log, PAWL_LOG_INFO, "join.refused", "role=%s why=%s", peer->is_server ? "server" : "client",
          pawl_status_name(why));
  pwi_manager_say_joined(manager, peer, why, 0);
  if (why == PAWL_NODE_RETIRED) {
    pwi_manager_expect_join(manager, peer);
  } else {
    peer->state = PEER_OUT;
    pwi_manager_close(manager, peer, why);
  }
}

/* The peer has a higher number than the ledger. Only a manager of this cluster can have sent it, so the
 * journal has lost records, and further decisions would create a second history. */
static bool is_ahead_of_us(const struct pwi_manager *manager, const struct manager_peer *peer) {
  struct news_numbers ours = pwi_manager_numbers(manager);
  for (int i = 0; i < PWI_TOPICS; i++) {
    if (peer->knew.of[i] > ours.of[i]) return true;
  }
  return false;
}

/* A server of this cluster has a view, a catalogue or a membership that the journal does not have. */
static bool has_seen_more(const struct pwi_manager *manager, const struct manager_peer *peer) {
  bool is_ours = peer->peering.hello.cluster == manager->ledger.cluster && manager->ledger.cluster != 0;
  bool is_trusted = pwi_rights_are_full(&peer->who.rights);
  return peer->is_server && is_ours && is_trusted && is_ahead_of_us(manager, peer);
}

static void stop_for(struct pwi_manager *manager, const struct manager_peer *peer) {
  struct news_numbers ours = pwi_manager_numbers(manager);
  if (manager->stopped) return;
  pwi_log(manager->config.log, PAWL_LOG_ERROR, "manager.stopped",
          "why=%s what=journal-is-not-the-newest node=%llu knows=%llu.%llu.%llu journal=%llu.%llu.%llu",
          pawl_status_name(PAWL_CLUSTER_HISTORY), (unsigned long long)peer->join.id,
          (unsigned long long)peer->knew.of[PWI_TOPIC_VIEW], (unsigned long long)peer->knew.of[PWI_TOPIC_CATALOGUE],
          (unsigned long long)peer->knew.of[PWI_TOPIC_MEMBERSHIP], (unsigned long long)ours.of[PWI_TOPIC_VIEW],
          (unsigned long long)ours.of[PWI_TOPIC_CATALOGUE], (unsigned long long)ours.of[PWI_TOPIC_MEMBERSHIP]);
  pwi_manager_stop(manager, PAWL_CLUSTER_HISTORY);
}

/* The peer knows a later term: another manager leads, and this one has not noticed yet. */
static bool is_of_a_later_term(const struct pwi_manager *manager, const struct manager_peer *peer) {
  return peer->control.head.tick > manager->config.term;
}

/* The same node or sender has joined over a new link: the old link is closed and ignored. */
static void replace_peer(struct pwi_manager *manager, struct manager_peer *old, struct manager_peer *peer) {
  if (!old || old == peer) return;
  old->state = PEER_OUT;
  old->id = 0;
  pwi_manager_close(manager, old, PAWL_OK);
}

/* --- servers -------------------------------------------------------------------------------------------- */

static bool is_sound_server(const struct pwi_join *join) {
  return join->process != 0 && join->shard_count > 0 && join->shard_count <= SHARDS_MAX &&
         join->shard < join->shard_count && join->address[0] != '\0';
}

/* Finds a node by its id and secret. If the reply with these was lost, finds it by the random number of its
 * process. */
static const struct pwi_ledger_node *find_known(const struct pwi_manager *manager, const struct pwi_join *join) {
  const struct pwi_ledger *ledger = &manager->ledger;
  if (join->id != 0) {
    const struct pwi_ledger_node *node = pwi_ledger_node(ledger, join->id);
    return node && node->secret == join->secret ? node : NULL;
  }
  for (size_t i = 0; i < ledger->node_count; i++) {
    const struct pwi_ledger_node *node = &ledger->nodes[i];
    if (node->nonce == join->process && view_node(manager, node->id)->shard == join->shard) return node;
  }
  return NULL;
}

static uint64_t process_number(const struct pwi_manager *manager, uint64_t nonce) {
  const struct pwi_ledger *ledger = &manager->ledger;
  bool is_blind = pwi_is_planted(PWI_PLANTED_ONE_PROCESS) && ledger->view->arc_count > 0;
  for (size_t i = 0; i < ledger->node_count && !is_blind; i++) {
    if (ledger->nodes[i].nonce == nonce) return view_node(manager, ledger->nodes[i].id)->process;
  }
  return ledger->last_process + 1;
}

static void describe(const struct pwi_join *join, struct pwi_view_node *node) {
  node->weight = join->weight ? join->weight : 1;
  node->address = join->address;
  node->host = join->host;
  node->rack = join->rack;
}

static pawl_status record_new_node(struct pwi_manager *manager, struct decision *decision,
                                   const struct pwi_join *join) {
  struct pwi_ledger_node added = {.id = manager->ledger.last_node + 1,
                                  .secret = draw_secret(manager),
                                  .nonce = join->process,
                                  .shard_count = join->shard_count,
                                  .memory_max = join->memory_max};
  struct pwi_view_node node = {
      .node = {added.id}, .process = process_number(manager, join->process), .shard = join->shard};
  struct view_draft draft;
  describe(join, &node);
  pawl_status status = pwi_manager_make_node_room(manager);
  if (!status) status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  pwi_draft_add_node(&draft, &node);
  status = pwi_draft_record(manager, &draft, 0, &added);
  pwi_draft_close(&draft);
  decision->id = added.id;
  return status;
}

/* A node returns. A new view is needed only if the node was marked down or its address or labels have
 * changed. */
static pawl_status record_return(struct pwi_manager *manager, const struct pwi_join *join, uint64_t id) {
  const struct pwi_view_node *was = view_node(manager, id);
  struct pwi_view_node is = *was;
  struct view_draft draft;
  describe(join, &is);
  if (was->state == PWI_NODE_DOWN) is.state = pwi_manager_node(manager, id)->leaving ? PWI_NODE_DRAINING : PWI_NODE_UP;
  bool same = was->state == is.state && was->weight == is.weight && strcmp(was->address, is.address) == 0 &&
              strcmp(was->host, is.host) == 0 && strcmp(was->rack, is.rack) == 0;
  if (same) return PAWL_OK;
  pawl_status status = pwi_draft_open(manager->ledger.view, 0, &draft);
  if (status) return status;
  *pwi_draft_node(&draft, id) = is;
  status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

static pawl_status decide_server(struct pwi_manager *manager, struct decision *decision) {
  const struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (!peer) return PAWL_OK;
  if (is_ahead_of_us(manager, peer)) return PAWL_CLUSTER_HISTORY;
  if (!pwi_rights_are_full(&peer->who.rights)) return PAWL_FORBIDDEN;
  if (!is_sound_server(&peer->join)) return PAWL_INVALID;
  const struct pwi_ledger_node *known = find_known(manager, &peer->join);
  if (!known) return peer->join.id ? PAWL_NODE_RETIRED : record_new_node(manager, decision, &peer->join);
  if (known->shard_count != peer->join.shard_count || known->nonce != peer->join.process) return PAWL_MISMATCH;
  decision->id = known->id;
  return record_return(manager, &peer->join, known->id);
}

static void let_server_in(struct pwi_manager *manager, struct manager_peer *peer, struct manager_node *node) {
  bool was_suspect = pwi_manager_suspects_itself(manager);
  if (node->peer) pwi_manager_moves_lost(manager, node->id, true); /* orders on the old link may be lost */
  if (node->peer || peer->join.id != 0) node->returned_at = pwi_net_now(manager->config.net);
  replace_peer(manager, node->peer, peer);
  node->peer = peer;
  node->declared = false;
  node->verdict = PWI_VERDICT_NONE;
  manager->presence_changes++;
  pwi_manager_timer_cancel(manager, &node->timer);
  peer->id = node->id;
  peer->state = PEER_IN;
  pwi_log(manager->config.log, PAWL_LOG_INFO, "server.joined", "node=%llu address=%s shard=%u",
          (unsigned long long)peer->id, peer->join.address, peer->join.shard);
  pwi_manager_say_joined(manager, peer, PAWL_OK, pwi_ledger_node(&manager->ledger, node->id)->secret);
  pwi_manager_send_news(manager, peer);
  if (manager->ledger.space_count > 0) pwi_manager_grant(manager, node);
  pwi_manager_settle(manager);
  pwi_manager_server_returned(manager, was_suspect);
  pwi_manager_node_came(manager);
  pwi_manager_moves_poke(manager);
}

static void conclude_server(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  struct manager_node *node = pwi_manager_node(manager, decision->id);
  if (peer && !status && node)
    let_server_in(manager, peer, node);
  else if (peer)
    turn_away(manager, peer, status ? status : PAWL_NODE_RETIRED);
  else if (node && !node->peer)
    pwi_manager_server_lost(manager, node, PAWL_LINK_CLOSED);
}

/* --- clients -------------------------------------------------------------------------------------------- */

static bool is_reader(const struct manager_peer *peer) { return peer->join.reader || !peer->who.rights.write; }

static pawl_status record_new_sender(struct pwi_manager *manager, struct decision *decision,
                                     const struct pwi_join *join, const char *space) {
  struct pwi_membership_sender sender = {.sender = {manager->ledger.last_sender + 1}};
  const char *job = join->job[0] ? join->job : JOB_DEFAULT;
  if (strlen(job) > PWI_JOB_MAX || !pwi_site_is_sound(join->host) || !pwi_site_is_sound(join->rack))
    return PAWL_INVALID;
  memcpy(sender.job, job, strlen(job));
  memcpy(sender.host, join->host, strlen(join->host));
  memcpy(sender.rack, join->rack, strlen(join->rack));
  memcpy(sender.address, join->address, strlen(join->address));
  memcpy(sender.key, join->key, sizeof sender.key);
  pawl_status status = pwi_manager_make_sender_room(manager);
  if (status) return status;
  decision->id = sender.sender.id;
  pwi_record_sender(&manager->record, draw_secret(manager), space, &sender);
  return PAWL_OK;
}

static pawl_status decide_client(struct pwi_manager *manager, struct decision *decision) {
  const struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (!peer || decision->id != 0) return PAWL_OK;
  if (is_ahead_of_us(manager, peer)) return PAWL_CLUSTER_HISTORY;
  const struct pwi_join *join = &peer->join;
  /* A relay acts for others, and they send it their rows. */
  if (pwi_relay_is_job(join->job, NULL) && !pwi_rights_are_full(&peer->who.rights)) return PAWL_FORBIDDEN;
  if (is_reader(peer)) return PAWL_OK;
  if (join->id == 0) return record_new_sender(manager, decision, join, peer->who.rights.space);
  const struct pwi_ledger_sender *known = pwi_ledger_sender(&manager->ledger, join->id);
  bool live = known && known->secret == join->secret &&
              pwi_membership_is_live(&manager->ledger.membership, (struct pwi_sender){join->id});
  return live ? PAWL_OK : PAWL_NODE_RETIRED;
}

/* Restarts the time for which a retired sender is kept: its client is alive and collects its clocks. */
static void keep_retired(struct pwi_manager *manager, uint64_t id) {
  struct manager_sender *sender = pwi_manager_sender(manager, id);
  if (!sender || !pwi_membership_is_retired(&manager->ledger.membership, (struct pwi_sender){id})) return;
  pwi_manager_timer_cancel(manager, &sender->timer);
  pwi_manager_check_sender(manager, sender, manager->config.keep_retired_ns);
  sender->forget_at = pwi_net_now(manager->config.net) + manager->config.keep_retired_ns;
  sender->is_wanted = true;
}

static void let_reader_in(struct pwi_manager *manager, struct manager_peer *peer) {
  peer->state = PEER_IN;
  pwi_manager_say_joined(manager, peer, PAWL_OK, 0);
  pwi_manager_send_news(manager, peer);
}

/* A new sender is told its id once all servers have the membership. */
static void let_client_in(struct pwi_manager *manager, struct manager_peer *peer, bool is_new,
                          struct manager_sender *sender) {
  replace_peer(manager, sender->peer, peer);
  sender->peer = peer;
  peer->id = sender->id;
  pwi_manager_timer_cancel(manager, &sender->timer);
  if (peer->join.retired != 0) keep_retired(manager, peer->join.retired);
  if (is_new) {
    pwi_manager_wait(manager, &(struct waiting_reply){.link = peer->link, .kind = PWI_SAY_JOINED});
    return;
  }
  peer->state = PEER_IN;
  pwi_manager_say_joined(manager, peer, PAWL_OK, pwi_ledger_sender(&manager->ledger, sender->id)->secret);
  pwi_manager_send_news(manager, peer);
}

static void conclude_client(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (!peer) {
    if (decision->id != 0 && pwi_manager_sender(manager, decision->id))
      pwi_manager_remove_sender(manager, decision->id);
    return;
  }
  if (status) {
    turn_away(manager, peer, status);
    return;
  }
  if (is_reader(peer)) {
    let_reader_in(manager, peer);
    return;
  }
  bool is_new = decision->id != 0;
  struct manager_sender *sender = pwi_manager_sender(manager, is_new ? decision->id : peer->join.id);
  let_client_in(manager, peer, is_new, sender);
}

/* --- after a restart ------------------------------------------------------------------------------------ */

static bool is_expected(const struct pwi_manager *manager, const struct manager_node *node) {
  return !node->heard && view_node(manager, node->id)->state != PWI_NODE_DOWN;
}

static bool expects_somebody(const struct pwi_manager *manager) {
  for (size_t i = 0; i < manager->node_count; i++) {
    if (is_expected(manager, &manager->nodes[i])) return true;
  }
  return false;
}

void pwi_manager_hear(struct pwi_manager *manager) {
  manager->hearing = expects_somebody(manager);
  if (!manager->hearing) return;
  pwi_manager_timer_set(manager, PWI_MANAGER_RETURN_NS, TIMER_HEARING, 0, &manager->hearing_timer);
  if (manager->hearing_timer.id == 0) manager->hearing = false;
}

void pwi_manager_hear_end(struct pwi_manager *manager) {
  pwi_manager_timer_cancel(manager, &manager->hearing_timer);
  manager->hearing = false;
  pwi_manager_work(manager);
}

/* A peer has sent JOIN. Returns true if it is the last node that the manager was waiting for. */
static bool was_the_last(struct pwi_manager *manager, const struct manager_peer *peer) {
  if (!manager->hearing || !peer->is_server) return false;
  const struct pwi_ledger_node *known = find_known(manager, &peer->join);
  if (!known) return false;
  pwi_manager_node(manager, known->id)->heard = true;
  return !expects_somebody(manager);
}

/* --- JOIN ----------------------------------------------------------------------------------------------- */

void pwi_manager_join(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  pawl_status status = pwi_join_decode(payload, size, &peer->join);
  if (status) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  const struct pwi_message_head *head = &peer->control.head;
  peer->knew = (struct news_numbers){{head->view, head->catalogue, head->membership}};
  pwi_manager_membership_resume(manager, peer);
  pwi_manager_timer_cancel(manager, &peer->patience);
  peer->state = PEER_JOINING;
  peer->is_server = peer->join.role == PWI_ROLE_SERVER;
  if (is_of_a_later_term(manager, peer)) {
    turn_away(manager, peer, PAWL_NODE_DEPOSED);
    return;
  }
  struct decision decision = {.decide = peer->is_server ? decide_server : decide_client,
                              .conclude = peer->is_server ? conclude_server : conclude_client,
                              .link = peer->link};
  if (has_seen_more(manager, peer)) stop_for(manager, peer);
  bool is_last = was_the_last(manager, peer);
  pwi_manager_queue(manager, &decision);
  if (is_last) pwi_manager_hear_end(manager);
}
