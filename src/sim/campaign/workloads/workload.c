/* The workloads of a campaign. */
#include "sim/campaign/workloads/workload.h"

#include <stdio.h>

#include "base/memory.h"

static const struct pwi_workload_ops *const all_ops[PWI_WORKLOADS] = {
    [PWI_WORKLOAD_SCANNER] = &pwi_workload_scanner, [PWI_WORKLOAD_NAMES] = &pwi_workload_names,
    [PWI_WORKLOAD_HEIR] = &pwi_workload_heir,       [PWI_WORKLOAD_SUMS] = &pwi_workload_sums,
    [PWI_WORKLOAD_LINEAR] = &pwi_workload_linear,   [PWI_WORKLOAD_CALLER] = &pwi_workload_caller,
    [PWI_WORKLOAD_SAVER] = &pwi_workload_saver,     [PWI_WORKLOAD_TRIGGER] = &pwi_workload_trigger,
    [PWI_WORKLOAD_LOCAL] = &pwi_workload_local,     [PWI_WORKLOAD_GATE] = &pwi_workload_gate,
    [PWI_WORKLOAD_LOSS] = &pwi_workload_loss,       [PWI_WORKLOAD_READERS] = &pwi_workload_readers,
};

static pawl_status begin_one(struct campaign *campaign, size_t kind) {
  const struct pwi_workload_ops *ops = all_ops[kind];
  struct pwi_workload *workload = pwi_alloc_zero(1, ops->size);
  if (!workload) return PAWL_NO_MEMORY;
  workload->ops = ops;
  workload->campaign = campaign;
  pwi_sim_stream(campaign->cluster.sim, STREAM_WORKLOADS + kind, &workload->random);
  campaign->workloads[kind] = workload;
  return ops->begin(workload);
}

pawl_status pwi_workloads_begin(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (size_t kind = 0; kind < PWI_WORKLOADS && !status; kind++)
    if (campaign->config.workloads >> kind & 1) status = begin_one(campaign, kind);
  return status;
}

bool pwi_workloads_are_busy(const struct campaign *campaign) {
  for (size_t kind = 0; kind < PWI_WORKLOADS; kind++) {
    const struct pwi_workload *workload = campaign->workloads[kind];
    if (workload && workload->ops->is_busy(workload)) return true;
  }
  return false;
}

bool pwi_workloads_describe(const struct campaign *campaign, char *text, size_t size) {
  for (size_t kind = 0; kind < PWI_WORKLOADS; kind++) {
    const struct pwi_workload *workload = campaign->workloads[kind];
    if (!workload || !workload->ops->is_busy(workload)) continue;
    workload->ops->describe(workload, text, size);
    return true;
  }
  return false;
}

pawl_status pwi_workloads_check(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (size_t kind = 0; kind < PWI_WORKLOADS && !status; kind++) {
    struct pwi_workload *workload = campaign->workloads[kind];
    if (workload && workload->ops->check) status = workload->ops->check(workload);
  }
  return status;
}

void pwi_workloads_view(struct campaign *campaign, const struct pwi_view *view) {
  for (size_t kind = 0; kind < PWI_WORKLOADS; kind++) {
    struct pwi_workload *workload = campaign->workloads[kind];
    if (workload && workload->ops->view) workload->ops->view(workload, view);
  }
}

void pwi_workloads_fini(struct campaign *campaign) {
  for (size_t kind = 0; kind < PWI_WORKLOADS; kind++) {
    struct pwi_workload *workload = campaign->workloads[kind];
    if (workload && workload->ops->fini) workload->ops->fini(workload);
    pwi_free(workload);
  }
}

bool pwi_workload_is_loyal(const struct pwi_workload *workload, const struct pwi_cluster_client *client) {
  struct pwi_client_state state;
  if (!client->client || client->incarnation != 1 || pwi_cluster_client_figures(client).retirements > 0) return false;
  pwi_client_state(client->client, &state);
  return pwi_membership_is_live(&pwi_campaign_ledger(workload->campaign)->membership,
                                (struct pwi_sender){state.sender});
}

struct pwi_workload_target pwi_workload_target(const struct pwi_cluster_client *client) {
  struct pwi_client_state state = {0};
  if (client->client) pwi_client_state(client->client, &state);
  return (struct pwi_workload_target){client, client->incarnation, state.sender};
}

bool pwi_workload_is_there(const struct pwi_workload *workload, const struct pwi_workload_target *target) {
  struct pwi_workload_target now = pwi_workload_target(target->client);
  return target->sender != 0 && now.sender == target->sender && now.incarnation == target->incarnation &&
         pwi_membership_is_live(&pwi_campaign_ledger(workload->campaign)->membership,
                                (struct pwi_sender){target->sender});
}

pawl_status pwi_workload_vector(struct pwi_workload *workload, const char *name,
                                const struct pawl_vector_options *options) {
  struct pwi_flow *flow;
  return pwi_cluster_vector(&workload->campaign->checker, name, options, &flow);
}

pawl_status pwi_workload_pull(struct pwi_workload *workload, const char *name, const struct pwi_where *where,
                              void *values) {
  struct pwi_cluster_client *checker = &workload->campaign->checker;
  struct pwi_flow *flow;
  struct pwi_task task;
  pawl_status status = pwi_cluster_open_vector(checker, name, 0, &flow);
  /* A server may be the first to tell the checker that a checkpoint was loaded. */
  do {
    if (!status) status = pwi_cluster_call(checker, flow, PWI_REQUEST_PULL, where, NULL, values, &task);
  } while (!status && task.status == PAWL_RESTORED);
  return status ? status : task.status;
}
