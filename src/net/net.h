/* The network interface of roles: all calls of a role to its environment, and all callbacks from it.
 *
 * A role (manager, server shard, client, …) is an actor: a single-threaded state machine whose inputs are the
 * callbacks of `struct pwi_actor` and whose outputs are the calls below. It uses no other clock and waits for
 * nothing else. Two worlds implement this header and run the same role unchanged: the real one (net/tcp:
 * sockets and TLS, with net/ucx as data plane for pairs of nodes that have one) and the simulated one
 * (src/sim).
 *
 * LINKS. Two nodes communicate over a link: one connection, made by pwi_net_connect on one side and accepted
 * by a listening node on the other. A link has a number that its net never reuses; one that was made or accepted
 * later has a higher number. It comes up once (`link_up`), on both sides, or on one or none if it is lost before,
 * and goes down once (`link_down`). A net never reconnects by itself; the role decides about that and sets the
 * timer. Every link that pwi_net_connect returned or link_up announced ends with exactly one link_down, and no
 * callback follows for it. Events of several links come in any order: a node that was stopped may read a newer link
 * of a peer before the end of the older one.
 *
 * LANES. A message is sent on one of two lanes, each of which delivers messages in order. PWI_LANE_LINK is
 * the connection itself. PWI_LANE_DATA is the data plane if the pair has one (shared memory on one host, RDMA
 * between hosts), otherwise the connection. There is NO order between the lanes, nor between a lane and
 * one-sided operations: a role that needs order must send sequence numbers. The simulator reorders here on
 * purpose.
 *
 * DELIVERY. A message is delivered once, or possibly not at all if the link goes down. `done` with PAWL_OK
 * does not mean that the peer has received it. If the link breaks while a message arrives, the message ends
 * with an error. Nothing is delivered after link_down, but the peer may have received more than this side
 * knows.
 *
 * MEMORY ON SENDING. The head (64 bytes) is always copied, and so are bodies of up to PWI_NET_COPY_MAX bytes.
 * A larger body is never copied: it is read from the memory of the caller until `done` is called for it, and
 * must not change before. If `done` reports a failure, a live peer may continue to read the old body for a
 * while:
 *   - from ordinary memory it may read changed bytes. Its checksum detects this, so it must verify before it
 *     applies;
 *   - from a region (below) it may read in place. A region with a failed body may be used to resend it, but
 *     must not be changed until it is closed.
 * If the last part of a large body will change sooner, the caller names `spare` memory of the same size for
 * it. Of that part the net sends what it can during the call, and copies the rest to the spare memory, which
 * then stands for the part until `done`.
 *
 * MEMORY ON RECEIVING. For each message the actor first receives head and size, and chooses how to receive
 * the body: in pieces as they arrive, whole in memory of the net, into its own memory in one or two places,
 * or not at all. A piece may lie in the memory of the peer, without a copy; a faulty peer may change it at
 * any time, so the actor must read each byte only once. The next message of the same lane begins only when
 * this one has ended.
 *
 * READY MESSAGES. A message is `ready` if its whole body can already be read when the message begins, because
 * it lies in regions of the peer or arrived with the head. If the actor then chooses pieces, it gets all of
 * them at once: no other callback runs between `message` and `message_end`, nothing can fail, `message_end`
 * has PAWL_OK, and every piece is readable until `message_end` returns. (If the actor itself closes the link
 * in between, the message ends there, as any message.) An actor can thus inspect the whole body before it
 * uses any of it, and never receives half a body. These pieces are delivered as they lie in memory: they need
 * be neither aligned nor a multiple of the step. There are at most PWI_NET_READY_PIECES of them, none empty.
 * The net decides for each message whether it is ready; an actor cannot demand it.
 *
 * ONE-SIDED. A region is memory that peers may read or write without the participation of the actor. A peer
 * can write only to regions that were shared with its link for writing, and a region may be shared for
 * writing with only one link in its lifetime. When that link is down, a late write of the old peer may still
 * reach the region, but no other memory; so close the region and open another for the next link. Puts of one
 * link land in order. A notification is delivered after its put and all earlier puts of that link have
 * landed. A get may read a partly written value; use a checksum if this matters. There is no order between a
 * put and a get. If the link is closed gracefully by the node that puts, all its puts land and all
 * notifications are delivered first; gets and fences may fail.
 *
 * BACK-PRESSURE. The queue of a link is limited in bytes and operations (struct pwi_net_limits). A call that
 * would exceed a limit returns PAWL_QUEUE_FULL and changes nothing; `writable` is called once the queue is
 * half empty.
 *
 * The messages of the data lane and one-sided operations do not use up the room of the link lane: a full data
 * lane leaves it open.
 *
 * HOLD. A role can hold the data lane of a link (pwi_net_hold). The net of the peer then keeps the messages
 * of its data lane in its queue, in order, and tells its actor by `held`. Messages that were already on their
 * way, and the one that is arriving, may still be delivered. Once the peer has answered over the link lane a
 * message that was sent after the hold, no message of the data lane begins before the hold ends. The link
 * lane, heartbeats and one-sided operations go on, except that a notification may wait for the end of the
 * hold; a held peer is not silent. A hold concerns one direction: this side sends as before. It ends with
 * pwi_net_hold, with the link, and when the peer closes the link gracefully: then all that it has queued is
 * delivered first.
 *
 * INBOUND MEMORY. Arrived bytes of bodies that are received into memory (not in pieces) are counted and
 * limited by `inbound_bytes`. A link beyond the limit is not read until other bodies have ended. One body at
 * a time may exceed the limit, so that there is always progress. While a link waits for memory, an accepted
 * link that holds memory and is slow (below 256 KB/s, or below 16 MB/s over a whole body) goes down with
 * PAWL_LINK_SILENT.
 *
 * FAILURE DETECTION. A closed connection is detected at once. A peer that hangs is detected by missing
 * heartbeats (one every 50 ms on an idle link; silence limit 250 ms). The time during which a node was itself
 * stopped does not count as silence of its peers. On a busy machine heartbeats are sent and read late. The
 * limit of a link therefore grows by four times what the worst recent delay of its peer or of the node itself
 * has beyond 50 ms, by up to 2 s. Roles add the same allowance to time limits of their own (pwi_net_allowance).
 *
 * THREADS. A net belongs to one thread, which makes all calls and runs all callbacks, inside pwi_net_poll.
 * The only exceptions are pwi_net_wake and pwi_net_remote_unmap, which any thread may call. No call below
 * runs a callback before it returns, so an actor is never re-entered. No call blocks, except pwi_net_poll
 * until its deadline, and pwi_net_listen while it resolves a host name.
 *
 * ERRORS. Calls on a link that is down, being closed, or not yet up return PAWL_NOT_FOUND. This can happen
 * before the actor has received the link_down, and is not an error. A link may go down if memory runs out.
 */
#ifndef PWI_NET_NET_H
#define PWI_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/status.h>

#define PWI_NET_HEAD_SIZE 64     /* bytes of the head of a message; opaque here, see wire/message.h */
#define PWI_NET_COPY_MAX 4096    /* bodies up to this size are copied by pwi_net_send */
#define PWI_NET_IOV_MAX 16       /* parts of one body */
#define PWI_NET_HELLO_MAX 1024   /* bytes of a greeting */
#define PWI_NET_TOKEN_MAX 512    /* bytes of the token of a region */
#define PWI_NET_ADDRESS_MAX 256  /* characters of an address, including the final zero */
#define PWI_NET_IDENTITY_MAX 256 /* characters of an identity, including the final zero */
#define PWI_NET_PIECE_ALIGN 16   /* alignment of pieces in memory, unless the message is ready */
#define PWI_NET_PIECE_STEP 64    /* the size of every piece except the last is a multiple of this */
#define PWI_NET_READY_PIECES 32  /* maximum pieces of a ready message */
#define PWI_NET_NEVER INT64_MAX  /* a deadline in the infinite future */

struct pwi_net;    /* the environment of one actor */
struct pwi_region; /* memory that peers may access */

struct pwi_link {
  uint64_t id; /* 0: no link */
};

struct pwi_timer {
  uint64_t id; /* 0: no timer */
};

/* A region of a peer, for one link. Its number is never reused. It ends with the link or with
 * pwi_net_remote_close. */
struct pwi_remote {
  uint64_t id; /* 0: no remote */
};

/* A region of a peer, mapped into this process: see pwi_net_remote_map. */
struct pwi_window {
  const void *memory; /* NULL: this pair of nodes shares no memory */
  size_t size;
  void (*release)(const struct pwi_window *window); /* private */
  void *keeper;                                     /* private */
};

enum pwi_lane { PWI_LANE_LINK, PWI_LANE_DATA };

/* Capabilities of a pair of nodes; fixed while the link is up. */
enum pwi_link_can {
  PWI_LINK_HAS_PLANE = 1, /* the data lane is a separate data plane: no order between the lanes */
  PWI_LINK_IN_PLACE = 2,  /* the peer reads bodies in a region without a copy */
  PWI_LINK_ENCRYPTED = 4, /* TLS guarantees integrity; messages on the link lane need no checksum */
  PWI_LINK_LOCAL = 8,     /* the connection crosses no network and no proxy: messages on the link lane need no
                             checksum */
};

struct pwi_link_info {
  const char *peer;  /* address of the peer, for display */
  const void *hello; /* greeting of the peer */
  size_t hello_size;
  const char *identity; /* proven identity of the peer: "key:NAME", "cert:NAME,…" (all names of the
                           certificate), "user:NUMBER" (unix sockets), or "" */
  bool accepted;        /* the peer made the connection */
  unsigned can;         /* of enum pwi_link_can */
};

/* How the actor receives a body. */
enum pwi_receive_how {
  PWI_RECEIVE_PIECES, /* `piece` for each part as it arrives; valid during the call only, except for ready
                         messages */
  PWI_RECEIVE_WHOLE,  /* one `piece` with the whole body, even if it is empty; valid during the call only */
  PWI_RECEIVE_INTO,   /* written to `into`, which must have room for the body and remain valid until
                         `message_end`; no `piece` */
  PWI_RECEIVE_DROP,   /* the body is read and discarded */
  PWI_RECEIVE_REFUSE, /* invalid message: the link goes down with PAWL_LINK_PROTOCOL; `message_end` is still
                         called */
  PWI_RECEIVE_SPLIT,  /* as INTO, but only the first `prefix` bytes (or the whole body if it is shorter) go to
                         `into`, and the others to `rest`; an unused pointer may be NULL */
};

struct pwi_receive {
  enum pwi_receive_how how;
  void *into;    /* PWI_RECEIVE_INTO and PWI_RECEIVE_SPLIT */
  void *context; /* passed to `piece` and `message_end` */
  void *rest;    /* PWI_RECEIVE_SPLIT only */
  size_t prefix;
};

struct pwi_message {
  const uint8_t *head; /* PWI_NET_HEAD_SIZE bytes, valid during the call */
  size_t body_size;
  enum pwi_lane lane; /* PWI_LANE_LINK also for a message sent on the data lane of a pair without a data
                         plane */
  bool ready;         /* the whole body can be read now, see READY MESSAGES */
};

/* The callbacks of an actor. Any member may be NULL: such events are ignored, and messages are dropped.
 * `self` is the pointer given with the actor. Pointer arguments are valid during the call only, unless stated
 * otherwise. */
struct pwi_actor {
  /* Called with the greeting of the peer, before link_up. Any result except PAWL_OK refuses the peer, whose
   * side goes down with that status. NULL accepts every peer. After a refusal the own side goes down too if
   * it made the connection; on the accepting side no further callback follows. */
  pawl_status (*greet)(void *self, struct pwi_link link, const struct pwi_link_info *info);

  void (*link_up)(void *self, struct pwi_link link, const struct pwi_link_info *info);

  /* The link is down; also called for a link that never came up. `why` is PAWL_OK after a successful
   * pwi_net_close of this side; after a close by the peer it is PAWL_LINK_CLOSED or the reason that the peer
   * gave; PAWL_LINK_RESET if the connection broke without a close. All messages and operations of the link
   * have ended. */
  void (*link_down)(void *self, struct pwi_link link, pawl_status why);

  /* A message begins. Its size is within the limit `message_max`. */
  struct pwi_receive (*message)(void *self, struct pwi_link link, const struct pwi_message *message);

  /* Part of the body: `size` bytes from `offset`, in order and without gaps. */
  void (*piece)(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size);

  /* The message has ended: PAWL_OK if every byte arrived, otherwise the link broke and the message is
   * incomplete. Called exactly once for each `message`. */
  void (*message_end)(void *self, struct pwi_link link, void *context, pawl_status status);

  /* An operation (send, put, get, fence) with a non-zero cookie has ended, and its memory belongs to the
   * caller again. Operations need not end in order. */
  void (*done)(void *self, struct pwi_link link, uint64_t cookie, pawl_status status);

  /* A put of the peer has landed that asked for a notification. */
  void (*notified)(void *self, struct pwi_link link, uint64_t value);

  /* The queue has room again after PAWL_QUEUE_FULL. */
  void (*writable)(void *self, struct pwi_link link);

  /* The peer holds the data lane of this side, or has ended the hold: see HOLD. */
  void (*held)(void *self, struct pwi_link link, bool is_held);

  /* A timer has expired. */
  void (*timer)(void *self, struct pwi_timer timer, uint64_t cookie);

  /* pwi_net_wake was called at least once since the last call. */
  void (*woken)(void *self);
};

struct pwi_net_limits {
  size_t message_max;   /* largest body accepted or sent; default 1 GiB */
  size_t queue_bytes;   /* limit for the queue of one link in bytes; default 64 MiB; a single larger body is
                           permitted */
  size_t queue_count;   /* limit for the queue of one link in operations; default 4096 */
  size_t inbound_bytes; /* limit for the memory of bodies that arrive over sockets. A link may use half of it,
                           and all links of one key three quarters. Default SIZE_MAX: none. See INBOUND
                           MEMORY */
  size_t links;         /* maximum number of links; default 16384 */
  size_t strangers;     /* maximum number of accepted connections that have not sent their hello yet; default
                           1024 */
  int64_t greet_ns;     /* how long a connection may take to come up; default 5 s */
  int64_t beat_ns;      /* interval of heartbeats; default 50 ms */
  int64_t silence_ns;   /* silence limit on an idle machine; default 250 ms */
  int64_t linger_ns;    /* how long a graceful close may take; default 1 s */
};

/* Sets all limits to their defaults. */
void pwi_net_limits_init(struct pwi_net_limits *limits);

/* Takes down all links at once, without callbacks, and frees everything. NULL is fine. Must not be called
 * from a callback. */
void pwi_net_destroy(struct pwi_net *net);

/* Processes pending events; if there are none, waits until `deadline` (on the clock of pwi_net_now). Returns
 * PAWL_OK after callbacks ran or data moved, PAWL_TIMED_OUT if the deadline passed first. PAWL_UNSUPPORTED in
 * the simulator. */
pawl_status pwi_net_poll(struct pwi_net *net, int64_t deadline);

/* Causes a call of `woken` soon. Any thread may call it; it is also safe in a signal handler. */
void pwi_net_wake(struct pwi_net *net);

/* Sends heartbeats that are due, without receiving anything or running callbacks. For an actor that has to
 * wait inside a callback; otherwise pwi_net_poll sends them. */
void pwi_net_beat(struct pwi_net *net);

/* The additional time, in nanoseconds, that a role gives its peers to answer, because this node or its peers
 * have lately been delayed. Near 0 on an idle machine, and always 0 in the simulator. */
int64_t pwi_net_allowance(const struct pwi_net *net);

/* The time in nanoseconds on a monotonic clock with an arbitrary origin. */
int64_t pwi_net_now(const struct pwi_net *net);

/* Causes one call of `timer` at or soon after `at`. Timers of the same time fire in the order in which they
 * were set. PAWL_NO_MEMORY. */
pawl_status pwi_net_timer_set(struct pwi_net *net, int64_t at, uint64_t cookie, struct pwi_timer *timer_out);

/* Cancels a timer. Does nothing if it has fired or was cancelled. */
void pwi_net_timer_cancel(struct pwi_net *net, struct pwi_timer timer);

/* Sets the greeting for every link from now on: at most PWI_NET_HELLO_MAX bytes, copied. PAWL_TOO_LARGE. */
pawl_status pwi_net_hello_set(struct pwi_net *net, const void *hello, size_t size);

/* Accepts links at an address (syntax: net/address.h). A net may listen at several addresses. Without a key
 * or certificate, an address that other machines can reach is PAWL_FORBIDDEN. PAWL_NODE_ADDRESS,
 * PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_status pwi_net_listen(struct pwi_net *net, const char *address);

/* The address at which others reach this net: the advertised one if set, otherwise the first listening
 * address with its actual port. "" before pwi_net_listen. Valid until the next listen. */
const char *pwi_net_address(const struct pwi_net *net);

/* Begins a link to a listening node. link_up or link_down reports the outcome. PAWL_INVALID for a malformed
 * address, PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
pawl_status pwi_net_connect(struct pwi_net *net, const char *address, struct pwi_link *link_out);

/* Closes a link gracefully: sends everything that is queued, then tells the peer `why` (PAWL_OK: no reason);
 * link_down follows. Nothing more can be sent, and arriving messages are dropped. */
void pwi_net_close(struct pwi_net *net, struct pwi_link link, pawl_status why);

struct pwi_send {
  enum pwi_lane lane;
  const void *head; /* PWI_NET_HEAD_SIZE bytes, copied */
  const struct iovec *body;
  size_t body_count; /* at most PWI_NET_IOV_MAX parts; the array itself is copied */
  uint64_t cookie;   /* 0: do not call `done` */
  void *spare;       /* NULL, or memory for the last part of the body, which changes after the call */
};

/* Queues a message. PAWL_QUEUE_FULL, PAWL_TOO_LARGE, PAWL_NOT_FOUND, PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_status pwi_net_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send);

/* Holds the data lane of the peer, or ends the hold: see HOLD. Nothing happens if it is so already.
 * PAWL_UNSUPPORTED: the net of the peer is of a version that knows no holds. PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
pawl_status pwi_net_hold(struct pwi_net *net, struct pwi_link link, bool hold);

/* Allocates zeroed memory that can be shared with peers. Large regions request huge pages. PAWL_NO_MEMORY,
 * PAWL_NODE_LIMIT. */
pawl_status pwi_net_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out);
void *pwi_net_region_memory(const struct pwi_region *region);
size_t pwi_net_region_size(const struct pwi_region *region);

/* Ends all access by peers and frees the memory. Bodies and puts that are still being sent from it, and gets
 * into it, end with PAWL_CANCELLED and take their link down. If a peer continues to use the region, its
 * operations may be lost or its link may go down, so tell it first. A lost get ends with PAWL_NOT_FOUND; a
 * lost put notifies nobody. NULL is fine. */
void pwi_net_region_close(struct pwi_net *net, struct pwi_region *region);

enum pwi_access { PWI_ACCESS_READ = 1, PWI_ACCESS_WRITE = 2 };

/* Writes a token that gives the peer of `link` access to the region; send it in a message over this link.
 * Sharing for writing with a second link is PAWL_FORBIDDEN. PAWL_QUEUE_FULL while the peer has not taken the
 * many regions that were shared with it before; `writable` follows. PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
pawl_status pwi_net_region_share(struct pwi_net *net, struct pwi_region *region, struct pwi_link link, unsigned access,
                                 void *token, size_t *token_size_out);

/* Opens a region of the peer by a token that was received over `link`. PAWL_CORRUPT if it is not a token of
 * the peer for this link, or was changed. PAWL_NOT_FOUND if the link is down or the peer has closed the
 * region. PAWL_NO_MEMORY. */
pawl_status pwi_net_remote_open(struct pwi_net *net, struct pwi_link link, const void *token, size_t token_size,
                                struct pwi_remote *remote_out);

/* Ends the use of a remote. Operations that were begun continue. Does nothing if it has ended. */
void pwi_net_remote_close(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote);

/* Maps a region of the peer for reading, so that any thread of this process can read it without the net.
 * `window_out->memory` is NULL if the pair does not share memory (no PWI_LINK_IN_PLACE); then use
 * pwi_net_get.
 *
 * The window belongs to the caller and stays readable until pwi_net_remote_unmap, whatever happens: when the
 * remote or the link ends, when the peer closes the region or dies, and when this net is destroyed. After the
 * peer has closed the region, the window shows its last contents and keeps its memory allocated, so unmap it
 * soon.
 *
 * The peer writes the region while others read it. Read it with the functions of net/shared_copy.h only, and
 * expect partly written values: use a sequence number or a checksum. In the simulator the window is the
 * memory of the region itself; puts land there in parts, so a reader sees partly written values too.
 *
 * PAWL_NOT_FOUND if the link is down or the peer has closed the region, PAWL_INVALID (no such remote),
 * PAWL_FORBIDDEN if the remote may not be read, PAWL_NO_MEMORY. */
pawl_status pwi_net_remote_map(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote,
                               struct pwi_window *window_out);

/* Ends a window; no thread may read it any more. Any thread may call it, also after pwi_net_destroy. An
 * empty window is fine. */
void pwi_net_remote_unmap(struct pwi_window *window);

/* Writes to a region of the peer. `done` means that the memory of the caller may be reused; it does not mean
 * that the data has landed. With a non-zero `notify`, the actor of the peer is notified of that value. An
 * access outside the region or beyond the shared rights takes the link down with PAWL_LINK_PROTOCOL. Up to
 * PWI_NET_COPY_MAX bytes of `from` are copied; more are read in place until `done`. PAWL_QUEUE_FULL,
 * PAWL_TOO_LARGE, PAWL_NOT_FOUND, PAWL_INVALID (no such remote), PAWL_NO_MEMORY. */
pawl_status pwi_net_put(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie);

/* Reads from a region of the peer. `done` means that `into` is filled, or that the link is down. Errors as
 * pwi_net_put.
 */
pawl_status pwi_net_get(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        void *into, size_t size, uint64_t cookie);

/* `done` means that all earlier puts of this link have landed. Errors as pwi_net_put. */
pawl_status pwi_net_fence(struct pwi_net *net, struct pwi_link link, uint64_t cookie);

struct pwi_net_counts {
  uint64_t messages_sent, messages_received;
  uint64_t bytes_sent, bytes_received; /* heads and bodies; one-sided data only as far as it passed through
                                          this net */
  uint64_t links_up, links_refused;    /* since start */
  uint64_t inbound_bytes;              /* present memory of bodies that are being received */
  uint64_t inbound_max;                /* the limit; UINT64_MAX: none */
  uint64_t inbound_waiting;            /* present number of links that wait for memory */
  uint64_t inbound_dropped;            /* links taken down because they were slow while others waited, since
                                          the start */
};

void pwi_net_counts(const struct pwi_net *net, struct pwi_net_counts *counts_out);

#endif
