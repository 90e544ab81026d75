/* The inside of the simulator, shared by its source files only.
 *
 * An event waits in the heap until its time. Then it passes three stages:
 *   the wire   an event that travels (`from` is set) and whose path is cut waits at the end of its link;
 *   the node   an event for a node that is paused, stalled or has events waiting joins that node's queue;
 *   the act    the function of its kind runs and calls the actor.
 *
 * Links and messages come from pools and are reused. Code that keeps a pointer to one across events also
 * keeps its serial, and compares that first; pool memory is freed only with the simulation.
 */
#ifndef PWI_SIM_WORLD_H
#define PWI_SIM_WORLD_H

#include <stdatomic.h>

#include "net/net_ops.h"
#include "sim/sim.h"

#define PWI_SIM_LANES 3 /* the two of net.h, and one for puts and fences */
#define PWI_SIM_LANE_PUTS 2
#define PWI_SIM_SMALL 256 /* bodies up to this size fit a small message block */

/* X(name, text) */
#define PWI_SIM_EVENT_MAP(X)                                                                                           \
  X(CALL, "call")                                                                                                      \
  X(STEP, "step")       /* a node may continue with its queue */                                                       \
  X(RELEASE, "release") /* a mended path releases the events that it held */                                           \
  X(TIMER, "timer")                                                                                                    \
  X(WOKEN, "woken")                                                                                                    \
  X(CONNECT, "connect")                                                                                                \
  X(HELLO, "hello")                                                                                                    \
  X(DELIVER, "deliver")                                                                                                \
  X(DONE, "done")                                                                                                      \
  X(WRITABLE, "writable")                                                                                              \
  X(NOTIFY, "notify")                                                                                                  \
  X(GET, "get")                                                                                                        \
  X(LATE_PUT, "late_put")                                                                                              \
  X(FIN, "fin") /* the peer has closed, and everything before it has arrived */                                        \
  X(DOWN, "down")                                                                                                      \
  X(SILENCE, "silence")                                                                                                \
  X(GREET_LIMIT, "greet_limit")                                                                                        \
  X(LINGER_LIMIT, "linger_limit")                                                                                      \
  X(RESUME, "resume")                                                                                                  \
  X(KILL, "kill")                                                                                                      \
  X(RESTART, "restart")                                                                                                \
  X(FLOW, "flow") /* a flow of the fabric has arrived */                                                               \
  X(HOLD, "hold") /* the peer holds the data lane, or ends the hold */

enum sim_event_kind {
#define PWI_SIM_EVENT_ENUM(name, text) EVENT_##name,
  PWI_SIM_EVENT_MAP(PWI_SIM_EVENT_ENUM)
#undef PWI_SIM_EVENT_ENUM
};

struct sim_event {
  int64_t time; /* when it was due, also while it waits */
  struct sim_event *next;
  struct sim_node *node; /* the node of the actor that it concerns; NULL: the world */
  struct sim_node *from; /* the node that it travels from; NULL: it does not travel */
  struct sim_end *end;
  uint64_t end_serial;
  uint32_t incarnation; /* of `node`; 0: any */
  uint8_t kind;
  uint8_t lane;
  bool cancelled;
  pawl_status status;
  uint64_t value;
  uint64_t cookie;
  union {
    struct sim_message *message;
    struct {
      void (*call)(void *context);
      void *context;
    } call;
  } with;
};

struct sim_queue {
  struct sim_event *head, *tail;
};

struct heap_entry {
  int64_t time;
  uint64_t sequence;
  struct sim_event *event;
};

/* A message, put, get or fence. It is freed once it is no longer in flight and its `done` has been called. */
struct sim_message {
  struct sim_message *next;           /* in its lane */
  struct sim_message *before, *after; /* among the unfinished operations of the end */
  uint64_t cookie;
  int64_t given, arrives;
  size_t size;
  size_t offset;      /* bytes that have arrived */
  uint64_t hash;      /* of a borrowed body, at the time of sending */
  uint8_t large;      /* size class of the block */
  uint8_t kind;       /* enum sim_message_kind */
  unsigned asked;     /* number of calls of the fabric */
  bool travelling;    /* in a lane, or an unfinished get */
  bool unfinished;    /* `done` is still to come */
  bool queued;        /* counts against the sender's queue */
  bool is_of_link;    /* of the link lane */
  bool early;         /* `done` does not wait for delivery; counts against socket_bytes */
  bool borrowed;      /* the body is the caller's memory */
  bool cancelled;     /* its region was closed */
  bool after_failure; /* the sender was told of a failure; the receiver still reads in the sender's region */
  void *copy;         /* of a large body that is not borrowed any more */
  size_t part_count;
  /* one-sided operations */
  uint32_t region_slot;
  uint32_t access;
  uint64_t region_serial, region_offset, notify;
  uint8_t *into;
  /* the region that contains a borrowed body, or 0 */
  uint64_t body_region;
  uint8_t head[PWI_NET_HEAD_SIZE];
  _Alignas(16) uint8_t body[]; /* the body, or the parts of a borrowed one */
};

enum sim_message_kind { MESSAGE_SEND, MESSAGE_PUT, MESSAGE_FENCE, MESSAGE_GET };

/* One lane of one direction; belongs to the sending end. */
struct sim_lane {
  struct sim_message *head, *tail;
  int64_t floor;  /* nothing arrives before this time */
  bool scheduled; /* a DELIVER for the head is scheduled */
  bool begun;     /* the head has been announced to the receiver */
  bool owed;      /* its message_end is still to come */
  bool ready;     /* all its pieces come at once */
  bool flows;     /* the head is a flow */
  uint64_t sent;  /* hash of all messages so far; 0 without config.prints */
  uint64_t taken; /* messages that have arrived */
  struct pwi_receive receive;
};

enum sim_end_state { END_NONE, END_CONNECTING, END_UP, END_CLOSING, END_GONE };

/* The access of one end to a region of its peer. The id is the index plus one, and the link. */
struct sim_remote {
  bool is_closed;
  uint32_t region_slot;
  uint32_t access;
  uint64_t region_serial;
};

struct sim_end {
  struct sim_link *link;
  struct sim_end *peer;
  struct sim_node *node;
  struct sim_net *net;            /* NULL once the process is gone */
  struct sim_end *before, *after; /* list of the net's ends; contains gone ones until the link is reused */
  uint64_t serial;                /* of the link */
  uint64_t id;                    /* for the actor */
  enum sim_end_state state;
  bool accepted;
  bool heard;         /* the peer can be heard */
  bool wants_room[2]; /* a call for this lane returned PAWL_QUEUE_FULL */
  bool holds;         /* the data lane of the peer */
  int64_t hold_from;  /* from when on its messages do not begin */
  bool fin_sent;
  uint32_t silence_count; /* identifies stale SILENCE events */
  int64_t last_heard;
  pawl_status why; /* the argument of pwi_net_close */
  struct sim_lane out[PWI_SIM_LANES];
  struct sim_message *unfinished, *unfinished_tail;
  size_t queued_bytes[2], queued_count[2]; /* by lane; one-sided operations belong to the data lane */
  size_t socket_bytes;
  struct sim_queue held; /* events that wait at a cut */
  bool releasing;        /* a RELEASE is scheduled */
  struct sim_remote *remotes;
  size_t remote_count, remote_room;
  void *hello;
  size_t hello_size;
  char name[PWI_NET_ADDRESS_MAX]; /* of this end, as the other side sees it */
};

struct sim_link {
  struct sim_link *next; /* in the pool */
  uint64_t serial;
  unsigned can;
  bool muted;
  bool swallows;          /* messages of the data lane vanish */
  uint32_t flows;         /* of both directions, in the fabric */
  struct sim_end ends[2]; /* the connecting one first */
};

struct sim_timer {
  uint64_t id; /* 0: free */
  struct sim_event *event;
  uint32_t next_free;
};

/* The memory of a region. It lives as long as the region or a window to it. */
struct sim_memory {
  atomic_uint users; /* windows may be closed in any thread */
  uint8_t bytes[];
};

struct sim_region {
  struct pwi_region region;
  struct sim_region *next;
  uint64_t serial;
  struct sim_memory *memory;
  uint64_t writer; /* serial of the link that it was shared with for writing; 0: none yet */
  uint32_t slot;
};

struct sim_listener {
  struct sim_listener *next; /* in the same bucket */
  struct sim_node *node;
  uint32_t incarnation; /* the incarnation that listens; 0: none */
  char address[PWI_NET_ADDRESS_MAX];
};

/* The net of one incarnation. */
struct sim_net {
  struct pwi_net net;
  struct pwi_sim *sim;
  struct sim_node *node;
  struct sim_end *ends;
  struct sim_end **slots; /* by link id */
  uint32_t slot_count;
  uint32_t slot_free; /* where to start searching */
  size_t link_count;
  uint64_t last_link;
  struct sim_timer *timers;
  uint32_t timer_count, timer_free;
  uint64_t last_timer;
  struct sim_region *regions;
  uint8_t *hello;
  size_t hello_size;
  bool woken;
  char address[PWI_NET_ADDRESS_MAX];
};

struct sim_node {
  struct pwi_sim *sim;
  uint32_t index;
  uint32_t incarnation; /* of the last boot */
  char *name, *host;
  struct sim_node *same_bucket; /* the next one whose name has the same bucket */
  struct pwi_sim_program program;
  struct pwi_net_limits limits;
  struct pwi_sim_disk *disk;
  struct pwi_log log;
  struct pwi_random random;
  struct sim_net *net; /* NULL: down */
  int64_t clock_offset;
  int32_t clock_ppm; /* how much faster the node's clock runs than that of the simulation */
  bool paused, stalled;
  int64_t paused_until; /* while it is paused */
  bool stepping;        /* a STEP is scheduled */
  uint32_t pause_count;
  int64_t busy_until, resumed_at;
  int64_t slow_ns;
  bool is_starved;
  struct sim_queue waiting;
};

#define PWI_SIM_BUCKETS 1024

struct pwi_sim {
  struct pwi_sim_config config;
  struct pwi_sim_fabric fabric;
  int64_t now;
  uint64_t events, sequence, hash;
  struct pwi_random random;
  struct pwi_log log;

  struct heap_entry *heap;
  size_t heap_count, heap_room, cancelled;
  struct sim_event *event_pool;
  size_t event_spare; /* number of events in the pool */
  struct sim_event dummy;
  struct sim_message *message_pool[2];
  struct sim_link *link_pool;
  struct sim_kept *kept;    /* copies of large bodies */
  struct sim_block *blocks; /* the memory of all pools */
  uint64_t last_link, last_region;

  struct sim_node **nodes;
  uint32_t node_count, node_room;
  struct sim_node *names[PWI_SIM_BUCKETS]; /* by the hash of the name */
  uint8_t *cuts; /* node_room squared: [from * node_room + to]; 0: open (sim/path.c). NULL: all are, and always were */
  struct sim_node *running; /* the node whose callback is running */
  struct sim_listener *listeners[PWI_SIM_BUCKETS];
  uint16_t next_port;

  struct sim_region **regions;
  uint32_t region_room;
  uint8_t *bounce; /* for bodies without the layout that the receiver may expect */
  size_t bounce_room;

  /* flow.c */
  struct sim_flow *flows;
  size_t flow_count, flow_room;
  uint32_t flow_free;
  struct sim_event *flow_event; /* when the next flow arrives; NULL: none is scheduled */
  bool flows_changed;

  int64_t allowance; /* of every net */
  pawl_status failed;
  char failure[256];
};

/* --- events.c ------------------------------------------------------------------------------------------- */

/* Makes sure that `count` events can be scheduled without allocating. */
PAWL_MUST_USE pawl_status pwi_sim_reserve(struct pwi_sim *sim, size_t count);

/* A new event for a node or, with NULL, for the world. Never fails: lack of memory ends the run. */
struct sim_event *pwi_sim_schedule(struct pwi_sim *sim, int64_t time, enum sim_event_kind kind, struct sim_node *node);

/* The same for an end of a link. If `travels`, it travels from the peer's node. */
struct sim_event *pwi_sim_schedule_end(struct pwi_sim *sim, int64_t time, enum sim_event_kind kind, struct sim_end *end,
                                       bool travels);
void pwi_sim_cancel(struct pwi_sim *sim, struct sim_event *event);

/* Removes the first event from the heap; NULL if there is none up to `limit`. */
struct sim_event *pwi_sim_take(struct pwi_sim *sim, int64_t limit);
/* Removes the event at this place of the heap. */
struct sim_event *pwi_sim_take_at(struct pwi_sim *sim, size_t at);
void pwi_sim_event_free(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_queue_add(struct sim_queue *queue, struct sim_event *event);
struct sim_event *pwi_sim_queue_take(struct sim_queue *queue);

/* Memory that lives as long as the simulation. NULL if memory is short. */
void *pwi_sim_block(struct pwi_sim *sim, size_t size);
void pwi_sim_events_free(struct pwi_sim *sim);

/* --- sim.c ---------------------------------------------------------------------------------------------- */

/* Runs an event that was taken from the heap, as a step of its own. */
PAWL_MUST_USE pawl_status pwi_sim_happen(struct pwi_sim *sim, struct sim_event *event);
/* "deliver", "timer", … */
const char *pwi_sim_kind_name(enum sim_event_kind kind);

/* Passes an event through the second and third stage. */
void pwi_sim_dispatch(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_step(struct pwi_sim *sim, struct sim_event *event);

/* Records an event that had an effect: counts it, shows it to the observer, and adds it to the hash. */
void pwi_sim_trace(struct pwi_sim *sim, const struct sim_event *event, size_t size, uint64_t hash);

/* When something sent now at one end arrives at the other. */
int64_t pwi_sim_arrival(struct pwi_sim *sim, struct sim_end *from, unsigned lane, enum pwi_sim_packet_kind kind,
                        size_t size, unsigned asked, int64_t given);
struct pwi_sim_packet pwi_sim_packet_of(const struct sim_end *from, unsigned lane, enum pwi_sim_packet_kind kind,
                                        size_t size, int64_t given);

/* --- flow.c: packets that are flows of the fabric ------------------------------------------------------- */

/* When a message that waits for its flow arrives: nobody knows. */
#define PWI_SIM_UNKNOWN (INT64_MAX - 1)

/* Whether the fabric takes a packet of this size over. */
static inline bool pwi_sim_is_flow(const struct pwi_sim *sim, size_t size) {
  return sim->fabric.begin && size >= sim->fabric.flow_bytes;
}

/* Begins the flow of the head of a lane; its DELIVER is scheduled when it arrives. */
void pwi_sim_flow_lane(struct pwi_sim *sim, struct sim_end *sender, unsigned lane);
/* Begins the flow of the bytes of a get; its DONE is scheduled when it arrives. */
void pwi_sim_flow_answer(struct pwi_sim *sim, struct sim_end *reader, struct sim_message *message, pawl_status status);
/* The flows of a link end, since it is about to be reused. */
void pwi_sim_flows_end(struct pwi_sim *sim, const struct sim_link *link);
/* Between two events: schedules the next arrival of a flow. */
void pwi_sim_flows_settle(struct pwi_sim *sim);
void pwi_sim_act_flow(struct pwi_sim *sim, struct sim_event *event);

/* --- node.c --------------------------------------------------------------------------------------------- */

struct sim_node *pwi_sim_node_of(const struct pwi_sim *sim, struct pwi_sim_node node);
int64_t pwi_sim_node_time(const struct sim_node *node); /* the present of this node, in the world's time */
void pwi_sim_node_wait(struct sim_node *node, struct sim_event *event);
void pwi_sim_node_free(struct sim_node *node);
void pwi_sim_node_kill_now(struct sim_node *node);
void pwi_sim_node_block(struct sim_node *node, int64_t duration);
void pwi_sim_act_resume(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_restart(struct pwi_sim *sim, struct sim_event *event);

/* --- net.c: state of one net ---------------------------------------------------------------------------- */

PAWL_MUST_USE pawl_status pwi_sim_net_create(struct sim_node *node, struct sim_net **net_out);
void pwi_sim_net_free(struct sim_net *net);
struct sim_end *pwi_sim_end_find(const struct sim_net *net, struct pwi_link link);
PAWL_MUST_USE pawl_status pwi_sim_slot_take(struct sim_net *net, struct sim_end *end);
void pwi_sim_slot_give(struct sim_net *net, struct sim_end *end);
void pwi_sim_act_timer(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_woken(struct pwi_sim *sim, struct sim_event *event);

/* --- address.c ------------------------------------------------------------------------------------------ */

pawl_status pwi_sim_net_listen(struct pwi_net *net, const char *address);
PAWL_MUST_USE pawl_status pwi_sim_address_read(const char *address, char *text_out);
struct sim_listener *pwi_sim_listener_find(struct pwi_sim *sim, const char *address);
void pwi_sim_listeners_free(struct pwi_sim *sim);

/* --- connect.c: opening links --------------------------------------------------------------------------- */

pawl_status pwi_sim_net_connect(struct pwi_net *net, const char *address, struct pwi_link *link_out);
void pwi_sim_act_connect(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_hello(struct pwi_sim *sim, struct sim_event *event);

/* --- link.c: closing links ------------------------------------------------------------------------------ */

void pwi_sim_net_close(struct pwi_net *net, struct pwi_link link, pawl_status why);
/* Takes an end down: its messages and operations end, its actor is told `why`, and its peer `tell` unless
 * that is OK. */
void pwi_sim_end_down(struct sim_end *end, pawl_status why, pawl_status tell);
/* The process is gone. */
void pwi_sim_end_vanish(struct sim_end *end);
/* Takes the peer's end down as well, with this status, after its own delay. */
void pwi_sim_end_tell(struct sim_end *from, pawl_status why);
/* Removes an end that is gone for the actor, or was never announced, from its net. The link is reused once
 * both ends have left. */
void pwi_sim_end_leave(struct sim_end *end);
/* While closing: sends the FIN once nothing is left to wait for. */
void pwi_sim_close_if_drained(struct sim_end *end);
/* Recomputes whether the peer can be heard, after a change to the path or to the peer. */
void pwi_sim_end_listen(struct sim_end *end);
bool pwi_sim_path_is_open(const struct sim_end *to);

/* A fault that cuts paths begins, or ends. The paths open when the last of their faults ends. */
void pwi_sim_fault_cut(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to, bool begins);
void pwi_sim_act_fin(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_down(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_silence(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_limit(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_release(struct pwi_sim *sim, struct sim_event *event);

/* --- message.c: memory of messages ---------------------------------------------------------------------- */

/* A message with room for a body of `size` bytes, or, if `borrowed`, for its parts. NULL if memory is
 * short. */
struct sim_message *pwi_sim_message_new(struct pwi_sim *sim, size_t size, bool borrowed);
/* Frees the message unless it is still needed. */
void pwi_sim_message_release(struct pwi_sim *sim, struct sim_message *message);
void pwi_sim_kept_free(struct pwi_sim *sim);

/* --- seal.c --------------------------------------------------------------------------------------------- */

/* Between the two, clients of this thread make proofs with a hash, unless the simulation has real seals. */
void pwi_sim_seals_begin(const struct pwi_sim *sim);
void pwi_sim_seals_end(const struct pwi_sim *sim);
void pwi_sim_message_fill(struct sim_message *message, const struct iovec *parts, size_t count);
void pwi_sim_message_read(const struct sim_message *message, size_t offset, size_t size, void *to);
uint64_t pwi_sim_message_hash(const struct sim_message *message);
/* The bytes in place or, if they are not contiguous and aligned, in the bounce buffer. NULL if memory is
 * short. */
const uint8_t *pwi_sim_message_view(struct pwi_sim *sim, struct sim_message *message, size_t offset, size_t size);
/* Ends the run if a borrowed body has changed. */
void pwi_sim_message_check(struct pwi_sim *sim, const struct sim_message *message, const struct sim_node *sender);
/* Copies a borrowed body, so that the caller may reuse its memory. False if memory is short. */
bool pwi_sim_message_keep(struct pwi_sim *sim, struct sim_message *message, const struct sim_node *sender);
/* May damage a byte of a kept body, unless it was in a region: regions do not change after a send has failed. */
void pwi_sim_message_garble(struct pwi_sim *sim, struct sim_message *message, bool is_of_region);
/* The region of this net that contains the borrowed body; 0: none. */
uint64_t pwi_sim_body_region(const struct sim_net *net, const struct iovec *parts, size_t count);

/* --- send.c: sending ------------------------------------------------------------------------------------ */

pawl_status pwi_sim_net_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send, size_t body_size);
bool pwi_sim_queue_has_room(struct sim_end *end, enum pwi_lane lane, size_t bytes);
/* Puts a message into the lane, counts it, and schedules its delivery and its `done`. */
void pwi_sim_ship(struct sim_end *end, unsigned lane, struct sim_message *message);
/* Schedules the arrival of the lane's head, not before `time`. */
void pwi_sim_lane_schedule(struct sim_end *sender, unsigned lane, int64_t time);
struct sim_message *pwi_sim_lane_take(struct sim_lane *lane);
/* A message has arrived and left its lane: removes it from the sender's queue and schedules its `done`. */
void pwi_sim_shipped(struct sim_end *sender, struct sim_message *message);
void pwi_sim_queue_enter(struct sim_end *end, struct sim_message *message);
void pwi_sim_queue_leave(struct sim_end *end, struct sim_message *message);
void pwi_sim_owe_done(struct sim_end *end, struct sim_message *message);
void pwi_sim_finish(struct sim_end *end, struct sim_message *message, pawl_status status);
void pwi_sim_act_done(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_writable(struct pwi_sim *sim, struct sim_event *event);
pawl_status pwi_sim_net_hold(struct pwi_net *net, struct pwi_link link, bool hold);
/* True if the receiver holds the lane, and its head must not begin now. */
bool pwi_sim_lane_is_held(const struct sim_end *sender, unsigned lane);
void pwi_sim_act_hold(struct pwi_sim *sim, struct sim_event *event);

/* --- receive.c: receiving ------------------------------------------------------------------------------- */

void pwi_sim_act_deliver(struct pwi_sim *sim, struct sim_event *event);
/* Ends a message to this end that has begun to arrive, without its rest. */
void pwi_sim_receive_abort(struct sim_end *end, unsigned lane, pawl_status status);
/* Delivers what had arrived by `time` at an end that is about to go down. */
void pwi_sim_receive_rest(struct sim_end *end, int64_t time);

/* --- region.c and onesided.c ---------------------------------------------------------------------------- */

pawl_status pwi_sim_net_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out);
void pwi_sim_net_region_close(struct pwi_net *net, struct pwi_region *region);
pawl_status pwi_sim_net_region_share(struct pwi_net *net, struct pwi_region *region, struct pwi_link link,
                                     unsigned access, void *token, size_t *token_size_out);
pawl_status pwi_sim_net_remote_open(struct pwi_net *net, struct pwi_link link, const void *token, size_t token_size,
                                    struct pwi_remote *remote_out);
void pwi_sim_net_remote_close(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote);
pawl_status pwi_sim_net_remote_map(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote,
                                   struct pwi_window *window_out);
void pwi_sim_regions_free(struct sim_net *net);
/* NULL if it has been closed. */
struct sim_region *pwi_sim_region_find(const struct pwi_sim *sim, uint32_t slot, uint64_t serial);
const struct sim_remote *pwi_sim_remote_find(const struct sim_end *end, struct pwi_remote remote);

pawl_status pwi_sim_net_put(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                            const void *from, size_t size, uint64_t notify, uint64_t cookie);
pawl_status pwi_sim_net_get(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                            void *into, size_t size, uint64_t cookie);
pawl_status pwi_sim_net_fence(struct pwi_net *net, struct pwi_link link, uint64_t cookie);
/* A put or fence at the head of the third lane has arrived. */
void pwi_sim_land(struct pwi_sim *sim, struct sim_end *end);
/* The sender is gone or was told of a failure: decides which of its puts may still land. */
void pwi_sim_puts_detach(struct sim_end *sender);
void pwi_sim_act_get(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_late_put(struct pwi_sim *sim, struct sim_event *event);
void pwi_sim_act_notify(struct pwi_sim *sim, struct sim_event *event);

#endif
