/* The campaign's own account of the faults that it has injected, and of the copies that they may have cost.
 *
 * The promise (docs/faults.md): a chain loses a copy only if a fault has silenced the server that had it. The
 * campaign knows these faults because it has caused them. So it can check the promise without believing
 * anything that the manager says of servers: whenever a view takes full members out of a chain and leaves it
 * with fewer than it should have, the servers of these members must have been silenced, each by a fault in
 * this account. A link that breaks silences nobody, and neither does a fault of the manager. */
#include <stdio.h>

#include "sim/campaign/inside.h"

#define SETTLE_NS (1300 * MS) /* time until all nodes have drawn their conclusions from a healed fault */

static void silence(struct campaign *campaign, uint64_t node, int64_t until) {
  struct budget *budget = &campaign->budget;
  for (size_t i = 0; i < budget->count; i++)
    if (budget->silenced[i].node == node) {
      if (until > budget->silenced[i].until) budget->silenced[i].until = until;
      return;
    }
  if (budget->count < SILENCED_MAX)
    budget->silenced[budget->count++] = (struct silenced){node, until};
  else
    CAMPAIGN_FAIL(campaign, "more servers than the campaign can account for");
}

void pwi_budget_silence(struct campaign *campaign, size_t process, int64_t until) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    struct pwi_server_state state = {0};
    if (campaign->cluster.servers[i].server) pwi_server_state(campaign->cluster.servers[i].server, &state);
    if (state.node) silence(campaign, state.node, until);
  }
}

/* A manager that was away learns of earlier silence when it is back. */
static bool was_silenced(const struct campaign *campaign, uint64_t node) {
  const struct budget *budget = &campaign->budget;
  int64_t now = pwi_campaign_now(campaign), well_at = campaign->havoc.manager_well_at;
  for (size_t i = 0; i < budget->count; i++) {
    int64_t until = budget->silenced[i].until;
    if (budget->silenced[i].node != node) continue;
    return until == INT64_MAX || now <= (until > well_at ? until : well_at) + SETTLE_NS;
  }
  return false;
}

static bool is_full_in(const struct pwi_arc *arc, uint64_t node) {
  size_t full = pwi_arc_full(arc);
  for (size_t i = 0; i < full; i++)
    if (arc->chain[i].node.id == node) return true;
  return false;
}

/* Nodes from the head to the tail; those that are filled are in brackets. */
static void describe_chain(const struct pwi_arc *arc, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (size_t i = 0; i < arc->count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, arc->chain[i].filling ? "(%llu) " : "%llu ",
                             (unsigned long long)arc->chain[i].node.id);
}

static void check_arc(struct campaign *campaign, const struct pwi_arc *was, const struct pwi_arc *is, uint64_t epoch) {
  size_t before = pwi_arc_full(was), after = pwi_arc_full(is), explained = 0;
  if (after >= before || after > campaign->config.replicas) return;
  for (size_t i = 0; i < before; i++) {
    uint64_t node = was->chain[i].node.id;
    explained += !is_full_in(is, node) && was_silenced(campaign, node);
  }
  if (before - after <= explained) return;
  char chains[2][96];
  describe_chain(was, chains[0], sizeof chains[0]);
  describe_chain(is, chains[1], sizeof chains[1]);
  CAMPAIGN_FAIL(campaign, "epoch %llu: the arc at %016llx lost copies that no fault explains: %s, before %s",
                (unsigned long long)epoch, (unsigned long long)is->begin, chains[1], chains[0]);
}

void pwi_budget_check(struct campaign *campaign, const struct pwi_view *before, const struct pwi_view *view) {
  if (campaign->config.replicas == 0 || campaign->config.memory_max || campaign->config.is_reckless) return;
  for (size_t i = 0; before->arc_count > 0 && i < view->arc_count; i++)
    check_arc(campaign, &before->arcs[pwi_view_arc_of(before, view->arcs[i].begin)], &view->arcs[i], view->epoch);
}
