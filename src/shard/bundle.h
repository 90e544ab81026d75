/* Pushed rows outside the table: pushes of the same keys are summed in one bundle, and bundles of different
 * keys are united into one list at the end. For shard/aggregate.c.
 *
 * A bundle owns its memory: it is a copy of the first push, to which others are added. A bundle whose list
 * was sent as a signature has no keys; they are in the kept list.
 */
#ifndef PWI_SHARD_BUNDLE_H
#define PWI_SHARD_BUNDLE_H

#include "shard/inside.h"

struct pwi_bundle {
  struct pwi_bundle *next;
  struct pwi_terms terms; /* of the first push; rows outside the claim are ignored */
  uint64_t signature;
  uint8_t value_type;
  uint64_t *keys; /* LIST */
  struct pwi_pages encoded;
  struct pwi_section encoded_as;
  struct pwi_pages sum;
  size_t bytes;
  uint64_t *account; /* counter to which its memory is added, including memory besides the sum */
  size_t counted;
};

/* PAWL_NODE_FULL: the memory cap leaves no room. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_bundle_create(struct pwi_shard *shard, const struct pwi_request *request, size_t bytes,
                                            struct pwi_bundle **bundle_out);
void pwi_bundles_destroy(struct pwi_bundle *first); /* this one and all following */

/* Returns true if the request has the keys and the claim of the bundle. */
bool pwi_bundle_matches(const struct pwi_bundle *bundle, const struct pwi_request *request);

/* Adds the values of a matching request. */
void pwi_bundle_add(struct pwi_bundle *bundle, const struct pwi_request *request);

/* Returns the bundle as a push; `values` is set to its values and must outlive it. */
struct pwi_request pwi_bundle_request(const struct pwi_bundle *bundle, struct iovec *values);

/* The union of several bundles. A struct of zeros is empty. */
struct pwi_union {
  struct pwi_pages keys, sum;
  size_t rows;
};

void pwi_union_fini(struct pwi_union *all);

/* Unites the rows of all bundles whose keys lie in `range` and in the claim of their bundle. Rows with the
 * same key are added. PAWL_NO_MEMORY; PAWL_CORRUPT if a list is no longer kept. */
PAWL_MUST_USE pawl_status pwi_bundles_unite(struct pwi_shard *shard, const struct pwi_bundle *first,
                                            struct pawl_range range, size_t row_bytes, struct pwi_union *all);

#endif
