/* Commits of workers that share by factors (<pawl/factor.h>), which end early if their job ends. */
#ifndef APPS_COMMON_FACTORS_H
#define APPS_COMMON_FACTORS_H

#include <pawl/factor.h>
#include <pawl/job.h>

/* As pawl_factor_commit and pawl_factor_flush. Add the time of waiting to `*waited_s`. PAWL_TIMED_OUT: the job has ended, or
 * the workers could not agree. */
PAWL_MUST_USE pawl_status apps_factor_commit(struct pawl_worker *worker, struct pawl_factor *factor, double scale,
                                             double *waited_s);
PAWL_MUST_USE pawl_status apps_factor_flush(struct pawl_worker *worker, struct pawl_factor *factor, double *waited_s);

/* The place of this worker among those that make the next step. */
void apps_factor_place(const struct pawl_factor *factor, uint32_t *rank_out, uint32_t *size_out);

/* Bytes of commits that were sent or shown so far. */
uint64_t apps_factor_bytes(const struct pawl_factor *factor);

#endif
