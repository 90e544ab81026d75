/* Messages between the members of a chain (docs/replication.md; protocol/protocol.h, "chains").
 *
 * A member connects to the following one and speaks first. One link serves all arcs of the two servers. For
 * each arc the following member says READY once it has the view that made the two neighbours. It is then sent
 * everything that it lacks, and afterwards every change. After a lost link or a new view this begins again;
 * nothing depends on messages that were under way.
 *
 * FENCING. A member ignores messages with another `since`. A head that was deposed and does not know it
 * therefore receives no confirmations, and sends no replies about changes.
 *
 * COMPLAINTS. A member that cannot reach the following one for a while tells the manager, which drops one of
 * the two. A link that is up but brings no confirmation for seconds counts as lost, even if its heartbeats
 * arrive. A member that is cut off from all nodes for a moment must not accuse a healthy neighbour. Its link to
 * the manager survives such a moment, and would carry the complaint afterwards. So the member warns the manager
 * first, and complains only if it still cannot reach its neighbour some time after the manager has answered.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "protocol/planted.h"
#include "server/inside.h"

#define LOOK_NS INT64_C(50000000)
#define COMPLAIN_NS INT64_C(200000000)
#define LATE_NS INT64_C(100000000)
#define CONNECT_NS INT64_C(1000000000) /* an attempt that takes longer is begun anew */
#define SILENCES 3                     /* checks, one a second, without a confirmation */

/* --- links ---------------------------------------------------------------------------------------------- */

static struct server_peer *find_peer(const struct pwi_server *server, enum server_peer_kind kind, uint64_t node) {
  struct server_peer *found = NULL;
  for (struct server_peer *peer = server->peers; peer; peer = peer->next)
    if (peer->kind == kind && peer->node == node && (kind == PEER_NEXT || peer->has_spoken) &&
        (!found || (peer->is_up && !found->is_up)))
      found = peer;
  return found;
}

static struct server_peer *find_up(const struct pwi_server *server, enum server_peer_kind kind, uint64_t node) {
  struct server_peer *peer = node ? find_peer(server, kind, node) : NULL;
  return peer && peer->is_up ? peer : NULL;
}

/* Another link to the previous member begins with READY. */
static void forget_debts(struct chain_contact *contact) {
  contact->is_greeted = false;
  contact->owes_ready = contact->owes_full = contact->owes_confirm = contact->owes_taken = false;
}

/* Finds the links of all chains again, after links or chains have changed. */
static void relink(struct pwi_server *server) {
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    struct server_peer *before = find_up(server, PEER_PREVIOUS, chain->previous);
    if (before != contact_of(chain)->previous) forget_debts(contact_of(chain));
    contact_of(chain)->previous = before;
    contact_of(chain)->following = find_up(server, PEER_NEXT, chain->following);
  }
}

struct server_peer *pwi_server_reach(struct pwi_server *server, uint64_t node) {
  struct server_peer *peer = find_peer(server, PEER_NEXT, node);
  if (peer) return peer->is_up ? peer : NULL;
  const struct pwi_view_node *known = server->view ? pwi_view_find(server->view, (struct pwi_node){node}) : NULL;
  if (!known || known->state == PWI_NODE_DOWN) return NULL;
  peer = pwi_server_connect(server, PEER_NEXT, known->address);
  if (!peer) return NULL;
  peer->node = node;
  peer->began_at = pwi_net_now(server->config.net);
  return NULL;
}

bool pwi_server_seeks(const struct pwi_server *server, uint64_t node) {
  return find_peer(server, PEER_NEXT, node) != NULL;
}

struct pwi_log_entry_address pwi_server_address_of(const struct pwi_server *server, const struct server_peer *peer) {
  return (struct pwi_log_entry_address){.link = peer->link,
                                        .terms = &peer->peering.data,
                                        .is_sound = peer->peering.sound,
                                        .view = server->numbers.view,
                                        .membership = server->membership->number,
                                        .catalogue = server->catalogue.number};
}

/* Returns false if the link has no room for the message at the moment. Any other failure closes the link; the
 * message is sent again over the next. */
static bool send_message(struct pwi_server *server, struct server_peer *peer, const struct pwi_chain_message *message) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN,
                                  .sender = server->node,
                                  .view = (uint32_t)server->numbers.view,
                                  .membership = (uint32_t)server->membership->number,
                                  .catalogue = (uint32_t)server->catalogue.number};
  uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE];
  struct pwi_section section = {.type = PWI_SECTION_CHAIN, .count = 1, .length = sizeof bytes};
  pwi_chain_message_encode(message, bytes);
  pwi_message_begin(&builder, &peer->peering.data, &head);
  pawl_status status = pwi_message_copy(&builder, &section, bytes);
  if (!status) status = pwi_message_finish(&builder);
  assert(status == PAWL_OK && "the message is well-formed");
  struct pwi_send send = {
      .lane = PWI_LANE_DATA, .head = builder.head, .body = builder.parts, .body_count = builder.part_count};
  status = pwi_net_send(server->config.net, peer->link, &send);
  if (status == PAWL_QUEUE_FULL) return false;
  if (status && status != PAWL_NOT_FOUND) pwi_net_close(server->config.net, peer->link, status);
  return true;
}

static struct pwi_chain_message message_of(const struct pwi_chain *chain, enum pwi_chain_message_kind kind) {
  return (struct pwi_chain_message){.kind = kind, .positions = chain->positions, .since = chain->since};
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void look_later(struct pwi_server *server) {
  if (server->chain_timer.id != 0) return;
  int64_t at = pwi_net_now(server->config.net) + LOOK_NS;
  if (pwi_net_timer_set(server->config.net, at, TIMER_CHAIN, &server->chain_timer)) server->chain_timer.id = 0;
  server->chain_timer_at = at;
}

/* The time of a complaint counts from now on. */
static void begin_cut_off(struct chain_contact *contact, int64_t now) {
  contact->cut_off_since = now;
  contact->has_warned = false;
  contact->manager_heard_at = 0;
}

/* Announces this server to the following member, which answers READY. A member that is being filled waits for
 * its first chunk instead. */
static void open_chain(struct pwi_server *server, struct pwi_chain *chain) {
  if (!chain->following || chain->is_open || chain->following_fills) return;
  if (contact_of(chain)->cut_off_since == 0) begin_cut_off(contact_of(chain), pwi_net_now(server->config.net));
  look_later(server);
  struct server_peer *peer = pwi_server_reach(server, chain->following);
  if (!peer) return;
  struct pwi_chain_message message = message_of(chain, PWI_CHAIN_OPEN);
  message.version = pwi_chain_at(chain);
  contact_of(chain)->owes_open = !send_message(server, peer, &message);
}

/* The version that is confirmed to the previous member: everything up to it is here and in all full members
 * behind. */
static uint64_t told(const struct pwi_chain *chain) {
  if (chain->is_filling || pwi_chain_is_settled(chain)) return chain->processed;
  return chain->confirmed < chain->processed ? chain->confirmed : chain->processed;
}

static void say_ready(struct pwi_server *server, struct pwi_chain *chain, bool full) {
  struct server_peer *peer = contact_of(chain)->previous;
  if (!peer || chain->is_filling) return;
  contact_of(chain)->is_greeted = true;
  chain->siblings = 0;
  struct pwi_chain_message message = message_of(chain, PWI_CHAIN_READY);
  message.version = chain->processed;
  message.other = told(chain);
  message.full = full || contact_of(chain)->owes_full;
  contact_of(chain)->owes_ready = !send_message(server, peer, &message);
  contact_of(chain)->owes_full = contact_of(chain)->owes_ready && message.full;
}

void pwi_server_chain_confirm(struct pwi_server *server, struct pwi_chain *chain) {
  struct server_peer *peer = contact_of(chain)->previous;
  if (!peer) return;
  struct pwi_chain_message message = message_of(chain, PWI_CHAIN_CONFIRM);
  message.version = told(chain);
  contact_of(chain)->owes_confirm = !send_message(server, peer, &message);
}

/* Of two that are owed the later one says everything, unless the earlier one reports a failure. */
void pwi_server_chain_taken(struct pwi_server *server, struct pwi_chain *chain,
                            const struct pwi_chain_message *message) {
  struct chain_contact *contact = contact_of(chain);
  if (!contact->previous) return;
  if (!contact->owes_taken || !contact->taken.status || contact->taken.other != message->other)
    contact->taken = *message;
  contact->owes_taken = !send_message(server, contact->previous, &contact->taken);
}

static void pay_debts(struct pwi_server *server, struct pwi_chain *chain) {
  struct chain_contact *contact = contact_of(chain);
  if (contact->owes_ready) say_ready(server, chain, contact->owes_full);
  if (contact->owes_confirm) pwi_server_chain_confirm(server, chain);
  if (contact->owes_taken) pwi_server_chain_taken(server, chain, &contact->taken);
}

void pwi_server_chain_up(struct pwi_server *server, struct server_peer *peer) {
  relink(server);
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (peer->kind == PEER_NEXT && chain->following == peer->node) open_chain(server, chain);
    if (peer->kind == PEER_PREVIOUS && chain->previous == peer->node && !contact_of(chain)->is_greeted)
      say_ready(server, chain, false);
  }
  if (peer->kind == PEER_NEXT) pwi_server_fill_go(server, peer->node);
}

void pwi_server_chain_down(struct pwi_server *server, const struct server_peer *peer) {
  relink(server);
  if (peer->kind != PEER_NEXT) return;
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (chain->following != peer->node) continue;
    chain->is_open = contact_of(chain)->owes_open = false;
    if (contact_of(chain)->cut_off_since == 0) begin_cut_off(contact_of(chain), pwi_net_now(server->config.net));
  }
  pwi_server_fill_down(server, peer->node, PAWL_LINK_CLOSED);
  look_later(server);
}

/* Closes links to nodes that left the view. The next view may need the other links again. */
static void close_unneeded(struct pwi_server *server) {
  for (struct server_peer *peer = server->peers; peer; peer = peer->next)
    if (peer->kind == PEER_NEXT && !pwi_view_find(server->view, (struct pwi_node){peer->node}))
      pwi_net_close(server->config.net, peer->link, PAWL_OK);
}

static void log_chain(const struct pwi_server *server, const struct pwi_chain *chain) {
  if (chain->since != server->numbers.view) return;
  pwi_log(server->config.log, PAWL_LOG_DEBUG, "chain.since",
          "node=%llu since=%llu begin=%016llx end=%016llx place=%zu filling=%d previous=%llu following=%llu fills=%d "
          "version=%llu even=%d processed=%llu log=%zu",
          (unsigned long long)server->node, (unsigned long long)chain->since,
          (unsigned long long)chain->positions.begin, (unsigned long long)chain->positions.end, chain->place,
          chain->is_filling, (unsigned long long)chain->previous, (unsigned long long)chain->following,
          chain->following_fills, (unsigned long long)chain->version, chain->is_even,
          (unsigned long long)chain->processed, pwi_fifo_count(&chain->log));
}

void pwi_server_chains_changed(struct pwi_server *server) {
  for (struct filling *filling = server->fillings, *next; filling; filling = next) {
    next = filling->next;
    if (pwi_rangeset_contains(&server->chains.versions.held, filling->positions))
      pwi_server_fillings_forget(server, filling->positions);
  }
  close_unneeded(server);
  relink(server);
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    log_chain(server, chain);
    open_chain(server, chain);
    if (!contact_of(chain)->is_greeted) say_ready(server, chain, false);
    pwi_server_moves_look(server, chain);
  }
}

void pwi_server_chains_unstick(struct pwi_server *server) {
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (!contact_of(chain)->is_stuck) continue;
    contact_of(chain)->is_stuck = false;
    say_ready(server, chain, false);
  }
}

/* --- complaining ---------------------------------------------------------------------------------------- */

static bool has_manager(const struct pwi_server *server) {
  return server->joined_at != 0 && server->manager && server->manager->is_up;
}

static void send_complaint(struct pwi_server *server, const struct pwi_chain *chain, uint64_t node, pawl_status why) {
  struct pwi_complaint complaint = {.positions = chain->positions, .node = node, .status = why};
  pwi_writer_reset(&server->writer);
  pwi_complaint_encode(&complaint, &server->writer);
  pwi_server_say_payload(server, server->manager, PWI_SAY_COMPLAIN);
}

static void complain(struct pwi_server *server, const struct pwi_chain *chain, uint64_t node, pawl_status why) {
  if (!has_manager(server)) return;
  pwi_log(server->config.log, PAWL_LOG_WARN, "chain.complaint", "node=%llu about=%llu begin=%016llx why=%s",
          (unsigned long long)server->node, (unsigned long long)node, (unsigned long long)chain->positions.begin,
          pawl_status_name(why));
  send_complaint(server, chain, node, why);
}

/* A head without memory is useless. The following member has everything that was acknowledged, and can be the
 * head. */
void pwi_server_chain_starve(void *context, struct pwi_chain *chain) {
  struct pwi_server *server = context;
  int64_t now = pwi_net_now(server->config.net);
  if (!pwi_chain_has_followers(chain) ||
      (contact_of(chain)->starved_at != 0 && now - contact_of(chain)->starved_at < COMPLAIN_NS))
    return;
  contact_of(chain)->starved_at = now;
  complain(server, chain, server->node, PAWL_NO_MEMORY);
}

void pwi_server_starve(struct pwi_server *server) {
  for (size_t i = 0; i < server->chains.count; i++)
    if (server->chains.items[i]->is_head) pwi_server_chain_starve(server, server->chains.items[i]);
}

static void send_all(struct pwi_server *server, struct pwi_chain *chain);

/* Warns the manager after half of `patience`, and complains after all of it. If the manager answers the warning late,
 * the neighbour has some time from then on. */
static void consider_complaint(struct pwi_server *server, struct pwi_chain *chain, int64_t patience) {
  struct chain_contact *contact = contact_of(chain);
  int64_t now = pwi_net_now(server->config.net);
  if (now - contact->cut_off_since < patience / 2) return;
  if (!contact->has_warned && has_manager(server)) {
    contact->has_warned = true;
    send_complaint(server, chain, chain->following, PAWL_OK);
  }
  if (now - contact->cut_off_since < patience) return;
  if (contact->manager_heard_at == 0 || now - contact->manager_heard_at < patience / 2 - LOOK_NS / 2) return;
  complain(server, chain, chain->following, PAWL_LINK_SILENT);
  begin_cut_off(contact, now);
}

/* A timer that is late shows that this server stood still itself. It has not tried to reach its neighbours meanwhile,
 * so that time does not count for complaints. */
void pwi_server_chain_timer(struct pwi_server *server) {
  int64_t now = pwi_net_now(server->config.net);
  int64_t patience = COMPLAIN_NS + pwi_net_allowance(server->config.net);
  if (now - server->chain_timer_at > LATE_NS) pwi_server_chains_afresh(server);
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (pwi_is_planted(PWI_PLANTED_EARLY_ACK)) send_all(server, chain);
    if (contact_of(chain)->is_stuck) {
      contact_of(chain)->is_stuck = false;
      say_ready(server, chain, false);
    }
    if (!chain->following || chain->is_open || chain->following_fills) continue;
    open_chain(server, chain);
    if (contact_of(chain)->owes_open) begin_cut_off(contact_of(chain), now); /* the neighbour was not asked yet */
    consider_complaint(server, chain, patience);
  }
}

/* Closes links that have been in the making for longer than `age`; `link_down` leads to the next attempt. */
static void give_up_attempts(struct pwi_server *server, int64_t age) {
  int64_t now = pwi_net_now(server->config.net);
  for (struct server_peer *peer = server->peers; peer; peer = peer->next)
    if (peer->kind == PEER_NEXT && !peer->is_up && now - peer->began_at >= age)
      pwi_net_close(server->config.net, peer->link, PAWL_TIMED_OUT);
}

/* Without the manager this server may have been cut off from all nodes, so that time does not count for
 * complaints. */
void pwi_server_chains_afresh(struct pwi_server *server) {
  int64_t now = pwi_net_now(server->config.net);
  give_up_attempts(server, LOOK_NS);
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (contact_of(chain)->cut_off_since != 0) begin_cut_off(contact_of(chain), now);
  }
}

/* The manager hears this server. If it did not a moment ago, attempts to reach neighbours were lost as well; others are
 * made at the next look. */
void pwi_server_chains_heard(struct pwi_server *server) {
  bool is_first = false;
  for (size_t i = 0; i < server->chains.count; i++) {
    struct chain_contact *contact = contact_of(server->chains.items[i]);
    if (!contact->has_warned || contact->manager_heard_at != 0) continue;
    contact->manager_heard_at = pwi_net_now(server->config.net);
    is_first = true;
  }
  if (is_first) give_up_attempts(server, LOOK_NS + pwi_net_allowance(server->config.net));
}

/* True if entries were sent and none has been confirmed for several checks. */
static bool is_silent(struct pwi_chain *chain) {
  bool should_come = chain->is_open && !chain->following_fills && contact_of(chain)->following && chain->sent_count > 0;
  contact_of(chain)->silences =
      should_come && chain->heard == contact_of(chain)->heard_then ? contact_of(chain)->silences + 1 : 0;
  contact_of(chain)->heard_then = chain->heard;
  return contact_of(chain)->silences > SILENCES;
}

void pwi_server_chains_watch(struct pwi_server *server) {
  give_up_attempts(server, CONNECT_NS + pwi_net_allowance(server->config.net));
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (!is_silent(chain)) continue;
    contact_of(chain)->silences = 0;
    complain(server, chain, chain->following, PAWL_LINK_SILENT);
    pwi_net_close(server->config.net, contact_of(chain)->following->link, PAWL_LINK_SILENT);
  }
  pwi_server_fills_watch(server);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void say_all_sent(struct pwi_server *server, struct pwi_chain *chain, struct server_peer *peer) {
  struct pwi_chain_message message = message_of(chain, PWI_CHAIN_UPDATE);
  message.version = pwi_chain_at(chain);
  message.prior = chain->sent;
  if (send_message(server, peer, &message)) chain->sent = message.version;
}

static void send_all(struct pwi_server *server, struct pwi_chain *chain) {
  struct pwi_log_entry *log_entry;
  struct server_peer *peer = contact_of(chain)->following;
  if (!chain->is_open || !peer) return;
  struct pwi_log_entry_address address = pwi_server_address_of(server, peer);
  while ((log_entry = pwi_chain_next(chain))) {
    struct pwi_chain_message message = message_of(chain, PWI_CHAIN_UPDATE);
    message.effect = (uint8_t)log_entry->effect;
    message.status = log_entry->status;
    message.positions = pawl_range_common(log_entry->positions, chain->positions);
    message.version = log_entry->version;
    message.prior = chain->sent;
    message.other = 2 * pwi_chain_siblings(chain) + pwi_chain_has_more(chain);
    /* A member that is being filled knows no key lists. */
    bool full = chain->is_full_wanted || chain->following_fills;
    pawl_status status = pwi_log_entry_send_update(log_entry, &address, &message, full);
    if (status == PAWL_QUEUE_FULL || status == PAWL_NOT_FOUND) return; /* sent later, or over another link */
    if (status) {
      pwi_net_close(server->config.net, peer->link, status);
      return;
    }
    if (!pwi_chain_has_more(chain)) chain->is_full_wanted = false;
    server->chain_bytes += log_entry->value_bytes;
    server->bytes_passed += log_entry->value_bytes + log_entry->state_bytes;
    pwi_chain_was_sent(chain);
  }
  if (pwi_chain_is_ahead(chain)) say_all_sent(server, chain, peer);
}

/* The planted error that replies too early also sends late; otherwise the next member mostly has the change
 * before a test can kill the head. */
void pwi_server_chain_pump(void *context, struct pwi_chain *chain) {
  if (pwi_is_planted(PWI_PLANTED_EARLY_ACK))
    look_later(context);
  else
    send_all(context, chain);
}

void pwi_server_chains_pump(struct pwi_server *server) {
  for (size_t i = 0; i < server->chains.count; i++) pwi_server_chain_pump(server, server->chains.items[i]);
}

void pwi_server_chain_writable(struct pwi_server *server, const struct server_peer *peer) {
  for (size_t i = 0; i < server->chains.count; i++) {
    struct pwi_chain *chain = server->chains.items[i];
    if (contact_of(chain)->previous == peer) pay_debts(server, chain);
    if (peer->kind != PEER_NEXT || chain->following != peer->node) continue;
    if (contact_of(chain)->owes_open) open_chain(server, chain);
    pwi_server_chain_pump(server, chain);
  }
  if (peer->kind == PEER_NEXT) pwi_server_fill_go(server, peer->node);
}

/* --- receiving ------------------------------------------------------------------------------------------ */

/* Reads the stamps of an aggregate: its senders and their tasks. */
static pawl_status read_stamps(struct pwi_server *server, const struct pwi_inbox *inbox,
                               const struct pwi_sections *sections, struct pwi_change *change) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_STAMPS);
  if (!section || section->length == 0) return PAWL_OK;
  size_t count = section->length / PWI_STAMP_SIZE;
  if (section->length % PWI_STAMP_SIZE != 0) return PAWL_CORRUPT;
  pawl_status status = pwi_pages_grow(&server->stamps, 2 * section->length);
  if (status) return status;
  struct pwi_stamp *stamps = server->stamps.memory;
  const unsigned char *bytes =
      pwi_inbox_at(inbox, section->offset, section->length, (char *)server->stamps.memory + section->length);
  for (size_t i = 0; i < count; i++) /* possibly in place: a stamp is read before it is overwritten */
    stamps[i] =
        (struct pwi_stamp){{pwi_get_u64(bytes + i * PWI_STAMP_SIZE)}, pwi_get_u64(bytes + i * PWI_STAMP_SIZE + 8)};
  change->stamps = stamps;
  change->stamp_count = count;
  return PAWL_OK;
}

/* Reads the hidden state of the rows. The shard checks its size. */
static pawl_status read_state(struct pwi_server *server, const struct pwi_inbox *inbox,
                              const struct pwi_sections *sections, struct pwi_change *change) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_STATE);
  if (!section || section->length == 0) return PAWL_OK;
  pawl_status status = pwi_pages_grow(&server->state, section->length);
  if (status) return status;
  change->state = pwi_inbox_at(inbox, section->offset, section->length, server->state.memory);
  change->state_bytes = section->length;
  return PAWL_OK;
}

static pawl_status read_result(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                               struct pwi_run_result *result, struct pwi_change *change) {
  uint8_t scratch[PWI_RUN_RESULT_SIZE];
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_RESULT);
  struct pwi_reader reader;
  if (!section) return PAWL_OK;
  if (section->length != sizeof scratch) return PAWL_CORRUPT;
  pwi_reader_init(&reader, pwi_inbox_at(inbox, section->offset, sizeof scratch, scratch), sizeof scratch);
  pwi_run_result_read(&reader, result);
  change->result = result;
  return pwi_reader_end(&reader);
}

/* Reads the change of an update. */
static pawl_status read_change(struct pwi_server *server, struct server_peer *peer, const struct pwi_sections *sections,
                               const struct pwi_chain_message *message, struct pwi_run_result *result,
                               struct pwi_change *change) {
  const struct pwi_message_head *head = &peer->inbox.head;
  *change = (struct pwi_change){.effect = (enum pwi_effect)message->effect, .status = message->status};
  change->request.sender.id = head->sender;
  change->request.task = head->task;
  change->request.tick = head->tick;
  pawl_status status = pwi_reading_terms(&peer->inbox, sections, &change->request.terms);
  if (status || message->effect != PWI_EFFECT_ROWS) return status;
  const struct pwi_entry *entry = pwi_catalogue_find(&server->catalogue, change->request.terms.vector);
  if (entry) change->request.value_type = (uint8_t)entry->is.type; /* even if there are no values */
  status = pwi_reading_body(&server->reading, &peer->inbox, sections, &change->request);
  if (!status) status = read_state(server, &peer->inbox, sections, change);
  if (!status) status = read_result(&peer->inbox, sections, result, change);
  return status ? status : read_stamps(server, &peer->inbox, sections, change);
}

static size_t bytes_of(const struct iovec *parts, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += parts[i].iov_len;
  return sum;
}

/* Copies a change to a log entry, to pass it on. */
static pawl_status copy_change(struct pwi_server *server, const struct pwi_change *change,
                               const struct pwi_chain_message *message, struct pwi_log_entry **log_entry_out) {
  const struct pwi_request *request = &change->request;
  bool has_list = change->effect == PWI_EFFECT_ROWS && request->terms.keys == PWI_KEYS_LIST;
  size_t keys = has_list ? request->encoded_as.length : 0, bytes;
  size_t values = bytes_of(request->values, request->value_parts);
  struct pwi_log_entry *log_entry;
  size_t stamps = change->stamp_count * PWI_STAMP_SIZE;
  pawl_status status = pwi_log_entry_measure(keys, values, change->state_bytes, stamps, &bytes);
  if (!status) status = pwi_log_entry_take(&server->log_entries, bytes, &log_entry);
  if (status) return status;
  log_entry->version = message->version;
  log_entry->positions = message->positions;
  log_entry->effect = change->effect;
  log_entry->status = change->status;
  log_entry->terms = request->terms;
  log_entry->sender = request->sender.id;
  log_entry->task = request->task;
  log_entry->tick = request->tick;
  log_entry->signature = request->signature;
  log_entry->keys = request->encoded_as;
  log_entry->value_type = request->value_type;
  log_entry->value_size = request->value_type ? pwi_scalar_size((enum pwi_scalar)request->value_type) : 0;
  log_entry->key_bytes = keys;
  log_entry->value_bytes = values;
  log_entry->state_bytes = change->state_bytes;
  log_entry->stamp_bytes = stamps;
  pwi_log_entry_set_result(log_entry, change->result);
  for (size_t i = 0; i < change->stamp_count; i++) {
    pwi_put_u64(pwi_log_entry_stamps(log_entry) + i * PWI_STAMP_SIZE, change->stamps[i].sender.id);
    pwi_put_u64(pwi_log_entry_stamps(log_entry) + i * PWI_STAMP_SIZE + 8, change->stamps[i].task);
  }
  if (keys > 0) memcpy(pwi_log_entry_keys(log_entry), request->encoded, keys);
  if (change->state_bytes > 0) memcpy(pwi_log_entry_state(log_entry), change->state, change->state_bytes);
  unsigned char *place = pwi_log_entry_values(log_entry);
  for (size_t i = 0; i < request->value_parts; i++) {
    memcpy(place, request->values[i].iov_base, request->values[i].iov_len);
    place += request->values[i].iov_len;
  }
  *log_entry_out = log_entry;
  return PAWL_OK;
}

/* Keeps the keys of a signature with the log entry, because the following member may ask for them; false if
 * this server does not know them. This is necessary even if nothing is due here. */
static bool has_keys(struct pwi_server *server, const struct pwi_change *change, struct pwi_log_entry *log_entry) {
  const struct pwi_request *request = &change->request;
  if (change->effect != PWI_EFFECT_ROWS || request->terms.keys != PWI_KEYS_SIGNED) return true;
  log_entry->list = pwi_shard_pin_list(server->shard, request->terms.vector, request->signature);
  return log_entry->list != NULL;
}

/* An update cannot be applied now: later ones are ignored until READY asks for it again. A member that is
 * being filled cannot ask, and its fill begins anew. */
static void stick(struct pwi_server *server, struct pwi_chain *chain, pawl_status why) {
  bool was_stuck = contact_of(chain)->is_stuck;
  contact_of(chain)->is_stuck = true;
  if (!was_stuck && why == PAWL_NO_MEMORY) complain(server, chain, server->node, why);
  if (!was_stuck && chain->is_filling) pwi_server_fill_stuck(server, chain);
  look_later(server);
}

/* Applies the change on the positions that do not have it yet. */
static pawl_status apply(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_change *change,
                         const struct pwi_chain_message *message, uint32_t catalogue, bool *wanted_out) {
  struct pawl_range rest = message->positions, piece;
  while (!pawl_range_is_empty(rest) && pwi_chain_next_due(&server->chains, chain, rest, message->version, &piece)) {
    struct pwi_outcome outcome;
    pwi_shard_follow(server->shard, change, piece, &outcome);
    if (outcome.code == PWI_CODE_WANTED) {
      *wanted_out = true;
      return PAWL_OK;
    }
    /* A vector that was deleted here is deleted everywhere; a vector that is unknown yet will come. */
    bool is_gone = outcome.status == PAWL_NOT_FOUND && catalogue <= (uint32_t)server->catalogue.number;
    if (outcome.code == PWI_CODE_FAILED && !is_gone) return outcome.status;
    if (change->effect == PWI_EFFECT_ROWS && outcome.code == PWI_CODE_OK)
      pwi_shard_mark(server->shard, &change->request, piece, message->version);
    rest.begin = piece.end;
  }
  return PAWL_OK;
}

static pawl_status take_update(struct pwi_server *server, struct server_peer *peer, struct pwi_chain *chain,
                               const struct pwi_sections *sections, const struct pwi_chain_message *message) {
  struct pwi_change change;
  struct pwi_run_result result;
  struct pwi_log_entry *log_entry = NULL;
  bool is_wanted = false;
  if (message->version <= chain->processed || message->prior != chain->processed || contact_of(chain)->is_stuck)
    return PAWL_OK;
  /* A sibling before it is missing, and will be sent again. */
  if (message->other / 2 != chain->siblings) return PAWL_OK;
  if (message->effect == PWI_EFFECT_NONE) {
    pwi_chain_caught_up(&server->chains, chain, message->version);
    pwi_server_chain_confirm(server, chain);
    return PAWL_OK;
  }
  pawl_status status =
      peer->inbox.is_dropped ? PAWL_NO_MEMORY : read_change(server, peer, sections, message, &result, &change);
  if (!status) status = pwi_chain_make_room(&server->chains, chain, message->positions);
  if (!status && pwi_chain_has_followers(chain)) status = copy_change(server, &change, message, &log_entry);
  if (!status && log_entry) is_wanted = !has_keys(server, &change, log_entry);
  if (!status && !is_wanted) status = apply(server, chain, &change, message, peer->inbox.head.catalogue, &is_wanted);
  if (status || is_wanted) pwi_log_entry_release(log_entry);
  if (status == PAWL_CORRUPT) return status;
  if (status) {
    stick(server, chain, status);
    return PAWL_OK;
  }
  if (is_wanted) {
    say_ready(server, chain, true);
    return PAWL_OK;
  }
  server->chain_bytes += bytes_of(change.request.values, change.request.value_parts);
  pwi_chain_applied(&server->chains, chain, message->version, message->positions, message->other % 2 == 0, log_entry);
  pwi_server_chain_confirm(server, chain);
  return PAWL_OK;
}

static void take_confirm(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_chain_message *message) {
  pwi_chain_heard(&server->chains, chain, message->version);
  if (!chain->is_head) pwi_server_chain_confirm(server, chain);
  pwi_server_moves_look(server, chain);
}

static void take_ready(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_chain_message *message) {
  if (chain->following_fills) return;
  chain->is_open = true;
  contact_of(chain)->cut_off_since = 0;
  chain->is_full_wanted = message->full;
  pwi_chain_rewind(chain, message->version);
  take_confirm(server, chain, &(struct pwi_chain_message){.version = message->other});
  pwi_server_chain_pump(server, chain);
}

static const void *payload_of(const struct pwi_server *server, const struct pwi_inbox *inbox,
                              const struct pwi_sections *sections, struct pwi_pages *scratch, size_t *size_out) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_PAYLOAD);
  (void)server;
  *size_out = section ? section->length : 0;
  if (!section || section->length == 0 || pwi_pages_grow(scratch, section->length)) return NULL;
  return pwi_inbox_at(inbox, section->offset, section->length, scratch->memory);
}

/* The chain of a message; NULL unless `since` and the neighbour match. */
static struct pwi_chain *chain_of(const struct pwi_server *server, const struct server_peer *peer,
                                  const struct pwi_chain_message *message) {
  struct pwi_chain *chain = pwi_chains_find(&server->chains, message->positions.begin);
  if (!chain || !pawl_range_contains(chain->positions, message->positions)) return NULL;
  if (pwi_is_planted(PWI_PLANTED_ACCEPT_OLD_EPOCH) && message->since < chain->since) return chain;
  if (chain->since != message->since) return NULL;
  uint64_t neighbour = peer->kind == PEER_NEXT ? chain->following : chain->previous;
  return neighbour == peer->node ? chain : NULL;
}

static pawl_status deal_with(struct pwi_server *server, struct server_peer *peer) {
  struct pwi_sections sections;
  struct pwi_chain_message message;
  uint8_t scratch[PWI_CHAIN_MESSAGE_SIZE];
  if (peer->inbox.head.kind != PWI_SAY_CHAIN) return PAWL_LINK_PROTOCOL;
  pawl_status status = pwi_inbox_check(&peer->inbox, &sections);
  if (status) return status;
  const struct pwi_section *section = pwi_sections_find(&sections, PWI_SECTION_CHAIN);
  if (!section || section->length != sizeof scratch) return PAWL_CORRUPT;
  status = pwi_chain_message_decode(pwi_inbox_at(&peer->inbox, section->offset, sizeof scratch, scratch),
                                    sizeof scratch, &message);
  if (status) return status;
  bool is_back =
      message.kind == PWI_CHAIN_READY || message.kind == PWI_CHAIN_CONFIRM || message.kind == PWI_CHAIN_TAKEN;
  if (is_back != (peer->kind == PEER_NEXT)) return PAWL_LINK_PROTOCOL;
  struct pwi_chain *chain = chain_of(server, peer, &message);
  if (!chain) return PAWL_OK;
  size_t size;
  switch (message.kind) {
  case PWI_CHAIN_OPEN:
    say_ready(server, chain, false);
    return PAWL_OK;
  case PWI_CHAIN_READY:
    take_ready(server, chain, &message);
    return PAWL_OK;
  case PWI_CHAIN_UPDATE:
    return take_update(server, peer, chain, &sections, &message);
  case PWI_CHAIN_CONFIRM:
    take_confirm(server, chain, &message);
    return PAWL_OK;
  case PWI_CHAIN_CHUNK: {
    const void *chunk = payload_of(server, &peer->inbox, &sections, &server->reading.loose, &size);
    pwi_server_fill_chunk(server, peer, chain, &message, chunk, size);
    return PAWL_OK;
  }
  case PWI_CHAIN_TAKEN:
    pwi_server_fill_taken(server, chain, &message);
    return PAWL_OK;
  }
  return PAWL_CORRUPT;
}

void pwi_server_chain_said(struct pwi_server *server, struct server_peer *peer) {
  if (peer->kind == PEER_PREVIOUS && !peer->has_spoken) {
    peer->has_spoken = true;
    pwi_server_chain_up(server, peer);
  }
  pawl_status status = deal_with(server, peer);
  if (status) {
    pwi_log(server->config.log, PAWL_LOG_WARN, "chain.bad", "node=%llu from=%llu why=%s",
            (unsigned long long)server->node, (unsigned long long)peer->node, pawl_status_name(status));
    pwi_net_close(server->config.net, peer->link, status);
  }
  pwi_inbox_end(&peer->inbox);
}
