/* Clients that are declared dead.
 *
 * The promise (docs/faults.md): a client is declared dead only if the manager has not heard of it for its grace. The
 * campaign has injected all faults that can cause this, and looks them up: the client was paused, slow, starved or cut
 * off, or the manager was, or a link of them broke. A manager that was killed explains nothing: it waits for clients
 * after its start, until each had the time to come back. */
#include "sim/campaign/inside.h"

#define SETTLE_NS (1300 * MS) /* time until a client is back at the manager after a fault has healed */

static bool is_manager(const struct campaign *campaign, struct pwi_sim_node node) {
  for (size_t i = 0; i < campaign->leaders.count; i++)
    if (campaign->leaders.all[i].node.index == node.index) return true;
  return node.index == campaign->cluster.manager_node.index;
}

/* True if the fault kept the client from the manager. */
static bool concerns(const struct campaign *campaign, const struct pwi_sim_fault *fault, struct pwi_sim_node client) {
  bool is_own = fault->node.index == client.index || fault->other.index == client.index;
  bool is_pair = fault->other.index != PWI_SIM_ALL.index;
  bool is_managers = is_manager(campaign, fault->node) || (is_pair && is_manager(campaign, fault->other));
  if (fault->kind == PWI_SIM_FAULT_KILL) return is_own && !is_managers;
  return is_pair ? is_own && is_managers : is_own || is_managers;
}

static bool explains(const struct campaign *campaign, const struct pwi_sim_fault *faults, size_t count,
                     struct pwi_sim_node client, int64_t at) {
  for (size_t i = 0; i < count; i++) {
    int64_t healed = faults[i].at + faults[i].duration + SETTLE_NS;
    if (concerns(campaign, &faults[i], client) && faults[i].at <= at && at - campaign->config.client_grace_ns <= healed)
      return true;
  }
  return false;
}

bool pwi_retired_is_explained(const struct campaign *campaign, struct pwi_sim_node client, int64_t at) {
  const struct havoc *havoc = &campaign->havoc;
  return explains(campaign, havoc->items, havoc->item_count, client, at) ||
         explains(campaign, havoc->blind.items, havoc->blind.count, client, at) ||
         explains(campaign, havoc->kills.items, havoc->kills.count, client, at);
}

void pwi_retired_look(struct campaign *campaign) {
  const struct pwi_membership *membership = &pwi_campaign_ledger(campaign)->membership;
  int64_t now = pwi_campaign_now(campaign);
  for (size_t i = 0; i < campaign->client_count; i++) {
    const struct pwi_cluster_client *client = campaign->clients[i].client;
    struct pwi_client_state state;
    if (!client->client || client->stays_dead) continue; /* the workload `heir` has such a client declared dead */
    pwi_client_state(client->client, &state);
    if (state.sender == 0 || state.sender == campaign->clients[i].judged) continue;
    if (!pwi_membership_is_retired(membership, (struct pwi_sender){state.sender})) continue;
    campaign->clients[i].judged = state.sender;
    campaign->figures.judged++;
    if (!pwi_retired_is_explained(campaign, client->node, now))
      CAMPAIGN_FAIL(campaign, "%s was declared dead, and no fault has kept it from the manager", client->name);
  }
}
