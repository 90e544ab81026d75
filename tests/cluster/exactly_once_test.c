/* timeout: 300
 *
 * Exactly once, attacked: manager, servers and clients together in the simulator, from very many seeds.
 *
 * From each seed are drawn: how many servers, shards and workers; who shares a machine; what goes wrong and when (links
 * broken or muted, one-way cuts, partitions, pauses longer than the cluster's patience, slow nodes, workers killed and
 * started again); arcs moved, split and merged under the traffic; servers that join late. The workers' own journals say
 * what must be there in the end (worker.h).
 *
 *   PAWL_SEED=n     run this seed alone, and print its faults
 *   PAWL_SEEDS=n    run so many
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pawl/log.h>

#include "base/memory.h"
#include "sim/faults.h"
#include "worker.h"

#define ALL_SEEDS 2000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 400 /* they run at a tenth of the speed */
#else
#define SEEDS ALL_SEEDS
#endif

static void tune(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->trace = true;
}

static struct cluster_config draw_config(uint64_t seed) {
  struct pwi_random random;
  pwi_random_init(&random, seed, 12345);
  struct cluster_config config = {.seed = seed, .tune = tune};
  config.processes = 1 + (uint32_t)pwi_random_below(&random, 3);
  config.shards = 1 + (uint32_t)pwi_random_below(&random, 2);
  config.late = (uint32_t)pwi_random_below(&random, 2);
  config.client_grace_ns = (10 + (int64_t)pwi_random_below(&random, 200)) * MS;
  config.shared_hosts = pwi_random_chance(&random, 0.5);
  if (pwi_random_chance(&random, 0.2)) config.memory_max = 8000 + pwi_random_below(&random, 40000);
  if (getenv("PAWL_R")) config.replicas = (uint32_t)atoi(getenv("PAWL_R")), config.processes++;
  config.checked_hosts = !config.shared_hosts && pwi_random_chance(&random, 0.3);
  return config;
}

static struct pwi_sim_faults draw_faults(struct campaign *campaign, bool kills) {
  struct cluster *cluster = &campaign->cluster;
  struct pwi_sim_node nodes[CLUSTER_SERVERS + WORKERS_MAX + 1];
  size_t count = 0;
  for (uint32_t w = 0; w < campaign->worker_count; w++) nodes[count++] = campaign->workers[w].client.node;
  if (!kills) {
    nodes[count++] = cluster->manager_node;
    for (size_t i = 0; i < cluster->server_count; i++) nodes[count++] = cluster->servers[i].node;
  }
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_sim_now(cluster->sim) + 20 * MS;
  config.end = config.begin + 2500 * MS;
  config.gap_mean_ns = kills ? 1500 * MS : 100 * MS;
  config.duration_max_ns = 500 * MS;
  config.pause_max_ns = 1200 * MS;
  config.nodes = nodes;
  config.node_count = count;
  config.number = kills;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  if (kills) {
    config.weights[PWI_SIM_FAULT_KILL] = 1;
  } else {
    static const enum pwi_sim_fault_kind kinds[] = {PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_SLOW,
                                                    PWI_SIM_FAULT_CUT,   PWI_SIM_FAULT_PART,  PWI_SIM_FAULT_ISOLATE,
                                                    PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_MUTE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) config.weights[kinds[i]] += 1;
  }
  struct pwi_sim_faults faults;
  assert_int_equal(pwi_sim_faults_draw(cluster->sim, &config, &faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(cluster->sim, &faults), PAWL_OK);
  return faults;
}

static void print_faults(const struct campaign *campaign, const struct pwi_sim_faults *faults) {
  char line[PWI_SIM_FAULT_TEXT_MAX];
  for (size_t i = 0; i < faults->count; i++) {
    pwi_sim_fault_print(campaign->cluster.sim, &faults->items[i], line, sizeof line);
    printf("%s\n", line);
  }
}

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  printf("%.6f %s %s\n", (double)line->time_ns / 1e9, line->node, line->text);
}

static void start_late(void *context) { cluster_start_late(context, 0); }

/* What the campaigns met, all together: a campaign that meets nothing proves nothing. */
struct totals {
  uint64_t resent, gaps, wanted, not_here, retirements, moves, events, refusals;
};

static uint64_t run_seed(uint64_t seed, bool is_loud, struct totals *totals) {
  static struct campaign campaign;
  memset(&campaign, 0, sizeof campaign);
  struct cluster_config config = draw_config(seed);
  cluster_open(&campaign.cluster, &config);
  campaign.has_cap = config.memory_max != 0;
  uint32_t workers = 1 + (uint32_t)pwi_random_below(&campaign.cluster.random, 3);
  campaign_begin(&campaign, workers, 100);
  struct pwi_sim_faults faults = draw_faults(&campaign, false), kills = draw_faults(&campaign, true);
  if (is_loud) print_faults(&campaign, &faults), print_faults(&campaign, &kills);
  if (config.late)
    assert_int_equal(pwi_sim_call_at(campaign.cluster.sim, pwi_sim_now(campaign.cluster.sim) + 600 * MS, start_late,
                                     &campaign.cluster),
                     PAWL_OK);
  campaign_end(&campaign);
  for (uint32_t w = 0; w < workers; w++) {
    struct pwi_client_figures figures;
    if (!campaign.workers[w].client.client) continue;
    pwi_client_figures(campaign.workers[w].client.client, &figures);
    totals->resent += figures.parts_resent;
    totals->gaps += figures.gaps;
    totals->wanted += figures.wanted;
    totals->not_here += figures.not_here;
    totals->retirements += figures.retirements;
  }
  struct pwi_manager_figures figures;
  pwi_manager_figures(campaign.cluster.manager, &figures);
  totals->moves += figures.moves_done;
  totals->refusals += campaign.refusals;
  totals->events += pwi_sim_event_count(campaign.cluster.sim);
  uint64_t hash = pwi_sim_trace_hash(campaign.cluster.sim);
  cluster_close(&campaign.cluster);
  campaign_free(&campaign);
  pwi_sim_faults_fini(&faults);
  pwi_sim_faults_fini(&kills);
  return hash;
}

static void test_no_push_is_lost_or_counted_twice_whatever_happens(void **state) {
  (void)state;
  struct totals totals = {0};
  const char *one = getenv("PAWL_SEED"), *many = getenv("PAWL_SEEDS");
  if (one) {
    pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG);
    run_seed(strtoull(one, NULL, 10), true, &totals);
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
  for (uint64_t seed = 1; seed <= seeds; seed++) run_seed(seed, false, &totals);
  printf("seeds=%llu events=%llu resent=%llu gaps=%llu wanted=%llu not_here=%llu retirements=%llu moves=%llu "
         "refusals=%llu\n",
         (unsigned long long)seeds, (unsigned long long)totals.events, (unsigned long long)totals.resent,
         (unsigned long long)totals.gaps, (unsigned long long)totals.wanted, (unsigned long long)totals.not_here,
         (unsigned long long)totals.retirements, (unsigned long long)totals.moves, (unsigned long long)totals.refusals);
  if (seeds < ALL_SEEDS) return;
  assert_true(totals.gaps > 0);
  assert_true(totals.wanted > 0);
  assert_true(totals.not_here > 0);
  assert_true(totals.retirements > 0);
  assert_true(totals.moves > 0);
  assert_true(totals.refusals > 0);
}

static void test_a_seed_gives_the_same_run_each_time(void **state) {
  (void)state;
  struct totals totals = {0};
  for (uint64_t seed = 3; seed <= 5; seed++)
    assert_true(run_seed(seed, false, &totals) == run_seed(seed, false, &totals));
}

static void test_nothing_leaks(void **state) {
  (void)state;
  struct totals totals = {0};
  uint64_t before = pwi_memory_counts().live;
  run_seed(7, false, &totals);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seed_gives_the_same_run_each_time),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_no_push_is_lost_or_counted_twice_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
