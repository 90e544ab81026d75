/* The file that audit lines are appended to (protocol/audit.h): `time node line`, one write each, mode 0600.
 *
 * A file that is moved away is begun anew when the process is told to reopen it. A line that cannot be written is logged,
 * and the role goes on.
 *
 * Threads: any.
 */
#ifndef PWI_HOST_RUN_AUDIT_H
#define PWI_HOST_RUN_AUDIT_H

#include <pawl/status.h>

#include "host/run/problem.h"
#include "protocol/audit.h"

struct pwi_run_audit;

/* `path` NULL: `*audit_out` is NULL. A file of somebody else, or one that others can write to, is refused. */
PAWL_MUST_USE pawl_status pwi_run_audit_open(const char *path, struct pwi_run_audit **audit_out,
                                             struct pwi_run_problem *problem);
void pwi_run_audit_close(struct pwi_run_audit *audit); /* NULL is fine */

/* On failure lines go to the old file. NULL is fine. */
PAWL_MUST_USE pawl_status pwi_run_audit_reopen(struct pwi_run_audit *audit, struct pwi_run_problem *problem);

/* For roles. */
struct pwi_auditor pwi_run_auditor(struct pwi_run_audit *audit);

#endif
