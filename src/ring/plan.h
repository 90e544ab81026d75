/* How the manager chooses arcs and their chains.
 *
 * Without a measured load the ring is cut into equal arcs (wider for nodes of more weight), `points` for each node,
 * dealt so that neighbours are in different processes. With 8 points a dense vector of 20 keys or more per server is
 * spread to within 1.2 of the mean; one with fewer cannot always be.
 *
 * With a load the ring is cut into cells so fine that none carries more than 1/64 of what a node has on average, of the
 * bytes or of the requests, and cells move from nodes with too much to nodes with too little, the cheapest first, until
 * every node is near its share in both. Cells that stay together become arcs again. A plan starts from the present
 * view, so what need not move does not: a joining node receives its share and nobody else receives anything, the arcs
 * of a leaving node are spread over the rest.
 *
 * Balance is sought for processes ("physical servers") and for their shards alike. A single key cannot be divided: if
 * one key draws a part x of all requests of which a server's fair share is s, no plan gets below x / s, and the figures
 * say so in `indivisible`; the cold keys that this server keeps besides add 0.12 at most in the cases tested. What the
 * load does not show, the plan does not know: positions without load go anywhere.
 *
 * A plan is a goal. Chains in it list who should hold an arc; the manager gets there by views that each obey the rules
 * of ring/view.h (fill, promote, drop).
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

/* What servers measured in a range of positions, all vectors together; finer where there is more. Evenly spread within
 * the range, unless `whole`: then it is due to one key, and lies at `positions.begin`. */
struct pwi_load {
  struct pawl_range positions;
  uint64_t bytes;
  uint64_t requests;
  bool whole;
};

/* Two nodes that should not be in one chain, if there are others; `b` may be 0: `a` with anybody. */
struct pwi_plan_quarrel {
  struct pwi_node a, b;
};

struct pwi_plan_options {
  unsigned points;              /* arcs per node to begin with; 0: PWI_PLAN_POINTS */
  unsigned replicas;            /* members of a chain besides its head: below PWI_CHAIN_MAX */
  const struct pwi_load *loads; /* by rising position, none overlapping; NULL: all positions carry the same */
  size_t load_count;
  const struct pwi_plan_quarrel *quarrels;
  size_t quarrel_count;
  bool keep_heads; /* nothing moves for the sake of balance alone, unless a process has a quarter more than its share */
  uint32_t move_limit; /* millionths of all bytes that may change their head for the sake of balance, besides what a
                          leaving node holds. 0: if nodes come or go, as much as makes 1.2 times what has to move;
                          else as much as balance asks for. */
};

/* Parts are of the whole, between 0 and 1. Maxima are over processes, relative to a process's share by weight. */
struct pwi_plan_figures {
  double bytes_over_mean;
  double requests_over_mean; /* 0 if no requests were measured */
  double moved;              /* part of the bytes that change their head */
  double ideal;              /* part that has to in any plan: shares of new nodes, and what leaving nodes hold */
  double copied;             /* bytes that members are to be given who have not got them: heads and replicas */
  double indivisible;      /* the heaviest single key relative to the least share of a process, in bytes or requests */
  size_t under_replicated; /* arcs with fewer than replicas + 1 members: there are not enough processes */
  size_t shared_host;      /* arcs with two members on one host */
};

/* `arcs` are as a first view would have them: all members full, `since` 1. */
struct pwi_plan {
  struct pwi_arc *arcs;
  size_t arc_count;
  struct pwi_plan_figures figures;
};

/* Plans for those of `nodes` that are up; the others are leaving or gone. But one that is down and has arcs of which nobody
 * else is a full member keeps these and is given nothing more: they wait for it. `nodes` obey the rules of a view. `present`
 * may be NULL or without arcs: then everything is new and moving costs nothing.
 *
 * Chains: members in different processes, always. Who is a member stays one, unless there is a host that no member is on,
 * or a rack and the one there has room. Those who come in have no quarrel, are on other hosts, then have room (not more
 * than a tenth over their share of replicas), are in other racks, and are those who hold least for this head: so that no
 * single server has to take over from one that is lost. Newcomers are given their share of replicas.
 *
 * PAWL_INVALID for options out of range or loads out of order, PAWL_NOT_FOUND if no node is up, PAWL_TOO_LARGE for more
 * arcs than a view may have, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_plan_make(const struct pwi_view_node *nodes, size_t node_count,
                                        const struct pwi_view *present, const struct pwi_plan_options *options,
                                        struct pwi_plan *plan_out);

/* A struct of zeros is fine. */
void pwi_plan_fini(struct pwi_plan *plan);

#endif
