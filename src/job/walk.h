/* A worker's walk through its pieces in a round: which pieces it has begun, and which it can still yield to a
 * worker that joins.
 *
 * A worker begins its pieces in ascending order, and yields the last ones. So what it has left is a tail of
 * its pieces, and giving some of that up needs no memory.
 */
#ifndef PWI_JOB_WALK_H
#define PWI_JOB_WALK_H

#include "base/rangeset.h"

struct pwi_walk {
  struct pwi_rangeset pieces; /* of the worker */
  uint64_t next;              /* pieces below it have been begun in this round */
};

/* The next pieces: a run of at most `most`, which count as begun. An empty range if none is left. */
struct pawl_range pwi_walk_next(struct pwi_walk *walk, uint64_t most);

/* The pieces to yield so that `workers`, of which `newcomers` have nothing, share those that are left: the
 * worker's part of them, rounded down. `yields_out` is an initialised set, whose contents are lost.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_walk_yields(const struct pwi_walk *walk, uint32_t newcomers, uint32_t workers,
                                          struct pwi_rangeset *yields_out);

/* Removes pieces that pwi_walk_yields has selected. */
void pwi_walk_yield(struct pwi_walk *walk, const struct pwi_rangeset *yields);

#endif
