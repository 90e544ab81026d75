/* Divides a job's pieces among its workers (OSDI'14 4.6): which worker drops which pieces, and which
 * worker takes them.
 *
 * Shares differ by at most one piece, and as few pieces move as possible: a worker drops only the surplus
 * over its share, and workers with the most pieces get the larger shares. Whole runs move where possible,
 * smallest first, and a worker takes runs that touch its own pieces. So the pieces of one worker stay
 * adjacent, and files are read in order.
 *
 * A plan that was carried out in part leads to the rest of the same plan. So a new plan may be made at
 * every step, whatever happened in between. Pure.
 */
#ifndef PWI_JOB_SHARES_H
#define PWI_JOB_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/rangeset.h"

/* The share of one worker. A struct of zeros is empty. */
struct pwi_share {
  struct pwi_rangeset has;   /* no piece is in two shares */
  struct pwi_rangeset drops; /* set by a plan: pieces of `has` to drop */
  struct pwi_rangeset takes; /* set by a plan: pieces to take once other workers have dropped theirs */
};

void pwi_share_fini(struct pwi_share *share);

/* Sets `drops` and `takes` of all shares, for pieces [0, pieces). Of two workers with equally many pieces
 * the first gets the larger share. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_shares_plan(struct pwi_share *const *shares, size_t count, uint64_t pieces);

#endif
