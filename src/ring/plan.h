/* Planning: the manager chooses arcs and their chains.
 *
 * Without a measured load the ring is divided into equal arcs (wider for nodes of higher weight), `points`
 * per node, assigned so that neighbouring arcs are in different processes. With 8 points a dense vector of at
 * least 20 keys per server is balanced to within 1.2 times the mean; with fewer keys this is not always
 * possible.
 *
 * With a measured load the ring is divided into cells so small that none carries more than 1/64 of a node's
 * average bytes or requests. Cells move from overloaded nodes to underloaded ones, the cheapest move first,
 * until every node is near its share of both. Neighbouring cells that stay together become arcs again. A plan
 * starts from the present view and moves only what it must: a joining node receives its share and no other
 * node receives anything; the arcs of a leaving node are spread over the rest.
 *
 * The planner balances processes ("physical servers") as well as their shards. A single key cannot be
 * divided: if one key receives a fraction x of all requests and the fair share of a server is s, no plan gets
 * below x / s. The figure `indivisible` reports this. The cold keys of that server added at most 0.12 in the
 * tested cases. Positions without a measured load may be assigned anywhere.
 *
 * A plan is a goal. Its chains list the nodes that should hold an arc. The manager reaches it through a
 * sequence of views, each of which obeys the rules of ring/view.h (fill, promote, drop).
 *
 * Pure functions: the same input gives the same plan, on every machine. Threads: any.
 */
#ifndef PWI_RING_PLAN_H
#define PWI_RING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "ring/view.h"

#define PWI_PLAN_POINTS 8

/* The load that servers measured in a range of positions, over all vectors; ranges are smaller where the load
 * is higher. The load is evenly distributed over the range, unless `whole` is set: then one key at
 * `positions.begin` causes it. */
struct pwi_load {
  struct pawl_range positions;
  uint64_t bytes;
  uint64_t requests;
  bool whole;
};

/* Two nodes that should not be in one chain if there are alternatives. If `b` is 0, `a` should not be in a
 * chain with any other node. */
struct pwi_plan_conflict {
  struct pwi_node a, b;
};

struct pwi_plan_options {
  unsigned points;              /* initial arcs per node; 0: PWI_PLAN_POINTS */
  unsigned replicas;            /* members of a chain in addition to its head; less than PWI_CHAIN_MAX */
  const struct pwi_load *loads; /* by ascending position, without overlaps; NULL: uniform load */
  size_t load_count;
  const struct pwi_plan_conflict *conflicts;
  size_t conflict_count;
  bool keep_heads;     /* do not move arcs only for balance, unless a process has a quarter more than its
                          share */
  uint32_t move_limit; /* Limit for bytes that change their head for balance, in millionths of all bytes, in
                          addition to those of leaving nodes. 0: if nodes join or leave, up to 1.2 times the
                          bytes that must move in total; otherwise unlimited. */
};

/* Fractions are between 0 and 1 of the whole. Maxima are over processes, relative to the share of a process
 * by weight. */
struct pwi_plan_figures {
  double bytes_over_mean;
  double requests_over_mean; /* 0 if no requests were measured */
  double moved;              /* fraction of the bytes that change their head */
  double ideal;              /* fraction that must change its head in any plan: the shares of new nodes and
                                the bytes of leaving nodes */
  double copied;             /* fraction of the bytes that must be copied to new members, heads and
                                replicas */
  double indivisible;        /* the heaviest single key relative to the smallest share of a process, in bytes
                                or requests */
  size_t under_replicated;   /* number of arcs with fewer than replicas + 1 members, for lack of processes */
  size_t shared_host;        /* number of arcs with two members on one host */
};

/* `arcs` are in the form of a first view: all members are full, and `since` is 1. */
struct pwi_plan {
  struct pwi_arc *arcs;
  size_t arc_count;
  struct pwi_plan_figures figures;
};

/* Creates a plan for the nodes that are up; all other nodes are leaving or gone. Exception: a node that is
 * down and is the only full member of some arcs keeps them, and these arcs wait for it; it receives nothing
 * more. `nodes` obey the rules of a view. If `present` is NULL or has no arcs, everything is new and moves
 * cost nothing.
 *
 * Chains: members are always in different processes. A member stays, unless a host without a member is
 * available, or a node with room in a rack without a member. A new member is chosen by these criteria, in
 * this order: it is not in a listed conflict with another member, it is on another host, it has room (at most
 * a tenth over its share of replicas), it is in another rack, and it holds the least for this head, so that
 * no single server has to replace a lost one. New nodes receive their share of replicas.
 *
 * PAWL_INVALID for options out of range or loads out of order, PAWL_NOT_FOUND if no node is up,
 * PAWL_TOO_LARGE for more arcs than a view may have, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_plan_make(const struct pwi_view_node *nodes, size_t node_count,
                                        const struct pwi_view *present, const struct pwi_plan_options *options,
                                        struct pwi_plan *plan_out);

/* A struct of zeros is fine. */
void pwi_plan_fini(struct pwi_plan *plan);

#endif
