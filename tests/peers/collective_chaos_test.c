/* Collectives under faults: links break and fall silent, members are cut off, stand still, die and come back, and are
 * declared dead while they live. Every call that returns OK has the right bits (collectors.h), every other call fails
 * with NODE_GONE or CANCELLED, and once the faults are over all members go on together. The test finds bugs that are
 * planted on purpose.
 *
 * planted: yes
 * cost: 4
 * many: 20000
 */
#include "base/testing.h"
#include "collectors.h"
#include "protocol/planted.h"
#include "sim/faults.h"

#define ENOUGH 600 /* to meet everything */
#define MANY 2000  /* among which a planted bug is found */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 300
#else
#define SEEDS ENOUGH
#endif
#define AFTER 6 /* operations that all members make after the faults */

static struct collectors all;

static void draw_faults(struct pwi_sim_faults *faults, uint64_t seed) {
  struct pwi_sim_faults_config config;
  struct pwi_sim_node nodes[COLLECTORS_MAX + 1] = {all.cluster.manager_node};
  for (uint32_t i = 0; i < all.count; i++) nodes[i + 1] = all.members[i].client.node;
  pwi_sim_faults_config_init(&config);
  config.nodes = nodes;
  config.node_count = all.count + 1;
  config.begin = pwi_sim_now(all.cluster.sim) + 40 * MS;
  config.end = config.begin + 400 * MS;
  config.gap_mean_ns = 40 * MS;
  config.duration_max_ns = 300 * MS;
  config.pause_max_ns = seed % 3 == 0 ? 600 * MS : 150 * MS;
  config.down_max = 2;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = 4;
  config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 1;
  config.weights[PWI_SIM_FAULT_PART] = config.weights[PWI_SIM_FAULT_PAUSE] = 1;
  config.weights[PWI_SIM_FAULT_SLOW] = config.weights[PWI_SIM_FAULT_ISOLATE] = 1;
  config.weights[PWI_SIM_FAULT_KILL] = (double)(seed % 3);
  assert_int_equal(pwi_sim_faults_draw(all.cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(all.cluster.sim, faults), PAWL_OK);
}

static void prepare(uint64_t seed) {
  memset(&all, 0, sizeof all);
  all.count = 2 + (uint32_t)(seed % 5);
  all.largest = seed % 8 == 3 ? 40000 : seed % 2 ? 6000 : 200;
  all.must_grow = true;
  all.pause_max = (seed % 7 == 0 ? 30 : 12) * MS;
  if (seed % 4 == 1) all.patience_max = 5 * MS;
}

/* All members are up, in one epoch, and have made some operations in it. */
static bool is_unsettled(void *context) {
  struct collective_epoch epoch = {0};
  (void)context;
  for (uint32_t i = 0; i < all.count; i++) {
    const struct pwi_collective *engine = all.members[i].engine;
    if (!engine || !engine->is_live || engine->size != all.count || engine->completed < AFTER) return true;
    if (epoch.number == 0) epoch = engine->epoch;
    if (pwi_collective_compare(engine->epoch, epoch) != 0) return true;
  }
  return false;
}

struct tally {
  uint64_t checked, gone, cancelled, timed_out, retirements;
};

/* Returns false, with the reason printed if `is_loud`, if the run fails. */
static bool run_seed(uint64_t seed, bool is_loud, struct tally *tally) {
  struct pwi_cluster_config config = {
      .seed = seed, .shared_hosts = seed % 4 < 2, .client_grace_ns = seed % 2 ? 200 * MS : 50 * MS, .durable = true};
  struct pwi_sim_faults faults;
  prepare(seed);
  if (getenv("PAWL_SEED")) cluster_print_log();
  collectors_open(&all, &config);
  draw_faults(&faults, seed);
  pawl_status status = pwi_cluster_run_for(&all.cluster, 500 * MS);
  if (!status) status = pwi_cluster_run_while(&all.cluster, is_unsettled, NULL, 60 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < all.count; i++) {
    tally->gone += all.members[i].gone;
    tally->cancelled += all.members[i].cancelled;
    tally->timed_out += all.members[i].timed_out;
    tally->retirements += pwi_cluster_client_figures(&all.members[i].client).retirements;
  }
  tally->checked += all.checked;
  if (status && is_loud) {
    if (getenv("PAWL_SEED")) collectors_print(&all);
    print_error("seed %llu: %s %s\n", (unsigned long long)seed, pawl_status_name(status),
                pwi_sim_failure(all.cluster.sim) ? pwi_sim_failure(all.cluster.sim) : "");
  }
  collectors_close(&all);
  pwi_sim_faults_fini(&faults);
  return status == PAWL_OK;
}

static uint64_t number_in(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_every_result_is_whole_and_right(void **state) {
  (void)state;
  struct tally tally = {0};
  uint64_t only = number_in("PAWL_SEED", 0), last = only ? only : number_in("PAWL_SEEDS", SEEDS), failures = 0;
  pwi_planted_set(PWI_PLANTED_NONE);
  for (uint64_t seed = only ? only : number_in("PAWL_FIRST", 1); seed <= last; seed++)
    if (!run_seed(seed, failures < 20, &tally)) failures++;
  printf("%llu results, %llu gone, %llu cancelled, %llu timed out, %llu retirements\n",
         (unsigned long long)tally.checked, (unsigned long long)tally.gone, (unsigned long long)tally.cancelled,
         (unsigned long long)tally.timed_out, (unsigned long long)tally.retirements);
  assert_int_equal(failures, 0);
  if (!only && !getenv("PAWL_FIRST") && last >= ENOUGH)
    assert_true(tally.checked > 50000 && tally.gone > 300 && tally.timed_out > 1000 && tally.retirements > 3);
}

static void must_find(enum pwi_planted bug) {
  struct tally tally = {0};
  uint64_t seed = 1;
  pwi_planted_set(bug);
  while (seed <= MANY && run_seed(seed, false, &tally)) seed++;
  pwi_planted_set(PWI_PLANTED_NONE);
  printf("%-20s found by seed %llu\n", pwi_planted_about(bug)->word, (unsigned long long)seed);
  assert_true(seed <= MANY);
}

static void test_every_planted_bug_is_found(void **state) {
  (void)state;
  if (getenv("PAWL_SEED") || getenv("PAWL_SEEDS")) return;
  must_find(PWI_PLANTED_COLLECTIVE_OLD_PIECE);
  must_find(PWI_PLANTED_COLLECTIVE_NO_RESEND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_result_is_whole_and_right),
      cmocka_unit_test(test_every_planted_bug_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
