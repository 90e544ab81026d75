/* net.h: everything a role can do to the world, and everything the world can do to a role.
 *
 * A role (manager, server shard, client, …) is an actor: a single-threaded state machine whose inputs are the callbacks
 * of `struct pwi_actor` and whose outputs are the calls below. It reads no clock and sleeps on nothing else. Two worlds
 * implement this header and run the same role unchanged: the real one (net/tcp: sockets and TLS, with net/ucx as data
 * plane where a pair of nodes has one) and the simulated one (src/sim).
 *
 * LINKS. Two nodes talk over a link: one connection, made by pwi_net_connect on one side and accepted by a listening
 * node on the other. A link is named by a number that its net never uses again. It comes up once (`link_up`), on both
 * sides or, if it is lost on the way, on one or none, and goes down once (`link_down`). Nobody reconnects behind the
 * actor's back: that decision, and its timer, are the role's. Every link that connect returned or link_up announced is
 * ended by exactly one link_down, and nothing is called for it afterwards.
 *
 * LANES. A message travels on one of two lanes, and each keeps the order in which it was given messages. PWI_LANE_LINK
 * is the connection itself. PWI_LANE_DATA is the data plane if the pair has one (shared memory on one host, RDMA
 * between hosts), else the connection. Between the lanes there is NO order, nor between a lane and one-sided
 * operations: whoever needs it carries a sequence number. The simulator reorders there on purpose.
 *
 * DELIVERY. A message is delivered once or, if the link goes down, perhaps not at all. `done` with PAWL_OK does not
 * mean that the peer has seen it. A message that had begun to arrive when the link broke ends with an error. After a
 * link went down nothing of it is delivered any more, but the peer may have received more than we know.
 *
 * MEMORY ON SENDING. The head (64 bytes) is always copied. Bodies of up to PWI_NET_COPY_MAX bytes are copied too. A
 * larger body is never copied: it is read from the caller's memory until `done` is called for it, and must not change
 * before. If `done` reports failure, a peer that is still alive may go on reading the old body for a while:
 *   - from ordinary memory it may then see changed bytes, which its checksum finds, so it must verify before it
 * applies;
 *   - from a region (below) it may be reading in place, so a region that a failed body lay in may be resent from but
 *     must not be changed until it is closed.
 *
 * MEMORY ON RECEIVING. For each message the actor first sees head and size, and says how it wants the body: in pieces
 * as they arrive (the piece may lie in the peer's own memory: no copy was made, and a faulty peer may change it under
 * your hands, so read each byte once), whole in the net's memory, into memory of its own, in one place or two, or not
 * at all. The next message of the same lane begins only when this one has ended.
 *
 * READY MESSAGES. Where all of a body can be read already when its message begins (it lies in the peer's regions, or
 * came along with the head) the message says that it is `ready`. If the actor then wants pieces it gets all of them at
 * once: no other callback runs between `message` and `message_end`, nothing can fail on the way, so `message_end` says
 * PAWL_OK, and every piece can be read until `message_end` returns. (If the actor itself closes the link meanwhile this
 * ends there, as for any message.) So an actor can look at all of a body before it uses any of it, and is never left
 * with half of one. These pieces come as they lie in memory, and nothing is copied to make them neat: they need be
 * neither aligned nor a multiple of the step. There are at most PWI_NET_READY_PIECES of them, none empty. Whether a
 * message is ready is the net's to say, for each anew; nobody can insist on it.
 *
 * ONE-SIDED. A region is memory that peers may read or write without this actor's doing. A peer writes only into
 * regions that were shared with its link, for writing, and a region is shared for writing with one link in its whole
 * life. When that link is down a late write of the old peer may still land in the region, never anywhere else; so close
 * it, and open another for the next link. Puts of one link land in the order given. A notification is delivered after
 * its put and all earlier puts of that link have landed. A get may see a value half-way through a put: whoever cares
 * carries a checksum.
 *
 * BACK-PRESSURE. What is queued for a link is bounded in bytes and operations (struct pwi_net_limits). A call that
 * would pass the bound returns PAWL_QUEUE_FULL and changes nothing; `writable` is called once the queue is half empty.
 *
 * RECEIVING MUCH. What arrives of bodies that are wanted in memory (not in pieces) is counted, and bounded by
 * `inbound_bytes`. A link beyond the bound is not read from until others have ended; one body at a time may go beyond it,
 * so that something always ends. While a link waits for room, an accepted one that has some and is slow (below 256 KB/s, or
 * 16 MB/s over a whole body) goes down with PAWL_LINK_SILENT.
 *
 * DEATH. The hang-up of the connection is seen at once. A peer that hangs silently is found by heartbeats (one every 50
 * ms when there is nothing else to say, silence limit 250 ms). A node that was itself stopped for a while gives its
 * peers a fresh silence limit before it judges them.
 *
 * THREADS. A net belongs to one thread. All calls come from it, and all callbacks run in it, inside pwi_net_poll; the
 * one exception is pwi_net_wake, which any thread may call. No call below runs a callback before it returns, so an
 * actor is never entered twice. No call blocks, except pwi_net_poll until its deadline, and
 * pwi_net_listen while it looks up a host name.
 *
 * ERRORS. Calls on a link that is down, being closed, or not yet up return PAWL_NOT_FOUND: to an actor that has not yet
 * handled the link_down this is news, not an error. A link on which memory runs out may go down for it.
 */
#ifndef PWI_NET_NET_H
#define PWI_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/status.h>

#define PWI_NET_HEAD_SIZE 64     /* bytes of a message's head; opaque here, laid out by wire/message.h */
#define PWI_NET_COPY_MAX 4096    /* bodies up to this size are copied by pwi_net_send */
#define PWI_NET_IOV_MAX 16       /* parts of one body */
#define PWI_NET_HELLO_MAX 1024   /* bytes of a greeting */
#define PWI_NET_TOKEN_MAX 512    /* bytes of a region's token */
#define PWI_NET_ADDRESS_MAX 256  /* characters of an address, the final zero included */
#define PWI_NET_IDENTITY_MAX 256 /* characters of an identity, likewise */
#define PWI_NET_PIECE_ALIGN 16   /* every piece begins at a multiple of this in memory, unless the message is ready, */
#define PWI_NET_PIECE_STEP 64    /* and every piece but a message's last has a multiple of this many bytes */
#define PWI_NET_READY_PIECES 32  /* pieces of a ready message, at most */
#define PWI_NET_NEVER INT64_MAX  /* a deadline that does not come */

struct pwi_net;    /* one actor's world */
struct pwi_region; /* memory that peers may reach */

struct pwi_link {
  uint64_t id; /* 0: no link */
};

struct pwi_timer {
  uint64_t id; /* 0: no timer */
};

/* A peer's region as one link sees it. It ends with the link. */
struct pwi_remote {
  uint64_t id;
};

enum pwi_lane { PWI_LANE_LINK, PWI_LANE_DATA };

/* What the pair can do; fixed while the link is up. */
enum pwi_link_can {
  PWI_LINK_HAS_PLANE = 1, /* the data lane is a plane of its own: no order between the lanes */
  PWI_LINK_IN_PLACE = 2,  /* bodies that lie in a region are read by the peer without any copy */
  PWI_LINK_ENCRYPTED = 4, /* TLS: integrity is guaranteed, a checksum on the link lane is not needed */
};

struct pwi_link_info {
  const char *peer;  /* for people: the peer's address */
  const void *hello; /* the peer's greeting */
  size_t hello_size;
  const char *identity; /* how it proved who it is: "key:NAME", "cert:NAME,…" (each name of the certificate),
                           "user:NUMBER" (unix sockets), or "" */
  bool accepted;        /* the peer connected to us */
  unsigned can;         /* of enum pwi_link_can */
};

/* How the actor wants a body. */
enum pwi_receive_how {
  PWI_RECEIVE_PIECES, /* `piece` for each part as it arrives; valid during the call only, or see READY MESSAGES */
  PWI_RECEIVE_WHOLE,  /* one `piece` with all of it, also if it is empty; valid during the call only */
  PWI_RECEIVE_INTO,   /* written to `into`, which must hold the body and live until `message_end`; no `piece` */
  PWI_RECEIVE_DROP,   /* read and thrown away */
  PWI_RECEIVE_REFUSE, /* nonsense: take the link down with PAWL_LINK_PROTOCOL; `message_end` is still called */
  PWI_RECEIVE_SPLIT,  /* as INTO, but only the first `prefix` bytes go to `into` (a shorter body: all of it), and what
                         follows them to `rest`; a place that gets nothing may be NULL */
};

struct pwi_receive {
  enum pwi_receive_how how;
  void *into;    /* PWI_RECEIVE_INTO and PWI_RECEIVE_SPLIT */
  void *context; /* handed to piece and message_end */
  void *rest;    /* PWI_RECEIVE_SPLIT only */
  size_t prefix;
};

struct pwi_message {
  const uint8_t *head; /* PWI_NET_HEAD_SIZE bytes, valid during the call */
  size_t body_size;
  enum pwi_lane lane; /* PWI_LANE_LINK also for what was sent on the data lane of a pair without a data plane */
  bool ready;         /* all of the body can be read now, see READY MESSAGES */
};

/* What can happen to an actor. Any member may be NULL: such events are ignored, and messages dropped. `self` is what was
 * given with the actor. Pointers in arguments are valid during the call only, unless said otherwise. */
struct pwi_actor {
  /* The peer has introduced itself; anything but PAWL_OK refuses it, and its side goes down with that status. NULL
   * accepts everybody. Called before link_up. After a refusal our side goes down too if we connected; if we accepted,
   * this actor hears no more of it. */
  pawl_status (*greet)(void *self, struct pwi_link link, const struct pwi_link_info *info);

  void (*link_up)(void *self, struct pwi_link link, const struct pwi_link_info *info);

  /* The link is gone, also one that never came up. `why` is PAWL_OK after our own pwi_net_close went well,
   * PAWL_LINK_CLOSED after the peer's, or the reason that the peer gave for it; PAWL_LINK_RESET if it hung up without a
   * word. All messages and operations of the link have ended. */
  void (*link_down)(void *self, struct pwi_link link, pawl_status why);

  /* A message begins. Its size is within the limit `message_max`. */
  struct pwi_receive (*message)(void *self, struct pwi_link link, const struct pwi_message *message);

  /* Part of the body: `size` bytes from `offset`, in order and without gaps. */
  void (*piece)(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size);

  /* The message has ended: PAWL_OK and every byte was there, or the link broke and it is incomplete. Called exactly
   * once for each `message`. */
  void (*message_end)(void *self, struct pwi_link link, void *context, pawl_status status);

  /* An operation that was given a cookie other than 0 (send, put, get, fence) has ended, and its memory is the caller's
   * again. Operations need not end in the order in which they were given. */
  void (*done)(void *self, struct pwi_link link, uint64_t cookie, pawl_status status);

  /* A peer's put asked for this. */
  void (*notified)(void *self, struct pwi_link link, uint64_t value);

  /* After a PAWL_QUEUE_FULL: there is room again. */
  void (*writable)(void *self, struct pwi_link link);

  /* A timer's time has come. */
  void (*timer)(void *self, struct pwi_timer timer, uint64_t cookie);

  /* pwi_net_wake was called, once or several times since. */
  void (*woken)(void *self);
};

struct pwi_net_limits {
  size_t message_max;   /* largest body accepted or sent; default 1 GiB */
  size_t queue_bytes;   /* bound of what is queued for one link; default 64 MiB; a single larger body may stand alone */
  size_t queue_count;   /* and in operations; default 4096 */
  size_t inbound_bytes; /* memory for bodies that are being received over sockets, in all; of that a link has half, and
                           all links of one key three quarters; default SIZE_MAX: no bound. See RECEIVING MUCH */
  size_t links;         /* links at once; default 16384 */
  size_t strangers;     /* accepted connections that have not yet introduced themselves; default 1024 */
  int64_t greet_ns;     /* how long a connection may take to come up; default 5 s */
  int64_t beat_ns;      /* heartbeat; default 50 ms */
  int64_t silence_ns;   /* silence limit; default 250 ms */
  int64_t linger_ns;    /* how long a graceful close may take; default 1 s */
};

/* Fills in the defaults. */
void pwi_net_limits_init(struct pwi_net_limits *limits);

/* Take down all links at once without further callbacks, free everything. NULL is fine. Not from inside a callback. */
void pwi_net_destroy(struct pwi_net *net);

/* Run what is ready; if nothing is, wait for something until `deadline` (pwi_net_now's clock). Returns PAWL_OK after
 * one or more callbacks ran or something was moved, PAWL_TIMED_OUT if the deadline passed first. In the simulator there
 * is nothing to poll: PAWL_UNSUPPORTED. */
pawl_status pwi_net_poll(struct pwi_net *net, int64_t deadline);

/* Let `woken` be called soon. The only call that other threads may make; also safe in a signal handler. */
void pwi_net_wake(struct pwi_net *net);

/* Sends heartbeats where they are due, receives nothing, and calls no actor: for an actor that has to wait for something
 * while it is being called. Elsewhere pwi_net_poll does it. */
void pwi_net_beat(struct pwi_net *net);

/* Nanoseconds on a clock that never runs back; its zero means nothing. */
int64_t pwi_net_now(const struct pwi_net *net);

/* Have `timer` called at or soon after `at`, once. Timers of the same time fire in the order they were set.
 * PAWL_NO_MEMORY. */
pawl_status pwi_net_timer_set(struct pwi_net *net, int64_t at, uint64_t cookie, struct pwi_timer *timer_out);

/* Forget a timer. One that has fired or was cancelled is ignored. */
void pwi_net_timer_cancel(struct pwi_net *net, struct pwi_timer timer);

/* What we say on every link from now on: at most PWI_NET_HELLO_MAX bytes, copied. PAWL_TOO_LARGE. */
pawl_status pwi_net_hello_set(struct pwi_net *net, const void *hello, size_t size);

/* Accept links at an address; see net/address.h for how addresses are written. More than one may be listened at. An
 * address that others can reach, without a key or certificate, is refused with PAWL_FORBIDDEN. PAWL_NODE_ADDRESS,
 * PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_status pwi_net_listen(struct pwi_net *net, const char *address);

/* The address others reach us at: advertised if one was given, else the first that is listened at with the port that
 * was found. "" before pwi_net_listen. Valid until the next listen. */
const char *pwi_net_address(const struct pwi_net *net);

/* Begin a link to a listening node. The outcome arrives as link_up or link_down. PAWL_INVALID for an address that
 * cannot be read, PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
pawl_status pwi_net_connect(struct pwi_net *net, const char *address, struct pwi_link *link_out);

/* Close gracefully: what is queued is still sent, then the peer is told `why` (PAWL_OK: no reason) and link_down
 * follows. Nothing more can be sent, and what arrives is dropped. */
void pwi_net_close(struct pwi_net *net, struct pwi_link link, pawl_status why);

struct pwi_send {
  enum pwi_lane lane;
  const void *head; /* PWI_NET_HEAD_SIZE bytes, copied */
  const struct iovec *body;
  size_t body_count; /* at most PWI_NET_IOV_MAX parts; the array itself is copied */
  uint64_t cookie;   /* 0: do not call `done` */
};

/* Queue a message. PAWL_QUEUE_FULL, PAWL_TOO_LARGE, PAWL_NOT_FOUND, PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_status pwi_net_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send);

/* Zeroed memory that peers can be given. Large ones ask for huge pages. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
pawl_status pwi_net_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out);
void *pwi_net_region_memory(const struct pwi_region *region);
size_t pwi_net_region_size(const struct pwi_region *region);

/* No peer can begin to reach it any more; the memory is gone when this returns. Bodies still being sent from it end
 * with PAWL_CANCELLED and take their link down. A peer that goes on using the region may see its operations vanish, or
 * lose its link: tell it first. NULL is fine. */
void pwi_net_region_close(struct pwi_net *net, struct pwi_region *region);

enum pwi_access { PWI_ACCESS_READ = 1, PWI_ACCESS_WRITE = 2 };

/* Write a token that lets the peer of `link` reach the region; hand it over in a message. Sharing for writing with a
 * second link is PAWL_FORBIDDEN. PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
pawl_status pwi_net_region_share(struct pwi_net *net, struct pwi_region *region, struct pwi_link link, unsigned access,
                                 void *token, size_t *token_size_out);

/* Use a token that came over `link`. PAWL_CORRUPT, PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
pawl_status pwi_net_remote_open(struct pwi_net *net, struct pwi_link link, const void *token, size_t token_size,
                                struct pwi_remote *remote_out);

/* Write into a peer's region. Done: our memory is ours again; it says nothing about the peer's. With `notify` other
 * than 0 the peer's actor is notified of that value. An access outside the region or beyond what was shared takes the
 * link down with PAWL_LINK_PROTOCOL. Of `from`, at most PWI_NET_COPY_MAX bytes are copied, more are borrowed until
 * done. PAWL_QUEUE_FULL, PAWL_TOO_LARGE, PAWL_NOT_FOUND, PAWL_INVALID (no such remote), PAWL_NO_MEMORY. */
pawl_status pwi_net_put(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie);

/* Read from a peer's region. Done: `into` is filled, or the link is gone and it never will be. Errors as pwi_net_put.
 */
pawl_status pwi_net_get(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        void *into, size_t size, uint64_t cookie);

/* Done: all puts given to this link before have landed. Errors as pwi_net_put. */
pawl_status pwi_net_fence(struct pwi_net *net, struct pwi_link link, uint64_t cookie);

struct pwi_net_counts {
  uint64_t messages_sent, messages_received;
  uint64_t bytes_sent, bytes_received; /* heads and bodies; of one-sided data what passed through this net's hands */
  uint64_t links_up, links_refused;    /* since start */
  uint64_t inbound_bytes;              /* of bodies that are being received, now */
  uint64_t inbound_max;                /* the bound; UINT64_MAX: none */
  uint64_t inbound_waiting;            /* links that wait for room, now */
  uint64_t inbound_dropped;            /* links that were taken down for being slow while others waited, since start */
};

void pwi_net_counts(const struct pwi_net *net, struct pwi_net_counts *counts_out);

#endif
