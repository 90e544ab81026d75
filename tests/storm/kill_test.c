/* SIGKILL to servers and workers under load, with one replica: no acknowledged push is lost, and none is
 * doubled. storm.kill_hundred does it a hundred times. */
#include "kit.h"

static void test_nothing_is_lost_with_servers_that_are_killed(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(1)};
  struct pwi_random random;
  pwi_random_init(&random, kit_seed(), 0);
  struct pwi_storm *storm = kit_begin(&config, 2);
  kit_kill_servers(storm, &random, 3);
  kit_end(storm);
}

/* The last pushes of a killed worker may be applied once. */
static void test_nothing_is_lost_or_doubled_with_workers_that_are_killed(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 2, .replicas = PWI_STORM_NO_REPLICAS};
  struct pwi_storm *storm = kit_begin(&config, 2);
  for (int i = 0; i < 4; i++) {
    kit_await_pushes(storm, 500);
    pwi_storm_kill(storm, kit_member(storm, PWI_STORM_WORKER, 0));
    kit_add(storm, PWI_STORM_WORKER, NULL);
    kit_settle(storm);
  }
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_is_lost_with_servers_that_are_killed),
      cmocka_unit_test(test_nothing_is_lost_or_doubled_with_workers_that_are_killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
