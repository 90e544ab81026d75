/* The names of a job, as a session uses them. */
#ifndef PWI_API_JOB_NAMES_H
#define PWI_API_JOB_NAMES_H

#include "job/messages.h"

struct pawl_session;

/* As pwi_job_names. Sessions that are for peers only find the scheduler in a peer group, because they cannot join
 * groups. Its name is another one: a name belongs to a group or to a peer group for ever, and a cluster may see jobs of
 * both kinds. */
PAWL_MUST_USE pawl_status pwi_session_job_names(const struct pawl_session *session, const char *name,
                                                struct pwi_job_names *names_out);

#endif
