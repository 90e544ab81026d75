/* The results of a round, while they come in and afterwards. */
#ifndef PWI_API_JOB_ROUND_H
#define PWI_API_JOB_ROUND_H

#include <pawl/job.h>

#include "job/scheduler.h"

struct pawl_task;

/* Takes the reports, which are freed with it. PAWL_NO_MEMORY: they are freed all the same. */
PAWL_MUST_USE pawl_status pwi_round_create(struct pwi_scheduler_report *reports, size_t count,
                                           struct pawl_round **round_out);

/* The call whose answer is the report of that worker is the round's from now on. False: it has none such, or has it. */
bool pwi_round_give(struct pawl_round *round, uint64_t number, struct pawl_task *task);

#endif
