/* Refusals and results of row functions that members of a chain keep.
 *
 * After a failover the next head answers resends from them, so full members must keep the same at the same version of
 * an arc. A member drops those that their sender has settled when it hears the sender's number, at a time of its own.
 * So only tasks are compared that the client, asked directly, has not settled yet.
 *
 * They must also know the same last ticks to which clients have contributed. */
#include "sim/campaign/inside.h"

#define ARCS 128 /* most arcs of a server that are compared */
#define LOOKS_A_DIGEST 20

static void compare(struct campaign *campaign, const struct pwi_cluster_client *client, const struct pwi_server *a,
                    const struct pwi_server *b, struct pawl_range positions) {
  struct pwi_client_state state;
  if (!client->client) return;
  pwi_client_state(client->client, &state);
  struct pwi_sender sender = {state.sender};
  /* Of a retired sender nothing will be sent again, and members forget it at different times. */
  if (!pwi_membership_is_live(&pwi_campaign_ledger(campaign)->membership, sender)) return;
  uint64_t one = pwi_shard_digest_kept(pwi_server_shard(a), positions, sender, state.settled);
  uint64_t other = pwi_shard_digest_kept(pwi_server_shard(b), positions, sender, state.settled);
  campaign->figures.kept += one != 0;
  if (one == other) return;
  CAMPAIGN_FAIL(campaign, "members of the arc at %016llx keep different refusals or results of %s at the same version",
                (unsigned long long)positions.begin, client->name);
}

static void compare_all(struct campaign *campaign, const struct pwi_server *a, const struct pwi_server *b,
                        struct pawl_range positions) {
  for (size_t i = 0; i < campaign->client_count; i++) compare(campaign, campaign->clients[i].client, a, b, positions);
}

/* A member that does not know a sender yet cannot record its ticks (shard/contributed.c), and others copy from it. */
static void compare_ticks(struct campaign *campaign, const struct pwi_server *a, const struct pwi_server *b,
                          struct pawl_range positions) {
  const struct pwi_membership *membership = &pwi_campaign_ledger(campaign)->membership;
  if (campaign->kept.lack_ticks || campaign->kept.looks % LOOKS_A_DIGEST != 0) return;
  if (pwi_shard_digest_ticks(pwi_server_shard(a), positions, membership) !=
      pwi_shard_digest_ticks(pwi_server_shard(b), positions, membership))
    CAMPAIGN_FAIL(campaign, "members of the arc at %016llx know different ticks of clients at the same version",
                  (unsigned long long)positions.begin);
}

static bool is_same_moment(const struct pwi_server_arc *a, const struct pwi_server_arc *b) {
  return !a->filling && !b->filling && a->even && b->even && a->positions.begin == b->positions.begin &&
         a->positions.end == b->positions.end && a->since == b->since && a->version == b->version;
}

static void compare_servers(struct campaign *campaign, const struct pwi_server *a, const struct pwi_server *b) {
  struct pwi_server_arc ours[ARCS], theirs[ARCS];
  struct pwi_server_state first, second;
  pwi_server_state(a, &first);
  pwi_server_state(b, &second);
  if (first.catalogue != second.catalogue) return; /* one may have dropped a vector already */
  size_t count = pwi_server_arcs(a, ours, ARCS), others = pwi_server_arcs(b, theirs, ARCS);
  for (size_t i = 0; i < count && i < ARCS; i++)
    for (size_t k = 0; k < others && k < ARCS; k++)
      if (is_same_moment(&ours[i], &theirs[k])) {
        compare_all(campaign, a, b, ours[i].positions);
        compare_ticks(campaign, a, b, ours[i].positions);
      }
}

void pwi_kept_look(struct campaign *campaign) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  if (campaign->config.replicas == 0) return;
  bool is_due = ++campaign->kept.looks % LOOKS_A_DIGEST == 0;
  for (size_t i = 0; i < cluster->server_count; i++)
    if (cluster->servers[i].server && pwi_shard_lacks_ticks(pwi_server_shard(cluster->servers[i].server)))
      campaign->kept.lack_ticks = true;
  for (size_t i = 0; i < cluster->server_count; i++) {
    const struct pwi_server *server = cluster->servers[i].server;
    if (!server || (!is_due && !pwi_shard_keeps(pwi_server_shard(server)))) continue;
    for (size_t k = 0; k < cluster->server_count; k++)
      if (k != i && cluster->servers[k].server) compare_servers(campaign, server, cluster->servers[k].server);
  }
}
