/* The spectral gap of a graph: how fast values spread over it (ASAP, section 3.1 and appendix A).
 *
 *   gap = 1 - s_2,
 *
 * where s_1 >= s_2 >= … are the singular values of the matrix W of "graph/weights.h", whose diagonal has the
 * weights of the nodes' own values. With the equal weights this is the paper's P: row i of the adjacency matrix
 * with loops, divided by the in-degree of node i, loop included. If W is doubly stochastic then s_1 = 1, and in
 * each round the distance of all values from their average shrinks at least by the factor s_2. The gap is 1 for
 * the complete graph, and 0 for a graph that falls into two parts.
 *
 * s_2 is the second largest singular value of W also where W is not doubly stochastic. There s_1 > 1, s_2 bounds
 * nothing, and the gap may even be negative. Values of this definition, with equal weights:
 *
 *   complete graph                              1
 *   ring of 25 nodes                            0.0079
 *   chain of 25 nodes, directed and open        0.0021   (the paper: 0.002)
 *   root graph of 6 nodes, i+1 and i+2          0.333    (the paper: 0.38; i+1 and i+3 have 0.423)
 *   root graph of 25, 64, 1,024 nodes           0.142, 0.060, 0.0041   (the paper for 25: 0.2)
 *   star, of three nodes or more                0.5      (the paper: 0.75 for 6 nodes and 0.68 for 25)
 */
#ifndef PWI_GRAPH_GAP_H
#define PWI_GRAPH_GAP_H

#include "graph/weights.h"

struct pwi_gap {
  double gap;
  bool is_exact; /* false: the computation did not converge, and the gap is `gap` or a little less */
};

/* Up to this number of nodes LAPACK computes all singular values, above it Lanczos iterations compute s_2. */
#define PWI_GAP_DENSE_MAX 256

/* The gap of one node alone is 1. PAWL_NO_MEMORY. PAWL_IO: LAPACK failed, which it should not. */
PAWL_MUST_USE pawl_status pwi_gap_find(const struct pwi_weights *weights, struct pwi_gap *gap_out);

/* The two computations, for graphs of any size. The first takes 8 * nodes^2 bytes and time of order nodes^3. */
PAWL_MUST_USE pawl_status pwi_gap_dense(const struct pwi_weights *weights, struct pwi_gap *gap_out);
PAWL_MUST_USE pawl_status pwi_gap_lanczos(const struct pwi_weights *weights, struct pwi_gap *gap_out);

#endif
