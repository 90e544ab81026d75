#include "job/shares.h"

#include <stdlib.h>

#include "base/memory.h"

void pwi_share_fini(struct pwi_share *share) {
  pwi_rangeset_fini(&share->has);
  pwi_rangeset_fini(&share->drops);
  pwi_rangeset_fini(&share->takes);
}

/* --- the size of each share ----------------------------------------------------------------------------- */

struct share_standing {
  struct pwi_share *share;
  size_t at;
  uint64_t has, due;
};

static int by_most(const void *left, const void *right) {
  const struct share_standing *a = left, *b = right;
  if (a->has != b->has) return a->has > b->has ? -1 : 1;
  return a->at < b->at ? -1 : a->at > b->at;
}

static int by_place(const void *left, const void *right) {
  const struct share_standing *a = left, *b = right;
  return a->at < b->at ? -1 : a->at > b->at;
}

static void divide(struct share_standing *standings, size_t count, uint64_t pieces) {
  qsort(standings, count, sizeof *standings, by_most);
  for (size_t i = 0; i < count; i++) standings[i].due = pieces / count + (i < pieces % count ? 1 : 0);
  qsort(standings, count, sizeof *standings, by_place);
}

/* --- dropping ------------------------------------------------------------------------------------------- */

static struct pawl_range smallest(const struct pwi_rangeset *set) {
  struct pawl_range found = set->ranges[0];
  for (size_t i = 1; i < set->count; i++)
    if (pawl_range_size(set->ranges[i]) < pawl_range_size(found)) found = set->ranges[i];
  return found;
}

/* Moves pieces out of `kept`: whole runs, and finally the tail of one. */
static pawl_status give_up(struct pwi_share *share, struct pwi_rangeset *kept, uint64_t surplus) {
  while (surplus > 0) {
    struct pawl_range run = smallest(kept);
    if (pawl_range_size(run) > surplus) run.begin = run.end - surplus;
    pawl_status status = pwi_rangeset_add(&share->drops, run);
    if (!status) status = pwi_rangeset_remove(kept, run);
    if (status) return status;
    surplus -= pawl_range_size(run);
  }
  return PAWL_OK;
}

/* Collects in `pool` the pieces that workers drop and the pieces without an owner. */
static pawl_status give_up_all(const struct share_standing *standings, size_t count, struct pwi_rangeset *pool) {
  struct pwi_rangeset kept;
  pwi_rangeset_init(&kept);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count && !status; i++) {
    const struct share_standing *standing = &standings[i];
    status = pwi_rangeset_copy(&standing->share->has, &kept);
    if (!status && standing->has > standing->due)
      status = give_up(standing->share, &kept, standing->has - standing->due);
    if (!status) status = pwi_rangeset_remove_all(pool, &kept);
  }
  pwi_rangeset_fini(&kept);
  return status;
}

/* --- taking --------------------------------------------------------------------------------------------- */

/* Whether one run suits a taker better than another: a run that touches its pieces is best, then the
 * smallest run that is large enough, then the largest. */
static bool suits_better(const struct pwi_share *share, struct pawl_range run, struct pawl_range than, uint64_t lack) {
  bool touches[2];
  struct pawl_range runs[2] = {run, than};
  for (int i = 0; i < 2; i++)
    touches[i] = pwi_rangeset_has(&share->has, runs[i].end) ||
                 (runs[i].begin > 0 && pwi_rangeset_has(&share->has, runs[i].begin - 1));
  uint64_t size = pawl_range_size(run), other = pawl_range_size(than);
  if (touches[0] != touches[1]) return touches[0];
  if ((size >= lack) != (other >= lack)) return size >= lack;
  return size >= lack ? size < other : size > other;
}

static pawl_status take(struct pwi_share *share, struct pwi_rangeset *pool, uint64_t lack) {
  while (lack > 0) {
    struct pawl_range run = pool->ranges[0];
    for (size_t i = 1; i < pool->count; i++)
      if (suits_better(share, pool->ranges[i], run, lack)) run = pool->ranges[i];
    if (pawl_range_size(run) > lack) {
      if (pwi_rangeset_has(&share->has, run.end))
        run.begin = run.end - lack;
      else
        run.end = run.begin + lack;
    }
    pawl_status status = pwi_rangeset_add(&share->takes, run);
    if (!status) status = pwi_rangeset_remove(pool, run);
    if (status) return status;
    lack -= pawl_range_size(run);
  }
  return PAWL_OK;
}

static pawl_status plan(struct share_standing *standings, size_t count, uint64_t pieces, struct pwi_rangeset *pool) {
  divide(standings, count, pieces);
  pawl_status status = pwi_rangeset_add(pool, pawl_range_of(0, pieces));
  if (!status) status = give_up_all(standings, count, pool);
  for (size_t i = 0; i < count && !status; i++)
    if (standings[i].has < standings[i].due)
      status = take(standings[i].share, pool, standings[i].due - standings[i].has);
  return status;
}

pawl_status pwi_shares_plan(struct pwi_share *const *shares, size_t count, uint64_t pieces) {
  struct pwi_rangeset pool;
  if (count == 0) return PAWL_OK;
  struct share_standing *standings = pwi_alloc_zero(count, sizeof *standings);
  if (!standings) return PAWL_NO_MEMORY;
  pwi_rangeset_init(&pool);
  for (size_t i = 0; i < count; i++) {
    standings[i] = (struct share_standing){shares[i], i, pwi_rangeset_size(&shares[i]->has), 0};
    pwi_rangeset_clear(&shares[i]->drops);
    pwi_rangeset_clear(&shares[i]->takes);
  }
  pawl_status status = plan(standings, count, pieces, &pool);
  pwi_rangeset_fini(&pool);
  pwi_free(standings);
  return status;
}
