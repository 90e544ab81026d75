#include "api/job/names.h"

#include <stdio.h>

#include "api/session.h"

pawl_status pwi_session_job_names(const struct pawl_session *session, const char *name,
                                  struct pwi_job_names *names_out) {
  pawl_status status = pwi_job_names(name, names_out);
  if (!status && session->is_peers_only)
    snprintf(names_out->scheduler, sizeof names_out->scheduler, "%s/job.peers", name);
  return status;
}
