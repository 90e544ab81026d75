/* Regions in tests: a region of one party that the other can reach, and one-sided calls that are kept account of. */
#ifndef PWI_CONFORMANCE_SHARE_H
#define PWI_CONFORMANCE_SHARE_H

#include "scene.h"

struct share {
  struct pwi_region *region; /* of pair.there */
  uint8_t *memory;
  struct pwi_remote remote; /* as pair.here sees it */
};

/* Open a region there, share it, hand the token over. */
struct share share_open(struct pair *pair, size_t size, unsigned access);
void share_close(struct pair *pair, struct share *share);

/* Share the region of pair.there with another link of it. */
struct share share_again(struct pair *pair, const struct share *share, unsigned access);

/* The token of a region for the link. Waits for room. Returns its size. */
size_t share_token(struct scene *scene, struct pair *pair, struct pwi_region *region, unsigned access,
                   uint8_t token[PWI_NET_TOKEN_MAX]);

/* Put bytes [offset, offset + size) of the pattern `seed` at `offset`; memory that the net has copied is overwritten
 * at once, the rest when it is done. Returns the cookie, or 0 if the call failed with `*status_out`. */
uint64_t share_put(struct pair *pair, struct share *share, uint64_t seed, uint64_t offset, size_t size, uint64_t notify,
                   pawl_status *status_out);

/* Get into `into`, or fence; these must be accepted. */
uint64_t share_get(struct pair *pair, struct share *share, uint64_t offset, void *into, size_t size);
uint64_t share_fence(struct pair *pair);

/* How many mappings of regions that processes share this process has. */
size_t share_count_mappings(void);

/* True if these bytes there are those of the pattern. */
bool share_holds(const struct share *share, uint64_t seed, uint64_t offset, size_t size);

#endif
