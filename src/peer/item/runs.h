/* Sets of keys as runs (start, count, stride), so that who produces and consumes what takes a few bytes for regular
 * sets of any size, and 16 bytes a run for irregular ones.
 *
 * A set is sorted by the starts of its runs, and no key is in it twice. The *rank* of a key is the number of keys in
 * the runs before its own, plus its place in its run. Two members that compute the intersection of the same two sets
 * get the same runs, and so the same ranks.
 *
 * Threads: a set that does not change can be used by any number of threads.
 */
#ifndef PWI_PEER_ITEM_RUNS_H
#define PWI_PEER_ITEM_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/item.h>

#include "base/cursor.h"

struct item_run {
  uint32_t start;
  uint32_t count;  /* at least 1 */
  uint32_t stride; /* at least 1; 1 if count is 1 */
  uint32_t before; /* keys in the runs before this one */
};

/* A struct of zeros is the empty set. */
struct item_runs {
  struct item_run *runs;
  uint32_t *reach; /* the highest key of each run and all before it; NULL unless runs interleave */
  size_t count, room;
  uint32_t keys;
};

#define ITEM_NO_RANK UINT32_MAX

static inline uint32_t pwi_item_run_last(const struct item_run *run) {
  return run->start + (run->count - 1) * run->stride;
}

static inline uint32_t pwi_item_run_key(const struct item_run *run, uint32_t place) {
  return run->start + place * run->stride;
}

void pwi_item_runs_fini(struct item_runs *runs);

/* Makes a set of what a user has written, for `items` items. PAWL_OUT_OF_SPAN, PAWL_INVALID (a key is there
 * twice: see `key_out`), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_item_runs_make(const struct pawl_items_keys *keys, size_t count, uint64_t items,
                                             struct item_runs *runs_out, uint64_t *key_out);

uint32_t pwi_item_runs_search(const struct item_runs *runs, uint32_t key);

/* The rank of a key; ITEM_NO_RANK: it is not in the set. */
static inline uint32_t pwi_item_runs_rank(const struct item_runs *runs, uint64_t key) {
  if (runs->count == 1 && runs->runs->stride == 1) {
    uint64_t place = key - runs->runs->start;
    return place < runs->runs->count ? (uint32_t)place : ITEM_NO_RANK;
  }
  return key < UINT32_MAX ? pwi_item_runs_search(runs, (uint32_t)key) : ITEM_NO_RANK;
}

/* The run that has the key of a rank, which is below `keys`. */
const struct item_run *pwi_item_runs_at(const struct item_runs *runs, uint32_t rank);
uint32_t pwi_item_runs_key(const struct item_runs *runs, uint32_t rank);

/* The keys that are in both sets. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_item_runs_common(const struct item_runs *a, const struct item_runs *b,
                                               struct item_runs *runs_out);

/* Adds a run behind all others of a set that is being read. PAWL_CORRUPT: it does not follow the last one, or reaches
 * beyond the items. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_item_runs_append(struct item_runs *runs, uint64_t start, uint64_t count, uint64_t stride,
                                               uint64_t items);

/* All runs were appended. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_item_runs_finish(struct item_runs *runs);

size_t pwi_item_runs_bytes(const struct item_runs *runs); /* of memory */

#endif
