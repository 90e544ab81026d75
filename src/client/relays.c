/* Relays: which push or pull of a group goes through one, and what happens if that fails; the requests of a relay.
 *
 * A relay is only ever a faster way. A part goes to the head by itself on any doubt: its relay has no link, refuses it,
 * is lost or does not answer; an earlier push of the same keys is not answered yet; the values are in a codec. The head
 * finds a part that came both ways by its number, and the aggregate that brings it again is refused as a whole.
 *
 * FALLING BACK. A relay that is lost is not used for a while, and its children send to the relay above it. If that one
 * is lost too, they send to the servers. A vector whose pushes are refused is not sent through relays for a number of
 * ticks, which doubles with each refusal: a right may be missing, or its function does not permit sums.
 *
 * PULLS of a group go through a relay once all earlier pushes to their keys are answered. client/seen.c says how old the
 * rows may be. Pulls that are refused in turn are sent to the servers for a while, as pushes are.
 *
 * SILENCE. A relay that does not answer has its parts taken back. The pause until then doubles each time, because
 * slow members of the group may be the reason.
 */
#include "base/memory.h"
#include "client/inside.h"

#define AVOID_MIN INT64_C(500000000)
#define AVOID_MAX INT64_C(30000000000)
#define PATIENCE_MAX INT64_C(120000000000)
#define PAUSE_DOUBLINGS 10

const struct pwi_relays *pwi_client_relays(struct pwi_client *client) {
  pwi_relays_refresh(&client->relays, client->membership, &client->catalogue, client->view);
  return &client->relays;
}

/* --- pushes of this client ------------------------------------------------------------------------------ */

/* Pushes to the vector may be summed, as far as this client can tell. */
static bool adds_up(const struct pwi_entry *entry) {
  struct pwi_function_problem problem;
  struct pwi_rule rule;
  if (entry->is.function != PAWL_RULE) return entry->is.function == PAWL_ADD;
  if (pwi_rule_parse(NULL, entry->is.rule, &rule, &problem)) return true; /* the servers know the function */
  return rule.function->flags & PAWL_FUNCTION_SUMS;
}

static bool follows_another(const struct client_part *part) {
  for (const struct client_part *earlier = part->before; earlier; earlier = earlier->before)
    if (pwi_part_is_numbered(earlier) && earlier->task != part->task && pwi_range_overlap(earlier->claim, part->claim))
      return true;
  return false;
}

static bool is_coded(const struct pwi_flow *flow) {
  return flow->filters && (flow->filters->push_codecs || flow->filters->pull_codecs);
}

/* A push that the pull must see is not answered yet: only the server knows when it is applied. */
static bool waits_for_push(const struct client_part *part) {
  for (const struct client_part *earlier = part->before; earlier; earlier = earlier->before)
    if (pwi_part_is_numbered(earlier) && pwi_range_overlap(earlier->claim, part->claim) &&
        (earlier->aggregate == 0 || earlier->number <= part->prior))
      return true;
  return false;
}

static bool may_pull(struct pwi_client *client, struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  if (part->is_direct || part->tries > 0 || part->rows == 0 || !flow->seen || part->task->clocks) return false;
  if (flow->node != 0 || is_coded(flow) || client->sender == 0 || client->renewal != RENEWAL_NONE) return false;
  if (pwi_client_relays(client)->count == 0 || waits_for_push(part)) return false;
  if (flow->seen->skipped == 0) return true;
  flow->seen->skipped--;
  return false;
}

static bool is_eligible(struct pwi_client *client, struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  if (part->group != 0) return may_pull(client, part);
  if (part->is_direct || part->is_collecting || part->voided || part->tries > 0 || part->rows == 0) return false;
  if (flow->node != 0 || is_coded(flow) || part->operand || client->renewal != RENEWAL_NONE) return false;
  if (pwi_client_relays(client)->count == 0 || follows_another(part) || !adds_up(&flow->entry)) return false;
  return part->tick >= flow->relay_from;
}

/* The peer of a relay that can be used now. A relay without a link gets one, for later pushes. */
static struct client_peer *usable(struct pwi_client *client, uint64_t relay, uint64_t feature) {
  struct client_peer *peer = pwi_client_peer(client, relay | PWI_PEER_IS_SENDER);
  if (!peer || pwi_net_now(client->config.net) < peer->avoid_until) return NULL;
  pwi_peer_seek(client, peer);
  bool is_up = peer->link && peer->link->is_up;
  return is_up && peer->link->peering.features & feature ? peer : NULL;
}

/* The lowest relay on the way from `relay` to the server that can be used. Only its own parent takes its place. */
static struct client_peer *climb(struct pwi_client *client, const struct client_part *part, uint64_t relay,
                                 uint32_t shard) {
  uint64_t feature = part->group != 0 ? PWI_FEATURE_RELAYED_PULLS : PWI_FEATURE_RELAYS;
  struct client_peer *peer = relay ? usable(client, relay, feature) : NULL;
  if (peer || relay == 0) return peer;
  uint64_t above = pwi_relays_above(&client->relays, relay, shard);
  return above ? usable(client, above, feature) : NULL;
}

struct client_peer *pwi_relay_for(struct pwi_client *client, struct client_part *part, uint64_t head) {
  struct client_peer *peer = NULL;
  if (part->is_via) part->is_direct = true; /* it comes back from a relay */
  part->is_via = false;
  if (part->relayed && part->relayed->hops < PWI_RELAY_HOPS_MAX) {
    const struct pwi_relays *relays = pwi_client_relays(client);
    uint32_t shard = pwi_relays_shard(relays, client->view, head);
    return climb(client, part, pwi_relays_above(relays, client->sender, shard), shard);
  }
  if (!part->relayed && is_eligible(client, part)) {
    struct pwi_sender self = {client->sender};
    struct pwi_vector_id group = {part->group ? part->group : part->aggregate};
    uint32_t shard = pwi_relays_shard(&client->relays, client->view, head);
    peer = climb(client, part, pwi_relays_above_member(&client->relays, client->membership, group, self, shard), shard);
  }
  part->is_via = peer != NULL;
  return peer;
}

/* A push has a part for each arc; all parts of a tick are one refusal. The first refusal makes the link to the server;
 * only the following ones have another reason. */
static void note_refusal(struct pwi_client *client, const struct client_part *part, enum pwi_code code) {
  struct pwi_flow *flow = part->flow;
  client->figures.relays_refused++;
  if (flow->refused_in_turn > 0 && flow->refused_tick == part->tick) return;
  flow->refused_tick = part->tick;
  if (flow->refused_in_turn < PAUSE_DOUBLINGS) flow->refused_in_turn++;
  if (flow->refused_in_turn > 1) flow->relay_from = part->tick + 1 + (UINT64_C(1) << flow->refused_in_turn);
  if (flow->refused_in_turn == PAUSE_DOUBLINGS)
    pwi_log(client->config.log, PAWL_LOG_WARN, "relay.refused", "vector=%s in_turn=%u code=%s", flow->entry.name,
            flow->refused_in_turn, pwi_code_text(code));
}

/* The first refusal makes the link to the server, as above. */
static void note_refused_pull(struct pwi_client *client, struct flow_seen *seen) {
  client->figures.pulls_refused++;
  if (seen->refused_in_turn < PAUSE_DOUBLINGS) seen->refused_in_turn++;
  if (seen->refused_in_turn > 1) seen->skipped = UINT64_C(1) << seen->refused_in_turn;
}

static void go_direct(struct pwi_client *client, struct client_part *part) {
  pwi_part_hold(client, part, PART_BLOCKED);
  pwi_part_settle(client, part);
}

void pwi_relay_answered(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome) {
  enum pwi_code code = outcome->code;
  if (code == PWI_CODE_UNPROVEN) part->peer->link->proven = 0;
  if (part->relayed) {
    bool is_of_relay = part->peer->node & PWI_PEER_IS_SENDER;
    if (part->relayed->answer) *part->relayed->answer = (struct pwi_relayed_answer){*outcome, is_of_relay};
    pwi_part_end(client, part, code == PWI_CODE_OK ? PAWL_OK : PAWL_REFUSED);
    return;
  }
  if (part->group != 0)
    note_refused_pull(client, part->flow->seen);
  else
    note_refusal(client, part, code);
  go_direct(client, part);
}

void pwi_relay_lost(struct pwi_client *client, struct client_peer *peer) {
  bool is_relay = false;
  for (size_t i = 0; i < client->relays.count; i++)
    is_relay |= (client->relays.items[i].id | PWI_PEER_IS_SENDER) == peer->node;
  if (!is_relay) return;
  if (peer->avoid_ns == 0) peer->avoid_ns = AVOID_MIN;
  peer->avoid_until = pwi_net_now(client->config.net) + peer->avoid_ns;
  peer->avoid_ns = peer->avoid_ns * 2 < AVOID_MAX ? peer->avoid_ns * 2 : AVOID_MAX;
}

/* --- silence -------------------------------------------------------------------------------------------- */

void pwi_relay_sent(struct pwi_client *client, struct client_part *part) {
  struct client_peer *peer = part->peer;
  if (peer->relay_patience_ns == 0) peer->relay_patience_ns = PWI_PEER_PATIENCE_MIN;
  client->figures.relayed += part->group == 0;
  client->figures.pulls_relayed += part->group != 0;
  part->via_until = pwi_net_now(client->config.net) + peer->relay_patience_ns;
  if (peer->relay_look_at == 0) peer->relay_look_at = part->via_until;
  pwi_client_wake_at(client, part->via_until);
}

void pwi_relays_look(struct pwi_client *client, struct client_peer *peer, int64_t now) {
  size_t late = 0;
  if (peer->relay_look_at == 0) return;
  if (now < peer->relay_look_at) {
    pwi_client_wake_at(client, peer->relay_look_at);
    return;
  }
  peer->relay_look_at = 0;
  for (struct client_part *part = peer->sent_first, *next; part; part = next) {
    next = part->peer_next;
    if (!part->is_via || part->is_written) continue;
    if (part->via_until > now) {
      if (peer->relay_look_at == 0 || part->via_until < peer->relay_look_at) peer->relay_look_at = part->via_until;
      continue;
    }
    late++;
    go_direct(client, part);
  }
  if (peer->relay_look_at != 0) pwi_client_wake_at(client, peer->relay_look_at);
  if (late == 0) return;
  if (peer->relay_patience_ns < PATIENCE_MAX) peer->relay_patience_ns *= 2;
  pwi_log(client->config.log, PAWL_LOG_WARN, "relay.silent", "relay=%llu requests=%zu what=sent-to-the-server-instead",
          (unsigned long long)(peer->node & ~PWI_PEER_IS_SENDER), late);
}

/* --- requests of this relay --------------------------------------------------------------------------- */

/* It is sent once. If that fails, nobody knows what happened to it, and the contributors send their pushes. */
bool pwi_relayed_may_go(struct pwi_client *client, struct client_part *part) {
  if (part->is_direct || !client->is_joined || client->sender == 0 || client->renewal != RENEWAL_NONE) return false;
  part->is_direct = true;
  if (!client->view || client->view->arc_count == 0) return false;
  const struct pwi_place *place = &part->flow->place;
  size_t arc = pwi_view_arc_of(client->view, pwi_place_position(place, part->claim.begin));
  return pawl_range_contains(pwi_place_keys(place, pwi_view_arc_range(client->view, arc)), part->claim);
}

pawl_status pwi_client_relay(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                             const struct pwi_relayed *relayed) {
  if (client->is_dead) return PAWL_NODE_GONE;
  pwi_task_open(client, task, false);
  struct client_part *part = pwi_part_create(client, flow, task);
  if (!part) {
    client->outstanding--;
    return PAWL_NO_MEMORY;
  }
  part->kind = relayed->kind;
  part->aggregate = relayed->kind == PWI_REQUEST_PULL ? 0 : relayed->group.id;
  part->group = relayed->kind == PWI_REQUEST_PULL ? relayed->group.id : 0;
  part->staleness = relayed->staleness;
  part->tick = relayed->tick;
  part->claim = relayed->claim;
  part->range = relayed->range;
  part->keys = relayed->keys;
  part->rows = relayed->rows;
  part->in = relayed->in;
  part->out = relayed->out;
  part->relayed = relayed;
  pwi_part_link_behind(part, NULL);
  pwi_part_settle(client, part);
  pwi_task_started(client, task);
  pwi_client_send_due(client);
  return PAWL_OK;
}

void pwi_client_wake(struct pwi_client *client, int64_t at) { pwi_client_wake_at(client, at); }

bool pwi_client_link_terms(const struct pwi_client *client, struct pwi_link link, struct pwi_message_terms *terms_out) {
  const struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (!ours || !ours->is_up) return false;
  *terms_out = ours->peering.data;
  return true;
}

uint64_t pwi_client_link_features(const struct pwi_client *client, struct pwi_link link) {
  const struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  return ours && ours->is_up ? ours->peering.features : 0;
}
