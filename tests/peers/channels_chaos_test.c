/* Peers under faults: links break and fall silent, nodes are cut off, stand still, die and come back, are declared
 * dead while they live, and close and open channels meanwhile. Nothing reaches an engine that was not meant for
 * it (fellows.h), and once the faults are over all pairs are linked and all records arrive. */
#include "base/testing.h"
#include "fellows.h"
#include "sim/faults.h"

#define SEEDS 200

static struct crew crew;

static void draw_faults(struct pwi_sim_faults *faults, uint64_t seed) {
  struct pwi_sim_faults_config config;
  struct pwi_sim_node nodes[FELLOWS_MAX + 1] = {crew.cluster.manager_node};
  for (uint32_t i = 0; i < crew.count; i++) nodes[i + 1] = crew.fellows[i].client.node;
  pwi_sim_faults_config_init(&config);
  config.nodes = nodes;
  config.node_count = crew.count + 1;
  config.begin = pwi_sim_now(crew.cluster.sim) + 1;
  config.end = config.begin + 2000 * MS;
  config.gap_mean_ns = 60 * MS;
  config.duration_max_ns = 900 * MS;
  config.pause_max_ns = seed % 3 == 0 ? 1500 * MS : 300 * MS;
  config.down_max = 2;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = 3;
  config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 2;
  config.weights[PWI_SIM_FAULT_PART] = config.weights[PWI_SIM_FAULT_PAUSE] = 1;
  config.weights[PWI_SIM_FAULT_SLOW] = config.weights[PWI_SIM_FAULT_ISOLATE] = 1;
  config.weights[PWI_SIM_FAULT_KILL] = (double)(seed % 2);
  assert_int_equal(pwi_sim_faults_draw(crew.cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(crew.cluster.sim, faults), PAWL_OK);
}

static void run_seed(uint64_t seed, uint64_t *records, uint64_t *lost, uint64_t *retirements) {
  struct pwi_cluster_config config = {
      .seed = seed, .shared_hosts = seed % 4 < 2, .client_grace_ns = 300 * MS, .durable = true};
  struct pwi_sim_faults faults;
  memset(&crew, 0, sizeof crew);
  crew.count = 3 + (uint32_t)(seed % 3);
  crew.channels = 1 + (uint32_t)(seed % FELLOW_CHANNELS);
  crew.record = seed % 2 ? 6000 : 56;
  crew.rounds = 60;
  crew.reopen_chance = seed % 5 == 0 ? 0.02 : 0;
  if (getenv("PAWL_SEED")) cluster_print_log();
  crew_open(&crew, &config);
  draw_faults(&faults, seed);
  cluster_run_for(&crew.cluster, 2500 * MS);
  crew.reopen_chance = 0;
  crew_settle(&crew);
  *records += crew.records;
  for (uint32_t i = 0; i < crew.count; i++) {
    *lost += crew.fellows[i].lost;
    *retirements += pwi_cluster_client_figures(&crew.fellows[i].client).retirements;
  }
  crew_close(&crew);
  pwi_sim_faults_fini(&faults);
}

static void test_nothing_reaches_an_engine_that_was_not_meant_for_it(void **state) {
  (void)state;
  uint64_t records = 0, lost = 0, retirements = 0, only = 0;
  if (getenv("PAWL_SEED")) only = strtoull(getenv("PAWL_SEED"), NULL, 10);
  for (uint64_t seed = only ? only : 1; seed <= (only ? only : SEEDS); seed++)
    run_seed(seed, &records, &lost, &retirements);
  printf("%llu records, %llu losses, %llu retirements\n", (unsigned long long)records, (unsigned long long)lost,
         (unsigned long long)retirements);
  if (!only) assert_true(records > 100000 && lost > 2000 && retirements > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_reaches_an_engine_that_was_not_meant_for_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
