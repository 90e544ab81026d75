/* Channels on links: announced, linked, ending.
 *
 * Two sides that open and close a channel at any time must agree which `linked` of one belongs to which `linked`
 * of the other, because notifications have no order with messages. So each announcement has a slot of its own,
 * and the side with the lower id decides which two slots belong together (PAIR). When a pairing ends, for
 * whatever reason, each side closes its slot, and announces the channel again under the next slot.
 */
#include <string.h>

#include "base/memory.h"
#include "peer/inside.h"

static bool is_lower(const struct pwi_peers *peers, const struct peer_link *link) {
  return peers->self.id < link->sender.id;
}

static bool is_retired(const struct pwi_peers *peers) {
  return !pwi_membership_is_live(peers->membership, peers->self);
}

static struct attachment *find_slot(const struct peer_link *link, uint16_t slot) {
  return pwi_idmap_get(&link->by_slot, slot);
}

/* --- announcements -------------------------------------------------------------------------------------- */

static struct announcement *find_announcement(const struct peer_link *link, uint16_t slot) {
  struct announcement *at = link->announcements;
  while (at && at->slot != slot) at = at->next;
  return at;
}

static struct announcement *find_named(const struct peer_link *link, struct pwi_vector_id group, const char *name) {
  struct announcement *at = link->announcements;
  while (at && (at->group.id != group.id || strcmp(at->name, name) != 0)) at = at->next;
  return at;
}

void pwi_peer_link_drop_announcements(struct peer_link *link) {
  while (link->announcements) {
    struct announcement *at = link->announcements;
    link->announcements = at->next;
    pwi_free(at);
  }
  link->announcement_count = 0;
}

/* A peer that waits for a channel learns that this node has closed it. Without that, it could not tell a node that
 * has closed the channel from one that will open it. */
static void tell_left(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *open) {
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_LEFT, .slot = open->slot};
  if (pwi_peers_is_member(peers, open->group, link->sender) && pwi_channel_was_left(peers, open->group, open->name))
    (void)pwi_peer_link_send(peers, link, &message, NULL);
}

/* Accepts an OPEN for any group: the peer may become a member, and is not told to open the channel again. */
static pawl_status hear_open(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *message) {
  if (message->slot <= link->their_last_slot || find_named(link, message->group, message->name))
    return PAWL_LINK_PROTOCOL;
  if (link->announcement_count == PWI_PEERS_CHANNELS_MAX) return PAWL_TOO_LARGE;
  struct announcement *fresh = pwi_alloc(sizeof *fresh + message->size);
  if (!fresh) return PAWL_NO_MEMORY;
  *fresh = (struct announcement){
      .next = link->announcements, .slot = message->slot, .group = message->group, .size = message->size};
  memcpy(fresh->name, message->name, sizeof fresh->name);
  if (message->size > 0) memcpy(fresh->description, message->bytes, message->size);
  link->announcements = fresh;
  link->announcement_count++;
  link->their_last_slot = message->slot;
  pwi_peers_due(peers, link);
  tell_left(peers, link, message);
  return PAWL_OK;
}

static pawl_status hear_close(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *message) {
  struct announcement **at = &link->announcements;
  while (*at && (*at)->slot != message->slot) at = &(*at)->next;
  struct announcement *gone = *at;
  if (!gone) return PAWL_LINK_PROTOCOL;
  *at = gone->next;
  link->announcement_count--;
  pwi_free(gone);
  for (struct attachment *attachment = link->attachments; attachment; attachment = attachment->next)
    if (attachment->state == ATTACHMENT_LINKED && attachment->theirs == message->slot)
      pwi_attachment_end(peers, attachment, PAWL_LINK_CLOSED, true);
  return PAWL_OK;
}

/* --- attachments ---------------------------------------------------------------------------------------- */

static void send_close(struct pwi_peers *peers, struct attachment *attachment) {
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_CLOSE, .slot = attachment->slot};
  if (!attachment->link->is_given_up) (void)pwi_peer_link_send(peers, attachment->link, &message, NULL);
}

/* The peer's current link, which may be a newer one, is due: it can announce the channel now. */
void pwi_attachment_remove(struct pwi_peers *peers, struct attachment *attachment) {
  struct peer_link *link = attachment->link;
  struct attachment **at = &link->attachments;
  while (*at != attachment) at = &(*at)->next;
  *at = attachment->next;
  pwi_idmap_remove(&link->by_slot, attachment->slot);
  pwi_idmap_remove(&attachment->channel->attachments, link->sender.id);
  struct peer *peer = pwi_peers_find(peers, link->sender);
  if (peer && peer->link) pwi_peers_due(peers, peer->link);
  pwi_free(attachment);
}

void pwi_attachment_end(struct pwi_peers *peers, struct attachment *attachment, pawl_status why, bool tell) {
  if (attachment->state == ATTACHMENT_ENDING) return;
  attachment->state = ATTACHMENT_ENDING;
  attachment->why = why;
  if (tell) send_close(peers, attachment);
  pwi_peers_due(peers, attachment->link);
}

void pwi_attachment_finish(struct pwi_peers *peers, struct attachment *attachment) {
  struct pwi_channel *channel = attachment->channel;
  struct pwi_sender peer = attachment->link->sender;
  pawl_status why = attachment->why;
  pwi_attachment_remove(peers, attachment);
  if (channel->is_closed)
    pwi_channel_look_closed(channel);
  else if (channel->events->lost)
    channel->events->lost(channel->self, peer, why);
}

void pwi_attachment_withdraw(struct pwi_peers *peers, struct attachment *attachment) {
  if (attachment->state == ATTACHMENT_ANNOUNCED) {
    send_close(peers, attachment);
    pwi_attachment_remove(peers, attachment);
    return;
  }
  pwi_attachment_end(peers, attachment, PAWL_LINK_CLOSED, true);
  if (attachment->operations == 0) pwi_attachment_remove(peers, attachment);
}

static struct attachment *make(struct peer_link *link, struct pwi_channel *channel) {
  struct attachment *fresh = pwi_alloc_zero(1, sizeof *fresh);
  if (!fresh) return NULL;
  *fresh = (struct attachment){
      .next = link->attachments, .link = link, .channel = channel, .slot = (uint16_t)(link->last_slot + 1)};
  if (pwi_idmap_put(&link->by_slot, fresh->slot, fresh)) goto free_attachment;
  if (pwi_idmap_put(&channel->attachments, link->sender.id, fresh)) goto remove_slot;
  link->attachments = fresh;
  link->last_slot++;
  return fresh;
remove_slot:
  pwi_idmap_remove(&link->by_slot, fresh->slot);
free_attachment:
  pwi_free(fresh);
  return NULL;
}

static void announce(struct pwi_peers *peers, struct peer_link *link, struct pwi_channel *channel) {
  struct attachment *attachment = link->last_slot < UINT16_MAX ? make(link, channel) : NULL;
  if (!attachment) { /* it begins anew with another link */
    pwi_peer_link_give_up(peers, link, link->last_slot < UINT16_MAX ? PAWL_NO_MEMORY : PAWL_NODE_LIMIT, true);
    return;
  }
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_OPEN,
                                     .slot = attachment->slot,
                                     .group = channel->group,
                                     .bytes = channel->description,
                                     .size = channel->description_size};
  memcpy(message.name, channel->name, sizeof message.name);
  (void)pwi_peer_link_send(peers, link, &message, NULL);
}

static void pair(struct attachment *attachment, struct announcement *announcement) {
  struct pwi_channel *channel = attachment->channel;
  attachment->state = ATTACHMENT_LINKED;
  attachment->theirs = announcement->slot;
  announcement->is_paired = true;
  if (channel->events->linked)
    channel->events->linked(channel->self, attachment->link->sender, announcement->description, announcement->size);
}

static bool pair_if_possible(struct pwi_peers *peers, struct attachment *attachment) {
  struct peer_link *link = attachment->link;
  struct announcement *announcement = find_named(link, attachment->channel->group, attachment->channel->name);
  if (!announcement || announcement->is_paired) return false;
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_PAIR, .other = attachment->slot, .slot = announcement->slot};
  (void)pwi_peer_link_send(peers, link, &message, NULL);
  pair(attachment, announcement);
  return true;
}

static bool attend(struct pwi_peers *peers, struct peer_link *link, struct pwi_channel *channel) {
  struct attachment *attachment = pwi_idmap_get(&channel->attachments, link->sender.id);
  bool is_due = channel->is_member && pwi_peers_is_member(peers, channel->group, link->sender);
  if (attachment && attachment->link != link) return false; /* waits for operations of an earlier link */
  if (!attachment) {
    if (is_due) announce(peers, link, channel);
    return is_due;
  }
  if (!is_due && attachment->state != ATTACHMENT_ENDING) {
    if (attachment->state == ATTACHMENT_ANNOUNCED)
      pwi_attachment_withdraw(peers, attachment);
    else
      pwi_attachment_end(peers, attachment, is_retired(peers) ? PAWL_NODE_RETIRED : PAWL_NODE_GONE, true);
    return true;
  }
  return attachment->state == ATTACHMENT_ANNOUNCED && is_lower(peers, link) && pair_if_possible(peers, attachment);
}

static bool tell_want(struct pwi_peers *peers, struct peer_link *link) {
  bool wants = link->peer->is_wanted;
  if (link->told_want != wants) {
    struct pwi_peer_message message = {.step = PWI_PEER_STEP_WANT, .wants = wants};
    link->told_want = wants;
    (void)pwi_peer_link_send(peers, link, &message, NULL);
  }
  if (wants || link->peer_wants || !link->is_made) return false;
  pwi_peer_link_give_up(peers, link, PAWL_LINK_CLOSED, true);
  return true;
}

bool pwi_peer_link_step(struct pwi_peers *peers, struct peer_link *link) {
  for (struct attachment *attachment = link->attachments; attachment; attachment = attachment->next) {
    if (attachment->state != ATTACHMENT_ENDING || attachment->operations > 0) continue;
    pwi_attachment_finish(peers, attachment);
    return true;
  }
  if (link->is_given_up || !link->is_established) return false;
  for (struct pwi_channel *channel = peers->channels; channel; channel = channel->next)
    if (attend(peers, link, channel)) return true;
  return tell_want(peers, link);
}

/* --- hearing -------------------------------------------------------------------------------------------- */

/* A slot that is closed already is ignored: the peer did not know it. */
static pawl_status hear_pair(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *message) {
  struct attachment *attachment = find_slot(link, message->slot);
  struct announcement *announcement = find_announcement(link, message->other);
  if (is_lower(peers, link) || message->slot > link->last_slot) return PAWL_LINK_PROTOCOL;
  if (!announcement || announcement->is_paired) return PAWL_LINK_PROTOCOL;
  if (!attachment) {
    announcement->is_paired = true;
    return PAWL_OK;
  }
  const struct pwi_channel *channel = attachment->channel;
  if (attachment->state != ATTACHMENT_ANNOUNCED || channel->group.id != announcement->group.id ||
      strcmp(channel->name, announcement->name) != 0)
    return PAWL_LINK_PROTOCOL;
  pair(attachment, announcement);
  return PAWL_OK;
}

static pawl_status hear_left(const struct peer_link *link, const struct pwi_peer_message *message) {
  const struct attachment *attachment = find_slot(link, message->slot);
  if (message->slot > link->last_slot) return PAWL_LINK_PROTOCOL;
  if (!attachment || attachment->state != ATTACHMENT_ANNOUNCED) return PAWL_OK;
  const struct pwi_channel *channel = attachment->channel;
  if (channel->events->left) channel->events->left(channel->self, link->sender);
  return PAWL_OK;
}

/* `*attachment_out` is NULL if the message is to be ignored. */
static pawl_status aim(const struct peer_link *link, uint16_t slot, struct attachment **attachment_out) {
  struct attachment *attachment = find_slot(link, slot);
  if (slot == 0 || slot > link->last_slot || (attachment && attachment->state == ATTACHMENT_ANNOUNCED))
    return PAWL_LINK_PROTOCOL;
  *attachment_out = attachment && attachment->state == ATTACHMENT_LINKED ? attachment : NULL;
  return PAWL_OK;
}

static pawl_status hear_region(struct pwi_peers *peers, struct peer_link *link,
                               const struct pwi_peer_message *message) {
  struct attachment *attachment;
  struct pwi_remote remote;
  pawl_status status = aim(link, message->slot, &attachment);
  if (status || !attachment) return status;
  if (link->region_count == PWI_PEERS_REGIONS_MAX) return PAWL_TOO_LARGE;
  status = pwi_net_remote_open(peers->config.net, link->link, message->bytes, message->size, &remote);
  if (status == PAWL_NOT_FOUND) return PAWL_OK; /* the link is going down */
  if (status) return status;
  link->region_count++;
  const struct pwi_channel *channel = attachment->channel;
  if (channel->events->shared)
    channel->events->shared(channel->self, link->sender, message->tag, remote, message->region_size);
  return PAWL_OK;
}

static pawl_status hear_say(const struct peer_link *link, const struct pwi_peer_message *message) {
  struct attachment *attachment;
  pawl_status status = aim(link, message->slot, &attachment);
  if (status || !attachment) return status;
  const struct pwi_channel *channel = attachment->channel;
  if (channel->events->heard)
    channel->events->heard(channel->self, link->sender, message->kind, message->bytes, message->size);
  return PAWL_OK;
}

pawl_status pwi_peer_link_hear(struct pwi_peers *peers, struct peer_link *link,
                               const struct pwi_peer_message *message) {
  switch (message->step) {
  case PWI_PEER_STEP_WANT:
    link->peer_wants = message->wants;
    pwi_peers_due(peers, link);
    return PAWL_OK;
  case PWI_PEER_STEP_OPEN:
    return hear_open(peers, link, message);
  case PWI_PEER_STEP_PAIR:
    return hear_pair(peers, link, message);
  case PWI_PEER_STEP_CLOSE:
    return hear_close(peers, link, message);
  case PWI_PEER_STEP_REGION:
    return hear_region(peers, link, message);
  case PWI_PEER_STEP_SAY:
    return hear_say(link, message);
  case PWI_PEER_STEP_LEFT:
    return hear_left(link, message);
  case PWI_PEER_STEP_LINK:
    break;
  }
  return PAWL_LINK_PROTOCOL;
}

/* --- other callbacks of the net ------------------------------------------------------------------------- */

#define SLOT_SHIFT 40

uint64_t pwi_attachment_cookie(const struct attachment *attachment, uint64_t cookie) {
  return PWI_PEERS_COOKIE | (uint64_t)attachment->slot << SLOT_SHIFT | cookie;
}

bool pwi_peers_done(struct pwi_peers *peers, struct pwi_link id, uint64_t cookie, pawl_status status) {
  if (!(cookie & PWI_PEERS_COOKIE) || cookie & PWI_MESSENGER_COOKIE) return false;
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  struct attachment *attachment = link ? find_slot(link, (uint16_t)(cookie >> SLOT_SHIFT)) : NULL;
  if (!attachment) return true;
  struct pwi_channel *channel = attachment->channel;
  pwi_peers_enter(peers);
  attachment->operations--;
  channel->operations--;
  if (attachment->state == ATTACHMENT_ENDING && attachment->operations == 0) pwi_peers_due(peers, link);
  cookie &= PWI_CHANNEL_COOKIE_MAX;
  if (cookie != 0 && !channel->is_closed && channel->events->done)
    channel->events->done(channel->self, link->sender, cookie, status);
  pwi_peers_leave(peers);
  return true;
}

void pwi_peers_notified(struct pwi_peers *peers, struct pwi_link id, uint64_t value) {
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  struct attachment *attachment;
  if (!link || link->is_given_up) return;
  pwi_peers_enter(peers);
  if (aim(link, (uint16_t)(value >> PWI_PEER_SLOT_SHIFT), &attachment)) {
    pwi_log(peers->config.log, PAWL_LOG_WARN, "peer.bad", "peer=%llu notification=%llu",
            (unsigned long long)link->sender.id, (unsigned long long)value);
    pwi_peer_link_give_up(peers, link, PAWL_LINK_PROTOCOL, true);
  } else if (attachment && attachment->channel->events->notified) {
    attachment->channel->events->notified(attachment->channel->self, link->sender, value & PWI_CHANNEL_NOTIFY_MAX);
  }
  pwi_peers_leave(peers);
}

static struct attachment *take_writable(const struct peer_link *link) {
  struct attachment *attachment = link->attachments;
  while (attachment && !(attachment->is_writable && attachment->state == ATTACHMENT_LINKED))
    attachment = attachment->next;
  if (attachment) attachment->is_writable = false;
  return attachment;
}

void pwi_peers_writable(struct pwi_peers *peers, struct pwi_link id) {
  struct peer_link *link = pwi_idmap_get(&peers->links_by_id, id.id);
  struct attachment *attachment;
  if (!link) return;
  pwi_peers_enter(peers);
  for (attachment = link->attachments; attachment; attachment = attachment->next) attachment->is_writable = true;
  while ((attachment = take_writable(link))) {
    const struct pwi_channel *channel = attachment->channel;
    if (channel->events->writable) channel->events->writable(channel->self, link->sender);
  }
  pwi_peers_leave(peers);
}
