/* Sharing out a job's pieces among its workers (OSDI'14 4.6): who gives up which, and who takes them.
 *
 * Shares differ by at most one piece, and as few pieces move as can be: whoever has more than his share gives up what is too
 * much, and the larger shares go to those that have most already. What moves are whole runs where possible, smallest first, and
 * runs are taken where they touch what the taker has: so that pieces of one worker stay next to one another, and files are read in order.
 *
 * A plan of what is left of a plan is the rest of it: it may be made anew at every step, whatever happened meanwhile. Pure.
 */
#ifndef PWI_JOB_SHARES_H
#define PWI_JOB_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/rangeset.h"

/* One worker's. A struct of zeros has nothing. */
struct pwi_share {
  struct pwi_rangeset has;   /* no piece is in two of them */
  struct pwi_rangeset drops; /* filled in by a plan: of what it has, */
  struct pwi_rangeset takes; /* and what it takes once others have dropped theirs */
};

void pwi_share_fini(struct pwi_share *share);

/* Fills in `drops` and `takes` of all shares, for pieces [0, pieces). Of those that have the same the first one's share is the
 * larger. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_shares_plan(struct pwi_share *const *shares, size_t count, uint64_t pieces);

#endif
