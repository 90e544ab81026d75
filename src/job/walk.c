#include "job/walk.h"

#include <assert.h>

struct pawl_range pwi_walk_next(struct pwi_walk *walk, uint64_t most) {
  struct pawl_range run;
  if (!pwi_rangeset_next(&walk->pieces, walk->next, &run)) return pawl_range_of(walk->next, walk->next);
  if (pawl_range_size(run) > most) run.end = run.begin + most;
  walk->next = run.end;
  return run;
}

static uint64_t count_left(const struct pwi_walk *walk) {
  struct pawl_range run;
  uint64_t left = 0;
  for (uint64_t at = walk->next; pwi_rangeset_next(&walk->pieces, at, &run); at = run.end) left += pawl_range_size(run);
  return left;
}

pawl_status pwi_walk_yields(const struct pwi_walk *walk, uint32_t newcomers, uint32_t workers,
                            struct pwi_rangeset *yields_out) {
  uint64_t left = count_left(walk), count = left / workers * newcomers + left % workers * newcomers / workers;
  pawl_status status = PAWL_OK;
  pwi_rangeset_clear(yields_out);
  for (size_t i = walk->pieces.count; count > 0 && !status; i--) {
    struct pawl_range run = walk->pieces.ranges[i - 1];
    if (pawl_range_size(run) > count) run.begin = run.end - count;
    status = pwi_rangeset_add(yields_out, run);
    count -= pawl_range_size(run);
  }
  return status;
}

void pwi_walk_yield(struct pwi_walk *walk, const struct pwi_rangeset *yields) {
  for (size_t i = yields->count; i-- > 0;) {
    pawl_status status = pwi_rangeset_remove(&walk->pieces, yields->ranges[i]);
    assert(status == PAWL_OK && "removing whole runs and tails of runs needs no memory");
    (void)status;
  }
}
