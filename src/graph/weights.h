/* The matrix W by which a round of sharing changes the values of all nodes: node i replaces its value x_i by
 *
 *   (W x)_i = sum over j of W_ij x_j,      j is i itself or an in-neighbour of i,
 *
 * a convex combination: the weights of a row are positive and their sum is 1 (ASAP, appendix A).
 *
 *   equal        W_ij = 1 / (d_i + 1), where d_i is the in-degree of i. The paper's weights: node i averages its
 *                own value and those that it receives.
 *   metropolis   W_ij = 1 / (max(d_i, d_j) + 1) for an edge whose reverse is an edge, too, and 1 / (D + 1) for one
 *                that goes one way, where D is the largest in-degree of the graph; W_ii is the rest to 1. Needs a
 *                graph in which every node has as many out-neighbours as in-neighbours. On symmetric graphs these
 *                are the Metropolis weights of Xiao and Boyd, "Fast linear iterations for distributed averaging".
 *
 * W is doubly stochastic if the columns add up to 1 as well. Then the average of all values stays the same in
 * each round, and every node has the same influence on the result. Equal weights are doubly stochastic on regular
 * graphs, and there both weightings are the same. On other graphs only the metropolis weights are doubly
 * stochastic: the out-neighbours of a node take as much from it as it takes from its in-neighbours, over edges
 * both ways because their weight is the same in both directions, and over the others because they are equal in
 * number and have one weight.
 *
 * Threads: as `struct pwi_graph`.
 */
#ifndef PWI_GRAPH_WEIGHTS_H
#define PWI_GRAPH_WEIGHTS_H

#include "graph/graph.h"

enum pwi_weighting { PWI_WEIGHTING_EQUAL, PWI_WEIGHTING_METROPOLIS };

struct pwi_weights {
  const struct pwi_graph *graph; /* borrowed */
  double *self;                  /* self[i] is W_ii */
  double *in;                    /* in[k] is the weight that node i gives to graph->in[k], a value of its row */
};

/* "equal" or "metropolis". */
const char *pwi_weighting_name(enum pwi_weighting weighting);
bool pwi_weighting_find(const char *name, enum pwi_weighting *weighting_out);

/* Computes the weights. The graph must outlive them. PAWL_INVALID: metropolis weights of a graph in which a node
 * has more or fewer out-neighbours than in-neighbours; `why` names the node. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_weights_init(struct pwi_weights *weights, const struct pwi_graph *graph,
                                           enum pwi_weighting weighting, struct pwi_graph_why *why);

/* A struct of zeros is fine. */
void pwi_weights_fini(struct pwi_weights *weights);

/* y = W x, and y = W' x, W transposed. x and y have a value for each node and do not overlap. */
void pwi_weights_apply(const struct pwi_weights *weights, const double *x, double *y);
void pwi_weights_apply_transposed(const struct pwi_weights *weights, const double *x, double *y);

/* How far W is from doubly stochastic: the row or column whose sum differs most from 1. */
struct pwi_weights_fault {
  double error;  /* the difference, not negative */
  double sum;    /* the sum itself */
  uint32_t node; /* number of the row or column */
  bool is_row;
};

PAWL_MUST_USE pawl_status pwi_weights_check(const struct pwi_weights *weights, struct pwi_weights_fault *worst_out);

/* Sums of rows and columns that differ from 1 by no more than this are rounding errors. */
#define PWI_WEIGHTS_ERROR 1e-9

#endif
