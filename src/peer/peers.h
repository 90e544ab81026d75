/* Peers: links between the members of a group, and memory that they share (docs/peers.md). Parameters live with
 * the workers (Lapser, SFB, ASAP), so no server takes part.
 *
 * This is a part of the client's actor, as the callee is. The client passes on the callbacks of its net and
 * the changes of its membership. The engines above (reduce/, item/, factor/, collective/) use channels.
 *
 * MEMBERS. A peer group is a group of the membership (protocol/membership.h). The rank of a member is its
 * index among the members by ascending sender id: all nodes that know the same membership agree on ranks.
 * `number` of a group is the number of the membership in which its members last changed. Members that come or
 * go raise it, and every other change of the cluster leaves it alone.
 *
 * LINKS. Two members have at most one link, which all their channels share. A member connects to the peers that
 * its channels want; of two links that are made at the same time the one of the lower sender id stays. Each
 * side proves its sender id with its first message (protocol/proof.h). The side that made the link closes it
 * when no channel of either side wants it any more. A lost link is made again after a pause. A sender that is
 * not live in the membership is never connected to, and its link is closed. A member that does not listen can
 * be linked only if it wants the peer itself.
 *
 * CHANNELS. A channel is the part of one engine in one group: a name, such as "reduce/gradients", that all
 * members use alike. Opening a channel tells linked peers its name and a *description*: a few bytes by which
 * the engine decides whether the two sides fit, such as the shapes of tensors. `linked` is called once the
 * link is up, both sides are members, and both have opened the channel; only then can a channel send, share and
 * put. `lost` ends that: everything that was shared or opened over the link is void, and begins anew with the
 * next `linked`. Every `linked` of one side belongs to exactly one `linked` of the other side, and nothing that
 * one of them sent, put or notified reaches any other.
 *
 * MEMORY. A channel shares a region (net.h) with one peer under a tag of its choice; the peer's engine is
 * handed a remote for it. A region that was shared for writing with one link must never be shared again, not
 * even with the same peer over a later link, because a late put of the old link may still reach it: open
 * another one. Regions belong to the engine, which closes them after `lost`. A put of the peer that is still
 * under way then may take down the link with all its channels, which is made again; an engine that closes a
 * region while its channel is linked should agree on that with the peer first.
 *
 * ORDER. Messages of a channel to one peer arrive in order, and `shared` is in order with them. Puts to one
 * peer land in order, and a notification arrives after its put has landed. There is no order between messages
 * and puts.
 *
 * BEHIND. Every message carries the number of the membership that its sender knows. A node that has an older
 * membership holds the messages of that link until it has caught up, up to PWI_PEERS_HELD_COUNT messages and
 * PWI_PEERS_HELD_BYTES bytes a link; beyond that it closes the link.
 *
 * TRUST. A peer may be faulty: its messages can be any bytes, and puts can change a shared region at any
 * time. An engine reads each byte of a shared region once, or copies it first. A peer reaches only channels
 * of groups of which it is a live member, by the slot that the channel has on the peer's own link. A violation
 * of the protocol closes the link.
 *
 * CALLBACKS run inside callbacks of the net, or inside pwi_peers_changed. They may call any function below
 * except pwi_channel_close of another channel, pwi_peers_changed and pwi_peers_destroy.
 *
 * Threads: as the net.
 */
#ifndef PWI_PEER_PEERS_H
#define PWI_PEER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "base/random.h"
#include "net/net.h"
#include "net/seal.h"
#include "protocol/membership.h"
#include "protocol/messenger.h"

struct pwi_peers;
struct pwi_channel;

#define PWI_CHANNEL_NAME_MAX 63
#define PWI_CHANNEL_DESCRIPTION_MAX 4096
#define PWI_CHANNEL_MESSAGE_MAX ((size_t)1 << 20)        /* bytes of a message; put anything larger */
#define PWI_CHANNEL_NOTIFY_MAX ((UINT64_C(1) << 48) - 1) /* highest value of a notification; 0: none */
#define PWI_CHANNEL_COOKIE_MAX ((UINT64_C(1) << 40) - 1) /* highest cookie of an operation; 0: none */

#define PWI_PEERS_CHANNELS_MAX 256                  /* open channels of one node */
#define PWI_PEERS_REGIONS_MAX 65536                 /* regions that a peer may share over one link */
#define PWI_PEERS_HELD_COUNT 1024                   /* messages of one link that wait for a membership */
#define PWI_PEERS_HELD_BYTES ((size_t)4 << 20)      /* bytes of these */
#define PWI_PEERS_HELD_BYTES_ALL ((size_t)64 << 20) /* bytes of these on all links */

/* --- the part of the client ----------------------------------------------------------------------------- */

/* All operations of the peers have cookies with this bit, and with neither PWI_MESSENGER_COOKIE nor the bit
 * below it. The actor must use no such cookies. */
#define PWI_PEERS_COOKIE (UINT64_C(1) << 61)

struct pwi_peers_config {
  struct pwi_net *net;
  struct pwi_messenger *messenger;
  const struct pwi_log *log;
  struct pwi_random *random; /* for pauses between attempts to connect */
  const uint8_t *identity;   /* PWI_SEAL_SECRET bytes; borrowed */
  void *context;             /* of the functions below */

  /* Begins a link, as pwi_net_connect. The client passes its callbacks on. */
  pawl_status (*connect)(void *context, const char *address, struct pwi_link *link_out);
  /* Call pwi_peers_look at or soon after this time. */
  void (*wake_at)(void *context, int64_t at);
  /* Nobody listens at the address of this peer. May be NULL. */
  void (*missing)(void *context, struct pwi_sender peer);
};

PAWL_MUST_USE pawl_status pwi_peers_create(const struct pwi_peers_config *config, struct pwi_peers **peers_out);

/* Closes all channels, without callbacks. For the end of the client, when the net has no more links or is
 * destroyed. NULL is allowed. */
void pwi_peers_destroy(struct pwi_peers *peers);

/* The membership, the cluster or the own sender id has changed. `membership` is borrowed until the next call.
 * A new sender id (after a renewal) ends all links; 0: this node has none at the moment. */
void pwi_peers_changed(struct pwi_peers *peers, const struct pwi_membership *membership, uint64_t cluster,
                       struct pwi_sender self);
void pwi_peers_look(struct pwi_peers *peers, int64_t now);

/* Callbacks of the net. Each returns true if the event belonged to a link or an operation of the peers. */
bool pwi_peers_link_up(struct pwi_peers *peers, struct pwi_link link, const struct pwi_peering *peering);
bool pwi_peers_link_down(struct pwi_peers *peers, struct pwi_link link, pawl_status why);
bool pwi_peers_done(struct pwi_peers *peers, struct pwi_link link, uint64_t cookie, pawl_status status);
void pwi_peers_notified(struct pwi_peers *peers, struct pwi_link link, uint64_t value);
void pwi_peers_writable(struct pwi_peers *peers, struct pwi_link link);

/* A PEER message of any link. The first one on an accepted link makes it a link of the peers. Any status but
 * PAWL_OK: close the link with this status. */
PAWL_MUST_USE pawl_status pwi_peers_hear(struct pwi_peers *peers, struct pwi_link link,
                                         const struct pwi_peering *peering, const struct pwi_control *control,
                                         const void *body);

/* --- channels ------------------------------------------------------------------------------------------- */

/* Any member may be NULL. */
struct pwi_channel_events {
  /* The members of the group have changed, or this node is a member now, or not any more. Called before the
   * change has any effect on links. */
  void (*changed)(void *self);
  /* Both sides have the channel open. `description` is the peer's, valid during the call. */
  void (*linked)(void *self, struct pwi_sender peer, const void *description, size_t size);
  /* The link is down (the reason of link_down), the peer has closed the channel or neither side wants the link
   * (PAWL_LINK_CLOSED), one of the two is not a member any more (PAWL_NODE_GONE), or this node was declared
   * dead (PAWL_NODE_RETIRED). All operations with the peer have ended. */
  void (*lost)(void *self, struct pwi_sender peer, pawl_status why);
  /* The peer had opened the channel, and has closed it: it is not linked. It may open it again. Nodes remember the
   * last 1024 channels that they have closed. */
  void (*left)(void *self, struct pwi_sender peer);
  void (*heard)(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size);
  /* The peer has shared a region of, as it says, `size` bytes. */
  void (*shared)(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size);
  void (*notified)(void *self, struct pwi_sender peer, uint64_t value);
  void (*done)(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status);
  void (*writable)(void *self, struct pwi_sender peer);
  /* After pwi_channel_close: no operation uses memory of the engine any more. The last callback. May run inside
   * pwi_channel_close. */
  void (*closed)(void *self);
};

/* Opens a channel of a group. The group need not be in the membership yet. Everything but `events`, which is
 * borrowed, is copied. PAWL_EXISTS (this node has it open), PAWL_INVALID (name), PAWL_TOO_LARGE (name or
 * description), PAWL_NODE_LIMIT (PWI_PEERS_CHANNELS_MAX), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_channel_open(struct pwi_peers *peers, struct pwi_vector_id group, const char *name,
                                           const void *description, size_t size,
                                           const struct pwi_channel_events *events, void *self,
                                           struct pwi_channel **channel_out);

/* No more callbacks but `closed`. Puts, gets and fences under way go on, and their memory is in use until
 * `closed`. A channel of the same name can be opened at once. NULL is allowed. */
void pwi_channel_close(struct pwi_channel *channel);

/* The peers that the channel wants links with, by any order; replaces the earlier list. Senders that are not
 * members are kept in mind until they are, and the node itself is ignored. PAWL_NO_MEMORY: nothing has
 * changed. */
PAWL_MUST_USE pawl_status pwi_channel_want(struct pwi_channel *channel, const struct pwi_sender *peers, size_t count);
bool pwi_channel_is_linked(const struct pwi_channel *channel, struct pwi_sender peer);

/* The members of the group by rank, a slice of the membership; the number of the group; the own rank, or
 * UINT32_MAX if this node is not a member. */
const struct pwi_membership_member *pwi_channel_members(const struct pwi_channel *channel, size_t *count_out);
uint64_t pwi_channel_number(const struct pwi_channel *channel);
uint32_t pwi_channel_founders(
    const struct pwi_channel *channel); /* members with which the group was complete; 0: unknown */
uint32_t pwi_channel_rank(const struct pwi_channel *channel);
struct pwi_sender pwi_channel_self(const struct pwi_channel *channel); /* the own sender id; 0: none now */

/* All return PAWL_NOT_FOUND if the channel is not linked with the peer. Messages are copied; a message that
 * cannot be queued closes the link. PAWL_TOO_LARGE: more than PWI_CHANNEL_MESSAGE_MAX. */
pawl_status pwi_channel_send(struct pwi_channel *channel, struct pwi_sender peer, uint32_t kind, const void *bytes,
                             size_t size);
PAWL_MUST_USE pawl_status pwi_channel_share(struct pwi_channel *channel, struct pwi_sender peer, uint64_t tag,
                                            struct pwi_region *region, unsigned access);

/* As pwi_net_put, pwi_net_get and pwi_net_fence. PAWL_INVALID also for a notification or cookie beyond its
 * limit. */
PAWL_MUST_USE pawl_status pwi_channel_put(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                                          uint64_t offset, const void *from, size_t size, uint64_t notify,
                                          uint64_t cookie);
PAWL_MUST_USE pawl_status pwi_channel_get(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                                          uint64_t offset, void *into, size_t size, uint64_t cookie);
PAWL_MUST_USE pawl_status pwi_channel_fence(struct pwi_channel *channel, struct pwi_sender peer, uint64_t cookie);

/* As pwi_net_remote_map: a region that the peer has shared for reading, mapped. The window outlives the link and the
 * channel; end it with pwi_net_remote_unmap. */
PAWL_MUST_USE pawl_status pwi_channel_map(struct pwi_channel *channel, struct pwi_sender peer, struct pwi_remote remote,
                                          struct pwi_window *window_out);

/* Operations (puts, gets, fences) of the channel with all peers that have not ended. */
size_t pwi_channel_operations(const struct pwi_channel *channel);

#endif
