/* Fences a lost worker off before other workers take its pieces: pushes of the lost worker that have not
 * been applied by now never will be (docs/jobs.md, "Fencing").
 *
 * A server refuses a sender that the membership does not list as live, and clients see a membership only
 * when all servers have it. So a worker that our membership has retired is fenced. A worker that we have
 * lost otherwise may be alive and pushing; then the manager is told to retire it.
 */
#ifndef PWI_API_JOB_FENCE_H
#define PWI_API_JOB_FENCE_H

#include <stdint.h>

#include <pawl/status.h>

struct pawl_session;

/* Outside the gate. PAWL_OK: the worker is fenced, or is this session itself, whose pushes are ordered
 * before its next actions. PAWL_TIMED_OUT and PAWL_NO_MEMORY: try again. Else the manager's error. */
PAWL_MUST_USE pawl_status pwi_job_fence(struct pawl_session *session, uint64_t node, int64_t deadline);

#endif
