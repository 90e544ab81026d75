/* The results of a round, during and after it. */
#ifndef PWI_API_JOB_ROUND_H
#define PWI_API_JOB_ROUND_H

#include <pawl/job.h>

#include "job/scheduler.h"

struct pawl_task;

/* Takes ownership of the reports; frees them also on PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_round_create(struct pwi_scheduler_report *reports, size_t count,
                                           struct pawl_round **round_out);

/* Gives the round the call whose answer is the report of that worker. False: the round has no such worker,
 * or already has its call; then the caller keeps the task. */
bool pwi_round_give(struct pawl_round *round, uint64_t number, struct pawl_task *task);

#endif
