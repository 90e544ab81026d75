/* sim.h: a whole cluster in one thread, in virtual time, out of one seed.
 *
 * The simulator is the second implementation of net/net.h. A role that runs over sockets runs here unchanged, and what
 * net.h leaves open is decided by the seed, against the role wherever the contract allows it: delays are random, lanes
 * and one-sided operations overtake one another, bodies arrive in odd pieces, a broken link loses a suffix of what was
 * on its way, a put lands after its link is gone, a get is torn, a disk forgets what was not synced. The same seed and
 * the same calls give the same run, event by event, which pwi_sim_trace_hash shows; so a seed that fails is a bug that
 * can be looked at as often as one likes.
 *
 *   pwi_sim_config_init(&config);
 *   config.seed = 7;
 *   pwi_sim_create(&config, &sim);
 *   pwi_sim_node_add(sim, &(struct pwi_sim_program){.name = "s1", .host = "rack1-a", .boot = boot_server, …}, &s1);
 *   pwi_sim_start(sim, s1);
 *   pwi_sim_call_at(sim, 2 * PWI_SIM_SECOND, kill_it, &s1);
 *   status = pwi_sim_run_until(sim, 10 * PWI_SIM_SECOND);
 *
 * NODES. A node is a process on a host: a program that is booted, runs as an actor, may be killed, and is booted again
 * with a new net and the same disk. Its boot function is handed everything that a role may use: net, files, a random
 * stream, a log. Every incarnation has its own clock, whose zero means nothing (config.clock_offset_max_ns), as on real
 * machines: whoever compares the clocks of two nodes is found out.
 *
 * TIME passes between events, never inside a callback, except where the node blocks on its disk: that call, and all
 * that the callback does afterwards, happens later, and whatever arrives meanwhile waits; if the node is killed first
 * it has not happened. A paused or slow node's events wait in the order in which they came.
 *
 * DEATH. A killed node's peers see PAWL_LINK_RESET after a short while, and may receive some of what was still on its
 * way, always the first messages of each lane. A node that is paused, stalled or cut off is found by the silence limit
 * of net.h; heartbeats are not events, the simulator knows from its state who can be heard. Across a cut nothing
 * arrives, and nothing is lost either as long as the link lives: TCP would send it again, so it arrives after the mend.
 *
 * MEMORY. A body larger than PWI_NET_COPY_MAX stays where it is until a late moment chosen by the seed. With checks on,
 * a role that changes it before `done`, or changes a region after a send out of it failed while the peer may still be
 * reading in place, ends the run: pwi_sim_failure says "body changed before done".
 *
 * ADDRESSES are written as for sockets (net/address.h), and nothing is resolved: two names are two hosts. Port 0 and
 * port ranges give a free port; every interface ("0.0.0.0", "[::]") means the node's name.
 *
 * pwi_net_destroy on a simulated net ends its process: it is a kill.
 *
 * THREADS. A simulation belongs to one thread. Several may run in several threads.
 *
 * CALLS INTO THE SIMULATOR may be made between events (before running, or from pwi_sim_call_at) and, except for running
 * and destroying, also from inside an actor's callbacks, where a kill happens right after the callback.
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

/* Nodes are numbered from 0 in the order in which they were added. */
struct pwi_sim_node {
  uint32_t index;
};

/* All nodes, or all others, in calls that take two nodes. */
#define PWI_SIM_ALL ((struct pwi_sim_node){UINT32_MAX})

/* --- what decides when things arrive ------------------------------------------------------------------------------ */

enum pwi_sim_carrier { PWI_SIM_CARRIER_LINK, PWI_SIM_CARRIER_PLANE };

/* Something on its way: a message, a put, a get, an answer, a handshake. */
struct pwi_sim_packet {
  struct pwi_sim_node from, to;
  enum pwi_sim_carrier carrier;
  size_t size;    /* head and body */
  int64_t given;  /* when the sender gave it */
  uint64_t link;  /* the same for all packets of one link, both ways; never used again */
  unsigned asked; /* 0 at first; see `asks_again` */
};

/* The seam for a model of links, switches and fair sharing. `delivery_time` says when a packet arrives; the simulator
 * keeps the order of each lane by delaying what would overtake. A model in which flows slow one another down sets
 * `asks_again`: it answers with the earliest time possible, is asked again when that time has come (`asked` counts),
 * and the packet arrives once the answer is not later than `now`. It must be a function of its own state, its arguments
 * and `random` only. */
struct pwi_sim_fabric {
  int64_t (*delivery_time)(void *context, const struct pwi_sim_packet *packet, int64_t now, struct pwi_random *random);
  bool asks_again;
  void *context;
};

/* A delay of at least `min_ns`, exponentially distributed above it with this mean, and cut off at `max_ns`. */
struct pwi_sim_delay {
  int64_t min_ns, mean_ns, max_ns;
};

int64_t pwi_sim_delay_draw(const struct pwi_sim_delay *delay, struct pwi_random *random);

/* --- the world ---------------------------------------------------------------------------------------------------- */

/* One event, for those who draw pictures. */
struct pwi_sim_event {
  int64_t time;
  const char *kind;    /* "deliver", "timer", "down", … */
  uint32_t node, from; /* UINT32_MAX: none */
  uint64_t link;       /* as in the packet; 0: none */
  size_t size;         /* of the body */
  uint64_t value;      /* cookie, status or notification, by kind */
};

struct pwi_sim_config {
  uint64_t seed;

  /* The default fabric. Sizes count only if a rate is given (bytes a second, 0: no limit). */
  struct pwi_sim_delay link, plane;
  double link_rate, plane_rate;
  const struct pwi_sim_fabric *fabric; /* NULL: the default; borrowed */

  struct pwi_sim_delay hang_up; /* until a broken connection is noticed */
  struct pwi_sim_delay late;    /* until a put lands whose link has broken */

  bool has_identities;      /* links tell the name of the node at the other end, as those with keys do */
  double plane_chance;      /* that a pair on different hosts has a data plane */
  double plane_chance_host; /* and on one host */
  bool encrypted;           /* links say PWI_LINK_ENCRYPTED */

  double early_done_chance; /* `done` comes before delivery rather than after it */
  double split_chance;      /* a small body arrives in more than one piece; large ones always may */
  double gap_chance;        /* time passes between two pieces */
  double ready_chance;      /* a message that may be ready is: small ones, and all on the plane of one host */
  double late_chance;       /* an unfinished put lands late */
  double garble_chance;     /* a body whose send failed is seen changed by a peer with a data plane */
  size_t socket_bytes;      /* how much may be `done` and not delivered, per link */

  struct pwi_net_limits limits;
  int64_t clock_offset_max_ns;
  int64_t slow_step_ns;           /* what a callback takes on a node of slowness 1 */
  struct pwi_sim_delay disk_sync; /* how long a sync blocks */

  bool trace;                                                        /* keep the hash */
  bool checks;                                                       /* look for borrowed memory that changed */
  void (*observe)(void *context, const struct pwi_sim_event *event); /* NULL: nobody does */
  void *observe_context;
};

/* Defaults: 20 us to 5 ms on links, 2 us to 1 ms on planes, planes on one host and on half of the other pairs. */
void pwi_sim_config_init(struct pwi_sim_config *config);

/* PAWL_INVALID for a configuration that contradicts itself, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_create(const struct pwi_sim_config *config, struct pwi_sim **sim_out);

/* Kills what still runs (halt is called) and frees everything, disks included. NULL is fine. Not from inside a run. */
void pwi_sim_destroy(struct pwi_sim *sim);

/* Nanoseconds since the simulation began. A node's own clock is pwi_net_now. */
int64_t pwi_sim_now(const struct pwi_sim *sim);

/* For the generator of fault schedules and for tests: a stream of the seed that nothing else draws from. `number` is
 * the caller's choice, below 2^31. */
void pwi_sim_stream(const struct pwi_sim *sim, uint64_t number, struct pwi_random *random_out);

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* What a booting program gets. Everything in it lives until the node is killed; the files' contents live on. */
struct pwi_sim_boot {
  struct pwi_net *net;
  struct pwi_files *files;
  struct pwi_random *random;
  const struct pwi_log *log;
  const char *name;
  uint32_t incarnation; /* 1, then 2 after the first restart … */
};

/* Everything is copied but the functions' context. */
struct pwi_sim_program {
  const char *name; /* unique */
  const char *host; /* nodes with the same label share a host; NULL: a host of its own */

  /* The program starts: it may already listen, connect and set timers. It answers with its actor. An error leaves the
   * node down; `halt` is then not called. */
  pawl_status (*boot)(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                      void **self_out);

  /* The process is gone: free `self`. Nothing can be sent or written any more. NULL: nothing to free. */
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

/* NULL while the node is down. `self` is what boot answered. */
struct pwi_net *pwi_sim_node_net(const struct pwi_sim *sim, struct pwi_sim_node node);
void *pwi_sim_node_self(const struct pwi_sim *sim, struct pwi_sim_node node);

/* The node's disk, for injecting faults: sim/disk.h. Lives as long as the simulation. */
struct pwi_sim_disk *pwi_sim_node_disk(const struct pwi_sim *sim, struct pwi_sim_node node);

/* Boot a node that is down. PAWL_EXISTS if it is up, else what boot says, or PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_start(struct pwi_sim *sim, struct pwi_sim_node node);

/* kill -9 and a loss of power in one: memory is gone, the disk keeps what was synced and some of the rest. Killing a
 * node that is down does nothing. */
void pwi_sim_kill(struct pwi_sim *sim, struct pwi_sim_node node);

/* kill, if it is up, and start. As pwi_sim_start; from inside a callback the result is PAWL_OK and only logged. */
pawl_status pwi_sim_restart(struct pwi_sim *sim, struct pwi_sim_node node);

/* Stop running for a while, as under SIGSTOP; PWI_NET_NEVER: until pwi_sim_resume. */
void pwi_sim_pause(struct pwi_sim *sim, struct pwi_sim_node node, int64_t duration);
void pwi_sim_resume(struct pwi_sim *sim, struct pwi_sim_node node);

/* From now on each callback takes factor * config.slow_step_ns; 0 is the full speed that every node starts with. */
void pwi_sim_slow(struct pwi_sim *sim, struct pwi_sim_node node, double factor);

/* While a node is starved it gets no memory for new regions, or for links that it would make. Those it has stay. */
void pwi_sim_starve(struct pwi_sim *sim, struct pwi_sim_node node, bool is_starved);

/* --- the network between them ------------------------------------------------------------------------------------- */

/* Nothing gets from `from` to `to` any more: one way only. Either may be PWI_SIM_ALL. Both ways takes two calls. */
void pwi_sim_cut(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);
void pwi_sim_mend(struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);
bool pwi_sim_is_cut(const struct pwi_sim *sim, struct pwi_sim_node from, struct pwi_sim_node to);

/* Reset all present links between two nodes; both live on, and can connect again at once. */
void pwi_sim_break(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* All present links between two nodes carry nothing more, for ever, and nobody is told; new links work. */
void pwi_sim_mute(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* The links that there are between the two lose every message of their data lane and say nothing of it; heartbeats and the
 * other lane go on. No net should do that: a data plane whose process has no memory has been seen to. */
void pwi_sim_swallow(struct pwi_sim *sim, struct pwi_sim_node a, struct pwi_sim_node b);

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Call `call` at `time`, or now if that is past. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_call_at(struct pwi_sim *sim, int64_t time, void (*call)(void *context),
                                          void *context);

/* One event. PAWL_NOT_FOUND if none is left; else as pwi_sim_run_until. */
PAWL_MUST_USE pawl_status pwi_sim_step(struct pwi_sim *sim);

/* Run all events up to and including `time`, which is then the present. After a failure the status of pwi_sim_fail, now
 * and for ever: PAWL_CORRUPT for a broken rule, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_run_until(struct pwi_sim *sim, int64_t time);

/* Run while `predicate` is true, asked before every event. PAWL_OK once it is false, PAWL_TIMED_OUT if `limit` comes
 * first, or a failure as above. */
PAWL_MUST_USE pawl_status pwi_sim_run_while(struct pwi_sim *sim, bool (*predicate)(void *context), void *context,
                                            int64_t limit);

/* A rule was broken: the run ends after the present event. Also for the checkers of tests. Only the first counts. */
void pwi_sim_fail(struct pwi_sim *sim, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* What went wrong, for people, or NULL. */
const char *pwi_sim_failure(const struct pwi_sim *sim);

uint64_t pwi_sim_event_count(const struct pwi_sim *sim);

/* Of every event so far: time, kind, nodes, link, size, and the bytes of every message. */
uint64_t pwi_sim_trace_hash(const struct pwi_sim *sim);

#endif
