/* Draws the campaign of a seed. */
#include <stdio.h>

#include "sim/campaign/inside.h"

#define STREAM_DRAW (UINT64_C(1) << 40) /* streams of the simulation are below */
#define STREAM_PACED (STREAM_DRAW + 1)
#define STREAM_WORKLOADS_DRAWN (STREAM_DRAW + 2)
#define STREAM_OUTAGES_DRAWN (STREAM_DRAW + 3)
#define STREAM_MANAGERS_DRAWN (STREAM_DRAW + 4)
#define STREAM_RELAYS_DRAWN (STREAM_DRAW + 5)
#define STREAM_PRIORITIES_DRAWN (STREAM_DRAW + 6)

static uint32_t between(struct pwi_random *random, uint32_t least, uint32_t most) {
  return least + (uint32_t)pwi_random_below(random, most - least + 1);
}

static void draw_shape(struct pwi_random *random, struct pwi_campaign_config *config) {
  /* With replicas: at most one process more than a chain has members, so that one can be missing, or just
   * enough. */
  config->processes = config->replicas ? config->replicas + between(random, 1, 3) : between(random, 1, 3);
  config->shards = pwi_random_chance(random, config->replicas ? 0.3 : 0.5) ? 2 : 1;
  config->late = between(random, 0, 1);
  /* many arcs mean many views, and a slow campaign */
  config->points = between(random, 1, config->replicas ? 3 : 8);
  config->workers = between(random, 1, 3);
  config->calls = 100;
  config->shared_hosts = pwi_random_chance(random, 0.5);
  config->checked_hosts = !config->shared_hosts && pwi_random_chance(random, 0.3);
  config->client_grace_ns = (10 + (int64_t)pwi_random_below(random, 200)) * MS;
  if (pwi_random_chance(random, 0.2)) config->memory_max = 8000 + pwi_random_below(random, 40000);
  if (!config->memory_max && pwi_random_chance(random, 0.3)) config->crew = between(random, 2, CREW_MAX);
}

static void draw_rates(struct pwi_random *random, struct pwi_campaign_config *config) {
  config->window_ns = config->replicas ? 3000 * MS : 2500 * MS;
  config->gap_nodes_ns = pwi_random_chance(random, 0.1) ? 1000 * MS : 100 * MS;
  config->gap_kills_ns = 1500 * MS;
  config->gap_servers_ns =
      config->replicas ? 150 * MS : 0; /* mostly it has to wait until chains can survive another fault */
  if (pwi_random_chance(random, 0.3)) config->gap_manager_ns = 700 * MS;
  if (config->late || pwi_random_chance(random, 0.3)) config->gap_members_ns = 600 * MS;
  config->gap_moves_ns = config->replicas ? 400 * MS : 120 * MS;
  config->kills_blindly = pwi_random_chance(random, 0.5);
}

/* From a random stream of their own, so that the rest of a seed's campaign does not depend on them. */
static void draw_paced(uint64_t seed, struct pwi_campaign_config *config) {
  static const char *const policies[] = {"sequential", "bounded 1", "bounded 3", "eventual",     "ssp 0",
                                         "ssp 1",      "ssp 3",     "a-bsp 3",   "adaptive 0 4", "eventual"};
  enum { POLICIES = sizeof policies / sizeof *policies };
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_PACED);
  if (config->crew || config->memory_max || pwi_random_chance(&random, 0.5)) return;
  config->paced = between(&random, 1, PACED_MAX);
  uint32_t which = between(&random, 0, POLICIES - 1);
  snprintf(config->policy, sizeof config->policy, "%s", policies[which]);
  config->is_user_policy = which == POLICIES - 1;
}

/* An outage needs time to begin, to last, and to heal. */
static void add_outages(struct pwi_campaign_config *config) {
  if (config->gap_outages_ns == 0) config->window_ns += 2000 * MS;
  config->gap_outages_ns = 600 * MS;
}

static void draw_outages(uint64_t seed, struct pwi_campaign_config *config) {
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_OUTAGES_DRAWN);
  if (pwi_random_chance(&random, 0.4)) config->gap_resets_ns = 40 * MS;
  config->has_long_pause = pwi_random_chance(&random, 0.06);
  config->has_drift = pwi_random_chance(&random, 0.2);
  config->has_small_queues = pwi_random_chance(&random, 0.15);
  config->has_starvation = pwi_random_chance(&random, 0.15);
  if (pwi_random_chance(&random, 0.25)) add_outages(config);
}

/* Takeovers last as long as leases, so campaigns with several managers have more time, and faults of
 * managers. */
void pwi_campaign_set_managers(uint32_t managers, struct pwi_campaign_config *config) {
  if (managers == 0) return;
  if (managers > 1 && config->managers == 0) {
    config->gap_manager_ns = 1500 * MS;
    config->window_ns += 4000 * MS;
  }
  config->managers = managers > 1 ? managers : 0;
}

static void draw_managers(uint64_t seed, struct pwi_campaign_config *config) {
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_MANAGERS_DRAWN);
  if (pwi_random_chance(&random, 0.1)) pwi_campaign_set_managers(between(&random, 2, MANAGERS_MAX), config);
}

static void draw_priorities(uint64_t seed, struct pwi_campaign_config *config) {
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_PRIORITIES_DRAWN);
  config->has_priorities = pwi_random_chance(&random, 0.4);
}

/* A server without a replica dies. Other clients would lose pushes, too, so there are none. */
static void draw_loss(struct pwi_campaign_config *config) {
  config->workloads = UINT32_C(1) << PWI_WORKLOAD_LOSS;
  config->workers = config->crew = config->paced = 0;
  if (config->processes < 2) config->processes = 2;
}

/* Few workloads for each seed, so that a campaign stays fast. A memory cap would refuse pushes of any of them. */
static void draw_workloads(uint64_t seed, struct pwi_campaign_config *config) {
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_WORKLOADS_DRAWN);
  if (config->memory_max) return;
  uint32_t count = between(&random, 0, 2);
  for (uint32_t i = 0; i < count; i++) config->workloads |= UINT32_C(1) << between(&random, 0, PWI_WORKLOAD_LOSS - 1);
  if (config->replicas == 0 && pwi_random_chance(&random, 0.06)) draw_loss(config);
  /* An heir is in danger where a server does not hear of a death. */
  if (config->workloads >> PWI_WORKLOAD_HEIR & 1) add_outages(config);
}

void pwi_campaign_draw(uint64_t seed, int replicas, struct pwi_campaign_config *config_out) {
  struct pwi_random random;
  pwi_random_init(&random, seed, STREAM_DRAW);
  uint64_t way = pwi_random_below(&random, 10);
  uint32_t drawn = way < 4 ? 0 : way < 9 ? 1 : PWI_CAMPAIGN_REPLICAS;
  *config_out = (struct pwi_campaign_config){.seed = seed, .replicas = replicas < 0 ? drawn : (uint32_t)replicas};
  draw_shape(&random, config_out);
  draw_rates(&random, config_out);
  draw_paced(seed, config_out);
  draw_outages(seed, config_out);
  draw_managers(seed, config_out);
  draw_workloads(seed, config_out);
  draw_priorities(seed, config_out);
  config_out->keeper = pwi_random_chance(&random, 0.5) ? PWI_KEEPER_FILE : PWI_KEEPER_STORE;
  config_out->journal_bytes = pwi_random_chance(&random, 0.8) ? 3000 : 0;
  config_out->filters = pwi_random_chance(&random, 0.5);
  config_out->functions = pwi_random_chance(&random, 0.4);
  config_out->refusals = config_out->functions && pwi_random_chance(&random, 0.3);
}

void pwi_campaign_set_relays(struct pwi_campaign_config *config) {
  static const char *const trees[] = {"none", "rack", "binary", "degree-3", "near-2.fixed", "rack.fixed", "auto"};
  struct pwi_random random;
  pwi_random_init(&random, config->seed, STREAM_RELAYS_DRAWN);
  config->workers = config->crew = config->paced = 0;
  config->filters = config->functions = config->refusals = false;
  config->memory_max = 0;
  config->workloads = 0;
  config->relays = between(&random, 1, RELAYS_MAX);
  snprintf(config->tree, sizeof config->tree, "%s", trees[pwi_random_below(&random, sizeof trees / sizeof *trees)]);
  if (config->points > 3) config->points = 3;
  if (pwi_random_chance(&random, 0.3)) config->gap_nodes_ns = 1000 * MS;
  uint64_t way = pwi_random_below(&random, 10);
  if (way < 6) config->workloads |= UINT32_C(1) << PWI_WORKLOAD_SUMS;
  if (way > 3) config->workloads |= UINT32_C(1) << PWI_WORKLOAD_READERS;
}

static void describe_workloads(const struct pwi_campaign_config *config, char *text, size_t size) {
  static const char *const names[PWI_WORKLOADS] = {
#define WORKLOAD_TEXT(name, text) text,
      PWI_WORKLOAD_MAP(WORKLOAD_TEXT)
#undef WORKLOAD_TEXT
  };
  size_t used = (size_t)snprintf(text, size, "%s", config->workloads ? "" : "none");
  for (size_t i = 0; i < PWI_WORKLOADS && used < size; i++)
    if (config->workloads >> i & 1)
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", names[i]);
}

void pwi_campaign_describe(const struct pwi_campaign_config *config, char *text, size_t size) {
  char workloads[96];
  describe_workloads(config, workloads, sizeof workloads);
  snprintf(text, size,
           "seed=%llu replicas=%u processes=%u shards=%u points=%u late=%u workers=%u crew=%u hosts=%s memory=%llu "
           "managers=%u journal=%s "
           "manager_faults=%d member_changes=%d resets=%d outages=%d long_pause=%d drift=%d queues=%d starvation=%d "
           "priorities=%d filters=%d functions=%d refusals=%d paced=%u policy=%s workloads=%s%s%s",
           (unsigned long long)config->seed, config->replicas, config->processes, config->shards, config->points,
           config->late, config->workers, config->crew,
           config->shared_hosts    ? "shared"
           : config->checked_hosts ? "sockets"
                                   : "own",
           (unsigned long long)config->memory_max, config->managers ? config->managers : 1,
           config->managers                    ? "shared"
           : config->keeper == PWI_KEEPER_FILE ? "file"
                                               : "store",
           config->gap_manager_ns > 0, config->gap_members_ns > 0, config->gap_resets_ns > 0,
           config->gap_outages_ns > 0, config->has_long_pause, config->has_drift, config->has_small_queues,
           config->has_starvation, config->has_priorities, config->filters, config->functions, config->refusals,
           config->paced,
           !config->paced           ? "none"
           : config->is_user_policy ? "user"
                                    : config->policy,
           workloads, config->relays ? " relays=" : "", config->tree);
}
