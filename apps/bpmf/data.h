/* The ratings as the sampler needs them: by user and by item, and the test ratings apart. The mean is subtracted, and the
 * rest is divided by the standard deviation, so that ratings up to 5 and up to 100 are learned equally well: the prior
 * of the rows expects numbers near 1. */
#ifndef BPMF_DATA_H
#define BPMF_DATA_H

#include <pawl/bpmf.h>

#include "apps/common/names.h"
#include "apps/bpmf/row.h"

enum { BPMF_USERS = 0, BPMF_ITEMS = 1, BPMF_SIDES = 2 };

/* The training ratings of one side, row by row; in a row by ascending number of the other side. */
struct bpmf_ratings {
  uint32_t rows;
  uint64_t *starts; /* rows + 1 */
  uint32_t *others;
  float *values; /* (rating - mean) / scale */
};

struct bpmf_pair {
  uint32_t user, item;
  float value; /* as it is in the file */
};

struct bpmf_data {
  struct bpmf_ratings sides[BPMF_SIDES];
  uint64_t count; /* training ratings */
  double mean;    /* of the training ratings */
  double scale;   /* their standard deviation; 1 if they are all equal */
  float lowest, highest;
  struct bpmf_pair *tests; /* by user; of one user, in the order of the file */
  uint64_t *test_starts;   /* of each user in `tests`; users + 1 */
  uint64_t test_count;
  uint64_t test_unknown;              /* test ratings whose user or item has no training rating */
  char first_unknown[PAWL_BPMF_TEXT]; /* "file:line: …" of the first of them; "" if there is none */
  struct apps_names names[BPMF_SIDES];
  uint64_t digest; /* of ratings, names and test ratings */
};

/* Takes a share of the ratings as test ratings, by a hash of seed and names; or those of `test`, which may be NULL.
 * PAWL_INVALID (no training ratings are left), PAWL_NO_MEMORY. Call fini also after a failure. */
PAWL_MUST_USE pawl_status bpmf_data_init(struct bpmf_data *data, const struct pawl_ratings *ratings,
                                         const struct pawl_ratings *test, double test_share, uint64_t seed,
                                         char *error);
void bpmf_data_fini(struct bpmf_data *data);

/* The rating that a scaled value stands for. */
static inline double bpmf_rating_of(const struct bpmf_data *data, double value) {
  return data->mean + data->scale * value;
}

static inline struct bpmf_rated bpmf_rated_of(const struct bpmf_ratings *side, uint32_t row) {
  uint64_t first = side->starts[row];
  return (struct bpmf_rated){side->others + first, side->values + first, (size_t)(side->starts[row + 1] - first)};
}

#endif
