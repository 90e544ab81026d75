/* Relays of a campaign. They may die, be paused and cut off like any client, and hold nothing that is acknowledged. */
#include <stdio.h>

#include "sim/campaign/inside.h"

#define SECOND (10 * MS) /* for relays that choose their tree: campaigns are short */

static void count(struct campaign_relay *relay) {
  struct pwi_campaign_figures *figures = &relay->campaign->figures;
  struct pwi_relay_figures more;
  pwi_relay_figures(relay->client.relay, &more);
  figures->aggregates += more.aggregates;
  figures->relayed_applied += more.applied;
  figures->pulls_answered += more.pulls;
  figures->pulls_kept += more.pulls_kept;
  figures->relay_reads += more.reads;
  figures->tree_changes += more.tree_changes;
}

static void heard(void *context, const struct pwi_message *message) {
  const struct campaign_relay *relay = context;
  pwi_watch_relay_heard(relay->campaign, message);
}

/* The relay is gone already when `stopped` is called, so figures of relays that die are lost. */
pawl_status pwi_campaign_relays_add(struct campaign *campaign) {
  static const char *const racks[] = {"left", "right"};
  struct campaign_relays *relays = &campaign->relays;
  pawl_status status = PAWL_OK;
  if (campaign->config.relays == 0) return PAWL_OK;
  if (!pwi_relay_tree_parse(campaign->config.tree, &relays->tree)) return PAWL_INVALID;
  for (uint32_t i = 0; i < campaign->config.relays && !status; i++) {
    struct campaign_relay *relay = &relays->all[i];
    relay->campaign = campaign;
    relay->client = (struct pwi_cluster_client){
        .rack = racks[i % 2], .tree = &relays->tree, .second = SECOND, .heard = heard, .context = relay};
    snprintf(relay->client.name, sizeof relay->client.name, "relay%u", (unsigned char)i);
    status = pwi_campaign_client_add(campaign, &relay->client, true);
  }
  return status;
}

void pwi_campaign_relays_count(struct campaign *campaign) {
  for (uint32_t i = 0; i < campaign->config.relays; i++)
    if (campaign->relays.all[i].client.relay) count(&campaign->relays.all[i]);
}
