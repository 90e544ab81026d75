/* The life of the peers, the membership, and settling. */
#include "peer/peers.h"

#include "base/memory.h"
#include "peer/inside.h"

/* --- settling ------------------------------------------------------------------------------------------- */

void pwi_peers_due(struct pwi_peers *peers, struct peer_link *link) {
  peers->is_due = peers->are_links_due = true;
  if (link) link->is_due = true;
  for (struct peer_link *at = link ? NULL : peers->links; at; at = at->next) at->is_due = true;
}

static bool tell_one_change(struct pwi_peers *peers) {
  for (struct pwi_channel *channel = peers->channels; channel; channel = channel->next) {
    if (!channel->is_changed) continue;
    channel->is_changed = false;
    if (channel->events->changed) channel->events->changed(channel->self);
    return true;
  }
  return false;
}

static void tell_changes(struct pwi_peers *peers) {
  while (tell_one_change(peers)) {
  }
}

static void mark_wanted(struct pwi_peers *peers, struct pwi_vector_id group, struct pwi_sender sender) {
  if (sender.id == peers->self.id || !pwi_peers_is_member(peers, group, sender)) return;
  struct peer *peer = pwi_peers_make(peers, sender);
  if (peer)
    peer->is_marked = true;
  else
    peers->config.wake_at(peers->config.context, pwi_net_now(peers->config.net) + PWI_PEERS_RETRY_MAX);
}

/* Without memory a peer is missed; the next look finds it. */
static void update_wants(struct pwi_peers *peers) {
  int64_t now = pwi_net_now(peers->config.net);
  peers->are_wants_due = false;
  for (struct peer *peer = peers->peers; peer; peer = peer->next) peer->is_marked = false;
  for (const struct pwi_channel *channel = peers->channels; channel; channel = channel->next)
    for (size_t i = 0; channel->is_member && i < channel->want_count; i++)
      mark_wanted(peers, channel->group, channel->wants[i]);
  for (struct peer *peer = peers->peers; peer; peer = peer->next) {
    if (peer->is_wanted == peer->is_marked) continue;
    peer->is_wanted = peer->is_marked;
    int64_t begin = peers->self.id < peer->sender.id ? now : now + PWI_PEERS_LOWER_NS;
    if (peer->is_wanted && peer->retry_at < begin) peer->retry_at = begin;
    if (peer->link) pwi_peers_due(peers, peer->link);
  }
}

/* Links are freed only by link_down, which does not run here. */
static void settle_links(struct pwi_peers *peers) {
  peers->are_links_due = false;
  for (struct peer_link *link = peers->links; link; link = link->next) {
    if (!link->is_due) continue;
    link->is_due = false;
    while (pwi_peer_link_step(peers, link)) {
    }
  }
}

static void settle(struct pwi_peers *peers) {
  if (peers->is_settling) return;
  peers->is_settling = true;
  while (peers->is_due) {
    peers->is_due = false;
    tell_changes(peers);
    if (peers->are_wants_due) update_wants(peers);
    if (peers->are_links_due) settle_links(peers);
    pwi_peers_connect(peers);
    pwi_peers_forget_idle(peers);
  }
  peers->is_settling = false;
}

static void bury(struct pwi_peers *peers) {
  while (peers->graveyard) {
    struct pwi_channel *channel = peers->graveyard;
    peers->graveyard = channel->next;
    pwi_channel_free(channel);
  }
}

void pwi_peers_enter(struct pwi_peers *peers) { peers->depth++; }

void pwi_peers_leave(struct pwi_peers *peers) {
  if (peers->is_due) settle(peers);
  if (--peers->depth == 0 && peers->graveyard) bury(peers);
}

void pwi_peers_later(struct pwi_peers *peers) {
  peers->is_due = true;
  if (peers->depth > 0) return;
  bury(peers);
  peers->config.wake_at(peers->config.context, pwi_net_now(peers->config.net));
}

/* --- membership ----------------------------------------------------------------------------------------- */

bool pwi_peers_is_member(const struct pwi_peers *peers, struct pwi_vector_id group, struct pwi_sender sender) {
  size_t count, low = 0;
  if (!peers->membership || sender.id == 0) return false;
  const struct pwi_membership_member *members = pwi_membership_members(peers->membership, group, &count);
  while (low < count) {
    size_t middle = low + (count - low) / 2;
    if (members[middle].sender.id == sender.id) return true;
    if (members[middle].sender.id < sender.id)
      low = middle + 1;
    else
      count = middle;
  }
  return false;
}

/* The peer of an accepted link is not known before it has proved its id. */
static bool is_known(const struct peer_link *link) { return link->is_established || link->is_made; }

/* Messages that waited for the membership come after its own effects. */
static void look_at_links(struct pwi_peers *peers) {
  for (struct peer_link *link = peers->links; link; link = link->next)
    if (is_known(link) && !pwi_membership_is_live(peers->membership, link->sender))
      pwi_peer_link_give_up(peers, link, PAWL_NODE_GONE, true);
  settle(peers);
  for (struct peer_link *link = peers->links; link; link = link->next) pwi_peer_link_hear_held(peers, link);
}

void pwi_peers_changed(struct pwi_peers *peers, const struct pwi_membership *membership, uint64_t cluster,
                       struct pwi_sender self) {
  bool is_renewed = peers->self.id != self.id;
  pwi_peers_enter(peers);
  for (struct peer_link *link = is_renewed ? peers->links : NULL; link; link = link->next)
    if (is_known(link)) pwi_peer_link_give_up(peers, link, PAWL_NODE_RETIRED, true);
  peers->membership = membership;
  peers->cluster = cluster;
  peers->self = self;
  for (struct pwi_channel *channel = peers->channels; channel; channel = channel->next) {
    pwi_channel_compare(channel);
    if (is_renewed) channel->is_changed = true;
  }
  peers->are_wants_due = true;
  pwi_peers_due(peers, NULL);
  tell_changes(peers);
  look_at_links(peers);
  pwi_peers_leave(peers);
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_peers_create(const struct pwi_peers_config *config, struct pwi_peers **peers_out) {
  struct pwi_peers *peers = pwi_alloc_zero(1, sizeof *peers);
  if (!peers) return PAWL_NO_MEMORY;
  peers->config = *config;
  *peers_out = peers;
  return PAWL_OK;
}

static void free_links(struct pwi_peers *peers) {
  while (peers->links) {
    struct peer_link *link = peers->links;
    while (link->attachments) {
      struct attachment *attachment = link->attachments;
      struct pwi_channel *channel = attachment->channel;
      pwi_attachment_remove(peers, attachment);
      if (channel->is_closed && channel->attachments.count == 0) pwi_channel_free(channel);
    }
    pwi_peer_link_free(peers, link);
  }
}

void pwi_peers_destroy(struct pwi_peers *peers) {
  if (!peers) return;
  free_links(peers);
  bury(peers);
  while (peers->channels) {
    struct pwi_channel *channel = peers->channels;
    peers->channels = channel->next;
    pwi_channel_free(channel);
  }
  while (peers->peers) {
    struct peer *peer = peers->peers;
    peers->peers = peer->next;
    pwi_free(peer);
  }
  pwi_idmap_fini(&peers->peers_by_sender);
  pwi_idmap_fini(&peers->links_by_id);
  pwi_writer_fini(&peers->writer);
  pwi_free(peers);
}

void pwi_peers_look(struct pwi_peers *peers, int64_t now) {
  (void)now;
  pwi_peers_enter(peers);
  peers->is_due = peers->are_wants_due = true;
  pwi_peers_leave(peers);
}
