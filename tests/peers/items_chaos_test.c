/* Items under faults: links break and fall silent, members are cut off, stand still, die, also in the middle
 * of a set, and come back, and are declared dead while they live. Every get returns a version that was set
 * and is new enough (sharers.h), and once the faults are over all members go on together. The test finds
 * bugs that are planted on purpose.
 *
 * planted: yes
 * cost: 17
 * many: 20000
 */
#include "base/testing.h"
#include "protocol/planted.h"
#include "sharers.h"
#include "sim/faults.h"

#define MANY 2000 /* enough to meet everything */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 300
#else
#define SEEDS MANY
#endif
#define AFTER 5 /* steps that all members make after the faults */

static struct club club;

static void draw_faults(struct pwi_sim_faults *faults, uint64_t seed) {
  struct pwi_sim_faults_config config;
  struct pwi_sim_node nodes[SHARERS_MAX + 1] = {club.cluster.manager_node};
  for (uint32_t i = 0; i < club.count; i++) nodes[i + 1] = club.sharers[i].client.node;
  pwi_sim_faults_config_init(&config);
  config.nodes = nodes;
  config.node_count = club.count + 1;
  config.begin = pwi_sim_now(club.cluster.sim) + 50 * MS;
  config.end = config.begin + 450 * MS;
  config.gap_mean_ns = 50 * MS;
  config.duration_max_ns = 400 * MS;
  config.pause_max_ns = seed % 3 == 0 ? 900 * MS : 150 * MS;
  config.down_max = 2;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = 4;
  config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 1;
  config.weights[PWI_SIM_FAULT_PART] = config.weights[PWI_SIM_FAULT_PAUSE] = 1;
  config.weights[PWI_SIM_FAULT_SLOW] = 1;
  config.weights[PWI_SIM_FAULT_ISOLATE] = 2;
  config.weights[PWI_SIM_FAULT_KILL] = (double)(seed % 3);
  assert_int_equal(pwi_sim_faults_draw(club.cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(club.cluster.sim, faults), PAWL_OK);
}

static void prepare(uint64_t seed) {
  static const size_t sizes[] = {40, 700, 5000};
  memset(&club, 0, sizeof club);
  club.count = 2 + (uint32_t)(seed % 3);
  club.variant = seed / 2 % 3 == 1 ? PAWL_ITEMS_PULL : PAWL_ITEMS_PUSH;
  club.is_conservative = seed / 2 % 3 == 2;
  club.size = sizes[seed / 3 % 3];
  club.slack = seed % 4 == 0 ? 0 : seed % 7;
  club.compute_max = (seed % 7 == 0 ? 40 : 15) * MS;
  club.die_chance = seed % 5 == 0 ? 0.002 : 0;
}

/* All members are up and have made some steps. */
static bool is_unsettled(void *context) {
  const uint64_t *from = context;
  for (uint32_t i = 0; i < club.count; i++) {
    const struct sharer *sharer = &club.sharers[i];
    if (!sharer->engine || !pwi_items_is_open(sharer->engine) || sharer->clock < *from + AFTER) return true;
  }
  return false;
}

struct tally {
  uint64_t reads, torn, deaths, retirements;
};

static bool has_shared_hosts(uint64_t seed) { return seed % 4 < 2; }

/* Returns false, with the reason printed if `is_loud`, if the run fails. */
static bool run_seed(uint64_t seed, bool is_loud, struct tally *tally) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .shared_hosts = has_shared_hosts(seed),
                                      .client_grace_ns = seed % 2 ? 200 * MS : 50 * MS,
                                      .durable = true};
  struct pwi_sim_faults faults;
  prepare(seed);
  if (getenv("PAWL_SEED")) cluster_print_log();
  club_open(&club, &config);
  draw_faults(&faults, seed);
  pawl_status status = pwi_cluster_run_for(&club.cluster, 600 * MS);
  club.die_chance = 0;
  uint64_t from = club.high;
  if (!status) status = pwi_cluster_run_while(&club.cluster, is_unsettled, &from, 60 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < club.count; i++) {
    const struct sharer *sharer = &club.sharers[i];
    if (sharer->engine && pwi_items_failure(sharer->engine)) {
      status = pwi_items_failure(sharer->engine);
      if (is_loud) print_error("seed %llu: node %u: %s\n", (unsigned long long)seed, i, sharer->engine->problem);
    }
    tally->retirements += pwi_cluster_client_figures(&club.sharers[i].client).retirements;
  }
  tally->reads += club.reads;
  tally->torn += club.torn;
  tally->deaths += club.deaths;
  if (status && is_loud) {
    if (getenv("PAWL_SEED")) club_print(&club);
    print_error("seed %llu: %s %s\n", (unsigned long long)seed, pawl_status_name(status),
                pwi_sim_failure(club.cluster.sim) ? pwi_sim_failure(club.cluster.sim) : "");
  }
  club_close(&club);
  pwi_sim_faults_fini(&faults);
  return status == PAWL_OK;
}

static uint64_t number_in(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_every_get_returns_a_version_that_was_set(void **state) {
  (void)state;
  struct tally tally = {0};
  uint64_t only = number_in("PAWL_SEED", 0), last = only ? only : number_in("PAWL_SEEDS", SEEDS), failures = 0;
  pwi_planted_set(PWI_PLANTED_NONE);
  for (uint64_t seed = only ? only : number_in("PAWL_FIRST", 1); seed <= last; seed++)
    if (!run_seed(seed, failures < 20, &tally)) failures++;
  printf("%llu reads, %llu torn, %llu deaths in a set, %llu retirements\n", (unsigned long long)tally.reads,
         (unsigned long long)tally.torn, (unsigned long long)tally.deaths, (unsigned long long)tally.retirements);
  assert_int_equal(failures, 0);
  if (!only && !getenv("PAWL_FIRST") && last >= MANY)
    assert_true(tally.reads > 1000000 && tally.torn > 100000 && tally.deaths > 100 && tally.retirements > 100);
}

/* The first seed that finds it. */
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
  must_find(PWI_PLANTED_ITEM_CLOCK_FIRST);
  must_find(PWI_PLANTED_ITEM_BARE_CHECKSUM);
  must_find(PWI_PLANTED_ITEM_LATE_PUT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_get_returns_a_version_that_was_set),
      cmocka_unit_test(test_every_planted_bug_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
