/* Reduce under faults: links break and fall silent, members are cut off, stand still, die and come back, and are declared
 * dead while they live. In some runs a member closes the reduce. Every step returns the average of what was sent
 * (reducers.h), and once the faults are over all remaining members go on together. The test finds bugs that are planted
 * on purpose.
 *
 * planted: yes
 * cost: 30
 * many: 20000
 */
#include "base/testing.h"
#include "protocol/planted.h"
#include "reducers.h"
#include "sim/faults.h"

#define MANY 2000 /* enough to meet everything */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 300
#else
#define SEEDS MANY
#endif
#define AFTER 12 /* iterations that all members make after the faults */

static struct team team;

static void draw_faults(struct pwi_sim_faults *faults, uint64_t seed) {
  struct pwi_sim_faults_config config;
  struct pwi_sim_node nodes[REDUCERS_MAX + 1] = {team.cluster.manager_node};
  for (uint32_t i = 0; i < team.count; i++) nodes[i + 1] = team.reducers[i].client.node;
  pwi_sim_faults_config_init(&config);
  config.nodes = nodes;
  config.node_count = team.count + 1;
  config.begin = pwi_sim_now(team.cluster.sim) + 50 * MS;
  config.end = config.begin + 700 * MS;
  config.gap_mean_ns = 50 * MS;
  config.duration_max_ns = 400 * MS;
  config.pause_max_ns = seed % 3 == 0 ? 900 * MS : 150 * MS;
  config.down_max = 2;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = 4;
  config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 1;
  config.weights[PWI_SIM_FAULT_PART] = config.weights[PWI_SIM_FAULT_PAUSE] = 1;
  config.weights[PWI_SIM_FAULT_SLOW] = config.weights[PWI_SIM_FAULT_ISOLATE] = 1;
  config.weights[PWI_SIM_FAULT_KILL] = (double)(seed % 3);
  assert_int_equal(pwi_sim_faults_draw(team.cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(team.cluster.sim, faults), PAWL_OK);
}

static void prepare(uint64_t seed) {
  static const char *const graphs[] = {NULL, "complete", "ring", "star"};
  memset(&team, 0, sizeof team);
  team.count = 3 + (uint32_t)(seed % 4);
  team.mode = seed % 5 == 1 ? PAWL_REDUCE_BSP : seed % 5 == 2 ? PAWL_REDUCE_ASYNC : PAWL_REDUCE_NOTIFY_ACK;
  team.graph = graphs[seed / 4 % 4];
  team.values = seed % 2 ? 1500 : 40;
  team.compute_max = (seed % 7 == 0 ? 30 : 4) * MS;
  team.lingers = true;
  if (seed % 6 == 5) team.close_at[seed / 6 % team.count] = 5 + seed / 6 % 40;
}

/* All members are up, in one epoch, and have made some iterations in it, except for one that has closed. */
static bool is_unsettled(void *context) {
  uint64_t from = *(uint64_t *)context;
  uint32_t size = team.count;
  struct reduce_epoch epoch = {0};
  for (uint32_t i = 0; i < team.count; i++) size -= team.close_at[i] > 0;
  for (uint32_t i = 0; i < team.count; i++) {
    const struct reducer *reducer = &team.reducers[i];
    if (!reducer->engine || reducer->status) return true;
    if (team.close_at[i]) {
      if (!reducer->is_closed) return true;
      continue;
    }
    if (reducer->engine->completed < from + AFTER || reducer->engine->size != size) return true;
    if (epoch.number == 0) epoch = reducer->engine->epoch;
    if (pwi_reduce_epoch_compare(reducer->engine->epoch, epoch) != 0) return true;
  }
  return false;
}

struct tally {
  uint64_t steps, adopted, regenerated, retirements;
};

static bool has_shared_hosts(uint64_t seed) { return seed % 4 < 2; }

/* Returns false, with the reason printed if `is_loud`, if the run fails. */
static bool run_seed(uint64_t seed, bool is_loud, struct tally *tally) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .shared_hosts = has_shared_hosts(seed),
                                      .client_grace_ns = seed % 2 ? 200 * MS : 50 * MS,
                                      .durable = true};
  struct pwi_sim_faults faults;
  uint64_t from = 0;
  prepare(seed);
  if (getenv("PAWL_SEED")) cluster_print_log();
  team_open(&team, &config);
  draw_faults(&faults, seed);
  pawl_status status = pwi_cluster_run_for(&team.cluster, 900 * MS);
  for (uint32_t i = 0; i < team.count; i++)
    if (team.reducers[i].engine && team.reducers[i].engine->completed > from) from = team.reducers[i].engine->completed;
  if (!status) status = pwi_cluster_run_while(&team.cluster, is_unsettled, &from, 60 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < team.count; i++) {
    if (team.reducers[i].status) {
      status = team.reducers[i].status;
      if (is_loud)
        print_error("seed %llu: node %u: %s\n", (unsigned long long)seed, i, team.reducers[i].engine->problem);
    }
    tally->adopted += team.reducers[i].adopted;
    tally->regenerated += team.reducers[i].regenerated;
    tally->retirements += pwi_cluster_client_figures(&team.reducers[i].client).retirements;
  }
  tally->steps += team.checked;
  if (status && is_loud) {
    if (getenv("PAWL_SEED")) team_print(&team);
    print_error("seed %llu: %s %s\n", (unsigned long long)seed, pawl_status_name(status),
                pwi_sim_failure(team.cluster.sim) ? pwi_sim_failure(team.cluster.sim) : "");
  }
  team_close(&team);
  pwi_sim_faults_fini(&faults);
  return status == PAWL_OK;
}

static uint64_t number_in(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_every_step_returns_the_average_of_what_was_sent(void **state) {
  (void)state;
  struct tally tally = {0};
  uint64_t only = number_in("PAWL_SEED", 0), last = only ? only : number_in("PAWL_SEEDS", SEEDS), failures = 0;
  pwi_planted_set(PWI_PLANTED_NONE);
  for (uint64_t seed = only ? only : number_in("PAWL_FIRST", 1); seed <= last; seed++)
    if (!run_seed(seed, failures < 20, &tally)) failures++;
  printf("%llu steps, %llu adopted, %llu regenerated, %llu retirements\n", (unsigned long long)tally.steps,
         (unsigned long long)tally.adopted, (unsigned long long)tally.regenerated,
         (unsigned long long)tally.retirements);
  assert_int_equal(failures, 0);
  if (!only && !getenv("PAWL_FIRST") && last >= MANY)
    assert_true(tally.steps > 100000 && tally.adopted > 1000 && tally.retirements > 50);
}

/* The first seed that finds it, of those in which some members share memory, or none do. */
static void must_find(enum pwi_planted bug, bool is_shared) {
  struct tally tally = {0};
  uint64_t seed = 1;
  pwi_planted_set(bug);
  while (seed <= MANY && (has_shared_hosts(seed) != is_shared || run_seed(seed, false, &tally))) seed++;
  pwi_planted_set(PWI_PLANTED_NONE);
  printf("%-20s found by seed %llu, %s\n", pwi_planted_about(bug)->word, (unsigned long long)seed,
         is_shared ? "some memory shared" : "slots only");
  assert_true(seed <= MANY);
}

static void test_every_planted_bug_is_found(void **state) {
  (void)state;
  if (getenv("PAWL_SEED") || getenv("PAWL_SEEDS")) return;
  must_find(PWI_PLANTED_REDUCE_EARLY_ACK, false);
  must_find(PWI_PLANTED_REDUCE_EARLY_ACK, true);
  must_find(PWI_PLANTED_REDUCE_NOTIFY_FIRST, false);
  must_find(PWI_PLANTED_REDUCE_NOTIFY_FIRST, true);
  must_find(PWI_PLANTED_REDUCE_OLD_SLOT, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_step_returns_the_average_of_what_was_sent),
      cmocka_unit_test(test_every_planted_bug_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
