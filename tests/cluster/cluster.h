/* sim/cluster.h for tests that go step by step: whatever cannot be done fails the test. */
#ifndef TESTS_CLUSTER_CLUSTER_H
#define TESTS_CLUSTER_CLUSTER_H

#include "sim/cluster.h"

#define MS PWI_SIM_MILLISECOND

/* Fails the test, with the seed and what the simulation says, unless the status is PAWL_OK and nothing is wrong there. */
void cluster_check(const struct pwi_cluster *cluster, pawl_status status, const char *what);

void cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config);
void cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client);

/* Start the late server process number `index`. */
void cluster_start_late(struct pwi_cluster *cluster, uint32_t index);

/* Fails the test if `limit` of virtual time passes first. */
void cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context), void *context, int64_t limit);
void cluster_run_for(struct pwi_cluster *cluster, int64_t duration);
void cluster_wait_joined(struct pwi_cluster_client *client);

/* An ask to its end: what the manager said. */
pawl_status cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload);

/* Creates a vector and returns its flow. */
struct pwi_flow *cluster_vector(struct pwi_cluster_client *client, const char *name,
                                const struct pawl_vector_options *options);
struct pwi_flow *cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node);

/* A call to its end: the task's status, or why it was refused. `task_out` may be NULL. */
pawl_status cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                         const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out);

#endif
