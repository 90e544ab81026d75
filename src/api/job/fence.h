/* The fence between a worker that is lost and those who take its pieces over: nothing that it has pushed and that was not applied
 * by now will be (docs/jobs.md, "Fencing").
 *
 * A server refuses a sender that the membership does not list as live, and clients see a membership when all servers have it. So a worker
 * that our membership has retired is fenced. One that we have lost sight of in another way may be well, and pushing: then the manager
 * is told to retire it.
 */
#ifndef PWI_API_JOB_FENCE_H
#define PWI_API_JOB_FENCE_H

#include <stdint.h>

#include <pawl/status.h>

struct pawl_session;

/* Outside the gate. PAWL_OK: it is fenced, or is this session itself, whose pushes are in order with what it does next. PAWL_TIMED_OUT and
 * PAWL_NO_MEMORY: it may be tried again. Else what the manager has against it. */
PAWL_MUST_USE pawl_status pwi_job_fence(struct pawl_session *session, uint64_t node, int64_t deadline);

#endif
