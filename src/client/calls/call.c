/* Calls of named functions: outgoing calls, and the messages of incoming ones (client/calls/callee.h).
 *
 * A calling has a leg for each node that it calls. The legs to one node are in the list of that peer, in the
 * order of calls. They use the same link as requests, on the link lane. A leg gets a number when it is first
 * sent, and keeps it: if the link is lost it is sent again, and the callee recognises the number.
 *
 * LOST NODES. A node that is not live in the membership does not answer. A leg that was never sent has not
 * run; the outcome of a leg that was sent is unknown. The same holds when this client gets a new id: its old
 * id is not served any more, and under the new one the call would be another call.
 *
 * An unknown node or group may be newer than this client's news. So the client asks the manager for the
 * newest membership before it reports PAWL_NOT_FOUND.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "client/inside.h"

#define LEGS_MAX 256 /* legs under way to one node */
#define BYTES_MAX ((size_t)32 << 20)
#define UNHEARD_MAX ((size_t)64 << 10) /* bytes of acknowledged answers before the callee is told */
#define EARLY_BYTES ((size_t)4 << 10)  /* an early answer with more bytes is acknowledged at once */
#define EARLY_COUNT 64                 /* so is any answer this many numbers ahead */
#define RETRY_FIRST INT64_C(1000000)   /* 1 ms, doubled with each try */
#define RETRY_DOUBLINGS 6

/* --- ends ----------------------------------------------------------------------------------------------- */

static void end_calling(struct pwi_client *client, struct pwi_calling *calling) {
  *(calling->before ? &calling->before->next : &client->callings) = calling->next;
  if (calling->next) calling->next->before = calling->before;
  calling->next = calling->before = NULL;
  pwi_writer_fini(&calling->payload);
  client->outstanding--;
  calling->ended(calling);
}

static pawl_status status_of(const struct pwi_call_leg *leg) {
  if (leg->status) return leg->status;
  for (uint32_t i = 0; i < leg->back.count; i++)
    if (leg->back.results[i].status && leg->back.results[i].cause == PAWL_CALL_NONE) return leg->back.results[i].status;
  return PAWL_OK;
}

static void unlink_leg(struct client_peer *peer, struct pwi_call_leg *leg) {
  *(leg->before ? &leg->before->next : &peer->legs_first) = leg->next;
  *(leg->next ? &leg->next->before : &peer->legs_last) = leg->before;
  leg->next = leg->before = NULL;
}

static struct client_peer *peer_of(const struct pwi_client *client, const struct pwi_call_leg *leg) {
  return pwi_idmap_get(&client->peers_by_node, leg->node | PWI_PEER_IS_SENDER);
}

static void unsend(struct client_peer *peer, struct pwi_call_leg *leg) {
  if (leg->state != LEG_SENT) return;
  leg->state = LEG_WAITING;
  peer->legs_under_way--;
  peer->leg_bytes -= leg->calling->payload.size;
}

static void end_leg(struct pwi_client *client, struct pwi_call_leg *leg, pawl_status status) {
  struct pwi_calling *calling = leg->calling;
  if (leg->state == LEG_SENT || leg->state == LEG_WAITING) {
    struct client_peer *peer = peer_of(client, leg);
    unsend(peer, leg);
    unlink_leg(peer, leg);
  }
  leg->state = LEG_OVER;
  leg->status = status;
  if (!calling->status) calling->status = status_of(leg);
  assert(calling->left > 0);
  if (--calling->left == 0) end_calling(client, calling);
}

void pwi_calling_fini(struct pwi_calling *calling) {
  for (uint32_t i = 0; i < calling->leg_count; i++) pwi_call_return_fini(&calling->legs[i].back);
  pwi_free(calling->legs);
  pwi_writer_fini(&calling->payload);
  pwi_call_graph_destroy(calling->graph);
  calling->legs = NULL;
  calling->graph = NULL;
  calling->leg_count = 0;
}

/* --- messages ------------------------------------------------------------------------------------------- */

/* Calls carry a proof of the client's id until one was accepted. */
static bool add_proof(const struct pwi_client *client, const struct client_link *link, enum pwi_say kind,
                      uint8_t seal_out[PWI_SEAL_SIZE]) {
  if (kind == PWI_SAY_RETURN || !link->peer || link->proven_calls == client->sender) return false;
  return !pwi_proof_make(client->identity, client->joined.cluster, client->sender, link->peer->node, seal_out);
}

static void send(struct pwi_client *client, struct client_link *link, enum pwi_say kind, uint64_t number,
                 uint64_t settled, const void *payload, size_t size) {
  struct pwi_message_head head = {.kind = (uint16_t)kind,
                                  .sender = client->sender,
                                  .task = number,
                                  .tick = settled,
                                  .view = client->view ? (uint32_t)client->view->epoch : 0,
                                  .membership = (uint32_t)client->membership->number,
                                  .catalogue = (uint32_t)client->catalogue.number};
  uint8_t seal[PWI_SEAL_SIZE];
  struct pwi_enclosure enclosures[2];
  size_t count = 0;
  if (size > 0) enclosures[count++] = (struct pwi_enclosure){PWI_SECTION_PAYLOAD, payload, size};
  bool shows = add_proof(client, link, kind, seal);
  if (shows) enclosures[count++] = (struct pwi_enclosure){PWI_SECTION_PROOF, seal, sizeof seal};
  /* A failed send closes the link; the message is sent again over the next. */
  pawl_status status =
      pwi_messenger_send(&client->messenger, link->link, &link->peering.link, &head, enclosures, count);
  if (!status && shows) link->proven_calls = client->sender;
}

static struct pwi_call_leg *find_leg(const struct client_peer *peer, uint64_t number) {
  struct pwi_call_leg *leg = peer->legs_first;
  while (leg && leg->number != number) leg = leg->next;
  return leg;
}

/* All answers of the peer up to this number are here. */
static uint64_t settled(const struct client_peer *peer) {
  for (const struct pwi_call_leg *leg = peer->legs_first; leg; leg = leg->next)
    if (leg->number != 0) return leg->number - 1;
  return peer->last_call;
}

static void send_leg(struct pwi_client *client, struct client_peer *peer, struct pwi_call_leg *leg) {
  struct pwi_writer *payload = &leg->calling->payload;
  if (leg->number == 0) leg->number = ++peer->last_call;
  leg->state = LEG_SENT;
  peer->legs_under_way++;
  peer->leg_bytes += payload->size;
  peer->unheard = 0;
  pwi_put_u64(payload->data, leg->node);
  send(client, peer->link, PWI_SAY_CALL, leg->number, settled(peer), payload->data, payload->size);
}

static bool has_room(const struct client_peer *peer, const struct pwi_call_leg *leg) {
  if (peer->legs_under_way == 0) return true;
  return peer->legs_under_way < LEGS_MAX && peer->leg_bytes + leg->calling->payload.size <= BYTES_MAX;
}

void pwi_peer_pump_legs(struct pwi_client *client, struct client_peer *peer) {
  if (client->sender == 0 || !client->is_joined) return;
  int64_t now = pwi_net_now(client->config.net);
  for (struct pwi_call_leg *leg = peer->legs_first; leg && has_room(peer, leg); leg = leg->next) {
    if (leg->state != LEG_WAITING) continue;
    if (leg->retry_at > now) { /* later legs must not overtake it */
      pwi_client_wake_at(client, leg->retry_at);
      return;
    }
    send_leg(client, peer, leg);
  }
}

void pwi_peer_legs_down(struct client_peer *peer) {
  for (struct pwi_call_leg *leg = peer->legs_first; leg; leg = leg->next) unsend(peer, leg);
}

static void missed(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct client_peer *peer = (struct client_peer *)((char *)asking - offsetof(struct client_peer, missing));
  (void)status, (void)payload, (void)size;
  peer->is_missing = false;
}

/* The peer refuses connections: its process is dead, or the network blocks it. Asks the manager, which need
 * not wait for the peer to come back if its own link to it is down as well. If the manager has not noticed
 * yet, the client asks again after the next refusal. */
void pwi_peer_miss(struct pwi_client *client, struct client_peer *peer) {
  unsigned char sender[sizeof(uint64_t)];
  if (!(peer->node & PWI_PEER_IS_SENDER) || !peer->legs_first || peer->is_missing || client->config.reader) return;
  pwi_put_u64(sender, peer->node & ~PWI_PEER_IS_SENDER);
  peer->missing.replied = missed;
  peer->is_missing = pwi_client_ask(client, &peer->missing, PWI_ASK_MISS, sender, sizeof sender) == PAWL_OK;
}

/* --- who is called -------------------------------------------------------------------------------------- */

static void begin_leg(struct pwi_client *client, struct pwi_call_leg *leg) {
  const struct pwi_membership_sender *sender = pwi_membership_find(client->membership, (struct pwi_sender){leg->node});
  struct pwi_calling *calling = leg->calling;
  if (leg->node == client->sender) {
    pawl_status status = client->callee ? PAWL_OK : PAWL_NOT_FOUND;
    struct pwi_call_graph *graph = calling->graph;
    calling->graph = NULL;
    leg->state = LEG_HERE;
    if (!status) status = pwi_callee_call_here(client->callee, client->sender, leg, graph);
    if (!status) return;
    pwi_call_graph_destroy(graph);
    end_leg(client, leg, status);
    return;
  }
  struct client_peer *peer = pwi_client_peer(client, leg->node | PWI_PEER_IS_SENDER);
  bool is_live = sender && !sender->retired;
  if (!is_live || !sender->address[0] || !peer) {
    end_leg(client, leg, !is_live ? PAWL_NODE_GONE : !peer ? PAWL_NO_MEMORY : PAWL_UNSUPPORTED);
    return;
  }
  leg->state = LEG_WAITING;
  leg->before = peer->legs_last;
  *(peer->legs_last ? &peer->legs_last->next : &peer->legs_first) = leg;
  peer->legs_last = leg;
  pwi_peer_pump(client, peer);
}

/* Legs may end only after all have begun; otherwise the calling could end too early. */
static void begin_legs(struct pwi_client *client, struct pwi_calling *calling) {
  uint32_t count = calling->leg_count;
  calling->left = count + 1;
  for (uint32_t i = 0; i < count; i++) begin_leg(client, &calling->legs[i]);
  if (--calling->left == 0) end_calling(client, calling);
}

static pawl_status make_legs(struct pwi_calling *calling, size_t count) {
  calling->legs = pwi_alloc_zero(count, sizeof *calling->legs);
  if (!calling->legs) return PAWL_NO_MEMORY;
  calling->leg_count = (uint32_t)count;
  for (size_t i = 0; i < count; i++) calling->legs[i].calling = calling;
  return PAWL_OK;
}

static const struct pwi_membership_member *find_members(const struct pwi_client *client, const char *group,
                                                        size_t *count_out) {
  const struct pwi_entry *entry = pwi_catalogue_named(&client->catalogue, group);
  *count_out = 0;
  return entry ? pwi_membership_members(client->membership, entry->id, count_out) : NULL;
}

/* PAWL_NOT_FOUND: the present membership has no such node or member. */
static pawl_status find_targets(const struct pwi_client *client, struct pwi_calling *calling) {
  size_t count = 1;
  if (calling->node != 0) {
    if (!pwi_membership_is_live(client->membership, (struct pwi_sender){calling->node})) return PAWL_NOT_FOUND;
    pawl_status status = make_legs(calling, count);
    if (!status) calling->legs[0].node = calling->node;
    return status;
  }
  const struct pwi_membership_member *members = find_members(client, calling->group, &count);
  pawl_status status = count > 0 ? make_legs(calling, count) : PAWL_NOT_FOUND;
  for (size_t i = 0; i < count && !status; i++) calling->legs[i].node = members[i].sender.id;
  return status;
}

/* --- asking for the membership -------------------------------------------------------------------------- */

static void synced(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size);

/* True if the manager is being asked, now or already. */
static bool ask_who(struct pwi_client *client) {
  if (client->is_syncing) return true;
  client->sync.replied = synced;
  client->is_syncing = pwi_client_ask(client, &client->sync, PWI_ASK_SYNC, NULL, 0) == PAWL_OK;
  if (client->is_syncing) client->sync_round++;
  return client->is_syncing;
}

/* No node was found, or the manager cannot be asked. */
static void end_seeking(struct pwi_client *client, struct pwi_calling *calling, pawl_status status) {
  if (calling->node == 0 || make_legs(calling, 1) != PAWL_OK) {
    calling->status = status;
    end_calling(client, calling);
    return;
  }
  calling->legs[0].node = calling->node;
  calling->left = 1;
  end_leg(client, &calling->legs[0], status == PAWL_NOT_FOUND ? PAWL_NODE_GONE : status);
}

static void begin_calling(struct pwi_client *client, struct pwi_calling *calling, bool is_final) {
  pawl_status status = find_targets(client, calling);
  calling->round = 0;
  if (!status) {
    begin_legs(client, calling);
    return;
  }
  if (status == PAWL_NOT_FOUND && !is_final) {
    calling->round = client->sync_round + 1; /* a reply under way may be too old */
    if (ask_who(client)) return;
    calling->round = 0;
    status = PAWL_NO_MEMORY;
  }
  end_seeking(client, calling, status);
}

/* A callback may begin other callings, so the search restarts after each. */
static void synced(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct pwi_client *client = (struct pwi_client *)((char *)asking - offsetof(struct pwi_client, sync));
  uint64_t round = client->sync_round;
  bool is_more = false;
  (void)status, (void)payload, (void)size;
  client->is_syncing = false;
  for (struct pwi_calling *at = client->callings; at;) {
    bool is_due = at->round != 0 && at->round <= round;
    is_more = is_more || (at->round != 0 && !is_due);
    if (is_due) begin_calling(client, at, true);
    at = is_due ? client->callings : at->next;
  }
  if (is_more) (void)ask_who(client);
}

pawl_status pwi_client_call(struct pwi_client *client, struct pwi_calling *calling, uint64_t node, const char *group,
                            struct pwi_call_graph *graph) {
  void (*ended)(struct pwi_calling *) = calling->ended;
  if (client->is_dead) return client->died;
  if (client->config.reader || (client->is_joined && !client->joined.may_write)) return PAWL_FORBIDDEN;
  if (client->is_leaving) return PAWL_NODE_STOPPED;
  *calling = (struct pwi_calling){.ended = ended, .node = node, .graph_count = graph->count, .next = client->callings};
  if (group) strncpy(calling->group, group, sizeof calling->group - 1);
  pwi_call_encode(0, graph, &calling->payload);
  if (calling->payload.status) {
    pwi_writer_fini(&calling->payload);
    return PAWL_NO_MEMORY;
  }
  calling->graph = graph;
  if (client->callings) client->callings->before = calling;
  client->callings = calling;
  client->outstanding++;
  begin_calling(client, calling, false);
  return PAWL_OK;
}

/* --- receiving ------------------------------------------------------------------------------------------ */

bool pwi_client_is_call(const struct pwi_message *message) {
  uint16_t kind = pwi_message_peek_kind(message->head);
  return kind == PWI_SAY_CALL || kind == PWI_SAY_RETURN || kind == PWI_SAY_HEARD;
}

/* PAWL_CORRUPT: the payload is no result of this call. */
static pawl_status take_return(struct pwi_client *client, struct pwi_call_leg *leg, const void *payload, size_t size) {
  struct pwi_call_return back;
  pawl_status status = pwi_call_return_decode(payload, size, &back);
  if (status == PAWL_NO_MEMORY) { /* the call has run; its result cannot be kept */
    end_leg(client, leg, PAWL_NO_MEMORY);
    return PAWL_OK;
  }
  if (status) return status;
  if (back.code == PWI_CALL_CODE_DONE && back.count == leg->calling->graph_count) {
    leg->back = back;
    end_leg(client, leg, PAWL_OK);
    return PAWL_OK;
  }
  pawl_status refusal = back.code == PWI_CALL_CODE_REFUSED ? back.results[0].status : PAWL_OK;
  bool is_later = back.code == PWI_CALL_CODE_LATER && leg->state == LEG_SENT;
  pwi_call_return_fini(&back);
  if (refusal) end_leg(client, leg, refusal);
  if (!refusal && !is_later) return PAWL_CORRUPT;
  if (!is_later) return PAWL_OK;
  struct client_peer *peer = peer_of(client, leg);
  if (peer->link) peer->link->proven_calls = 0; /* the proof may have been rejected */
  unsend(peer, leg);
  leg->retry_at =
      pwi_net_now(client->config.net) + (RETRY_FIRST << (leg->tries < RETRY_DOUBLINGS ? leg->tries : RETRY_DOUBLINGS));
  leg->tries++;
  pwi_client_wake_at(client, leg->retry_at);
  return PAWL_OK;
}

/* Acknowledges answers. The next call does this too, but it may come late, and it cannot name early
 * answers. */
static void say_heard(struct pwi_client *client, struct client_peer *peer, uint64_t number, size_t size) {
  uint64_t up_to = settled(peer);
  bool is_early = number > up_to, is_much = size > EARLY_BYTES || peer->last_call - up_to > EARLY_COUNT;
  if (find_leg(peer, number)) return; /* it will be sent again */
  if (!is_early) peer->unheard += size;
  if (!(is_early ? is_much : peer->unheard > UNHEARD_MAX) || !peer->link || client->sender == 0) return;
  if (!is_early) peer->unheard = 0;
  send(client, peer->link, PWI_SAY_HEARD, is_early ? number : 0, up_to, NULL, 0);
}

static pawl_status hear_return(struct pwi_client *client, struct client_link *link, const void *payload, size_t size) {
  struct client_peer *peer = link->peer;
  uint64_t called = link->call_control.head.task;
  struct pwi_call_leg *leg = peer && called != 0 ? find_leg(peer, called) : NULL;
  if (!leg || leg->state != LEG_SENT) return PAWL_OK; /* an answer to an earlier attempt */
  pawl_status status = take_return(client, leg, payload, size);
  if (!status) say_heard(client, peer, called, size);
  return status;
}

static void answer(void *context, const struct pwi_callee_answer *answer) {
  struct pwi_client *client = context;
  if (answer->local) {
    pawl_status status = take_return(client, answer->local, answer->payload, answer->size);
    assert(status == PAWL_OK && "an answer of ours is sound");
    (void)status;
    return;
  }
  struct client_link *link = pwi_idmap_get(&client->links, answer->link);
  if (link && link->is_up) send(client, link, PWI_SAY_RETURN, answer->number, 0, answer->payload, answer->size);
}

static pawl_status make_callee(struct pwi_client *client) {
  return client->callee ? PAWL_OK : pwi_callee_create(answer, client, &client->callee);
}

static void say_later(struct pwi_client *client, struct client_link *link, uint64_t number) {
  unsigned char bytes[8];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  pwi_call_return_encode(PWI_CALL_CODE_LATER, NULL, 0, &writer);
  send(client, link, PWI_SAY_RETURN, number, 0, writer.data, writer.size);
}

/* True if the link belongs to the sender that the message names. */
static bool is_proved(struct pwi_client *client, struct client_link *link) {
  return pwi_shown_is(&link->shown, client->membership, client->joined.cluster, client->sender | PWI_PEER_IS_SENDER,
                      link->call_control.head.sender);
}

/* Accepts only calls to this client's present id, from a sender that is live in the membership (others may
 * have been forgotten), and over a link of that sender. */
static pawl_status hear_call(struct pwi_client *client, struct client_link *link, const void *payload, size_t size) {
  const struct pwi_message_head *head = &link->call_control.head;
  struct pwi_sender caller = {head->sender};
  if (size < sizeof(uint64_t) || head->task == 0) return PAWL_CORRUPT;
  bool is_ours = client->sender != 0 && pwi_get_u64(payload) == client->sender;
  if (!is_ours || !pwi_membership_is_live(client->membership, caller) || !is_proved(client, link) ||
      make_callee(client)) {
    say_later(client, link, head->task);
    return PAWL_OK;
  }
  return pwi_callee_take(client->callee, caller.id, head->task, head->tick, link->link.id, payload, size);
}

pawl_status pwi_client_hear_call(struct pwi_client *client, struct client_link *link, const void *body) {
  const struct pwi_message_head *head = &link->call_control.head;
  size_t size;
  const void *payload = pwi_control_find(&link->call_control, body, PWI_SECTION_PAYLOAD, &size);
  if (head->kind == PWI_SAY_RETURN && link->kind == LINK_HANDLER) return hear_return(client, link, payload, size);
  if (link->kind != LINK_ASKER) return PAWL_LINK_PROTOCOL;
  const void *seal = pwi_control_find(&link->call_control, body, PWI_SECTION_PROOF, &size);
  pwi_shown_take(&link->shown, head->sender, seal, size);
  payload = pwi_control_find(&link->call_control, body, PWI_SECTION_PAYLOAD, &size);
  if (head->kind == PWI_SAY_CALL) return hear_call(client, link, payload, size);
  if (head->kind != PWI_SAY_HEARD) return PAWL_LINK_PROTOCOL;
  if (client->callee && is_proved(client, link)) pwi_callee_heard(client->callee, head->sender, head->task, head->tick);
  return PAWL_OK;
}

pawl_status pwi_client_offer(struct pwi_client *client, void (*run)(void *context, struct pwi_running *running),
                             void *context, struct pwi_callee **callee_out) {
  pawl_status status = make_callee(client);
  if (status) return status;
  pwi_callee_set_host(client->callee, run, context);
  *callee_out = client->callee;
  return PAWL_OK;
}

/* --- lost nodes ----------------------------------------------------------------------------------------- */

/* Ends the first leg that will never be answered, if any. Its callback may change every list. */
static bool end_one(struct pwi_client *client, bool is_renewed) {
  for (struct client_peer *peer = client->peers; peer; peer = peer->next) {
    struct pwi_sender node = {peer->node & ~PWI_PEER_IS_SENDER};
    bool is_gone = !pwi_membership_is_live(client->membership, node);
    for (struct pwi_call_leg *leg = peer->legs_first; leg; leg = leg->next) {
      bool was_sent = leg->number != 0;
      if (!is_gone && !(is_renewed && was_sent)) continue;
      end_leg(client, leg, was_sent ? PAWL_OUTCOME_UNKNOWN : PAWL_NODE_GONE);
      return true;
    }
  }
  return false;
}

void pwi_client_calls_look(struct pwi_client *client) {
  while (end_one(client, false)) {
  }
  if (client->callee) pwi_callee_set_membership(client->callee, client->membership);
}

void pwi_client_calls_renewed(struct pwi_client *client) {
  while (end_one(client, true)) {
  }
  if (client->callee) pwi_callee_renew(client->callee);
}

static bool end_any(struct pwi_client *client) {
  for (struct client_peer *peer = client->peers; peer; peer = peer->next) {
    if (!peer->legs_first) continue;
    end_leg(client, peer->legs_first, client->died);
    return true;
  }
  for (struct pwi_calling *calling = client->callings; calling; calling = calling->next) {
    if (calling->round == 0) continue;
    calling->round = 0;
    end_seeking(client, calling, client->died);
    return true;
  }
  return false;
}

/* Only legs that run in this process remain. */
void pwi_client_calls_die(struct pwi_client *client) {
  while (end_any(client)) {
  }
  if (client->callee) pwi_callee_renew(client->callee);
}
