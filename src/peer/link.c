/* Links to peers: connecting, proving, holding messages. */
#include <string.h>

#include "base/memory.h"
#include "peer/inside.h"

/* --- peers ---------------------------------------------------------------------------------------------- */

struct peer *pwi_peers_find(const struct pwi_peers *peers, struct pwi_sender sender) {
  return pwi_idmap_get(&peers->peers_by_sender, sender.id);
}

struct peer *pwi_peers_make(struct pwi_peers *peers, struct pwi_sender sender) {
  struct peer *peer = pwi_peers_find(peers, sender);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer) return NULL;
  if (pwi_idmap_put(&peers->peers_by_sender, sender.id, peer)) {
    pwi_free(peer);
    return NULL;
  }
  peer->sender = sender;
  peer->retry_ns = PWI_PEERS_RETRY_MIN;
  peer->next = peers->peers;
  if (peer->next) peer->next->before = peer;
  peers->peers = peer;
  return peer;
}

static void forget(struct pwi_peers *peers, struct peer *peer) {
  if (peer->before)
    peer->before->next = peer->next;
  else
    peers->peers = peer->next;
  if (peer->next) peer->next->before = peer->before;
  pwi_idmap_remove(&peers->peers_by_sender, peer->sender.id);
  pwi_free(peer);
}

void pwi_peers_forget_idle(struct pwi_peers *peers) {
  for (struct peer *peer = peers->peers, *next; peer; peer = next) {
    next = peer->next;
    if (!peer->is_wanted && !peer->link) forget(peers, peer);
  }
}

/* The pause grows with every link that did not last. Its random part keeps two nodes from meeting again and
 * again. */
static void pause_peer(struct pwi_peers *peers, struct peer *peer, bool has_lasted) {
  if (has_lasted) peer->retry_ns = PWI_PEERS_RETRY_MIN;
  int64_t pause = peer->retry_ns / 2 + (int64_t)pwi_random_below(peers->config.random, (uint64_t)peer->retry_ns);
  if (peers->self.id > peer->sender.id) pause += PWI_PEERS_LOWER_NS;
  peer->retry_at = pwi_net_now(peers->config.net) + pause;
  peer->retry_ns = peer->retry_ns * 2 < PWI_PEERS_RETRY_MAX ? peer->retry_ns * 2 : PWI_PEERS_RETRY_MAX;
  peers->is_due = true;
}

/* --- links ---------------------------------------------------------------------------------------------- */

static struct peer_link *add_link(struct pwi_peers *peers, struct pwi_link id) {
  struct peer_link *link = pwi_alloc_zero(1, sizeof *link);
  if (!link) return NULL;
  if (pwi_idmap_put(&peers->links_by_id, id.id, link)) {
    pwi_free(link);
    return NULL;
  }
  link->link = id;
  link->since = pwi_net_now(peers->config.net);
  link->next = peers->links;
  if (link->next) link->next->before = link;
  peers->links = link;
  return link;
}

void pwi_peer_link_drop_held(struct pwi_peers *peers, struct peer_link *link) {
  while (link->held_first) {
    struct held_message *held = link->held_first;
    link->held_first = held->next;
    pwi_free(held);
  }
  link->held_last = NULL;
  peers->held_bytes -= link->held_bytes;
  link->held_bytes = link->held_count = 0;
}

/* When everything ends, an older link to the same peer may outlive this one. */
void pwi_peer_link_free(struct pwi_peers *peers, struct peer_link *link) {
  struct peer *peer = pwi_peers_find(peers, link->sender);
  if (peer && peer->link == link) peer->link = NULL;
  if (link->before)
    link->before->next = link->next;
  else
    peers->links = link->next;
  if (link->next) link->next->before = link->before;
  pwi_idmap_remove(&peers->links_by_id, link->link.id);
  pwi_peer_link_drop_held(peers, link);
  pwi_peer_link_drop_announcements(link);
  pwi_idmap_fini(&link->by_slot);
  pwi_free(link);
}

void pwi_peer_link_give_up(struct pwi_peers *peers, struct peer_link *link, pawl_status why, bool close) {
  if (link->is_given_up) return;
  bool has_lasted = link->is_established && pwi_net_now(peers->config.net) - link->since >= PWI_PEERS_LASTING_NS;
  link->is_given_up = true;
  if (link->peer) {
    link->peer->link = NULL;
    pause_peer(peers, link->peer, has_lasted);
    link->peer = NULL;
  }
  pwi_peer_link_drop_held(peers, link);
  for (struct attachment *attachment = link->attachments, *next; attachment; attachment = next) {
    next = attachment->next;
    if (attachment->state == ATTACHMENT_ANNOUNCED)
      pwi_attachment_remove(peers, attachment);
    else
      pwi_attachment_end(peers, attachment, why, false);
  }
  pwi_peer_link_drop_announcements(link);
  if (close) pwi_net_close(peers->config.net, link->link, why);
  pwi_peers_due(peers, link);
}

pawl_status pwi_peer_link_send(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *message,
                               const uint8_t *seal) {
  struct pwi_message_head head = {
      .kind = PWI_SAY_PEER, .sender = peers->self.id, .membership = (uint32_t)peers->membership->number};
  pwi_writer_reset(&peers->writer);
  pwi_peer_message_encode(message, &peers->writer);
  if (peers->writer.status) {
    pwi_net_close(peers->config.net, link->link, peers->writer.status);
    return peers->writer.status;
  }
  struct pwi_enclosure enclosures[] = {{PWI_SECTION_PAYLOAD, peers->writer.data, peers->writer.size},
                                       {PWI_SECTION_PROOF, seal, PWI_SEAL_SIZE}};
  return pwi_messenger_send(peers->config.messenger, link->link, &link->peering.link, &head, enclosures, seal ? 2 : 1);
}

static void send_link(struct pwi_peers *peers, struct peer_link *link) {
  uint8_t seal[PWI_SEAL_SIZE];
  struct pwi_peer_message message = {
      .step = PWI_PEER_STEP_LINK, .target = link->sender.id, .attempt = ++peers->last_attempt};
  pawl_status status = pwi_proof_make(peers->config.identity, peers->cluster, peers->self.id,
                                      link->sender.id | PWI_VERIFIER_IS_SENDER, seal);
  if (status)
    pwi_peer_link_give_up(peers, link, status, true);
  else
    (void)pwi_peer_link_send(peers, link, &message, seal);
}

/* --- connecting ----------------------------------------------------------------------------------------- */

static void begin_link(struct pwi_peers *peers, struct peer *peer) {
  const struct pwi_membership_sender *sender = pwi_membership_find(peers->membership, peer->sender);
  struct pwi_link id;
  if (!sender || sender->retired || !sender->address[0]) return; /* until another membership comes */
  struct peer_link *link = NULL;
  if (peers->config.connect(peers->config.context, sender->address, &id) == PAWL_OK) {
    link = add_link(peers, id);
    if (!link) pwi_net_close(peers->config.net, id, PAWL_NO_MEMORY);
  }
  if (!link) {
    pause_peer(peers, peer, false);
    return;
  }
  link->is_made = true;
  link->sender = peer->sender;
  link->peer = peer;
  peer->link = link;
}

/* Gives up a link whose peer does not answer. */
static void look_at_attempt(struct pwi_peers *peers, struct peer_link *link, int64_t now) {
  int64_t until = link->since + PWI_PEERS_PATIENCE_NS + pwi_net_allowance(peers->config.net);
  if (link->is_established) return;
  if (now < until)
    peers->config.wake_at(peers->config.context, until);
  else
    pwi_peer_link_give_up(peers, link, PAWL_LINK_SILENT, true);
}

void pwi_peers_connect(struct pwi_peers *peers) {
  int64_t now = pwi_net_now(peers->config.net);
  for (struct peer *peer = peers->peers; peer; peer = peer->next) {
    if (peer->is_wanted && !peer->link && now >= peer->retry_at) begin_link(peers, peer);
    if (peer->link) look_at_attempt(peers, peer->link, now);
    if (peer->is_wanted && !peer->link && now < peer->retry_at)
      peers->config.wake_at(peers->config.context, peer->retry_at);
  }
}

bool pwi_peers_link_up(struct pwi_peers *peers, struct pwi_link id, const struct pwi_peering *peering) {
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  if (!link) return false;
  link->is_up = true;
  link->peering = *peering;
  if (link->is_given_up) return true;
  pwi_peers_enter(peers);
  send_link(peers, link);
  pwi_peers_leave(peers);
  return true;
}

bool pwi_peers_link_down(struct pwi_peers *peers, struct pwi_link id, pawl_status why) {
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  if (!link) return false;
  pwi_peers_enter(peers);
  struct pwi_sender missing = {why == PAWL_LINK_REFUSED && link->is_made && !link->is_up ? link->sender.id : 0};
  pwi_peer_link_give_up(peers, link, why ? why : PAWL_LINK_CLOSED, false);
  while (link->attachments) {
    struct attachment *attachment = link->attachments;
    attachment->channel->operations -= attachment->operations; /* all have ended */
    attachment->operations = 0;
    pwi_attachment_finish(peers, attachment);
  }
  pwi_peer_link_free(peers, link);
  if (missing.id != 0 && peers->config.missing) peers->config.missing(peers->config.context, missing);
  pwi_peers_leave(peers);
  return true;
}

/* --- the first message ---------------------------------------------------------------------------------- */

/* Of two links of a pair the newer one stays. A link that this node is making has no age yet: there the one of
 * the lower id stays. */
static bool is_superfluous(const struct pwi_peers *peers, const struct peer_link *link, const struct peer_link *current,
                           const struct pwi_peer_message *message) {
  if (!current || current == link) return false;
  return current->is_established ? message->attempt <= current->attempt : peers->self.id < current->sender.id;
}

static void establish(struct pwi_peers *peers, struct peer_link *link, struct peer *peer,
                      const struct pwi_peer_message *message) {
  if (peer->link && peer->link != link) pwi_peer_link_give_up(peers, peer->link, PAWL_LINK_RESET, true);
  link->sender = peer->sender;
  link->peer = peer;
  link->attempt = message->attempt;
  link->is_established = true;
  link->since = pwi_net_now(peers->config.net);
  peer->link = link;
  pwi_peers_due(peers, link);
  if (!link->is_made) send_link(peers, link);
}

/* A peer that is not to blame is refused without a complaint. */
static pawl_status hear_link(struct pwi_peers *peers, struct peer_link *link, struct pwi_sender sender,
                             const struct pwi_peer_message *message, const uint8_t *seal) {
  if (link->is_established || sender.id == peers->self.id) return PAWL_LINK_PROTOCOL;
  if (link->is_made && sender.id != link->sender.id) return PAWL_LINK_PROTOCOL;
  if (message->target != peers->self.id || !pwi_membership_is_live(peers->membership, sender)) {
    pwi_peer_link_give_up(peers, link, PAWL_NODE_GONE, true);
    return PAWL_OK;
  }
  pwi_shown_take(&link->shown, sender.id, seal, seal ? PWI_SEAL_SIZE : 0);
  if (!pwi_shown_is(&link->shown, peers->membership, peers->cluster, peers->self.id | PWI_VERIFIER_IS_SENDER,
                    sender.id))
    return PAWL_FORBIDDEN;
  struct peer *peer = pwi_peers_make(peers, sender);
  if (!peer) return PAWL_NO_MEMORY;
  if (is_superfluous(peers, link, peer->link, message))
    pwi_peer_link_give_up(peers, link, PAWL_EXISTS, true);
  else
    establish(peers, link, peer, message);
  return PAWL_OK;
}

/* --- hearing -------------------------------------------------------------------------------------------- */

static pawl_status take(struct pwi_peers *peers, struct peer_link *link, struct pwi_sender sender, const void *payload,
                        size_t size, const uint8_t *seal) {
  struct pwi_peer_message message;
  pawl_status status = pwi_peer_message_decode(payload, size, &message);
  if (status) return status;
  if (message.step == PWI_PEER_STEP_LINK) return hear_link(peers, link, sender, &message, seal);
  if (!link->is_established || sender.id != link->sender.id) return PAWL_LINK_PROTOCOL;
  return pwi_peer_link_hear(peers, link, &message);
}

static bool is_behind(const struct pwi_peers *peers, uint32_t membership) {
  return peers->self.id == 0 || !peers->membership || membership > (uint32_t)peers->membership->number;
}

static pawl_status hold(struct pwi_peers *peers, struct peer_link *link, const struct pwi_message_head *head,
                        const void *payload, size_t size, const uint8_t *seal) {
  if (link->held_count >= PWI_PEERS_HELD_COUNT || size > PWI_PEERS_HELD_BYTES - link->held_bytes ||
      size > PWI_PEERS_HELD_BYTES_ALL - peers->held_bytes)
    return PAWL_TOO_LARGE;
  struct held_message *held = pwi_alloc(sizeof *held + size);
  if (!held) return PAWL_NO_MEMORY;
  *held =
      (struct held_message){.membership = head->membership, .sender = head->sender, .is_sealed = seal, .size = size};
  if (seal) memcpy(held->seal, seal, sizeof held->seal);
  if (size > 0) memcpy(held->payload, payload, size);
  if (link->held_last)
    link->held_last->next = held;
  else
    link->held_first = held;
  link->held_last = held;
  link->held_count++;
  link->held_bytes += size;
  peers->held_bytes += size;
  return PAWL_OK;
}

static struct held_message *take_held(struct pwi_peers *peers, struct peer_link *link) {
  struct held_message *held = link->held_first;
  if (!held || is_behind(peers, held->membership)) return NULL;
  link->held_first = held->next;
  if (!held->next) link->held_last = NULL;
  link->held_count--;
  link->held_bytes -= held->size;
  peers->held_bytes -= held->size;
  return held;
}

static void complain(const struct pwi_peers *peers, const struct peer_link *link, pawl_status why) {
  pwi_log(peers->config.log, PAWL_LOG_WARN, "peer.bad", "peer=%llu why=%s", (unsigned long long)link->sender.id,
          pawl_status_name(why));
}

void pwi_peer_link_hear_held(struct pwi_peers *peers, struct peer_link *link) {
  struct held_message *held;
  while ((held = take_held(peers, link))) {
    pawl_status status = take(peers, link, (struct pwi_sender){held->sender}, held->payload, held->size,
                              held->is_sealed ? held->seal : NULL);
    pwi_free(held);
    if (!status) continue;
    complain(peers, link, status);
    pwi_peer_link_give_up(peers, link, status, true);
  }
}

pawl_status pwi_peers_hear(struct pwi_peers *peers, struct pwi_link id, const struct pwi_peering *peering,
                           const struct pwi_control *control, const void *body) {
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  const struct pwi_message_head *head = &control->head;
  size_t size, seal_size;
  if (!link) {
    link = add_link(peers, id);
    if (!link) return PAWL_NO_MEMORY;
    link->is_up = true;
    link->peering = *peering;
  }
  if (link->is_given_up) return PAWL_OK;
  const void *payload = pwi_control_find(control, body, PWI_SECTION_PAYLOAD, &size);
  const uint8_t *seal = pwi_control_find(control, body, PWI_SECTION_PROOF, &seal_size);
  if (seal_size != PWI_SEAL_SIZE) seal = NULL;
  pwi_peers_enter(peers);
  pawl_status status;
  if (link->held_first || is_behind(peers, head->membership))
    status = hold(peers, link, head, payload, size, seal);
  else
    status = take(peers, link, (struct pwi_sender){head->sender}, payload, size, seal);
  if (status) pwi_peer_link_give_up(peers, link, status, false);
  pwi_peers_leave(peers);
  return status;
}
