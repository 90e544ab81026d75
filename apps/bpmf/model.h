/* Models inside: for apps/bpmf and tests. */
#ifndef BPMF_MODEL_H
#define BPMF_MODEL_H

#include <stdio.h>

#include <pawl/bpmf.h>

#include "apps/bpmf/data.h"

struct pawl_bpmf_model {
  struct pawl_bpmf_about about;
  float *samples; /* about.samples times the rows of users, then those of items, `rank` floats each */
  struct apps_names names[BPMF_SIDES];
  uint32_t *counts; /* items that each user has rated */
  uint64_t *starts; /* of each user in `rated`; users + 1 of them */
  uint32_t *rated;
};

/* A model without samples, and room for about->samples of them. Takes names and rated items from the data. */
PAWL_MUST_USE pawl_status bpmf_model_create(struct bpmf_data *data, const struct pawl_bpmf_about *about,
                                            struct pawl_bpmf_model **model_out);

/* Floats of one sample. */
static inline size_t bpmf_sample_size(const struct pawl_bpmf_about *about) {
  return ((size_t)about->users + about->items) * about->rank;
}

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name. Allocates only
 * in proportion to the size of the file. */
PAWL_MUST_USE pawl_status bpmf_model_decode(const char *bytes, size_t size, struct pawl_bpmf_model **model_out,
                                            char *why);
pawl_status bpmf_model_fill(FILE *file, const void *model);

#endif
