/* What the files of net/tcp share: the net and its links. Nobody else includes this.
 *
 *   world.c     the net: making, polling, timers, heartbeats, what has ended
 *   listen.c    listening and accepting
 *   connect.c   resolving and connecting
 *   owner.c     whose process a peer on this host is
 *   link.c      the life of a link: opening, hello, up, closing, down
 *   link_plane.c  how a pair agrees on a data plane, and what it tells the link
 *   meet.c      how two processes of one user find each other on one host
 *   output.c    what is queued and how it is written
 *   input.c     what is read and how it is cut into frames
 *   onesided.c  regions, put, get, fence
 *   inbound.c   memory for bodies on their way in
 *   incoming.c  a message on its way to the actor
 *   frame.c, tls.c, timers.c stand alone
 */
#ifndef PWI_NET_TCP_WORLD_H
#define PWI_NET_TCP_WORLD_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/fifo.h"
#include "base/log.h"
#include "net/address.h"
#include "net/net_ops.h"
#include "net/tcp/frame.h"
#include "net/tcp/incoming.h"
#include "net/tcp/plane.h"
#include "net/tcp/tcp.h"
#include "net/tcp/timers.h"
#include "net/tcp/tls.h"

#define MILLISECOND INT64_C(1000000)
#define SCRATCH_SIZE ((size_t)256 << 10) /* read at once; small enough to stay in a core's cache */
#define CARRY_MAX 96                     /* unread rest of a read: part of a head, or of a piece's last step */
#define SOURCES_MAX 8                    /* addresses listened at */

#define PWI_DOOR_SIZE 16 /* bytes of a door's name: meet.c */
#define PWI_NONCE_SIZE 16
#define PWI_PROOF_SIZE 32
#define PWI_GUESTS_MAX 64                       /* at the door at once */
#define PWI_PLANE_PATIENCE (1000 * MILLISECOND) /* until a connector does without a plane */

/* What an event of the net's epoll is about, besides links, whose numbers are smaller than all of these. */
#define PWI_EVENT_WAKER UINT64_MAX
#define PWI_EVENT_PLANE (UINT64_MAX - 1)
#define PWI_EVENT_DOOR (UINT64_MAX - 2)
#define PWI_EVENT_SOURCE (UINT64_MAX - 3)     /* and SOURCES_MAX downwards */
#define PWI_EVENT_MEETING (UINT64_C(1) << 63) /* and the number of the link */
#define PWI_EVENT_GUEST (UINT64_C(1) << 62)   /* and the guest's */

enum link_stage {
  STAGE_RESOLVING,
  STAGE_CONNECTING,
  STAGE_SHAKING, /* TLS */
  STAGE_OPENING, /* waiting for the peer's opening */
  STAGE_HELLO,   /* waiting for its hello */
  STAGE_OFFER,   /* waiting for its offer of a data plane, which is also its consent */
  STAGE_PLANE,   /* the data plane is being tried */
  STAGE_UP,
  STAGE_CLOSING, /* our close: what is queued is being sent */
  STAGE_LEAVING, /* everything is sent, waiting for the peer to go first */
  STAGE_DEAD,
};

/* Where the reader of a link's stream stands. */
enum input_stage { INPUT_OPENING, INPUT_HEAD, INPUT_BODY, INPUT_PADDING };

/* Part of what is queued. Small things are bytes in the link's ring; large bodies stay where they are. */
struct segment {
  const char *base; /* NULL: the next `size` bytes of the ring */
  size_t size;
  size_t operations; /* that end when this segment is written */
  uint64_t cookie;   /* of a borrowed body; 0: none */
  bool is_borrowed;  /* then base is the caller's, or a region's */
};

/* A question that the peer answers in order: a get or a fence. */
struct question {
  uint64_t number;
  enum pwi_frame_kind kind; /* PWI_FRAME_GET or PWI_FRAME_FENCE */
  void *into;
  size_t size;
  uint64_t cookie;
};

struct share {
  struct tcp_region *region;
  unsigned access;
};

struct remote {
  uint64_t region; /* the peer's number of it */
  uint64_t size;
  unsigned access;
  size_t plane_remote; /* with a data plane */
};

/* Those who prove who they are in the same way: a key, a certificate, a user, or nothing. */
struct pwi_account {
  struct pwi_account *next;
  size_t links;
  size_t charged; /* bytes of bodies that are being received */
  char name[64];
};

struct tcp_link {
  struct tcp_net *net;
  struct pwi_link id;
  enum link_stage stage;
  int socket;
  struct pwi_tls *tls;
  bool accepted;
  bool is_announced; /* the actor knows of it and is owed a link_down */
  bool can_read, can_write;
  bool has_ended;                     /* the peer has closed its side; what it sent before may still be unread */
  bool is_ready, is_dirty, is_failed; /* on the net's list of that name */
  struct tcp_link *next_ready, *next_dirty, *next_failed;
  struct tcp_link *older, *younger; /* among strangers */
  bool is_stranger;
  pawl_status why;       /* of its end */
  const char *detail;    /* for the log: more about why, or NULL */
  char words[80];        /* it, if it is made here */
  pawl_status verdict;   /* our own side's link_down after an orderly end */
  pawl_status close_why; /* what we tell the peer */
  int64_t deadline;      /* to come up, or to close */
  int64_t heard, spoke;  /* last time */
  int64_t took;          /* last time it took bytes of a queue that chokes us */
  size_t heard_bytes;    /* since */
  char peer[PWI_NET_ADDRESS_MAX];
  char host[PWI_ADDRESS_HOST_MAX]; /* connecting: who the peer's certificate is made out to */
  char identity[32];               /* of a unix socket's peer */
  struct resolution *resolution;
  struct addrinfo *candidate; /* the address being tried, of the resolution */

  struct pwi_opening ours, theirs;
  char *hello; /* the peer's greeting */
  size_t hello_size;
  uint8_t nonce[PWI_NONCE_SIZE], their_nonce[PWI_NONCE_SIZE];
  uint8_t proof[PWI_PROOF_SIZE], their_proof[PWI_PROOF_SIZE]; /* of the meeting */
  uint64_t meeting;                                           /* the acceptor's number of the link */
  int channel;                                                /* the connector's way to the peer's door, */
  struct pwi_process process;                                 /* and whose door that is, until the plane has both */
  bool offers_plane, has_met, peer_insists;
  char *fabric; /* from the peer's offer */
  size_t fabric_size;
  uint64_t our_tag;
  struct pwi_plane_port *port; /* until it is connected */
  struct pwi_plane_peer *plane;
  int64_t plane_deadline;
  bool probed, peer_probed, plane_blocked, plane_wanted, plane_ready;
  uint64_t plane_sent, plane_received; /* messages */
  bool bye_came;
  uint64_t bye_plane_count;
  unsigned can;

  /* input */
  enum input_stage input;
  uint64_t position; /* of the first byte in the stream that is not used yet */
  char carry[CARRY_MAX];
  size_t carry_size;
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX];
  uint64_t body_left;
  struct pwi_places places;           /* where the body goes, for frames that are not messages */
  bool has_places;                    /* and have a body that is wanted */
  char *small;                        /* body of a hello or an offer */
  bool expects_place;                 /* the last large body had one */
  bool is_wanted;                     /* the message that is coming in has been announced to the actor */
  struct pwi_incoming incoming;       /* on the link */
  struct pwi_incoming plane_incoming; /* on the data plane */

  struct pwi_account *account; /* once it is up */
  size_t charged, received;    /* bytes of the body that is coming in: of memory, and there */
  bool is_waiting;             /* for room to receive more */
  int64_t body_at, pace_at;    /* when the body began to come, and when its pace was last looked at, */
  size_t pace_delivered;       /* and how much was there */

  /* output */
  struct pwi_fifo segments;
  char *ring;
  size_t ring_capacity, ring_begin, ring_count;
  size_t queued_bytes, queued_operations;
  bool was_full, bye_queued, bye_written;

  /* one-sided */
  struct pwi_fifo questions;
  uint64_t last_question;
  struct share *shares;
  size_t share_count;
  struct remote *remotes;
  size_t remote_count;
};

struct tcp_region {
  struct pwi_region base;
  uint64_t number;
  struct pwi_plane_memory *memory; /* NULL: mapped by us */
  struct pwi_link writer;          /* the one link it was ever shared with for writing */
  struct tcp_region *next;
};

struct ended {
  struct pwi_link link;
  uint64_t cookie;
  pawl_status status;
};

struct link_slot {
  struct tcp_link *link;
  uint64_t serial; /* of the links that ever stood here */
};

/* Somebody at the door. */
struct pwi_guest {
  int socket; /* -1: nobody */
  struct pwi_process process;
  int64_t deadline;
  uint8_t *card; /* NULL until it has come */
  size_t card_size;
};

struct source {
  int socket;
  enum pwi_address_kind kind;
  char path[PWI_ADDRESS_HOST_MAX]; /* of a unix socket, to remove it */
};

/* Whether waiting awake is worth it: world.c. */
struct pwi_spin {
  enum { SPIN_READY, SPIN_UNDER_WAY, SPIN_OVER } stage; /* of the present wait */
  int64_t end;
  unsigned skip, penalty;
};

struct tcp_net {
  struct pwi_net base;
  char *name;
  struct pwi_log log;
  struct pwi_log_limit strange; /* lines that strangers can cause */
  struct pwi_tls_context *tls;
  bool require_encryption;
  enum pwi_tcp_plane plane_wish;
  bool has_advertised;
  struct pwi_address advertised; /* port 0: the one that is listened at */
  char address[PWI_NET_ADDRESS_MAX];
  char hello[PWI_NET_HELLO_MAX];
  size_t hello_size;
  const struct pwi_keyring *keys;
  uint8_t host[16]; /* equal on nodes that share memory */
  uint8_t door_name[PWI_DOOR_SIZE];
  int door; /* -1: there is no data plane */
  struct pwi_guest guests[PWI_GUESTS_MAX];
  size_t guest_count;

  int epoll;
  int waker;
  int spare; /* given up to accept one more connection when descriptors run out */
  atomic_bool is_woken;
  bool moved; /* something happened in this round */
  struct pwi_spin spin;
  int64_t next_tick, last_tick;
  unsigned plane_rounds; /* since the sockets were looked at, */
  int64_t looked;        /* in a round that began then */
  struct pwi_timers timers;
  struct pwi_fifo ended;
  size_t owed; /* cookies not yet in `ended` */

  struct source sources[SOURCES_MAX];
  size_t source_count;
  struct link_slot *slots;
  size_t slot_count, slot_hint, link_count;
  struct tcp_link *ready, *dirty, *failed;
  struct tcp_link *oldest_stranger, *youngest_stranger;
  size_t stranger_count;
  struct pwi_account *accounts;
  struct pwi_link leader; /* may receive beyond the bound */
  int64_t waiting_since;  /* while links wait for room: since the first did */
  struct tcp_region *regions;
  uint64_t last_region;
  struct pwi_plane *plane;
  char *scratch;
};

/* world.c */
struct tcp_link *pwi_tcp_find_link(struct tcp_net *net, struct pwi_link id);
void pwi_tcp_mark_ready(struct tcp_link *link);
void pwi_tcp_mark_dirty(struct tcp_link *link);
void pwi_tcp_end_operation(struct tcp_link *link, uint64_t cookie, pawl_status status);
pawl_status pwi_tcp_owe(struct tcp_net *net, uint64_t cookie);
int64_t pwi_tcp_now(void);
void pwi_tcp_warn_of_stranger(struct tcp_link *link, const char *event, pawl_status why, const char *detail);

/* listen.c */
pawl_status pwi_tcp_listen(struct pwi_net *base, const char *address);
void pwi_tcp_accept_all(struct tcp_net *net, struct source *source);
bool pwi_tcp_is_loopback(const struct sockaddr *address);
void pwi_tcp_close_sources(struct tcp_net *net);
void pwi_tcp_forget_stranger(struct tcp_link *link);

/* owner.c */
bool pwi_tcp_is_same_user(int socket); /* the peer, on this host, is of our user or root; false if nobody can tell */

/* connect.c */
pawl_status pwi_tcp_connect(struct pwi_net *base, const char *address, struct pwi_link *link_out);
void pwi_tcp_check_resolutions(struct tcp_net *net);
void pwi_tcp_continue_connecting(struct tcp_link *link);
void pwi_tcp_drop_resolution(struct tcp_link *link);

/* link.c */
pawl_status pwi_tcp_link_create(struct tcp_net *net, struct tcp_link **link_out);
void pwi_tcp_link_destroy(struct tcp_link *link);
pawl_status pwi_tcp_link_watch(struct tcp_link *link);
void pwi_tcp_link_connected(struct tcp_link *link);
void pwi_tcp_link_fail(struct tcp_link *link, pawl_status why, const char *detail);
void pwi_tcp_link_hung_up(struct tcp_link *link, pawl_status why, const char *detail); /* the socket has ended */
void pwi_tcp_link_finish(struct tcp_link *link); /* ends all that is under way; link_down may follow */
void pwi_tcp_link_shake(struct tcp_link *link);
void pwi_tcp_link_opened(struct tcp_link *link, const uint8_t *opening);
void pwi_tcp_link_greeted(struct tcp_link *link);
void pwi_tcp_link_bye(struct tcp_link *link);
void pwi_tcp_link_refuse(struct tcp_link *link, pawl_status why, const char *detail);
void pwi_tcp_link_come_up(struct tcp_link *link);
void pwi_tcp_link_check_bye(struct tcp_link *link);
void pwi_tcp_link_check(struct tcp_link *link, int64_t now); /* deadlines and heartbeats */

/* This node has stood still for `stopped` ns, until now: what has a deadline gets that time back. */
void pwi_tcp_link_excuse(struct tcp_link *link, int64_t now, int64_t stopped);

/* A deadline that much later, and at most `most` from now; never an earlier one. */
static inline int64_t pwi_tcp_later(int64_t deadline, int64_t now, int64_t stopped, int64_t most) {
  int64_t later = deadline + stopped < now + most ? deadline + stopped : now + most;
  return later > deadline ? later : deadline;
}
void pwi_tcp_link_beat(struct tcp_link *link, int64_t now); /* a heartbeat alone, at once */
void pwi_tcp_link_step_closing(struct tcp_link *link);
void pwi_tcp_close(struct pwi_net *base, struct pwi_link link, pawl_status why);

/* link_plane.c */
void pwi_tcp_plane_offer(struct tcp_link *link);
void pwi_tcp_link_offered(struct tcp_link *link); /* a PLANE frame */
void pwi_tcp_plane_try(struct tcp_link *link, struct pwi_plane_route *route);
void pwi_tcp_plane_do_without(struct tcp_link *link); /* the connector's decision */
void pwi_tcp_plane_fails(struct tcp_link *link);      /* the acceptor's word; the connector decides */
extern const struct pwi_plane_events pwi_tcp_link_plane_events;

/* meet.c */
void pwi_tcp_identify_host(uint8_t host[16]);
pawl_status pwi_tcp_door_open(struct tcp_net *net);
void pwi_tcp_door_close(struct tcp_net *net);
void pwi_tcp_door_accept(struct tcp_net *net);
void pwi_tcp_door_guest(struct tcp_net *net, size_t index);                 /* has something to say */
void pwi_tcp_door_check(struct tcp_net *net, int64_t now, int64_t stopped); /* deadlines */
pawl_status pwi_tcp_meet_begin(struct tcp_link *link, const uint8_t door[PWI_DOOR_SIZE], uint64_t number);
void pwi_tcp_meet_continue(struct tcp_link *link); /* the door has something to say */
void pwi_tcp_meet_wait(struct tcp_link *link);     /* for the connector to come to our door */
void pwi_tcp_meet_end(struct tcp_link *link);

/* output.c */
pawl_status pwi_tcp_send(struct pwi_net *base, struct pwi_link link, const struct pwi_send *send, size_t body_size);
bool pwi_tcp_has_room(struct tcp_link *link, size_t size);
bool pwi_tcp_is_choked(const struct tcp_link *link); /* so much is queued that no more questions are read */
void pwi_tcp_check_writable(struct tcp_link *link);
pawl_status pwi_tcp_queue_frame(struct tcp_link *link, enum pwi_frame_kind kind, const void *fields,
                                const struct iovec *body, size_t body_count, size_t body_size, bool borrow,
                                uint64_t cookie);
void pwi_tcp_link_flush(struct tcp_link *link);
void pwi_tcp_drop_output(struct tcp_link *link, pawl_status why);
bool pwi_tcp_output_uses(const struct tcp_link *link, const char *begin, size_t size);

/* inbound.c */
pawl_status pwi_tcp_inbound_open(struct tcp_link *link); /* it has come up. PAWL_NO_MEMORY */
void pwi_tcp_inbound_close(struct tcp_link *link);
size_t pwi_tcp_inbound_allow(struct tcp_link *link, size_t wanted); /* bytes that may be read now; 0: it waits */
void pwi_tcp_inbound_received(struct tcp_link *link, size_t size);
void pwi_tcp_inbound_release(struct tcp_link *link); /* its body has ended */
bool pwi_tcp_inbound_is_full(const struct tcp_net *net);
void pwi_tcp_inbound_check(struct tcp_net *net, int64_t now); /* who is slow */

/* input.c */
void pwi_tcp_link_read(struct tcp_link *link);

/* onesided.c */
pawl_status pwi_tcp_region_open(struct pwi_net *base, size_t size, struct pwi_region **region_out);
void pwi_tcp_region_close(struct pwi_net *base, struct pwi_region *region);
pawl_status pwi_tcp_region_share(struct pwi_net *base, struct pwi_region *region, struct pwi_link link, unsigned access,
                                 void *token, size_t *token_size_out);
pawl_status pwi_tcp_remote_open(struct pwi_net *base, struct pwi_link link, const void *token, size_t token_size,
                                struct pwi_remote *remote_out);
pawl_status pwi_tcp_put(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie);
pawl_status pwi_tcp_get(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        void *into, size_t size, uint64_t cookie);
pawl_status pwi_tcp_fence(struct pwi_net *base, struct pwi_link link, uint64_t cookie);
char *pwi_tcp_put_place(struct tcp_link *link); /* of a PUT frame that begins; NULL: not allowed */
void pwi_tcp_put_ended(struct tcp_link *link);  /* its body is in */
bool pwi_tcp_get_asked(struct tcp_link *link);  /* a GET frame; false: not allowed */
char *pwi_tcp_got_place(struct tcp_link *link); /* of a GOT frame that begins; NULL: nobody asked */
void pwi_tcp_got_ended(struct tcp_link *link);
void pwi_tcp_fence_asked(struct tcp_link *link);
bool pwi_tcp_fence_answered(struct tcp_link *link);
void pwi_tcp_drop_questions(struct tcp_link *link, pawl_status why);

#endif
