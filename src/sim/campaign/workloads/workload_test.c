/* Every workload ends without faults, and with them, and does what it is for; so do outages and several managers. */
#include <stddef.h>

#include "base/testing.h"
#include "sim/campaign/workloads/workload.h"

#define SEEDS 4

static struct pwi_campaign_config config_of(uint64_t seed, int replicas) {
  struct pwi_campaign_config config;
  pwi_campaign_draw(seed, replicas, &config);
  config.memory_max = 0;
  config.crew = config.paced = 0;
  config.workers = 1;
  config.calls = 10;
  config.workloads = config.managers = 0;
  config.gap_outages_ns = config.gap_resets_ns = 0;
  config.has_long_pause = config.has_drift = config.has_small_queues = config.has_starvation = false;
  return config;
}

static void calm_down(struct pwi_campaign_config *config) {
  config->gap_nodes_ns = config->gap_kills_ns = config->gap_servers_ns = 0;
  config->gap_manager_ns = config->gap_members_ns = config->gap_moves_ns = 0;
}

static struct pwi_campaign_figures run(const struct pwi_campaign_config *config) {
  struct pwi_campaign_result result;
  pwi_campaign_run(config, &result);
  if (result.has_failed) {
    char text[512];
    pwi_campaign_describe(config, text, sizeof text);
    fail_msg("%s: %s", text, result.failure);
  }
  return result.figures;
}

#define FIGURE(name) offsetof(struct pwi_campaign_figures, name)

/* The counts that show that a workload was at work. */
static const struct {
  enum pwi_campaign_workload workload;
  int replicas;
  size_t figures[3];
} works[] = {
    {PWI_WORKLOAD_SCANNER, -1, {FIGURE(scans), FIGURE(scans), FIGURE(pushes)}},
    {PWI_WORKLOAD_NAMES, -1, {FIGURE(creates), FIGURE(deletes), FIGURE(restores)}},
    {PWI_WORKLOAD_HEIR, -1, {FIGURE(fenced), FIGURE(fenced), FIGURE(pushes)}},
    {PWI_WORKLOAD_SUMS, -1, {FIGURE(group_pushes), FIGURE(group_pulls), FIGURE(group_pushes)}},
    {PWI_WORKLOAD_LINEAR, -1, {FIGURE(linear_calls), FIGURE(folds), FIGURE(folds)}},
    {PWI_WORKLOAD_CALLER, -1, {FIGURE(calls), FIGURE(calls), FIGURE(calls)}},
    {PWI_WORKLOAD_SAVER, -1, {FIGURE(saves), FIGURE(loads), FIGURE(pushes)}},
    {PWI_WORKLOAD_TRIGGER, -1, {FIGURE(triggers), FIGURE(triggers), FIGURE(triggers)}},
    {PWI_WORKLOAD_LOCAL, -1, {FIGURE(local_pushes), FIGURE(local_pulls), FIGURE(local_pulls)}},
    {PWI_WORKLOAD_GATE, 1, {FIGURE(views), FIGURE(views), FIGURE(views)}},
    {PWI_WORKLOAD_LOSS, 0, {FIGURE(given_up), FIGURE(server_kills), FIGURE(pushes)}},
    {PWI_WORKLOAD_READERS, -1, {FIGURE(old_pulls), FIGURE(pulls_relayed), FIGURE(relay_reads)}},
};
enum { WORKS = sizeof works / sizeof *works };

static uint64_t figure(const struct pwi_campaign_figures *figures, size_t offset) {
  return *(const uint64_t *)((const char *)figures + offset);
}

static void run_each(bool has_faults) {
  for (size_t w = 0; w < WORKS; w++) {
    struct pwi_campaign_figures met = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
      struct pwi_campaign_config config = config_of(seed, works[w].replicas);
      config.workloads = UINT32_C(1) << works[w].workload;
      if (works[w].workload == PWI_WORKLOAD_LOSS) config.workers = 0;
      if (works[w].workload == PWI_WORKLOAD_LOSS && config.processes < 2) config.processes = 2;
      if (works[w].workload == PWI_WORKLOAD_READERS) {
        config.relays = 2;
        snprintf(config.tree, sizeof config.tree, "rack");
      }
      if (!has_faults) calm_down(&config);
      struct pwi_campaign_figures figures = run(&config);
      pwi_campaign_figures_add(&met, &figures);
    }
    for (size_t i = 0; i < 3; i++) assert_true(figure(&met, works[w].figures[i]) > 0);
  }
}

static void test_there_is_a_row_for_every_workload(void **state) {
  (void)state;
  assert_int_equal(WORKS, PWI_WORKLOADS);
  for (size_t w = 0; w < WORKS; w++) assert_int_equal(works[w].workload, w);
}

static void test_every_workload_works_without_faults(void **state) {
  (void)state;
  run_each(false);
}

static void test_every_workload_works_with_faults(void **state) {
  (void)state;
  run_each(true);
}

static void test_outages_and_drifting_clocks_lose_nothing(void **state) {
  (void)state;
  struct pwi_campaign_figures met = {0};
  for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
    struct pwi_campaign_config config = config_of(seed, (int)(seed % 3));
    config.calls = 40;
    config.gap_resets_ns = 40 * MS;
    config.gap_outages_ns = 300 * MS;
    config.has_long_pause = seed % 4 == 0;
    config.has_drift = config.has_small_queues = config.has_starvation = true;
    struct pwi_campaign_figures figures = run(&config);
    pwi_campaign_figures_add(&met, &figures);
  }
  assert_true(met.resets > 0 && met.partitions > 0 && met.mass_silences > 0 && met.manager_cuts > 0);
  assert_true(met.long_pauses > 0 && met.starvations > 0);
}

static void test_managers_take_turns(void **state) {
  (void)state;
  struct pwi_campaign_figures met = {0};
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct pwi_campaign_config config = config_of(seed, -1);
    config.managers = 2 + (uint32_t)(seed % 2);
    config.gap_manager_ns = 1200 * MS;
    config.window_ns = 7000 * MS;
    struct pwi_campaign_figures figures = run(&config);
    pwi_campaign_figures_add(&met, &figures);
  }
  assert_true(met.takeovers > 0);
}

/* Only if the process has ended, or was declared dead, may calls to it fail because it is gone. */
static void test_a_process_is_there_until_it_ends_or_is_declared_dead(void **state) {
  (void)state;
  static struct campaign campaign;
  static struct pwi_cluster_client client = {.name = "visitor", .job = "test"};
  const struct pwi_workload workload = {.campaign = &campaign};
  const struct pwi_cluster_config config = {.seed = 1, .processes = 1, .shards = 1};
  struct pwi_membership *membership = &campaign.keeper.ledger.membership;
  assert_int_equal(pwi_cluster_open(&campaign.cluster, &config), PAWL_OK);
  assert_int_equal(pwi_cluster_client_add(&campaign.cluster, &client), PAWL_OK);
  assert_int_equal(pwi_cluster_wait_joined(&client), PAWL_OK);
  struct pwi_workload_target target = pwi_workload_target(&client), other = target, older = target;
  struct pwi_membership_sender sender = {.sender = {target.sender}, .job = "test", .key = {1}};
  assert_false(pwi_workload_is_there(&workload, &target));
  assert_int_equal(pwi_membership_add(membership, &sender), PAWL_OK);
  assert_true(pwi_workload_is_there(&workload, &target));
  other.sender++;
  older.incarnation--;
  assert_false(pwi_workload_is_there(&workload, &other));
  assert_false(pwi_workload_is_there(&workload, &older));
  assert_int_equal(pwi_membership_retire(membership, sender.sender), PAWL_OK);
  assert_false(pwi_workload_is_there(&workload, &target));
  pwi_membership_fini(membership);
  pwi_cluster_close(&campaign.cluster);
}

/* Seeds whose campaigns failed once, and the reason. */
static void test_seeds_that_failed_once(void **state) {
  (void)state;
  static const uint64_t seeds[] = {
      9904,                              /* a pull of a forgotten sender met a gap */
      4479,  6814,  10471, 16377, 16559, /* `loss` killed the last server that was not leaving */
      8357,         /* `loss` gave up a shard that had left, and not the other shard of its process */
      11955, 19494, /* a member that came back late waited for members that had their answers, and they for it */
      18024,        /* the crew took the full disk of the manager for an error of its own */
      26197, 28352, /* a member that was declared dead gave up its group when the manager's journal failed */
      32319,        /* the checker heard from a server first that a checkpoint was loaded */
      44964,        /* the campaign drained a server while those that were to take over had not joined yet */
      57731,        /* a member that had entered at a tick entered again below it, and waited for itself */
      47675,        /* links of a server stayed cut while it was started anew, with another id */
      7716,  47990, /* a head that was isolated for 176 ms complained about the member behind it */
      96183,        /* the simulator changed bytes of a region after a send from it had failed */
      97998,        /* the disk of the manager was full when the check of `names` began */
      87953,        /* a member that was declared dead passed a barrier before it was in the group again */
      166,          /* a checkpoint had results of row functions, which its readers took for damage */
      728,   729,   /* a visitor called a process that its membership did not have yet */
      78490, 79151, /* the first member of a group ended before the second joined: the group was never complete */
  };
  static const uint64_t relay_seeds[] = {
      9028, /* a member was lost before the group was complete: two steps, and another member was in one of them */
  };
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    struct pwi_campaign_config config;
    pwi_campaign_draw(seeds[i], -1, &config);
    run(&config);
  }
  for (size_t i = 0; i < sizeof relay_seeds / sizeof *relay_seeds; i++) {
    struct pwi_campaign_config config;
    pwi_campaign_draw(relay_seeds[i], -1, &config);
    pwi_campaign_set_relays(&config);
    run(&config);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_there_is_a_row_for_every_workload),
      cmocka_unit_test(test_every_workload_works_without_faults),
      cmocka_unit_test(test_every_workload_works_with_faults),
      cmocka_unit_test(test_outages_and_drifting_clocks_lose_nothing),
      cmocka_unit_test(test_managers_take_turns),
      cmocka_unit_test(test_a_process_is_there_until_it_ends_or_is_declared_dead),
      cmocka_unit_test(test_seeds_that_failed_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
