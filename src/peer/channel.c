/* Channels, as engines use them. */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "peer/inside.h"

/* --- channels that were closed -------------------------------------------------------------------------- */

static uint64_t hash_of(struct pwi_vector_id group, const char *name) {
  uint64_t hash = pwi_hash(name, strlen(name), group.id);
  return hash ? hash : 1;
}

static void note_open(struct pwi_peers *peers, struct pwi_vector_id group, const char *name) {
  uint64_t hash = hash_of(group, name);
  for (size_t i = 0; i < PWI_PEERS_LEFT; i++)
    if (peers->left[i] == hash) peers->left[i] = 0;
}

static void note_left(struct pwi_peers *peers, const struct pwi_channel *channel) {
  peers->left[peers->left_next] = hash_of(channel->group, channel->name);
  peers->left_next = (peers->left_next + 1) % PWI_PEERS_LEFT;
}

bool pwi_channel_was_left(const struct pwi_peers *peers, struct pwi_vector_id group, const char *name) {
  uint64_t hash = hash_of(group, name);
  for (size_t i = 0; i < PWI_PEERS_LEFT; i++)
    if (peers->left[i] == hash) return true;
  return false;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static bool is_open(const struct pwi_peers *peers, struct pwi_vector_id group, const char *name) {
  for (const struct pwi_channel *channel = peers->channels; channel; channel = channel->next)
    if (channel->group.id == group.id && strcmp(channel->name, name) == 0) return true;
  return false;
}

pawl_status pwi_channel_open(struct pwi_peers *peers, struct pwi_vector_id group, const char *name,
                             const void *description, size_t size, const struct pwi_channel_events *events, void *self,
                             struct pwi_channel **channel_out) {
  pawl_status status = group.id == 0 ? PAWL_INVALID : pwi_channel_name_check(name);
  if (status) return status;
  if (size > PWI_CHANNEL_DESCRIPTION_MAX) return PAWL_TOO_LARGE;
  if (is_open(peers, group, name)) return PAWL_EXISTS;
  if (peers->channel_count == PWI_PEERS_CHANNELS_MAX) return PAWL_NODE_LIMIT;
  struct pwi_channel *channel = pwi_alloc_zero(1, sizeof *channel);
  if (!channel) return PAWL_NO_MEMORY;
  *channel =
      (struct pwi_channel){.peers = peers, .events = events, .self = self, .group = group, .description_size = size};
  memcpy(channel->name, name, strlen(name) + 1);
  channel->description = pwi_alloc(size > 0 ? size : 1);
  if (!channel->description) {
    pwi_free(channel);
    return PAWL_NO_MEMORY;
  }
  if (size > 0) memcpy(channel->description, description, size);
  pwi_channel_compare(channel);
  channel->is_changed = false; /* the engine can look itself */
  channel->next = peers->channels;
  peers->channels = channel;
  peers->channel_count++;
  note_open(peers, group, name);
  pwi_peers_due(peers, NULL);
  pwi_peers_later(peers);
  *channel_out = channel;
  return PAWL_OK;
}

void pwi_channel_free(struct pwi_channel *channel) {
  pwi_idmap_fini(&channel->attachments);
  pwi_free(channel->description);
  pwi_free(channel->wants);
  pwi_free(channel);
}

void pwi_channel_look_closed(struct pwi_channel *channel) {
  if (channel->attachments.count > 0) return;
  if (channel->events->closed) channel->events->closed(channel->self);
  channel->next = channel->peers->graveyard;
  channel->peers->graveyard = channel;
}

/* An attachment that pwi_attachment_withdraw does not keep, or has not seen yet. */
static struct attachment *find_attached(const struct pwi_channel *channel) {
  for (size_t i = 0; i < channel->attachments.room; i++) {
    struct attachment *attachment = channel->attachments.slots[i].id ? channel->attachments.slots[i].item : NULL;
    if (attachment && (attachment->state != ATTACHMENT_ENDING || attachment->operations == 0)) return attachment;
  }
  return NULL;
}

void pwi_channel_close(struct pwi_channel *channel) {
  if (!channel) return;
  struct pwi_peers *peers = channel->peers;
  struct pwi_channel **at = &peers->channels;
  while (*at != channel) at = &(*at)->next;
  *at = channel->next;
  peers->channel_count--;
  note_left(peers, channel);
  channel->is_closed = true;
  for (struct attachment *attachment; (attachment = find_attached(channel));)
    pwi_attachment_withdraw(peers, attachment);
  pwi_channel_look_closed(channel);
  peers->are_wants_due = true;
  pwi_peers_later(peers);
}

/* --- members -------------------------------------------------------------------------------------------- */

void pwi_channel_compare(struct pwi_channel *channel) {
  const struct pwi_peers *peers = channel->peers;
  if (!peers->membership) return;
  const struct pwi_membership_group *group = pwi_membership_group(peers->membership, channel->group);
  bool is_member = pwi_peers_is_member(peers, channel->group, peers->self);
  uint64_t number = group ? group->changed : 0;
  if (channel->is_member != is_member || channel->number != number) channel->is_changed = true;
  channel->is_member = is_member;
  channel->number = number;
}

const struct pwi_membership_member *pwi_channel_members(const struct pwi_channel *channel, size_t *count_out) {
  *count_out = 0;
  if (!channel->peers->membership) return NULL;
  return pwi_membership_members(channel->peers->membership, channel->group, count_out);
}

uint64_t pwi_channel_number(const struct pwi_channel *channel) { return channel->number; }

uint32_t pwi_channel_founders(const struct pwi_channel *channel) {
  const struct pwi_membership *membership = channel->peers->membership;
  const struct pwi_membership_group *group = membership ? pwi_membership_group(membership, channel->group) : NULL;
  return group ? group->size : 0;
}

uint32_t pwi_channel_rank(const struct pwi_channel *channel) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id == channel->peers->self.id) return (uint32_t)i;
  return UINT32_MAX;
}

struct pwi_sender pwi_channel_self(const struct pwi_channel *channel) {
  return channel->peers->self;
}

pawl_status pwi_channel_want(struct pwi_channel *channel, const struct pwi_sender *peers, size_t count) {
  struct pwi_sender *wants = NULL;
  if (count > 0) {
    wants = pwi_resize_array(NULL, count, sizeof *wants);
    if (!wants) return PAWL_NO_MEMORY;
    memcpy(wants, peers, count * sizeof *wants);
  }
  pwi_free(channel->wants);
  channel->wants = wants;
  channel->want_count = count;
  channel->peers->are_wants_due = true;
  pwi_peers_later(channel->peers);
  return PAWL_OK;
}

/* --- using it ------------------------------------------------------------------------------------------- */

static struct attachment *find_linked(const struct pwi_channel *channel, struct pwi_sender peer) {
  struct attachment *attachment = peer.id ? pwi_idmap_get(&channel->attachments, peer.id) : NULL;
  return attachment && attachment->state == ATTACHMENT_LINKED ? attachment : NULL;
}

bool pwi_channel_is_linked(const struct pwi_channel *channel, struct pwi_sender peer) {
  return find_linked(channel, peer) != NULL;
}

pawl_status pwi_channel_send(struct pwi_channel *channel, struct pwi_sender peer, uint32_t kind, const void *bytes,
                             size_t size) {
  const struct attachment *attachment = find_linked(channel, peer);
  if (!attachment) return PAWL_NOT_FOUND;
  if (size > PWI_CHANNEL_MESSAGE_MAX) return PAWL_TOO_LARGE;
  struct pwi_peer_message message = {
      .step = PWI_PEER_STEP_SAY, .slot = attachment->theirs, .kind = kind, .bytes = bytes, .size = size};
  return pwi_peer_link_send(channel->peers, attachment->link, &message, NULL);
}

pawl_status pwi_channel_share(struct pwi_channel *channel, struct pwi_sender peer, uint64_t tag,
                              struct pwi_region *region, unsigned access) {
  const struct attachment *attachment = find_linked(channel, peer);
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  if (!attachment) return PAWL_NOT_FOUND;
  pawl_status status =
      pwi_net_region_share(channel->peers->config.net, region, attachment->link->link, access, token, &size);
  if (status) return status;
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_REGION,
                                     .slot = attachment->theirs,
                                     .tag = tag,
                                     .region_size = pwi_net_region_size(region),
                                     .bytes = token,
                                     .size = size};
  return pwi_peer_link_send(channel->peers, attachment->link, &message, NULL);
}

/* Every operation has a cookie in the net, so that its end is known even if the engine does not ask for it. */
static pawl_status begun(struct attachment *attachment, pawl_status status) {
  if (status) return status;
  attachment->operations++;
  attachment->channel->operations++;
  return PAWL_OK;
}

pawl_status pwi_channel_put(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                            uint64_t offset, const void *from, size_t size, uint64_t notify, uint64_t cookie) {
  struct attachment *attachment = find_linked(channel, peer);
  if (!attachment) return PAWL_NOT_FOUND;
  if (notify > PWI_CHANNEL_NOTIFY_MAX || cookie > PWI_CHANNEL_COOKIE_MAX) return PAWL_INVALID;
  if (notify != 0) notify |= (uint64_t)attachment->theirs << PWI_PEER_SLOT_SHIFT;
  return begun(attachment, pwi_net_put(channel->peers->config.net, attachment->link->link, remote, offset, from, size,
                                       notify, pwi_attachment_cookie(attachment, cookie)));
}

pawl_status pwi_channel_get(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                            uint64_t offset, void *into, size_t size, uint64_t cookie) {
  struct attachment *attachment = find_linked(channel, peer);
  if (!attachment) return PAWL_NOT_FOUND;
  if (cookie > PWI_CHANNEL_COOKIE_MAX) return PAWL_INVALID;
  return begun(attachment, pwi_net_get(channel->peers->config.net, attachment->link->link, remote, offset, into, size,
                                       pwi_attachment_cookie(attachment, cookie)));
}

pawl_status pwi_channel_fence(struct pwi_channel *channel, struct pwi_sender peer, uint64_t cookie) {
  struct attachment *attachment = find_linked(channel, peer);
  if (!attachment) return PAWL_NOT_FOUND;
  if (cookie > PWI_CHANNEL_COOKIE_MAX) return PAWL_INVALID;
  return begun(attachment, pwi_net_fence(channel->peers->config.net, attachment->link->link,
                                         pwi_attachment_cookie(attachment, cookie)));
}

pawl_status pwi_channel_map(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                            struct pwi_window *window_out) {
  const struct attachment *attachment = find_linked(channel, peer);
  if (!attachment) return PAWL_NOT_FOUND;
  return pwi_net_remote_map(channel->peers->config.net, attachment->link->link, remote, window_out);
}

size_t pwi_channel_operations(const struct pwi_channel *channel) { return channel->operations; }
