/* Outages: faults of many nodes at once, resets of single links, and pauses longer than every timer.
 *
 * Nothing may be lost in any of them, because nobody dies: servers are only silent, all of them if need be, and come
 * back with their memory. The cluster may wait meanwhile. A chain whose members are silent is short, however, and
 * would not survive a death. So with replicas an outage of servers begins only while every chain is whole, and no
 * other fault of servers begins before the outage is over (pwi_havoc_claim).
 *
 * A reset silences nobody, and a server that only the manager does not reach stays in its chains. The account of
 * injected faults (budget.c) knows nothing of these two, so the run ends if they cost a chain a copy. */
#include "sim/campaign/inside.h"

#define AGAIN_NS (60 * MS) /* until an outage that could not begin is tried again */

static struct pwi_random *random_of(struct campaign *campaign) { return &campaign->outages.random; }

static int64_t draw_duration(struct campaign *campaign, int64_t least, int64_t most) {
  return least + (int64_t)pwi_random_below(random_of(campaign), (uint64_t)(most - least));
}

static void again(struct campaign *campaign, int64_t gap, void (*call)(void *context)) {
  int64_t delay = 1 + (int64_t)pwi_random_exponential(random_of(campaign), (double)gap);
  if (pwi_campaign_now(campaign) + delay < campaign->havoc.end) pwi_campaign_later(campaign, delay, call);
}

static size_t draw_process(struct campaign *campaign) {
  return (size_t)pwi_random_below(random_of(campaign), campaign->cluster.process_count);
}

static struct pwi_sim_node draw_server(struct campaign *campaign) {
  return campaign->cluster.servers[pwi_random_below(random_of(campaign), campaign->cluster.server_count)].node;
}

static struct pwi_sim_node draw_client(struct campaign *campaign) {
  return campaign->clients[pwi_random_below(random_of(campaign), campaign->client_count)].client->node;
}

/* --- links ---------------------------------------------------------------------------------------------- */

static void reset_link(void *context) {
  struct campaign *campaign = context;
  uint64_t way = pwi_random_below(random_of(campaign), 3);
  struct pwi_sim_node a = draw_server(campaign);
  struct pwi_sim_node b = way == 0   ? campaign->cluster.manager_node
                          : way == 1 ? draw_server(campaign)
                                     : draw_client(campaign);
  if (a.index != b.index) {
    pwi_havoc_do(campaign, PWI_SIM_FAULT_BREAK, a, b, 0);
    campaign->figures.resets++;
  }
  again(campaign, campaign->config.gap_resets_ns, reset_link);
}

/* --- many nodes ----------------------------------------------------------------------------------------- */

static void silence_process(struct campaign *campaign, size_t process, int64_t until) {
  if (pwi_cluster_is_up(&campaign->cluster, process)) pwi_budget_silence(campaign, process, until);
}

/* Separates the nodes into two groups. Servers of different groups do not reach one another, and either of two such
 * servers may lose its place in a chain. */
static void separate_groups(struct campaign *campaign, int64_t duration) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  struct pwi_sim_node near[NODES_MAX], far[NODES_MAX];
  size_t near_count = 0, far_count = 0;
  near[near_count++] = cluster->manager_node;
  for (size_t p = 0; p < cluster->process_count; p++) {
    bool is_far = pwi_random_chance(random_of(campaign), 0.5);
    for (size_t i = cluster->processes[p].first; i < cluster->processes[p].first + cluster->processes[p].shards; i++)
      *(is_far ? &far[far_count++] : &near[near_count++]) = cluster->servers[i].node;
    if (pwi_cluster_is_up(cluster, p)) pwi_budget_part(campaign, p, pwi_campaign_now(campaign) + duration);
  }
  for (size_t i = 0; i < campaign->leaders.count; i++) { /* others may take over meanwhile */
    struct pwi_sim_node node = campaign->leaders.all[i].node;
    if (node.index != cluster->manager_node.index) far[far_count++] = node;
  }
  for (size_t i = 0; i < campaign->client_count; i++)
    *(pwi_random_chance(random_of(campaign), 0.5) ? &far[far_count++] : &near[near_count++]) =
        campaign->clients[i].client->node;
  for (size_t i = 0; i < near_count; i++)
    for (size_t k = 0; k < far_count; k++) pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, near[i], far[k], duration);
  campaign->figures.partitions++;
}

/* More servers than there are replicas stop, or are cut off, and all of them come back. */
static void silence_many(struct campaign *campaign, int64_t duration) {
  size_t count = campaign->cluster.process_count, wanted = campaign->config.replicas + 1;
  bool is_pause = pwi_random_chance(random_of(campaign), 0.5);
  wanted += (size_t)pwi_random_below(random_of(campaign), count - wanted + 1);
  size_t first = draw_process(campaign);
  for (size_t i = 0; i < count && i < wanted; i++) {
    size_t process = (first + i) % count;
    if (!pwi_cluster_is_up(&campaign->cluster, process)) continue;
    silence_process(campaign, process, pwi_campaign_now(campaign) + duration);
    pwi_havoc_do_process(campaign, is_pause ? PWI_SIM_FAULT_PAUSE : PWI_SIM_FAULT_ISOLATE, process, duration);
  }
  campaign->figures.mass_silences++;
}

/* The manager does not reach a server, and everybody else does. */
static void part_from_manager(struct campaign *campaign, int64_t duration) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  const struct pwi_cluster_process *is = &cluster->processes[draw_process(campaign)];
  for (size_t i = is->first; i < is->first + is->shards; i++)
    pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, cluster->manager_node, cluster->servers[i].node, duration);
  campaign->figures.manager_cuts++;
}

static void begin_outage(void *context) {
  struct campaign *campaign = context;
  int64_t duration = draw_duration(campaign, 100 * MS, 3500 * MS), now = pwi_campaign_now(campaign);
  if (now + duration > campaign->havoc.end) duration = campaign->havoc.end - now;
  if (duration < MS || !pwi_havoc_claim(campaign, now + duration)) {
    again(campaign, AGAIN_NS, begin_outage);
    return;
  }
  switch (pwi_random_below(random_of(campaign), 3)) {
  case 0:
    separate_groups(campaign, duration);
    break;
  case 1:
    silence_many(campaign, duration);
    break;
  default:
    part_from_manager(campaign, duration);
    break;
  }
  again(campaign, campaign->config.gap_outages_ns, begin_outage);
}

/* --- long pauses ---------------------------------------------------------------------------------------- */

/* One node stands still for longer than every timer but the two minutes of a server without a manager. */
static void pause_long(void *context) {
  struct campaign *campaign = context;
  const struct pwi_cluster *cluster = &campaign->cluster;
  int64_t duration = draw_duration(campaign, 10 * PWI_SIM_SECOND, 14 * PWI_SIM_SECOND);
  int64_t until = pwi_campaign_now(campaign) + duration;
  double who = pwi_random_unit(random_of(campaign));
  size_t process = draw_process(campaign);
  if (who < 0.4) {
    pwi_havoc_do(campaign, PWI_SIM_FAULT_PAUSE, draw_client(campaign), PWI_SIM_ALL, duration);
  } else if (who < 0.6) {
    pwi_havoc_do(campaign, PWI_SIM_FAULT_PAUSE, cluster->manager_node, PWI_SIM_ALL, duration);
    pwi_havoc_manager_is_unwell(campaign, duration);
  } else if (pwi_cluster_is_up(cluster, process) && pwi_havoc_claim(campaign, until)) {
    silence_process(campaign, process, until);
    pwi_havoc_do_process(campaign, PWI_SIM_FAULT_PAUSE, process, duration);
  } else {
    again(campaign, AGAIN_NS, pause_long);
    return;
  }
  campaign->outages.healed_at = until;
  campaign->figures.long_pauses++;
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* Clients and the manager wait until they have memory for links and messages again. Servers are left out: they refuse
 * pushes without it (docs/faults.md, 11). */
static void starve(void *context) {
  struct campaign *campaign = context;
  int64_t duration = draw_duration(campaign, 20 * MS, 800 * MS);
  if (pwi_campaign_now(campaign) + duration < campaign->havoc.end) {
    bool is_client = pwi_random_chance(random_of(campaign), 0.8);
    struct pwi_sim_node node = is_client ? draw_client(campaign) : campaign->cluster.manager_node;
    pwi_havoc_do(campaign, PWI_SIM_FAULT_STARVE, node, PWI_SIM_ALL, duration);
    campaign->figures.starvations++;
  }
  again(campaign, 300 * MS, starve);
}

void pwi_outages_begin(struct campaign *campaign) {
  const struct pwi_campaign_config *config = &campaign->config;
  pwi_sim_stream(campaign->cluster.sim, STREAM_OUTAGES, random_of(campaign));
  if (config->gap_resets_ns) again(campaign, config->gap_resets_ns, reset_link);
  if (config->gap_outages_ns) again(campaign, config->gap_outages_ns, begin_outage);
  if (config->has_starvation) again(campaign, 300 * MS, starve);
  if (config->has_long_pause) again(campaign, config->window_ns / 3, pause_long);
}
