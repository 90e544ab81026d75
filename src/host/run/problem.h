/* Explains to people why a role could not be started: what failed, why, and what to do. */
#ifndef PWI_HOST_RUN_PROBLEM_H
#define PWI_HOST_RUN_PROBLEM_H

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_RUN_PROBLEM_MAX 512

struct pwi_run_problem {
  char text[PWI_RUN_PROBLEM_MAX]; /* one line, without its line break */
};

void pwi_run_problem_set(struct pwi_run_problem *problem, const char *format, ...) PAWL_PRINTF(2, 3);

/* The role cannot listen, or serve HTTP, at this address. */
void pwi_run_problem_listen(struct pwi_run_problem *problem, const char *address, pawl_status status);
void pwi_run_problem_http(struct pwi_run_problem *problem, const char *address, pawl_status status);

/* The role cannot join the manager at this address. */
void pwi_run_problem_join(struct pwi_run_problem *problem, const char *manager, pawl_status status);

#endif
