/* The engine of reduce (docs/reduce.md): the members of a peer group average tensors over a sparse graph, with
 * NOTIFY and ACK, with a barrier, or asynchronously (ASAP, section 4). <pawl/reduce.h> is the contract for users.
 *
 * An engine is a part of the client's actor and uses one channel, "reduce/NAME". Members that agree on an *epoch*
 * (a number of the group, and a round at that number) have the same graph and one common iteration. Each of them
 * has a *slot*, a region of its own, for every in-neighbour, and puts its tensors into the slots of its
 * out-neighbours.
 *
 * STEPS. A step touches memory of the user and takes long, so that part of it runs outside of the actor:
 *
 *   pwi_reduce_begin(engine);
 *   for (;;) {
 *     wait until pwi_reduce_want(engine) is not PWI_REDUCE_WAIT;
 *     if it is PWI_REDUCE_OVER: status = pwi_reduce_end(engine, &report), and leave the loop;
 *     status = pwi_reduce_work(engine);    outside of the actor: no other function may be called meanwhile but
 *     pwi_reduce_worked(engine, status);   those that the net calls
 *   }
 *
 * `wakes` is called when the want has changed. Call pwi_reduce_look at the time that pwi_reduce_look_at returns,
 * or soon after it, while the want is PWI_REDUCE_WAIT: it looks after members that do not answer.
 *
 * Threads: all functions belong to the actor, except for pwi_reduce_work.
 */
#ifndef PWI_PEER_REDUCE_REDUCE_H
#define PWI_PEER_REDUCE_REDUCE_H

#include <pawl/reduce.h>

#include "graph/topology.h"
#include "peer/peers.h"

struct pwi_reduce;

/* The graph that a user has asked for. */
struct pwi_reduce_graph {
  char name[PAWL_REDUCE_GRAPH_MAX + 1]; /* for people */
  bool is_default;
  enum pwi_topology topology;
  uint32_t degree;
  uint64_t seed;
  const struct pwi_graph *file; /* instead of a topology; borrowed while the engine lives; NULL: none */
};

struct pwi_reduce_config {
  struct pwi_peers *peers;
  struct pwi_net *net;
  const struct pwi_log *log; /* NULL: that of the peers */
  struct pwi_vector_id group;
  const char *name;                  /* of the reduce; copied */
  const struct pawl_tensor *tensors; /* copied; the values are borrowed */
  size_t count;
  const struct pawl_tensor *carried;
  size_t carried_count;
  enum pawl_reduce_mode mode;
  enum pawl_reduce_what what;
  enum pawl_reduce_narrow narrow;
  double significant;
  uint64_t first;
  struct pwi_reduce_graph graph;

  void *context;                 /* of the functions below */
  void (*wakes)(void *context);  /* inside the actor */
  void (*closed)(void *context); /* the last callback: pwi_reduce_destroy may be called, but not from here */
  void (*enter)(void *context);  /* pwi_reduce_work enters the actor for a moment; NULL: it may read at any time */
  void (*leave)(void *context);
  /* pwi_reduce_work looks whether neighbours on this host have changed their boards, and calls this between two looks,
   * of which `tries` were made. False: it stops, and the want may be PWI_REDUCE_WAIT. NULL: it never looks. */
  bool (*pause)(void *context, unsigned tries);
};

enum pwi_reduce_want {
  PWI_REDUCE_OUT,  /* no step */
  PWI_REDUCE_WAIT, /* for others */
  PWI_REDUCE_WORK, /* call pwi_reduce_work */
  PWI_REDUCE_OVER, /* call pwi_reduce_end */
};

/* PAWL_INVALID, PAWL_TOO_LARGE, PAWL_OVERFLOW, PAWL_EXISTS, PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_reduce_create(const struct pwi_reduce_config *config, struct pwi_reduce **engine_out);

/* Begins a step, or goes on with the one that is not over. */
void pwi_reduce_begin(struct pwi_reduce *engine);
enum pwi_reduce_want pwi_reduce_want(const struct pwi_reduce *engine);
PAWL_MUST_USE pawl_status pwi_reduce_work(struct pwi_reduce *engine);
void pwi_reduce_worked(struct pwi_reduce *engine, pawl_status status);

/* Before pwi_reduce_work: neighbours wait for messages or puts of the engine. Poll the net, so that they are sent. */
bool pwi_reduce_must_send(struct pwi_reduce *engine);

/* The result of the step. Failures other than PAWL_DIVERGED and PAWL_OVERFLOW are final. */
PAWL_MUST_USE pawl_status pwi_reduce_end(struct pwi_reduce *engine, struct pawl_reduce_report *report_out);

/* What failed, for people; "" if the status says all. */
const char *pwi_reduce_problem(const struct pwi_reduce *engine);

/* What the step waits for, such as "waits for input of node 7"; for a text about a passed deadline. */
void pwi_reduce_explain(const struct pwi_reduce *engine, char *text, size_t size);

int64_t pwi_reduce_look_at(const struct pwi_reduce *engine); /* PWI_NET_NEVER: no need to */
void pwi_reduce_look(struct pwi_reduce *engine, int64_t now);

void pwi_reduce_state(const struct pwi_reduce *engine, struct pawl_reduce_state *state_out);

/* Between steps: the tensors hold the result of this iteration. Only before the first step. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_reduce_resume(struct pwi_reduce *engine, uint64_t iteration);

/* Begins to close: delivers what neighbours need, says goodbye, and closes the channel; `closed` is called at the
 * end. With a look after `deadline` it closes at once. */
void pwi_reduce_close(struct pwi_reduce *engine, int64_t deadline);

/* After `closed`, or when the peers are destroyed; regions are closed only in the first case. NULL is allowed. */
void pwi_reduce_destroy(struct pwi_reduce *engine);

/* Why the peer's description does not fit ours, as a text. */
#define PWI_REDUCE_PROBLEM_MAX 256

#endif
