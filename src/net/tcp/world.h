/* Shared by the files of net/tcp and private to them: the net and its links.
 *
 *   world.c        the net: creation, polling, timers, heartbeats, ended operations
 *   listen.c       listening and accepting
 *   connect.c      resolving and connecting
 *   owner.c        the user of a peer on this host
 *   link.c         the life of a link: opening, hello, up, closing, down
 *   link_plane.c   the negotiation of a data plane, and its events
 *   meet.c         how two processes of one user identify each other on one host
 *   output.c       the send queue of a link, and writing it
 *   hold.c         the messages of the data lane that wait, and holding those of the peer
 *   input.c        reading the stream of a link and cutting it into frames
 *   onesided.c     regions, put, get, fence
 *   body_memory.c  memory of the bodies that are being received
 *   incoming.c     the delivery of a message to the actor
 *
 * frame.c, tls.c and timers.c do not use this header.
 */
#ifndef PWI_NET_TCP_WORLD_H
#define PWI_NET_TCP_WORLD_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "base/fifo.h"
#include "base/log.h"
#include "net/address.h"
#include "net/net_ops.h"
#include "net/tcp/delay.h"
#include "net/tcp/frame.h"
#include "net/tcp/incoming.h"
#include "net/tcp/plane.h"
#include "net/tcp/tcp.h"
#include "net/tcp/timers.h"
#include "net/tcp/tls.h"

#define MILLISECOND INT64_C(1000000)
#define SCRATCH_SIZE ((size_t)256 << 10) /* bytes read at once; small enough for the cache of a core */
#define CARRY_MAX 96    /* unprocessed bytes of a read: part of a head, or of the last step of a piece */
#define LISTENERS_MAX 8 /* addresses at which a net listens */

#define PWI_DOOR_SIZE 16 /* bytes of the name of a door: meet.c */
#define PWI_NONCE_SIZE 16
#define PWI_PROOF_SIZE 32
#define PWI_GUESTS_MAX 256                      /* connections to the door at the same time */
#define PWI_PLANE_PATIENCE (2000 * MILLISECOND) /* until a connector does without a plane */

/* The sources of epoll events besides links, whose numbers are smaller than all of these. */
#define PWI_EVENT_WAKER UINT64_MAX
#define PWI_EVENT_PLANE (UINT64_MAX - 1)
#define PWI_EVENT_DOOR (UINT64_MAX - 2)
#define PWI_EVENT_LISTENER (UINT64_MAX - 3)   /* of the first listener; the others have the numbers below */
#define PWI_EVENT_MEETING (UINT64_C(1) << 63) /* plus the number of the link */
#define PWI_EVENT_GUEST (UINT64_C(1) << 62)   /* plus the number of the guest */

enum link_stage {
  STAGE_RESOLVING,
  STAGE_CONNECTING,
  STAGE_SHAKING, /* TLS */
  STAGE_OPENING, /* waiting for the opening of the peer */
  STAGE_HELLO,   /* waiting for the hello of the peer */
  STAGE_OFFER,   /* waiting for the data plane offer of the peer, which also accepts the link */
  STAGE_PLANE,   /* the data plane is being tried */
  STAGE_UP,
  STAGE_CLOSING, /* closed by this side: the queue is being sent */
  STAGE_LEAVING, /* everything is sent; waiting for the peer to close first */
  STAGE_DEAD,
};

/* The state of the stream reader. */
enum input_stage { INPUT_OPENING, INPUT_HEAD, INPUT_BODY, INPUT_PADDING };

/* A segment of the send queue. Small data is copied to the ring of the link; large bodies stay in place. */
struct segment {
  const char *base; /* NULL: the next `size` bytes of the ring */
  size_t size;
  size_t operations; /* number of operations that end when this segment is written */
  uint64_t cookie;   /* cookie of a borrowed body; 0: none */
  bool is_borrowed;  /* `base` is memory of the caller or of a region */
};

/* A request that the peer answers in order: a get or a fence. */
struct tcp_question {
  uint64_t number;
  enum pwi_frame_kind kind; /* PWI_FRAME_GET or PWI_FRAME_FENCE */
  void *into;
  size_t size;
  uint64_t cookie;
};

struct tcp_share {
  struct tcp_region *region;
  unsigned access;
};

struct tcp_remote {
  uint64_t id;     /* for the actor; unique in its net */
  uint64_t region; /* number of the region at the peer */
  uint64_t size;
  unsigned access;
  size_t plane_remote; /* number at the data plane, if there is one */
};

/* The account of all links with the same identity: a key, a certificate, a user, or none. */
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
  bool is_announced; /* the actor knows the link and must get a link_down */
  bool can_read, can_write;
  bool has_ended;                     /* the peer has closed its side; earlier data may still be unread */
  bool is_ready, is_dirty, is_failed; /* the link is in the list of that name of its net */
  struct tcp_link *next_ready, *next_dirty, *next_failed;
  struct tcp_link *older, *younger; /* neighbours in the list of strangers */
  bool is_stranger;
  pawl_status why;        /* reason of its end */
  const char *detail;     /* details of the reason for the log, or NULL */
  char words[80];         /* buffer for `detail` */
  pawl_status verdict;    /* status for link_down of this side after an orderly end */
  pawl_status close_why;  /* reason to send to the peer */
  int64_t deadline;       /* deadline for coming up, or for closing */
  int64_t heard, spoke;   /* time of the last data received and sent */
  int64_t took;           /* last time the peer accepted bytes while its queue was too full */
  size_t heard_bytes;     /* bytes received since `heard` */
  struct pwi_delay delay; /* how late the peer was */
  char peer[PWI_NET_ADDRESS_MAX];
  char host[PWI_ADDRESS_HOST_MAX]; /* connecting: host name for the certificate of the peer */
  char identity[32];               /* identity of the peer of a unix socket */
  struct resolution *resolution;
  struct addrinfo *candidate; /* the address of the resolution that is being tried */

  struct pwi_opening ours, theirs;
  uint16_t version; /* of the framing */
  char *hello;      /* greeting of the peer */
  size_t hello_size;
  uint8_t nonce[PWI_NONCE_SIZE], their_nonce[PWI_NONCE_SIZE];
  uint8_t proof[PWI_PROOF_SIZE], their_proof[PWI_PROOF_SIZE]; /* proofs of the meeting */
  uint64_t meeting;                                           /* the acceptor's number of the link */
  int channel;                                                /* connector: the socket to the door of the
                                                                 peer, until the plane takes it over */
  struct pwi_process process;                                 /* connector: the process behind the door, until
                                                                 the plane takes it over */
  bool offers_plane, has_met, peer_insists;
  char *fabric; /* fabric address from the offer of the peer */
  size_t fabric_size;
  uint64_t our_tag;
  struct pwi_plane_port *port; /* until it is connected */
  struct pwi_plane_peer *plane;
  int64_t plane_deadline;
  bool probed, peer_probed, plane_blocked, plane_wanted, plane_ready;
  uint64_t plane_sent;     /* messages */
  uint64_t plane_received; /* messages and notifications */
  bool bye_came;
  uint64_t bye_plane_count;
  unsigned can;

  /* input */
  enum input_stage input;
  uint64_t position; /* position in the stream of the first unprocessed byte */
  char carry[CARRY_MAX];
  size_t carry_size;
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX];
  uint64_t body_left;
  struct pwi_places places;           /* destination of the body of a frame that is not a message */
  bool has_places;                    /* `places` is in use */
  char *small;                        /* body of a hello or an offer */
  bool expects_place;                 /* the last large body had its own destination */
  bool is_wanted;                     /* the arriving message was announced to the actor */
  struct pwi_incoming incoming;       /* message on the link */
  struct pwi_incoming plane_incoming; /* message on the data plane */

  struct pwi_account *account; /* set once the link is up */
  size_t charged, received;    /* of the arriving body: bytes charged, and bytes received */
  bool is_waiting;             /* waiting for memory to receive more */
  int64_t body_at, pace_at;    /* time at which the body began to arrive, and at which its pace was last
                                  checked */
  size_t pace_delivered;       /* bytes received at `pace_at` */

  /* output */
  struct pwi_fifo segments;
  char *ring;
  size_t ring_capacity, ring_begin, ring_count;
  size_t queued_bytes, queued_operations; /* of the socket */
  bool bye_queued, bye_written;

  /* Messages of the data lane that wait (hold.c), and operations of the data plane that have not ended. */
  struct pwi_fifo parked; /* struct pwi_parked * */
  size_t parked_bytes;
  size_t plane_bytes, plane_operations;
  bool data_was_full, link_was_full; /* the actor waits for `writable` */
  bool is_held;                      /* by the peer */
  bool holds;                        /* the peer */
  bool peer_closes;                  /* so that this side's hold is over */

  /* one-sided */
  struct pwi_fifo questions;
  uint64_t last_question;
  struct tcp_share *shares;
  size_t share_count, share_room;
  struct tcp_remote *remotes;
  size_t remote_count, remote_room;
};

struct tcp_region {
  struct pwi_region base;
  uint64_t number;
  struct pwi_plane_memory *memory; /* NULL: mapped by net/tcp itself */
  struct pwi_link writer;          /* the only link that it was shared with for writing */
  struct tcp_region *next;
};

struct ended {
  struct pwi_link link;
  uint64_t cookie;
  pawl_status status;
};

/* A connection to the door. */
struct pwi_guest {
  int socket; /* -1: unused */
  struct pwi_process process;
  int64_t deadline;
  uint8_t *card; /* NULL until it has arrived */
  size_t card_size;
};

struct tcp_listener {
  int socket;
  enum pwi_address_kind kind;
  char path[PWI_ADDRESS_HOST_MAX]; /* path of a unix socket, for removing the file */
};

/* The state of adaptive spinning: see world.c. */
struct pwi_spin {
  enum { SPIN_READY, SPIN_UNDER_WAY, SPIN_OVER } stage; /* stage of the present wait */
  int64_t end;
  unsigned skip, penalty;
};

struct tcp_net {
  struct pwi_net base;
  char *name;
  struct pwi_log log;
  struct pwi_log_limit strange; /* limit for log lines that strangers can cause */
  struct pwi_tls_context *tls;
  bool require_encryption;
  enum pwi_tcp_plane plane_wish;
  unsigned dscp;
  bool has_advertised;
  struct pwi_address advertised; /* port 0: the listening port */
  char address[PWI_NET_ADDRESS_MAX];
  char hello[PWI_NET_HELLO_MAX];
  size_t hello_size;
  const struct pwi_keyring *keys;
  uint8_t host[16]; /* equal on nodes that can share memory */
  uint8_t door_name[PWI_DOOR_SIZE];
  int door; /* -1: there is no data plane */
  struct pwi_guest guests[PWI_GUESTS_MAX];
  size_t guest_count;

  int epoll;
  int waker;
  int spare; /* a spare descriptor, closed to accept one more connection when descriptors run out */
  atomic_bool is_woken;
  bool moved; /* something happened in this round */
  struct pwi_spin spin;
  int64_t next_tick, last_tick;
  bool is_watching;           /* there were links at the last tick, so the next one was due in time */
  struct pwi_delay own_delay; /* how late this node's checks were */
  struct pwi_delay delay;     /* how late this node or any peer was */
  unsigned plane_rounds;      /* rounds since the sockets were last polled */
  int64_t looked;             /* begin of the round in which the sockets were last polled */
  struct pwi_timers timers;
  struct pwi_fifo ended;
  size_t owed; /* cookies not yet in `ended` */

  struct tcp_listener listeners[LISTENERS_MAX];
  size_t listener_count;
  struct tcp_link **slots; /* NULL: free */
  size_t slot_count, slot_hint, link_count;
  uint64_t last_link; /* number of links that there were */
  struct tcp_link *ready, *dirty, *failed;
  struct tcp_link *oldest_stranger, *youngest_stranger;
  size_t stranger_count;
  struct pwi_account *accounts;
  struct pwi_link exempt; /* the link that may receive beyond the limit */
  int64_t waiting_since;  /* since when links wait for memory */
  struct tcp_region *regions;
  uint64_t last_region, last_remote;
  struct pwi_plane *plane;
  struct pwi_parked *parked_pool;
  size_t parked_spare; /* in the pool */
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
void pwi_tcp_accept_all(struct tcp_net *net, struct tcp_listener *listener);
bool pwi_tcp_is_loopback(const struct sockaddr *address);
void pwi_tcp_mark_packets(const struct tcp_net *net, int socket);
void pwi_tcp_close_sources(struct tcp_net *net);
void pwi_tcp_forget_stranger(struct tcp_link *link);

/* owner.c */
bool pwi_tcp_is_same_user(int socket); /* true if the peer is a process of the same user or root on this host;
                                          false if unknown */

/* A hash of this host and of both ends of the connection; 0 if they are unknown. Both sides of a link compute
 * the same value if they are the ends of one connection on one host. If a proxy or a network address
 * translation is between them, each side sees other ends. */
#define PWI_ENDS_MASK 0xffffffu
uint32_t pwi_tcp_hash_ends(const struct tcp_link *link);

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
void pwi_tcp_link_hung_up(struct tcp_link *link, pawl_status why, const char *detail);
void pwi_tcp_link_finish(struct tcp_link *link); /* ends everything in progress; link_down may follow */
void pwi_tcp_link_shake(struct tcp_link *link);
void pwi_tcp_link_opened(struct tcp_link *link, const uint8_t *opening);
void pwi_tcp_link_greeted(struct tcp_link *link);
void pwi_tcp_link_bye(struct tcp_link *link);
void pwi_tcp_link_refuse(struct tcp_link *link, pawl_status why, const char *detail);
void pwi_tcp_link_come_up(struct tcp_link *link);
void pwi_tcp_link_check_bye(struct tcp_link *link);
void pwi_tcp_link_check(struct tcp_link *link, int64_t now); /* deadlines and heartbeats */

/* This node was stopped for `stopped` ns until now: extends the deadlines of the link by that time. */
void pwi_tcp_link_excuse(struct tcp_link *link, int64_t now, int64_t stopped);

/* The deadline extended by `stopped`, but to at most `most` from now. Never earlier than before. */
static inline int64_t pwi_tcp_later(int64_t deadline, int64_t now, int64_t stopped, int64_t most) {
  int64_t later = deadline + stopped < now + most ? deadline + stopped : now + most;
  return later > deadline ? later : deadline;
}
void pwi_tcp_link_beat(struct tcp_link *link, int64_t now); /* sends a heartbeat if it is due */
void pwi_tcp_link_step_closing(struct tcp_link *link);
void pwi_tcp_close(struct pwi_net *base, struct pwi_link link, pawl_status why);

/* link_plane.c */
void pwi_tcp_plane_offer(struct tcp_link *link);
void pwi_tcp_link_offered(struct tcp_link *link); /* a PLANE frame */
void pwi_tcp_plane_try(struct tcp_link *link, struct pwi_plane_route *route);
void pwi_tcp_plane_do_without(struct tcp_link *link); /* decision of the connector */
void pwi_tcp_plane_fails(struct tcp_link *link);      /* reported by the acceptor; the connector decides */
extern const struct pwi_plane_events pwi_tcp_link_plane_events;

/* meet.c */
void pwi_tcp_identify_host(uint8_t host[16]);
pawl_status pwi_tcp_door_open(struct tcp_net *net);
void pwi_tcp_door_close(struct tcp_net *net);
void pwi_tcp_door_accept(struct tcp_net *net);
void pwi_tcp_door_guest(struct tcp_net *net, size_t index);                 /* the connection of a guest has an event */
void pwi_tcp_door_check(struct tcp_net *net, int64_t now, int64_t stopped); /* deadlines */
pawl_status pwi_tcp_meet_begin(struct tcp_link *link, const uint8_t door[PWI_DOOR_SIZE], uint64_t number);
void pwi_tcp_meet_continue(struct tcp_link *link); /* an event of the connection to the door */
void pwi_tcp_meet_wait(struct tcp_link *link);     /* waits for the connector to come to the door */
void pwi_tcp_meet_end(struct tcp_link *link);

/* output.c */
pawl_status pwi_tcp_send(struct pwi_net *base, struct pwi_link link, const struct pwi_send *send, size_t body_size);
bool pwi_tcp_has_room(struct tcp_link *link, enum pwi_lane lane, size_t size); /* PWI_LANE_DATA also for one-sided
                                                                                   operations */
bool pwi_tcp_is_choked(const struct tcp_link *link); /* the queue is so full that no more requests are read */
void pwi_tcp_check_writable(struct tcp_link *link);
pawl_status pwi_tcp_queue_frame(struct tcp_link *link, enum pwi_frame_kind kind, const void *fields,
                                const struct iovec *body, size_t body_count, size_t body_size, bool borrow,
                                uint64_t cookie);
void pwi_tcp_link_flush(struct tcp_link *link);
pawl_status pwi_tcp_send_now(struct tcp_link *link, const struct pwi_send *send, size_t body_size);
void pwi_tcp_drop_output(struct tcp_link *link, pawl_status why);
bool pwi_tcp_output_uses(const struct tcp_link *link, const char *begin, size_t size);

/* hold.c */
pawl_status pwi_tcp_hold(struct pwi_net *base, struct pwi_link link, bool hold);
bool pwi_tcp_is_holding(const struct tcp_link *link); /* messages of the peer's data lane must not begin */
void pwi_tcp_link_held(struct tcp_link *link);        /* a HOLD frame */
void pwi_tcp_end_holds(struct tcp_link *link);        /* this side closes the link */
bool pwi_tcp_must_park(const struct tcp_link *link);  /* a message of the data lane cannot be sent now */
pawl_status pwi_tcp_park(struct tcp_link *link, const struct pwi_send *send, size_t body_size);
void pwi_tcp_unpark(struct tcp_link *link); /* sends what can be sent now */
void pwi_tcp_drop_parked(struct tcp_link *link, pawl_status why);
bool pwi_tcp_parked_uses(const struct tcp_link *link, const char *begin, size_t size);
void pwi_tcp_free_parked(struct tcp_net *net);

/* body_memory.c */
pawl_status pwi_tcp_body_memory_open(struct tcp_link *link); /* for a link that has come up. PAWL_NO_MEMORY */
void pwi_tcp_body_memory_close(struct tcp_link *link);
/* Returns how many bytes may be read now; 0: the link waits for memory. */
size_t pwi_tcp_body_memory_allow(struct tcp_link *link, size_t wanted);
void pwi_tcp_body_memory_received(struct tcp_link *link, size_t size);
void pwi_tcp_body_memory_release(struct tcp_link *link); /* for a body that has ended */
bool pwi_tcp_body_memory_is_full(const struct tcp_link *link);
void pwi_tcp_body_memory_check(struct tcp_net *net, int64_t now); /* takes down slow links */

/* input.c */
void pwi_tcp_link_read(struct tcp_link *link);

/* onesided.c */
pawl_status pwi_tcp_region_open(struct pwi_net *base, size_t size, struct pwi_region **region_out);
void pwi_tcp_region_close(struct pwi_net *base, struct pwi_region *region);
pawl_status pwi_tcp_region_share(struct pwi_net *base, struct pwi_region *region, struct pwi_link link, unsigned access,
                                 void *token, size_t *token_size_out);
pawl_status pwi_tcp_remote_open(struct pwi_net *base, struct pwi_link link, const void *token, size_t token_size,
                                struct pwi_remote *remote_out);
void pwi_tcp_remote_close(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote);
pawl_status pwi_tcp_remote_map(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote,
                               struct pwi_window *window_out);
/* The check of a token of this side (`is_ours`) or of the peer. It depends on the link, so that a token of
 * another link is noticed. */
uint64_t pwi_tcp_token_check(const struct tcp_link *link, bool is_ours, const uint8_t *token, size_t size);
pawl_status pwi_tcp_put(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie);
pawl_status pwi_tcp_get(struct pwi_net *base, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        void *into, size_t size, uint64_t cookie);
pawl_status pwi_tcp_fence(struct pwi_net *base, struct pwi_link link, uint64_t cookie);
char *pwi_tcp_put_place(struct tcp_link *link); /* destination of a new PUT frame; NULL: not allowed */
void pwi_tcp_put_ended(struct tcp_link *link);  /* the body of the PUT is complete */
bool pwi_tcp_get_asked(struct tcp_link *link);  /* a GET frame; false: not allowed */
char *pwi_tcp_got_place(struct tcp_link *link); /* destination of a new GOT frame; NULL: not requested */
void pwi_tcp_got_ended(struct tcp_link *link);
void pwi_tcp_fence_asked(struct tcp_link *link);
bool pwi_tcp_fence_answered(struct tcp_link *link);
void pwi_tcp_drop_questions(struct tcp_link *link, pawl_status why);

#endif
