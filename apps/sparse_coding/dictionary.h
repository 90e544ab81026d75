/* The dictionary, and the sums from which it is computed. */
#ifndef SPARSE_DICTIONARY_H
#define SPARSE_DICTIONARY_H

#include <stdbool.h>

#include "apps/sparse_coding/pairs.h"

/* Atoms one after the other, `features` numbers each, of length 1 at most. An atom that is all 0 is not there yet. */
struct sparse_dictionary {
  size_t atoms, features;
  double *at;
  double *gram; /* atoms x atoms: their dot products, as of sparse_dictionary_refresh */
};

/* Atoms of 0. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_dictionary_init(struct sparse_dictionary *dictionary, size_t atoms, size_t features);
void sparse_dictionary_fini(struct sparse_dictionary *dictionary);

static inline double *sparse_atom(const struct sparse_dictionary *dictionary, size_t atom) {
  return dictionary->at + atom * dictionary->features;
}

/* Computes the dot products. */
void sparse_dictionary_refresh(struct sparse_dictionary *dictionary);

/* Changes one atom and its dot products. */
void sparse_dictionary_replace(struct sparse_dictionary *dictionary, size_t atom, const double *vector);

/* The sums of pairs.h. */
struct sparse_sums {
  size_t atoms, features;
  double *c; /* atoms x features: C' */
  double *a; /* atoms x atoms */
};

/* Sums of 0. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_sums_init(struct sparse_sums *sums, size_t atoms, size_t features);
void sparse_sums_fini(struct sparse_sums *sums);
void sparse_sums_clear(struct sparse_sums *sums);

/* Forgets what the codes of one atom have added. */
void sparse_sums_drop(struct sparse_sums *sums, size_t atom);

/* A target (pairs.h) of this process. */
struct sparse_target sparse_sums_target(struct sparse_sums *sums);

#define SPARSE_GROUP 32 /* atoms whose residuals are multiplied at a time */

/* One round of block coordinate descent (Mairal et al. 2009, algorithm 2): each atom in turn takes the best value of length 1
 * at most, given the codes in the sums and all other atoms. Atoms that no code uses stay. `scratch` has room for
 * SPARSE_GROUP atoms. */
void sparse_dictionary_step(struct sparse_dictionary *dictionary, const struct sparse_sums *sums, double *scratch);

/* A bound: with the codes in the sums, no dictionary has an objective that is lower by more than this. It is the gap of
 * Frank and Wolfe, the sum over atoms of |g| + g'b, where g is the slope by the atom b. */
double sparse_dictionary_gap(const struct sparse_dictionary *dictionary, const struct sparse_sums *sums,
                             double *scratch);

#endif
