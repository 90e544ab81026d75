/* The state of the peers, shared by the files of this module. README.md lists them in reading order.
 *
 * A *peer* is another sender that a channel wants or that has a link. A *link* of this module is a link of the
 * net. It is *current* if it is its peer's one link, and *established* once each side has proved its id; a link
 * that was given up waits only for its link_down. An *attachment* is one channel on one link: it has a slot from
 * the moment in which the channel is announced to the peer, and is never announced again. An *announcement* is
 * the peer's part: an OPEN that was not closed.
 *
 * SETTLING. Functions that change something mark the links concerned as due. pwi_peers_settle brings everything
 * into order in steps: it finds one action that is due, carries it out with at most one callback, and looks
 * again. So a callback may change anything.
 */
#ifndef PWI_PEER_INSIDE_H
#define PWI_PEER_INSIDE_H

#include "base/cursor.h"
#include "base/idmap.h"
#include "peer/messages.h"
#include "peer/peers.h"
#include "protocol/proof.h"

#define PWI_PEERS_RETRY_MIN INT64_C(5000000)      /* the first pause between two attempts to reach a peer */
#define PWI_PEERS_RETRY_MAX INT64_C(500000000)    /* the longest */
#define PWI_PEERS_LOWER_NS INT64_C(20000000)      /* head start of the lower sender id */
#define PWI_PEERS_PATIENCE_NS INT64_C(5000000000) /* for the peer's LINK */
#define PWI_PEERS_LASTING_NS INT64_C(1000000000)  /* a link that lived this long ends the growth of pauses */

#define PWI_PEER_SLOT_SHIFT 48 /* of the slot in a notification */

#define PWI_PEERS_LEFT 1024 /* channels that were closed last, of which peers are told */

struct peer_link;

struct peer {
  struct peer *next, *before;
  struct pwi_sender sender;
  struct peer_link *link; /* the current one: established, or being made by this node; NULL: none */
  bool is_wanted;         /* by a channel, and both are members */
  bool is_marked;         /* found while is_wanted is computed */
  int64_t retry_at;       /* without a link: when to connect */
  int64_t retry_ns;       /* the next pause */
};

struct announcement {
  struct announcement *next;
  uint16_t slot;  /* the peer's */
  bool is_paired; /* an attachment has it, or had it */
  struct pwi_vector_id group;
  char name[PWI_CHANNEL_NAME_MAX + 1];
  size_t size;
  unsigned char description[];
};

enum attachment_state {
  ATTACHMENT_ANNOUNCED, /* the peer was told; the engine was not */
  ATTACHMENT_LINKED,
  ATTACHMENT_ENDING, /* the peer was told; the engine hears `lost` when the operations have ended */
};

struct attachment {
  struct attachment *next; /* on the link */
  struct peer_link *link;
  struct pwi_channel *channel;
  enum attachment_state state;
  uint16_t slot;     /* of this side */
  uint16_t theirs;   /* LINKED: the peer's slot */
  pawl_status why;   /* ENDING */
  size_t operations; /* of the net that have not ended */
  bool is_writable;  /* the engine is to be told */
};

/* A message that waits for a membership. */
struct held_message {
  struct held_message *next;
  uint32_t membership;
  uint64_t sender;
  bool is_sealed;
  uint8_t seal[PWI_SEAL_SIZE];
  size_t size;
  unsigned char payload[];
};

struct peer_link {
  struct peer_link *next, *before;
  struct pwi_link link;
  struct pwi_sender sender; /* the peer: expected, or bound once the link is established */
  struct peer *peer;        /* whose current link this is; NULL: none, or given up */
  bool is_made;             /* by this node */
  bool is_up, is_established, is_given_up;
  bool is_due; /* to be settled */
  struct pwi_peering peering;
  struct pwi_shown shown;
  int64_t since;    /* when it was made or accepted, and then when it was established */
  uint64_t attempt; /* of the peer's LINK */

  bool peer_wants, told_want;
  uint16_t last_slot;       /* of this side */
  uint16_t their_last_slot; /* of the peer */
  uint32_t region_count;    /* shared by the peer so far */

  struct attachment *attachments;
  struct pwi_idmap by_slot; /* slot of this side to its attachment */
  struct announcement *announcements;
  size_t announcement_count;

  struct held_message *held_first, *held_last;
  size_t held_count, held_bytes;
};

struct pwi_channel {
  struct pwi_channel *next; /* among open channels, or in the graveyard */
  struct pwi_peers *peers;
  const struct pwi_channel_events *events;
  void *self;
  struct pwi_vector_id group;
  char name[PWI_CHANNEL_NAME_MAX + 1];
  unsigned char *description;
  size_t description_size;
  bool is_closed;

  struct pwi_sender *wants;
  size_t want_count;
  struct pwi_idmap attachments; /* sender id to attachment; at most one for each peer */
  size_t operations;

  uint64_t number; /* of the group, as of the last comparison */
  bool is_member;  /* this node, under its present id */
  bool is_changed; /* the engine is to be told */
};

struct pwi_peers {
  struct pwi_peers_config config;
  const struct pwi_membership *membership; /* NULL: none yet */
  uint64_t cluster;
  struct pwi_sender self;

  struct peer *peers;
  struct pwi_idmap peers_by_sender;
  struct peer_link *links;
  struct pwi_idmap links_by_id;
  struct pwi_channel *channels;  /* open */
  size_t channel_count;          /* open */
  uint64_t left[PWI_PEERS_LEFT]; /* hashes of closed ones: a ring; 0: none */
  size_t left_next;
  struct pwi_channel *graveyard; /* closed channels without attachments, freed when no callback runs */
  size_t held_bytes;             /* of all links */
  uint64_t last_attempt;

  bool is_due;        /* anything is to be settled */
  bool are_wants_due; /* wants or members have changed */
  bool are_links_due; /* a link is due */
  bool is_settling;
  unsigned depth; /* of functions that run callbacks */
  struct pwi_writer writer;
};

/* peer/peers.c */
void pwi_peers_enter(struct pwi_peers *peers); /* around everything that may run callbacks */
void pwi_peers_leave(struct pwi_peers *peers); /* settles, and frees what was closed */
void pwi_peers_later(struct pwi_peers *peers); /* settles soon, from outside of callbacks */
bool pwi_peers_is_member(const struct pwi_peers *peers, struct pwi_vector_id group, struct pwi_sender sender);
void pwi_peers_due(struct pwi_peers *peers, struct peer_link *link); /* NULL: all links */

/* peer/link.c */
struct peer *pwi_peers_find(const struct pwi_peers *peers, struct pwi_sender sender); /* NULL: none */
struct peer *pwi_peers_make(struct pwi_peers *peers, struct pwi_sender sender);       /* NULL: no memory */
void pwi_peers_connect(struct pwi_peers *peers); /* to wanted peers whose pause is over */
void pwi_peers_forget_idle(struct pwi_peers *peers);

/* Sends a step on a link. A failure closes the link. */
pawl_status pwi_peer_link_send(struct pwi_peers *peers, struct peer_link *link, const struct pwi_peer_message *message,
                               const uint8_t *seal);

/* The link is used no more: everything on it ends. `close`: also closes it. */
void pwi_peer_link_give_up(struct pwi_peers *peers, struct peer_link *link, pawl_status why, bool close);
void pwi_peer_link_drop_held(struct pwi_peers *peers, struct peer_link *link);
void pwi_peer_link_free(struct pwi_peers *peers, struct peer_link *link);

/* A membership has come: hears messages that waited for it. */
void pwi_peer_link_hear_held(struct pwi_peers *peers, struct peer_link *link);

/* peer/attachment.c */
bool pwi_peer_link_step(struct pwi_peers *peers, struct peer_link *link); /* false: nothing was due */
void pwi_attachment_end(struct pwi_peers *peers, struct attachment *attachment, pawl_status why, bool tell);
void pwi_attachment_remove(struct pwi_peers *peers, struct attachment *attachment);

/* Its channel is being closed: tells the peer. The attachment stays while operations are under way. */
void pwi_attachment_withdraw(struct pwi_peers *peers, struct attachment *attachment);

uint64_t pwi_attachment_cookie(const struct attachment *attachment, uint64_t cookie); /* for the net */

/* Removes an ended attachment and tells the engine. */
void pwi_attachment_finish(struct pwi_peers *peers, struct attachment *attachment);
void pwi_peer_link_drop_announcements(struct peer_link *link);

/* A step of an established link. Any status but PAWL_OK: the link is to be closed. */
PAWL_MUST_USE pawl_status pwi_peer_link_hear(struct pwi_peers *peers, struct peer_link *link,
                                             const struct pwi_peer_message *message);

/* peer/channel.c */
void pwi_channel_look_closed(struct pwi_channel *channel); /* calls `closed` after the last attachment */
void pwi_channel_free(struct pwi_channel *channel);
bool pwi_channel_was_left(const struct pwi_peers *peers, struct pwi_vector_id group, const char *name);
void pwi_channel_compare(struct pwi_channel *channel); /* with the members of the membership */

#endif
