/* Rows that were pushed, beside the table: pushes of the same keys are added up as they come, and bundles of different keys
 * become one list in the end. For shard/aggregate.c.
 *
 * A bundle owns what it holds: it is a copy of the first push, to which others are added. Only of a list that came as a
 * signature it has no keys; they are those of the kept list.
 */
#ifndef PWI_SHARD_BUNDLE_H
#define PWI_SHARD_BUNDLE_H

#include "shard/inside.h"

struct pwi_bundle {
  struct pwi_bundle *next;
  struct pwi_terms terms; /* of the first push; what lies outside of the claim does not count */
  uint64_t signature;
  uint8_t value_type;
  uint64_t *keys; /* LIST */
  struct pwi_pages encoded;
  struct pwi_section encoded_as;
  struct pwi_pages sum;
  size_t bytes;
  uint64_t *account; /* what it takes, also beside the sum, is counted there */
  size_t counted;
};

/* PAWL_NODE_FULL: the cap on memory leaves no room for it. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_bundle_create(struct pwi_shard *shard, const struct pwi_request *request, size_t bytes,
                                            struct pwi_bundle **bundle_out);
void pwi_bundles_destroy(struct pwi_bundle *first); /* all from there on */

/* Whether the request has the keys of the bundle, and the same claim. */
bool pwi_bundle_matches(const struct pwi_bundle *bundle, const struct pwi_request *request);

/* The values of a request that matches are added. */
void pwi_bundle_add(struct pwi_bundle *bundle, const struct pwi_request *request);

/* The bundle as a push: `values` is room for what it points to. */
struct pwi_request pwi_bundle_request(const struct pwi_bundle *bundle, struct iovec *values);

/* What several bundles come to. A struct of zeros is empty. */
struct pwi_union {
  struct pwi_pages keys, sum;
  size_t rows;
};

void pwi_union_fini(struct pwi_union *all);

/* The rows of all bundles whose keys lie in `range` and in their own claim; those that several have are added. PAWL_NO_MEMORY; PAWL_CORRUPT if a list
 * is not kept any more. */
PAWL_MUST_USE pawl_status pwi_bundles_unite(struct pwi_shard *shard, const struct pwi_bundle *first,
                                            struct pawl_range range, size_t row_bytes, struct pwi_union *all);

#endif
