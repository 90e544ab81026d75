/* The file that audit lines are appended to (protocol/audit.h): `time node line`, one write each, mode
 * 0600.
 *
 * After a file was moved away, reopening creates a new one. A line that cannot be written is logged, and
 * the role continues.
 *
 * Threads: any.
 */
#ifndef PWI_HOST_RUN_AUDIT_H
#define PWI_HOST_RUN_AUDIT_H

#include <pawl/status.h>

#include "host/run/problem.h"
#include "protocol/audit.h"

struct pwi_run_audit;

/* `path` NULL: `*audit_out` is NULL. Refuses a file that belongs to another user or that others can write
 * to. */
PAWL_MUST_USE pawl_status pwi_run_audit_open(const char *path, struct pwi_run_audit **audit_out,
                                             struct pwi_run_problem *problem);
void pwi_run_audit_close(struct pwi_run_audit *audit); /* NULL is fine */

/* Opens the file again. On failure lines go to the old file. NULL is fine. */
PAWL_MUST_USE pawl_status pwi_run_audit_reopen(struct pwi_run_audit *audit, struct pwi_run_problem *problem);

/* The interface for roles. */
struct pwi_auditor pwi_run_auditor(struct pwi_run_audit *audit);

#endif
