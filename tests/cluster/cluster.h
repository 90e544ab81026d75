/* Calls of sim/cluster.h for step-by-step tests: any failure fails the test. */
#ifndef TESTS_CLUSTER_CLUSTER_H
#define TESTS_CLUSTER_CLUSTER_H

#include "sim/cluster.h"

#define MS PWI_SIM_MILLISECOND

/* Fails the test, with the seed and the error of the simulation, unless the status is PAWL_OK and the
 * simulation has no error. */
void cluster_check(const struct pwi_cluster *cluster, pawl_status status, const char *what);

/* Prints all log lines from now on. For a run of one seed. */
void cluster_print_log(void);

void cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config);
void cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client);

/* Starts the late server process number `index`. */
void cluster_start_late(struct pwi_cluster *cluster, uint32_t index);

/* Fails the test if `limit` of virtual time passes first. */
void cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context), void *context, int64_t limit);
void cluster_run_for(struct pwi_cluster *cluster, int64_t duration);
void cluster_wait_joined(struct pwi_cluster_client *client);

/* Sends an ask and waits for the reply. Returns the manager's status. */
pawl_status cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload);

/* Creates a vector and returns its flow. */
struct pwi_flow *cluster_vector(struct pwi_cluster_client *client, const char *name,
                                const struct pawl_vector_options *options);
struct pwi_flow *cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node);

/* Makes a call and waits for its end. Returns the status of the task, or the reason of its refusal.
 * `task_out` may be NULL. */
pawl_status cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                         const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out);

#endif
