/* What a row contributes to the dictionary, as a pair of vectors, and who adds it up.
 *
 * The online method computes the dictionary from two sums over rows (Mairal et al. 2009, algorithm 1):
 *
 *   C = sum of x a',   A = sum of a a'        and the slope of 1/2 sum |x - B a|^2 by B is  B A - C = -sum of (x - B a) a'
 *
 * So the pair (x, a) stands for the change that a row causes: a row of D features costs D + K numbers instead of the D K of
 * the dictionary (SFB 2.1). The receiver computes the residual x - B a with its own dictionary. A pair of residual and code
 * would have the same size, but belong to the dictionary that the sender had.
 *
 * Methods hand their pairs to a struct sparse_target, so that a target can also send them to other processes.
 */
#ifndef SPARSE_PAIRS_H
#define SPARSE_PAIRS_H

#include <stddef.h>

#include <pawl/status.h>

struct sparse_pairs {
  size_t count, features, atoms;
  const double *x; /* `features` numbers of each pair */
  const double *a; /* `atoms` numbers of each pair */
};

struct sparse_target {
  /* C becomes keep * C + sum of x a', and A keep * A + sum of a a'. Vectors are borrowed for the call. */
  pawl_status (*apply)(void *context, const struct sparse_pairs *pairs, double keep);
  void *context;
};

#endif
