/* The manager is killed with SIGKILL and started again with its log. Without a manager pushes and pulls
 * continue; afterwards the cluster is the same, and a server may die. The pulls are those of the workers,
 * each of which checks its keys now and then; a stale key would be in the verdict. */
#include "kit.h"

#include <sys/stat.h>

static void kill_manager(struct pwi_storm *storm, unsigned away_ms) {
  pwi_storm_kill(storm, kit_member(storm, PWI_STORM_MANAGER, 0));
  int64_t from = pwi_host_now();
  kit_await_pushes(storm, 1000); /* without a manager */
  int64_t took = pwi_host_now() - from;
  if (took < (int64_t)away_ms * 1000000) kit_sleep_ms(away_ms - (unsigned)(took / 1000000));
  kit_add(storm, PWI_STORM_MANAGER, NULL);
  kit_settle(storm);
  kit_await_whole(storm);
}

static void test_a_manager_that_is_killed_comes_back_to_the_same_cluster(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-storm-data-XXXXXX", command[64];
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_knows("manager", "--replicas") ? 1 : -1};
  struct pwi_random random;
  kit_need("manager", "--data");
  assert_non_null(mkdtemp(folder));
  config.data = folder;
  pwi_random_init(&random, kit_seed(), 0);
  struct pwi_storm *storm = kit_begin(&config, 2);
  kill_manager(storm, 0);
  kill_manager(storm, 1500);
  if (config.replicas > 0) kit_kill_servers(storm, &random, 1);
  kit_await_pushes(storm, 500);
  kit_end(storm);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_manager_that_is_killed_comes_back_to_the_same_cluster)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
