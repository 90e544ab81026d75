/* The interface of Lapser, inside: the processes of a program as a peer group. */
#ifndef PWI_API_LAPSER_LAPSER_H
#define PWI_API_LAPSER_LAPSER_H

#include <pawl/lapser.h>

#define PWI_LAPSER_WAIT_NS (120 * INT64_C(1000000000)) /* for the other processes */

/* The options of lapser_init: defaults, and the environment. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_lapser_environment(struct pawl_lapser_options *options_out);

/* Joins the group of the program if this process has not done so yet, and waits until all processes are
 * there. Until pwi_lapser_release the process stays in it. Failures as pawl_lapser_rank. */
PAWL_MUST_USE pawl_status pwi_lapser_retain(int64_t deadline, struct pawl_peers **peers_out);
void pwi_lapser_release(void);

/* The time left until a deadline, for calls that take a timeout. */
int64_t pwi_lapser_left(int64_t deadline);

#endif
