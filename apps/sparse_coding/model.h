/* Models inside: for apps/sparse_coding and tests. */
#ifndef SPARSE_MODEL_H
#define SPARSE_MODEL_H

#include <stdio.h>

#include <pawl/sparse_coding.h>

struct pawl_sparse_model {
  struct pawl_sparse_about about;
  uint64_t *ids;  /* of the features */
  double *atoms;  /* about.features numbers each */
  uint64_t *uses; /* by atom */
};

/* The number of elements of `atoms`. Fits, because the arrays of a model do. */
static inline size_t sparse_model_size(const struct pawl_sparse_model *model) {
  return (size_t)model->about.atoms * (size_t)model->about.features;
}

/* A model of zeros with the given numbers of atoms and features. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_model_create(const struct pawl_sparse_about *about,
                                              struct pawl_sparse_model **model_out);

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name. Allocates only
 * in proportion to the size of the file. */
PAWL_MUST_USE pawl_status sparse_model_decode(const char *bytes, size_t size, struct pawl_sparse_model **model_out,
                                              char *why);
pawl_status sparse_model_fill(FILE *file, const void *model);

#endif
