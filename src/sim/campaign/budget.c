/* The campaign's own account of the faults that it has injected, and of the copies that they may have cost.
 *
 * The promise (docs/faults.md): a chain loses a copy only if a fault has silenced the server that had it. The
 * campaign knows these faults because it has caused them. So it can check the promise without believing
 * anything that the manager says of servers: whenever a view takes full members out of a chain and leaves it
 * with fewer than it should have, the servers of these members must have been silenced, each by a fault in
 * this account. A link that breaks silences no server, and neither does a fault of the manager, nor a cut between a
 * server and the manager or a client, nor a fault that is over before anybody can notice silence.
 *
 * A server that is very slow answers its neighbours too late, and reads their answers too late. So it may lose its own
 * place, and cost the member behind it its place (docs/replication.md, "Complaints"). On real machines roles are more
 * patient with servers that are late (pwi_net_allowance); the nets of a campaign allow nothing. */
#include <stdio.h>

#include "sim/campaign/inside.h"

/* Shorter silence costs no copy: the manager notices it after 250 ms, and a neighbour complains after 200 ms without a way,
 * some of which may have passed before, because a link was reset (seed 3910). */
#define NOTICED_NS (100 * MS)
#define SETTLE_NS (1300 * MS) /* time until all nodes have drawn their conclusions from a healed fault */
#define SLOW_FACTOR 25        /* callbacks of half a millisecond: from here on a server may fall behind */

static uint64_t node_of(const struct pwi_server *server) {
  struct pwi_server_state state = {0};
  if (server) pwi_server_state(server, &state);
  return state.node;
}

static struct silenced *account_of(struct budget *budget, uint64_t node, const struct pwi_server *server) {
  for (size_t i = 0; i < budget->count; i++)
    if (budget->silenced[i].node == node && budget->silenced[i].server == server) return &budget->silenced[i];
  if (budget->count == SILENCED_MAX) return NULL;
  budget->silenced[budget->count] = (struct silenced){.node = node, .server = server};
  return &budget->silenced[budget->count++];
}

/* Returns NULL if there is nothing to account for. */
static struct silenced *silence(struct campaign *campaign, const struct pwi_server *server, int64_t until) {
  int64_t well_at = campaign->havoc.manager_well_at;
  uint64_t node = node_of(server);
  if (!server || (node == 0 && until == INT64_MAX)) return NULL;
  struct silenced *account = account_of(&campaign->budget, node, node != 0 ? NULL : server);
  if (!account)
    CAMPAIGN_FAIL(campaign, "more servers than the campaign can account for");
  else if (until > account->until)
    account->until = until;
  if (account && pwi_campaign_now(campaign) < well_at && well_at > account->noticed) account->noticed = well_at;
  return account;
}

static bool can_be_noticed(const struct campaign *campaign, int64_t until) {
  return until == INT64_MAX || until - pwi_campaign_now(campaign) >= NOTICED_NS;
}

void pwi_budget_silence(struct campaign *campaign, size_t process, int64_t until) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards && can_be_noticed(campaign, until); i++)
    silence(campaign, campaign->cluster.servers[i].server, until);
}

void pwi_budget_part(struct campaign *campaign, size_t process, int64_t until) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards && can_be_noticed(campaign, until); i++) {
    struct silenced *account = silence(campaign, campaign->cluster.servers[i].server, until);
    if (account) account->place = process + 1;
  }
}

void pwi_budget_cut(struct campaign *campaign, size_t process, size_t other, int64_t until) {
  if (other == PWI_CLUSTER_PROCESSES) return;
  pwi_budget_part(campaign, process, until);
  pwi_budget_part(campaign, other, until);
}

/* The last moment from which silence that is in the account may still become known. */
static int64_t known_from(const struct silenced *account) {
  return account->until > account->noticed ? account->until : account->noticed;
}

/* A manager that is away learns of silence when it is back: of silence that others may still tell it of. */
void pwi_budget_manager_is_unwell(struct campaign *campaign, int64_t well_at) {
  struct budget *budget = &campaign->budget;
  for (size_t i = 0; i < budget->count; i++) {
    struct silenced *account = &budget->silenced[i];
    bool is_over = account->until != INT64_MAX && pwi_campaign_now(campaign) > known_from(account) + SETTLE_NS;
    if (!is_over && well_at > account->noticed) account->noticed = well_at;
  }
}

void pwi_budget_slow(struct campaign *campaign, struct pwi_sim_node node, double factor, int64_t until) {
  for (size_t i = 0; i < campaign->cluster.server_count && factor >= SLOW_FACTOR; i++) {
    if (campaign->cluster.servers[i].node.index != node.index) continue;
    struct silenced *account = silence(campaign, campaign->cluster.servers[i].server, until);
    if (account && until > account->slow_until) account->slow_until = until;
  }
}

static bool runs_in(const struct campaign *campaign, uint64_t node, size_t process) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++)
    if (node_of(campaign->cluster.servers[i].server) == node) return true;
  return false;
}

/* True if the entry is about this node. A server that was silenced before it knew its id has one by now. Links that are
 * cut stay so when another server starts in the same place. */
static bool is_about(const struct campaign *campaign, const struct silenced *silenced, uint64_t node) {
  if (silenced->place != 0 && runs_in(campaign, node, silenced->place - 1)) return true;
  if (silenced->node != 0) return silenced->node == node;
  for (size_t i = 0; i < campaign->cluster.server_count; i++)
    if (campaign->cluster.servers[i].server == silenced->server && node_of(silenced->server) == node) return true;
  return false;
}

/* True if the server was slow, so that it may have cost the member behind it its place. */
static bool was_slow(const struct campaign *campaign, uint64_t node) {
  const struct budget *budget = &campaign->budget;
  for (size_t i = 0; i < budget->count; i++) {
    const struct silenced *account = &budget->silenced[i];
    if (account->slow_until == 0 || !is_about(campaign, account, node)) continue;
    if (pwi_campaign_now(campaign) <= account->slow_until + SETTLE_NS) return true;
  }
  return false;
}

static bool was_silenced(const struct campaign *campaign, uint64_t node) {
  const struct budget *budget = &campaign->budget;
  for (size_t i = 0; i < budget->count; i++) {
    const struct silenced *account = &budget->silenced[i];
    if (!is_about(campaign, account, node)) continue;
    if (account->until == INT64_MAX || pwi_campaign_now(campaign) <= known_from(account) + SETTLE_NS) return true;
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
    bool is_explained = was_silenced(campaign, node) || (i > 0 && was_slow(campaign, was->chain[i - 1].node.id));
    explained += !is_full_in(is, node) && is_explained;
  }
  if (before - after <= explained) return;
  char chains[2][96];
  describe_chain(was, chains[0], sizeof chains[0]);
  describe_chain(is, chains[1], sizeof chains[1]);
  CAMPAIGN_FAIL(campaign, "epoch %llu: the arc at %016llx lost copies that no fault explains: %s, before %s",
                (unsigned long long)epoch, (unsigned long long)is->begin, chains[1], chains[0]);
}

/* Arcs that were merged each have their own chain before. Without replicas there is nothing to check: the rules of views
 * (ring/view.h) forbid a chain without a full member. */
void pwi_budget_check(struct campaign *campaign, const struct pwi_view *before, const struct pwi_view *view) {
  if (campaign->config.replicas == 0 || campaign->config.is_reckless) return;
  for (size_t i = 0; before->arc_count > 0 && i < view->arc_count; i++) {
    uint64_t end = pwi_view_arc_range(view, i).end;
    size_t was = pwi_view_arc_of(before, view->arcs[i].begin);
    do check_arc(campaign, &before->arcs[was], &view->arcs[i], view->epoch);
    while (++was < before->arc_count && before->arcs[was].begin < end);
  }
}
