/* Checked calls of sim/cluster.h. */
#include "cluster.h"

#include "base/testing.h"

void cluster_check(const struct pwi_cluster *cluster, pawl_status status, const char *what) {
  const char *failure = cluster->sim ? pwi_sim_failure(cluster->sim) : NULL;
  if (!status && !failure) return;
  fail_msg("seed %llu: %s: %s%s%s", (unsigned long long)cluster->config.seed, what, pawl_status_name(status),
           failure ? ": " : "", failure ? failure : "");
}

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  printf("%.6f %s %s\n", (double)line->time_ns / 1e9, line->node, line->text);
}

void cluster_print_log(void) { pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG); }

void cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config) {
  cluster_check(cluster, pwi_cluster_open(cluster, config), "opening a cluster");
}

void cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client) {
  cluster_check(cluster, pwi_cluster_client_add(cluster, client), "adding a client");
}

void cluster_start_late(struct pwi_cluster *cluster, uint32_t index) {
  pwi_cluster_start(cluster, cluster->config.processes + index);
  cluster_check(cluster, PAWL_OK, "starting a late server");
}

void cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context), void *context, int64_t limit) {
  cluster_check(cluster, pwi_cluster_run_while(cluster, predicate, context, limit), "running");
}

void cluster_run_for(struct pwi_cluster *cluster, int64_t duration) {
  cluster_check(cluster, pwi_cluster_run_for(cluster, duration), "running");
}

void cluster_wait_joined(struct pwi_cluster_client *client) {
  cluster_check(client->cluster, pwi_cluster_wait_joined(client), "joining");
}

pawl_status cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload) {
  pawl_status said = PAWL_OK;
  cluster_check(client->cluster, pwi_cluster_ask(client, what, payload, &said), "asking");
  return said;
}

struct pwi_flow *cluster_vector(struct pwi_cluster_client *client, const char *name,
                                const struct pawl_vector_options *options) {
  struct pwi_flow *flow = NULL;
  cluster_check(client->cluster, pwi_cluster_vector(client, name, options, &flow), "creating a vector");
  return flow;
}

struct pwi_flow *cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node) {
  struct pwi_flow *flow = NULL;
  cluster_check(client->cluster, pwi_cluster_open_vector(client, name, node, &flow), "opening a vector");
  return flow;
}

pawl_status cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                         const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out) {
  struct pwi_task task = {0};
  pawl_status status = pwi_cluster_call(client, flow, kind, where, in, out, &task);
  cluster_check(client->cluster, PAWL_OK, "calling");
  if (!status && task_out) *task_out = task;
  return status ? status : task.status;
}
