/* The simulator: a whole cluster in one thread, in virtual time, from one seed.
 *
 * The simulator is the second implementation of net/net.h. A role that runs over sockets runs here
 * unchanged. The seed decides what net.h leaves open, against the role wherever the contract allows:
 * delays are random, lanes and one-sided operations overtake one another, bodies arrive in odd pieces, a
 * broken link loses a suffix of its messages in flight, a put lands after its link is gone, a get is torn,
 * a disk forgets what was not synced. The same seed and the same calls give the same run, event by event,
 * which pwi_sim_trace_hash shows. So a failure can be reproduced any number of times from its seed.
 *
 *   pwi_sim_config_init(&config);
 *   config.seed = 7;
 *   pwi_sim_create(&config, &sim);
 *   pwi_sim_node_add(sim, &(struct pwi_sim_program){.name = "s1", .host = "a", .boot = boot_server}, &s1);
 *   pwi_sim_start(sim, s1);
 *   pwi_sim_call_at(sim, 2 * PWI_SIM_SECOND, kill_it, &s1);
 *   status = pwi_sim_run_until(sim, 10 * PWI_SIM_SECOND);
 *
 * NODES. A node is a process on a host: a program that is booted, runs as an actor, may be killed, and is
 * booted again with a new net and the same disk. Its boot function gets everything that a role may use:
 * net, files, a random stream, a log. Every incarnation has its own clock with an arbitrary zero
 * (config.clock_offset_max_ns), as on real machines, which exposes code that compares the clocks of two
 * nodes.
 *
 * TIME passes between events, never inside a callback, except where the node blocks on its disk. That
 * call, and everything that the callback does afterwards, happens later, and arriving events wait; if the
 * node is killed before, it has not happened. Events of a paused or slow node wait in the order of their
 * arrival.
 *
 * DEATH. The peers of a killed node see PAWL_LINK_RESET after a short while. They may receive some of the
 * messages in flight, always the first ones of each lane. A node that is paused, stalled or cut off is
 * detected by the silence limit of net.h. Heartbeats are not events: the simulator knows from its state
 * which nodes can be heard. Nothing arrives across a cut, but nothing is lost either as long as the link
 * lives: TCP would resend it, so it arrives after the mend.
 *
 * MEMORY. A body larger than PWI_NET_COPY_MAX stays in place until a late moment chosen by the seed. With
 * checks on, the run ends if a role changes it before `done`, or changes a region after a send from it
 * failed while the peer may still be reading in place: pwi_sim_failure says "body changed before done".
 *
 * ADDRESSES are written as for sockets (net/address.h), and nothing is resolved: two names are two hosts.
 * Port 0 and port ranges give a free port; every interface ("0.0.0.0", "[::]") means the node's name.
 *
 * pwi_net_destroy on a simulated net ends its process: it is a kill.
 *
 * THREADS. A simulation belongs to one thread. Several may run in several threads.
 *
 * CALLS INTO THE SIMULATOR may be made between events (before running, or from pwi_sim_call_at) and,
 * except for running and destroying, also from inside an actor's callbacks, where a kill takes effect
 * right after the callback.
 */
#ifndef PWI_SIM_SIM_H
#define PWI_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "base/log.h"
#include "base/random.h"
#include "net/net.h"

#define PWI_SIM_MICROSECOND INT64_C(1000)
#define PWI_SIM_MILLISECOND INT64_C(1000000)
#define PWI_SIM_SECOND INT64_C(1000000000)

struct pwi_sim;
struct pwi_sim_disk; /* sim/disk.h */

/* Nodes are numbered from 0 in the order of their addition. */
struct pwi_sim_node {
  uint32_t index;
};

/* All nodes, or all others, in calls that take two nodes. */
#define PWI_SIM_ALL ((struct pwi_sim_node){UINT32_MAX})

/* --- delivery times ------------------------------------------------------------------------------------- */

enum pwi_sim_carrier { PWI_SIM_CARRIER_LINK, PWI_SIM_CARRIER_PLANE };

enum pwi_sim_packet_kind {
  PWI_SIM_PACKET_MESSAGE,
  PWI_SIM_PACKET_PUT,       /* or a fence, which has no bytes */
  PWI_SIM_PACKET_GET,       /* the request of a get: no bytes */
  PWI_SIM_PACKET_ANSWER,    /* the bytes of a get */
  PWI_SIM_PACKET_HANDSHAKE, /* a hello, either way */
  PWI_SIM_PACKET_SIGNAL,    /* the end of a link, a confirmation: no bytes */
};

/* Something in flight. */
struct pwi_sim_packet {
  struct pwi_sim_node from, to;
  enum pwi_sim_carrier carrier;
  enum pwi_sim_packet_kind kind;
  size_t size;    /* head and body */
  int64_t given;  /* when it was sent */
  uint64_t link;  /* the same for all packets of one link, both ways; never reused */
  unsigned asked; /* 0 at first; see `asks_again` */
};

/* The interface for a model of links, switches and fair sharing. `delivery_time` returns when a packet
 * arrives; the simulator keeps the order of each lane by delaying a packet that would overtake. A model in
 * which flows slow one another down sets `asks_again`. It returns the earliest possible time, and is asked
 * again at that time (`asked` counts); the packet arrives once the answer is not later than `now`. It must
 * depend on its own state, its arguments and `random` only.
 *
 * A model whose flows also speed one another up, because others end, takes messages, puts and answers of at least
 * `flow_bytes` bytes over: `begin` starts a flow with a number of the simulator's choice, and `take` returns the number
 * when it has arrived. A link has one flow for each lane and direction at a time: the next message of a lane begins when
 * the one before it has arrived, as on a TCP connection. `next` tells when the next flow arrives if nothing changes;
 * the simulator asks again after every change. All other packets go through `delivery_time`.
 *
 * Every function but `delivery_time` may be NULL; `begin`, `next`, `take` and `end` belong together. */
struct pwi_sim_fabric {
  int64_t (*delivery_time)(void *context, const struct pwi_sim_packet *packet, int64_t now, struct pwi_random *random);
  bool asks_again;
  void *context;
  size_t flow_bytes;
  /* A node exists, on this host; nodes are reported in the order of their numbers. PAWL_NO_MEMORY: the
   * node is not added. */
  pawl_status (*node_added)(void *context, struct pwi_sim_node node, const char *host);
  /* Writes the fabric's own name of the flow, for `end`. PAWL_NO_MEMORY ends the run. */
  pawl_status (*begin)(void *context, const struct pwi_sim_packet *packet, int64_t now, uint64_t flow,
                       uint64_t *name_out);
  int64_t (*next)(void *context);                               /* PWI_NET_NEVER: none */
  bool (*take)(void *context, int64_t now, uint64_t *flow_out); /* false: none arrives by then */
  /* The link of a flow is dead at both ends: the flow never arrives. It may have arrived already. */
  void (*end)(void *context, int64_t now, uint64_t name);
};

/* A delay of at least `min_ns`, exponentially distributed above it with mean `mean_ns`, and truncated at
 * `max_ns`. */
struct pwi_sim_delay {
  int64_t min_ns, mean_ns, max_ns;
};

int64_t pwi_sim_delay_draw(const struct pwi_sim_delay *delay, struct pwi_random *random);

/* --- the world ------------------------------------------------------------------------------------------ */

/* One event, for visualisation. */
struct pwi_sim_event {
  int64_t time;
  const char *kind;    /* "deliver", "timer", "down", … */
  uint32_t node, from; /* UINT32_MAX: none */
  uint64_t link;       /* as in the packet; 0: none */
  size_t size;         /* of the body */
  uint64_t value;      /* cookie, status or notification, depending on the kind */
};

struct pwi_sim_config {
  uint64_t seed;

  /* The default fabric. Sizes count only if a rate is given (bytes per second, 0: no limit). */
  struct pwi_sim_delay link, plane;
  double link_rate, plane_rate;
  const struct pwi_sim_fabric *fabric; /* NULL: the default; borrowed */

  struct pwi_sim_delay hang_up; /* until a broken connection is noticed */
  struct pwi_sim_delay late;    /* until a put lands whose link has broken */

  bool has_identities;      /* links tell the name of the node at the other end, as those with keys do */
  double plane_chance;      /* chance that a pair on different hosts has a data plane */
  double plane_chance_host; /* chance of a data plane between two nodes on one host */
  bool encrypted;           /* links report PWI_LINK_ENCRYPTED */
  bool real_seals;          /* proofs are made with Ed25519, as by real clients; default: with a hash (seal.c) */

  double early_done_chance; /* chance that `done` comes before delivery rather than after it */
  /* chance that a small body arrives in more than one piece; large ones always may */
  double split_chance;
  double gap_chance; /* chance that time passes between two pieces */
  /* chance that a message that may be ready is: small ones, and all on the plane of one host */
  double ready_chance;
  double late_chance;   /* chance that an unfinished put lands late */
  double garble_chance; /* chance that a peer with a data plane sees a body changed after its send failed */
  size_t socket_bytes;  /* bytes per link that may be `done` and not delivered */

  struct pwi_net_limits limits;
  int64_t clock_offset_max_ns;
  /* each incarnation of a node has a clock that runs faster or slower by up to this many millionths; default 0, at
   * most 500,000 */
  uint32_t clock_drift_ppm;
  int64_t slow_step_ns;           /* duration of a callback on a node of slowness 1 */
  struct pwi_sim_delay disk_sync; /* how long a sync blocks */

  bool trace;                                                        /* compute the hash */
  bool prints;                                                       /* for pwi_sim_print */
  bool checks;                                                       /* detect changes to borrowed memory */
  void (*observe)(void *context, const struct pwi_sim_event *event); /* NULL: no observer */
  void *observe_context;
};

/* Defaults: 20 us to 5 ms on links, 2 us to 1 ms on planes, planes on one host and on half of the other
 * pairs. */
void pwi_sim_config_init(struct pwi_sim_config *config);

/* PAWL_INVALID for a contradictory configuration, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_create(const struct pwi_sim_config *config, struct pwi_sim **sim_out);

/* Kills running nodes (halt is called) and frees everything, disks included. NULL is fine. Must not be
 * called during a run. */
void pwi_sim_destroy(struct pwi_sim *sim);

/* Nanoseconds since the simulation began. A node's own clock is pwi_net_now. */
int64_t pwi_sim_now(const struct pwi_sim *sim);

/* The same for a node: later than pwi_sim_now while the node blocks on its disk. */
int64_t pwi_sim_node_now(const struct pwi_sim *sim, struct pwi_sim_node node);

/* For generators of fault schedules and for tests: a random stream of the seed that nothing else uses. The
 * caller chooses `number`, below 2^31. */
void pwi_sim_stream(const struct pwi_sim *sim, uint64_t number, struct pwi_random *random_out);

/* --- nodes ---------------------------------------------------------------------------------------------- */

/* The input of a booting program. Everything lives until the node is killed; the contents of files
 * persist. */
struct pwi_sim_boot {
  struct pwi_net *net;
  struct pwi_files *files;
  struct pwi_random *random;
  const struct pwi_log *log;
  const char *name;
  uint32_t incarnation; /* 1, then 2 after the first restart, and so on */
};

/* Everything is copied but `context`. */
struct pwi_sim_program {
  const char *name; /* unique */
  const char *host; /* nodes with the same label share a host; NULL: a host of its own */

  /* Starts the program, which may already listen, connect and set timers. Returns its actor. An error
   * leaves the node down; `halt` is not called then. */
  pawl_status (*boot)(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                      void **self_out);

  /* The process is gone: frees `self`. Nothing can be sent or written any more. NULL: nothing to free. */
  void (*halt)(void *context, void *self);
  void *context;
  const struct pwi_net_limits *limits; /* NULL: those of the configuration */
};

/* PAWL_INVALID (no name, no boot function), PAWL_EXISTS, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_node_add(struct pwi_sim *sim, const struct pwi_sim_program *program,
                                           struct pwi_sim_node *node_out);

uint32_t pwi_sim_node_count(const struct pwi_sim *sim);
const char *pwi_sim_node_name(const struct pwi_sim *sim, struct pwi_sim_node node);
bool pwi_sim_node_is_up(const struct pwi_sim *sim, struct pwi_sim_node node); /* booted; it may be paused */

/* NULL while the node is down. `self` is the one that boot returned. */
struct pwi_net *pwi_sim_node_net(const struct pwi_sim *sim, struct pwi_sim_node node);
void *pwi_sim_node_self(const struct pwi_sim *sim, struct pwi_sim_node node);

/* The node's disk, for injecting faults (sim/disk.h). Lives as long as the simulation. */
struct pwi_sim_disk *pwi_sim_node_disk(const struct pwi_sim *sim, struct pwi_sim_node node);

/* Boots a node that is down. PAWL_EXISTS if it is up; else the result of boot, or PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_start(struct pwi_sim *sim, struct pwi_sim_node node);

/* Like kill -9 with a loss of power: memory is gone, the disk keeps what was synced and some of the rest.
 * Killing a node that is down does nothing. */
void pwi_sim_kill(struct pwi_sim *sim, struct pwi_sim_node node);

/* Kills the node if it is up, and starts it. As pwi_sim_start; from inside a callback the result is
 * PAWL_OK, and a failure is only logged. */
pawl_status pwi_sim_restart(struct pwi_sim *sim, struct pwi_sim_node node);

/* From now on every net says that it allows its peers so much (pwi_net_allowance), as on a busy machine; at first
 * nothing. How long a silent link lives stays as it is. */
void pwi_sim_allow(struct pwi_sim *sim, int64_t allowance);

/* Stops the node for a while, as SIGSTOP does; PWI_NET_NEVER: until pwi_sim_resume. A second pause may prolong the
 * first, and does not shorten it. */
void pwi_sim_pause(struct pwi_sim *sim, struct pwi_sim_node node, int64_t duration);
void pwi_sim_resume(struct pwi_sim *sim, struct pwi_sim_node node);

/* From now on each callback takes factor * config.slow_step_ns; 0 is full speed, the default. */
void pwi_sim_slow(struct pwi_sim *sim, struct pwi_sim_node node, double factor);

/* A starved node gets no memory for new regions, nor for new links. Existing ones stay. */
void pwi_sim_starve(struct pwi_sim *sim, struct pwi_sim_node node, bool is_starved);

/* --- the network ---------------------------------------------------------------------------------------- */

/* Nothing arrives at `to` from `from` any more, in this direction only. Either may be PWI_SIM_ALL. Cutting
 * both directions takes two calls. pwi_sim_mend also ends the cuts of scheduled faults. */
void pwi_sim_cut(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);
void pwi_sim_mend(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);
bool pwi_sim_is_cut(const struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);

/* Resets all present links between two nodes; both live on, and can connect again at once. */
void pwi_sim_break(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* All present links between two nodes carry nothing more, for ever, and no node is told; new links work. */
void pwi_sim_mute(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* All present links between two nodes silently lose every message of their data lane; heartbeats and the
 * other lane continue. No net should do that, but a data plane whose process has run out of memory was
 * seen to do it. */
void pwi_sim_swallow(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* --- running -------------------------------------------------------------------------------------------- */

/* Calls `call` at `time`, or now if that is past. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_call_at(struct pwi_sim *sim, int64_t time, void (*call)(void *context),
                                          void *context);

/* Runs one event. PAWL_NOT_FOUND if none is left; else as pwi_sim_run_until. */
PAWL_MUST_USE pawl_status pwi_sim_step(struct pwi_sim *sim);

/* Runs all events up to and including `time`, which is then the present. After a failure returns the
 * status of pwi_sim_fail, in this and all later calls: PAWL_CORRUPT for a broken rule, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_run_until(struct pwi_sim *sim, int64_t time);

/* Runs while `predicate`, which is called before every event, is true. PAWL_OK once it is false,
 * PAWL_TIMED_OUT if `limit` comes first, or a failure as above. */
PAWL_MUST_USE pawl_status pwi_sim_run_while(struct pwi_sim *sim, bool (*predicate)(void *context), void *context,
                                            int64_t limit);

/* --- running in an order of the caller's choice ----------------------------------------------------------
 *
 * A caller that tries many orders takes the next event itself instead of leaving it to the clock. With delays
 * of 0 everything that travels is due at once, and may happen in any order that net.h allows: each lane keeps
 * its order, and the greeting comes before messages. Time stands still meanwhile; it advances with timers
 * only. (sim/explore is such a caller.) */

/* An event that may happen next. */
struct pwi_sim_due {
  uint64_t number;     /* names the event; rises in the order of creation */
  int64_t time;        /* when it happens, if nothing else comes before */
  const char *kind;    /* as in struct pwi_sim_event */
  bool is_timer;       /* it happens because time passes */
  uint32_t node, from; /* UINT32_MAX: none */
  uint64_t hash; /* of all that the node learns from it, without numbers that depend on the order of events elsewhere */
  const void *head; /* of a message, until the next event; NULL: it is no message */
  size_t size;      /* of the message's body */
};

/* Lists the events that are due now, in the order of creation, and after them the first of all timers. Returns
 * their number, at most `room`. Timers that are due at the same time are ordered by their nodes. */
size_t pwi_sim_due(const struct pwi_sim *sim, struct pwi_sim_due *due, size_t room);

/* Runs the event with this number, and everything of which no node can tell when it happens (`done`, wake-ups,
 * events that have become void). PAWL_NOT_FOUND; else as pwi_sim_run_until. */
PAWL_MUST_USE pawl_status pwi_sim_step_due(struct pwi_sim *sim, uint64_t number);

/* A hash of everything about a node that is outside of its actor: its links with all that was sent over them
 * and how much of it has arrived, its timers, and the events that are due at it. Needs config.prints. */
uint64_t pwi_sim_print(const struct pwi_sim *sim, struct pwi_sim_node node);

/* Whether a link between the two is up, or coming up, at either end. */
bool pwi_sim_are_linked(const struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* Only the second part of pwi_sim_step_due: before the first choice, and after a kill. */
PAWL_MUST_USE pawl_status pwi_sim_settle(struct pwi_sim *sim);

/* --- results -------------------------------------------------------------------------------------------- */

/* Reports a broken rule: the run ends after the present event. Tests may call it, too. Only the first
 * failure counts. */
void pwi_sim_fail(struct pwi_sim *sim, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* The text of the failure, or NULL. */
const char *pwi_sim_failure(const struct pwi_sim *sim);

uint64_t pwi_sim_event_count(const struct pwi_sim *sim);

/* The hash of every event so far: time, kind, nodes, link, size, and the bytes of every message. */
uint64_t pwi_sim_trace_hash(const struct pwi_sim *sim);

#endif
